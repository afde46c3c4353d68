//! Sorted distinct byte strings, which columns name by position.
//!
//! Codes follow the order of the values, so a comparison of values is a comparison of codes, and a range or a prefix of
//! values is a range of codes.

use std::{collections::VecDeque, ops::Range};

use crate::interner::Interner;
use crate::{AlignedVec, Buffer, Error, Result, Type};

/// Distinct byte strings, ascending.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Dictionary {
    /// One more than there are values; empty for no value.
    offsets: Buffer<u32>,
    bytes: Buffer<u8>,
    /// Every value is UTF-8.
    text: bool,
}

/// The most bytes that the values of a dictionary take together: Arrow's offsets are signed 32-bit.
pub const DICTIONARY_BYTES: usize = i32::MAX as usize;

/// How many dictionaries another is compared with as a whole, of those merged with it: with all, it would take the square of
/// their number.
const RECENT: usize = 16;

impl Dictionary {
    /// Takes values that are ascending and distinct, as offsets into bytes.
    ///
    /// # Errors
    /// If they are not, or if `kind` is `String` and one is not UTF-8.
    pub fn new(kind: &Type, offsets: Buffer<u32>, bytes: Buffer<u8>) -> Result<Dictionary> {
        let dictionary = Dictionary { offsets, bytes, text: false };
        dictionary.check_order()?;
        dictionary.check_text(kind)
    }

    fn check_order(&self) -> Result<()> {
        let bounded = self.offsets.first().is_none_or(|first| *first == 0)
            && self.offsets.last().is_none_or(|last| *last as usize == self.bytes.len())
            && self.bytes.len() <= DICTIONARY_BYTES
            && (!self.offsets.is_empty() || self.bytes.is_empty())
            && self.offsets.is_sorted();
        if !bounded {
            return Err(Error::internal("dictionary offsets do not ascend from 0 to the number of bytes"));
        }
        for code in 1..self.len() as u32 {
            if self.get(code - 1) >= self.get(code) {
                return Err(Error::internal("dictionary values are not ascending and distinct"));
            }
        }
        Ok(())
    }

    fn check_text(mut self, kind: &Type) -> Result<Dictionary> {
        self.text = *kind == Type::String;
        if self.text && self.iter().any(|value| std::str::from_utf8(value).is_err()) {
            return Err(Error::input("text is not valid UTF-8; read the column as binary"));
        }
        Ok(self)
    }

    /// Makes a dictionary of distinct values in any order, and tells the code of each.
    ///
    /// # Errors
    /// If `kind` is `String` and a value is not UTF-8, or if the values take 2 GiB or more.
    pub fn from_unsorted<V: AsRef<[u8]>>(kind: &Type, values: &[V]) -> Result<(Dictionary, Vec<u32>)> {
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_unstable_by(|a, b| values[*a as usize].as_ref().cmp(values[*b as usize].as_ref()));
        let size: usize = values.iter().map(|value| value.as_ref().len()).sum();
        if size > DICTIONARY_BYTES {
            return Err(Error::exhausted(format!("dictionary values exceed 2 GiB: {size} bytes")));
        }
        let mut remap = vec![0; values.len()];
        let mut offsets = AlignedVec::with_capacity(values.len() + 1);
        let mut bytes = AlignedVec::with_capacity(size);
        offsets.push(0);
        for (code, &position) in order.iter().enumerate() {
            remap[position as usize] = code as u32;
            bytes.extend_from_slice(values[position as usize].as_ref());
            offsets.push(bytes.len() as u32);
        }
        let dictionary = Dictionary { offsets: offsets.into_buffer(), bytes: bytes.into_buffer(), text: false };
        Ok((dictionary.check_text(kind)?, remap))
    }

    /// Makes the union of dictionaries, and tells for each of them the new code of each old one.
    ///
    /// # Errors
    /// If the union takes 2 GiB or more.
    pub fn merge(dictionaries: &[&Dictionary]) -> Result<(Dictionary, Vec<Vec<u32>>)> {
        let mut interner = Interner::new();
        let mut interned: Vec<Vec<u32>> = Vec::with_capacity(dictionaries.len());
        let mut recent: VecDeque<usize> = VecDeque::new();
        for (at, dictionary) in dictionaries.iter().enumerate() {
            // Parts of one table mostly have the same values: recognise that by a few comparisons of bytes.
            let same = recent.iter().copied().find(|&earlier| dictionaries[earlier] == *dictionary);
            interned.push(match same {
                Some(earlier) => interned[earlier].clone(),
                None => {
                    recent.push_front(at);
                    recent.truncate(RECENT);
                    dictionary.iter().map(|value| interner.intern(value)).collect()
                }
            });
        }
        let (mut merged, remap) = interner.into_dictionary(&Type::Binary)?;
        merged.text = dictionaries.iter().all(|dictionary| dictionary.text);
        interned.iter_mut().flatten().for_each(|code| *code = remap[*code as usize]);
        Ok((merged, interned))
    }

