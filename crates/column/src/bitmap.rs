//! One bit per row: validity, and sets of small integers.
//!
//! Bit `i` is bit `i % 64` of word `i / 64`, as in Arrow on a little-endian machine. Bits from the length on are zero,
//! so that words can be counted and combined without a special case for the last one.

use arrow_buffer::{BooleanBuffer, NullBuffer};

use crate::{AlignedVec, Buffer};

/// Immutable bits, shared by reference count.
#[derive(Clone, Debug, PartialEq)]
pub struct Bitmap {
    words: Buffer<u64>,
    length: usize,
}

impl Bitmap {
    /// Takes `length` bits from `words`; later bits are cleared.
    ///
    /// # Panics
    /// If there are fewer words than `length` bits need.
    pub fn new(words: impl Into<AlignedVec<u64>>, length: usize) -> Bitmap {
        let mut words = words.into();
        words.truncate(length.div_ceil(64));
        assert!(words.len() == length.div_ceil(64), "a bitmap needs a word for each 64 bits");
        if let (Some(last), true) = (words.as_mut_slice().last_mut(), !length.is_multiple_of(64)) {
            *last &= (1 << (length % 64)) - 1;
        }
        Bitmap { words: words.into_buffer(), length }
    }

    /// Makes `length` bits of one value.
    pub fn filled(length: usize, value: bool) -> Bitmap {
        let mut words = AlignedVec::with_capacity(length.div_ceil(64));
        words.resize(length.div_ceil(64), if value { !0 } else { 0 });
        Bitmap::new(words, length)
    }

    /// Copies Arrow's bits.
    pub fn from_arrow(bits: &BooleanBuffer) -> Bitmap {
        let chunks = bits.bit_chunks();
        let mut words = AlignedVec::with_capacity(bits.len().div_ceil(64));
        words.extend(chunks.iter());
        if chunks.remainder_len() > 0 {
            words.push(chunks.remainder_bits());
        }
        Bitmap::new(words, bits.len())
    }

    /// Returns how many bits there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns bit `i`.
    ///
    /// # Panics
    /// If `i` is not below the length rounded up to 64.
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        debug_assert!(i < self.length);
        self.words[i / 64] >> (i % 64) & 1 != 0
    }

    /// Returns all bits, 64 to a word; those from the length on are zero.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words' memory, shared.
    pub fn buffer(&self) -> &Buffer<u64> {
        &self.words
    }

    /// Returns the 64 bits from `start` on, which need not be a multiple of 64; zeros behind the end.
    #[inline]
    pub fn word_at(&self, start: usize) -> u64 {
        let (word, shift) = (start / 64, start % 64);
        let low = self.words.get(word).copied().unwrap_or(0) >> shift;
        match shift {
            0 => low,
            _ => low | self.words.get(word + 1).copied().unwrap_or(0) << (64 - shift),
        }
    }

    /// Counts the set bits.
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Counts the set bits of `range`.
    pub fn count_ones_in(&self, range: std::ops::Range<usize>) -> usize {
        let mut count = 0;
        let mut at = range.start;
        while at < range.end {
            let bits = (range.end - at).min(64);
            let mask = if bits == 64 { !0 } else { (1 << bits) - 1 };
            count += (self.word_at(at) & mask).count_ones() as usize;
            at += bits;
        }
        count
    }

    /// Visits the bits in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.length).map(|i| self.get(i))
    }

    /// Visits the positions of set bits, ascending.
    pub fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors((word != 0).then_some(word), |rest| Some(rest & (rest - 1)).filter(|w| *w != 0))
                .map(move |rest| at * 64 + rest.trailing_zeros() as usize)
        })
    }

    /// Zeroes each value whose bit is not set.
    pub fn zero_unset<T: crate::Plain>(&self, values: &mut [T]) {
        for (chunk, &word) in values.chunks_mut(64).zip(self.words()) {
            if word != !0 {
                for (bit, value) in chunk.iter_mut().enumerate() {
                    if word >> bit & 1 == 0 {
                        *value = T::default();
                    }
                }
            }
        }
    }

    /// Copies the bits of `range`.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Bitmap {
        assert!(range.start <= range.end && range.end <= self.length, "a slice lies within its bitmap");
        if range == (0..self.length) {
            return self.clone();
        }
        let words: AlignedVec<u64> = range.clone().step_by(64).map(|start| self.word_at(start)).collect();
        Bitmap::new(words, range.len())
    }

    /// Shares the bits of `range` with Arrow, without a copy.
    pub fn to_arrow(&self, range: std::ops::Range<usize>) -> BooleanBuffer {
        BooleanBuffer::new(self.words.to_arrow(), range.start, range.len())
    }

    /// Shares the bits of `range` with Arrow as validity, or `None` if all are set.
    pub fn to_nulls(&self, range: std::ops::Range<usize>) -> Option<NullBuffer> {
        let nulls = NullBuffer::new(self.to_arrow(range));
        (nulls.null_count() > 0).then_some(nulls)
    }

    /// Returns the memory that is held, in bytes.
    pub fn byte_len(&self) -> usize {
        self.words.byte_len()
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Bitmap {
        let mut builder = BitmapBuilder::new();
        bits.into_iter().for_each(|bit| builder.push(bit));
        builder.finish()
    }
}