    /// Makes a dictionary of the empty string alone: what a column of nulls only names by its codes 0.
    pub fn placeholder(kind: &Type) -> Dictionary {
        let offsets = Buffer::from_slice(&[0, 0]);
        Dictionary { offsets, bytes: Buffer::default(), text: *kind == Type::String }
    }

    /// Tells whether every value is known to be UTF-8.
    pub fn is_text(&self) -> bool {
        self.text
    }

    /// Returns how many values there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a code.
    ///
    /// # Panics
    /// If there is no such code.
    #[inline]
    pub fn get(&self, code: u32) -> &[u8] {
        let code = code as usize;
        &self.bytes[self.offsets[code] as usize..self.offsets[code + 1] as usize]
    }

    /// Returns the text of a code.
    ///
    /// # Panics
    /// If there is no such code, or it is not text.
    #[inline]
    pub fn get_str(&self, code: u32) -> &str {
        assert!(self.text, "the dictionary holds text");
        // SAFETY: each value was validated when the dictionary was made, and it has not changed since.
        unsafe { std::str::from_utf8_unchecked(self.get(code)) }
    }

    /// Returns the code of a value, or else the code before which it would be inserted.
    pub fn find(&self, value: &[u8]) -> Result<u32, u32> {
        let (mut low, mut high) = (0, self.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).cmp(value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Returns the codes of all values that begin with `prefix`.
    pub fn prefix_range(&self, prefix: &[u8]) -> Range<u32> {
        let start = self.find(prefix).unwrap_or_else(|insert| insert);
        let (mut low, mut high) = (start, self.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).starts_with(prefix) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        start..low
    }

    /// Visits the values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.offsets.windows(2).map(|pair| &self.bytes[pair[0] as usize..pair[1] as usize])
    }

    /// Returns all values one after the other.
    pub fn bytes(&self) -> &Buffer<u8> {
        &self.bytes
    }

    /// Returns where each value begins in [`Self::bytes`], and the end; empty if there is no value.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Returns the memory that is held, in bytes.
    pub fn byte_len(&self) -> usize {
        self.offsets.byte_len() + self.bytes.byte_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Dictionary {
        Dictionary::from_unsorted(&Type::String, values).expect("text").0
    }

    #[test]
    fn values_are_sorted_and_found() {
        let (dictionary, remap) =
            Dictionary::from_unsorted(&Type::String, &["pear", "", "äpfel", "apple"]).expect("text");
        assert_eq!(remap, [2, 0, 3, 1]);
        assert_eq!((0..4).map(|code| dictionary.get_str(code)).collect::<Vec<_>>(), ["", "apple", "pear", "äpfel"]);
        assert_eq!(dictionary.find(b"pear"), Ok(2));
        assert_eq!(dictionary.find(b"b"), Err(2));
        assert_eq!(dictionary.find("ö".as_bytes()), Err(4));
    }

    #[test]
    fn prefixes_are_ranges() {
        let dictionary = of(&["a", "ab", "abc", "abd", "b", "ba"]);
        assert_eq!(dictionary.prefix_range(b"ab"), 1..4);
        assert_eq!(dictionary.prefix_range(b""), 0..6);
        assert_eq!(dictionary.prefix_range(b"c"), 6..6);
        assert_eq!(dictionary.prefix_range(b"abca"), 3..3);
        assert_eq!(Dictionary::default().prefix_range(b"x"), 0..0);
    }

    #[test]
    fn merging_keeps_every_value() {
        let (a, b, c) = (of(&["x", "z"]), of(&["y", "z", "a"]), of(&["x", "z"]));
        let (merged, remaps) = Dictionary::merge(&[&a, &b, &c]).expect("small");
        assert_eq!(merged, of(&["a", "x", "y", "z"]));
        assert_eq!(remaps, [vec![1, 3], vec![0, 2, 3], vec![1, 3]]);
        assert!(merged.is_text());
        assert!(Dictionary::merge(&[]).expect("nothing").0.is_empty());
    }

    #[test]
    fn malformed_values_are_refused() {
        let new = |kind: &Type, offsets: &[u32], bytes: &[u8]| Dictionary::new(kind, offsets.into(), bytes.into());
        assert!(new(&Type::String, &[0, 1, 2], b"ab").is_ok());
        assert!(new(&Type::String, &[0, 1, 2], b"aa").is_err());
        assert!(new(&Type::String, &[0, 2, 1], b"ab").is_err());
        assert!(new(&Type::String, &[0, 3], b"ab").is_err());
        assert!(new(&Type::String, &[0, 1], &[0xff]).is_err());
        assert!(new(&Type::Binary, &[0, 1], &[0xff]).is_ok());
    }
}