impl From<&[bool]> for Bitmap {
    fn from(bits: &[bool]) -> Bitmap {
        bits.iter().copied().collect()
    }
}

impl From<&BooleanBuffer> for Bitmap {
    fn from(bits: &BooleanBuffer) -> Bitmap {
        Bitmap::from_arrow(bits)
    }
}

/// Where the bits of a [`Bitmap`] are written.
#[derive(Clone, Debug, Default)]
pub struct BitmapBuilder {
    words: AlignedVec<u64>,
    length: usize,
}

impl BitmapBuilder {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty one with room for `bits` bits.
    pub fn with_capacity(bits: usize) -> Self {
        BitmapBuilder { words: AlignedVec::with_capacity(bits.div_ceil(64)), length: 0 }
    }

    /// Makes `length` zeros.
    pub fn zeroed(length: usize) -> Self {
        BitmapBuilder { words: AlignedVec::zeroed(length.div_ceil(64)), length }
    }

    /// Returns how many bits there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.length.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.length / 64] |= u64::from(bit) << (self.length % 64);
        self.length += 1;
    }

    /// Adds `count` bits of one value.
    pub fn push_many(&mut self, bit: bool, count: usize) {
        let mut left = count;
        while left > 0 {
            let bits = left.min(64);
            self.push_word(if bit { !0 } else { 0 }, bits);
            left -= bits;
        }
    }

    /// Adds the lowest `bits` bits of `word`, at most 64.
    #[inline]
    pub fn push_word(&mut self, word: u64, bits: usize) {
        if bits == 0 {
            return;
        }
        let word = if bits == 64 { word } else { word & ((1 << bits) - 1) };
        let shift = self.length % 64;
        if shift == 0 {
            self.words.push(word);
        } else {
            self.words[self.length / 64] |= word << shift;
            if shift + bits > 64 {
                self.words.push(word >> (64 - shift));
            }
        }
        self.length += bits;
    }

    /// Adds the bits of `range` of a bitmap.
    pub fn extend(&mut self, bitmap: &Bitmap, range: std::ops::Range<usize>) {
        for start in range.clone().step_by(64) {
            self.push_word(bitmap.word_at(start), (range.end - start).min(64));
        }
    }

    /// Returns bit `i`.
    #[inline]
    pub fn get(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 != 0
    }

    /// Sets bit `i` to one.
    #[inline]
    pub fn set(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    /// Sets bit `i` to zero.
    #[inline]
    pub fn clear(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    /// Seals the bits.
    pub fn finish(self) -> Bitmap {
        Bitmap::new(self.words, self.length)
    }

    /// Seals the bits as validity: `None` if all are set.
    pub fn finish_validity(self) -> Option<Bitmap> {
        let length = self.length;
        let bitmap = self.finish();
        (bitmap.count_ones() < length).then_some(bitmap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(length: usize) -> Vec<bool> {
        (0..length).map(|i| i * i % 7 < 3).collect()
    }

    #[test]
    fn bits_are_kept_sliced_and_counted() {
        for length in [0, 1, 63, 64, 65, 1000] {
            let bits = pattern(length);
            let bitmap = Bitmap::from(bits.as_slice());
            assert!(bitmap.iter().eq(bits.iter().copied()));
            assert_eq!(bitmap.count_ones(), bits.iter().filter(|bit| **bit).count());
            assert!(bitmap.ones().eq((0..length).filter(|i| bits[*i])));
            for (start, end) in [(0, length), (length / 3, length / 2), (length / 2, length)] {
                let slice = bitmap.slice(start..end);
                assert!(slice.iter().eq(bits[start..end].iter().copied()));
                assert_eq!(slice.count_ones(), bitmap.count_ones_in(start..end));
                let arrow = bitmap.to_arrow(start..end);
                assert!(arrow.iter().eq(bits[start..end].iter().copied()));
                assert_eq!(Bitmap::from_arrow(&arrow), slice);
            }
        }
    }

    #[test]
    fn builders_append_at_any_position() {
        let bits = pattern(500);
        let source = Bitmap::from(bits.as_slice());
        let mut builder = BitmapBuilder::new();
        let mut expected = Vec::new();
        for (start, end) in [(0, 3), (3, 100), (7, 8), (64, 128), (100, 500), (9, 9)] {
            builder.extend(&source, start..end);
            expected.extend_from_slice(&bits[start..end]);
            builder.push(true);
            builder.push_many(false, start);
            expected.push(true);
            expected.extend(std::iter::repeat_n(false, start));
        }
        assert_eq!(builder.finish(), Bitmap::from(expected.as_slice()));
        assert_eq!(Bitmap::filled(70, true).count_ones(), 70);
        assert!(Bitmap::filled(70, true).to_nulls(0..70).is_none());
        assert_eq!(Bitmap::filled(70, false).to_nulls(5..70).map(|nulls| nulls.null_count()), Some(65));
    }

    #[test]
    fn values_of_unset_bits_become_zero() {
        let bits = pattern(130);
        let mut values: Vec<i64> = (1..131).collect();
        Bitmap::from(bits.as_slice()).zero_unset(&mut values);
        assert!(values.iter().zip(&bits).all(|(value, bit)| (*value != 0) == *bit));
    }
}
