//! Byte strings numbered in the order they first appear: how a dictionary is collected.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{Dictionary, Result, Type};

/// Distinct byte strings, numbered from 0 as they first appear.
pub(crate) struct Interner {
    hasher: DefaultHashBuilder,
    table: HashTable<(u32, u32)>, // the low half of the hash, and the number
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Interner {
    pub fn new() -> Self {
        Interner { hasher: DefaultHashBuilder::default(), table: HashTable::new(), ends: Vec::new(), bytes: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    fn get(ends: &[usize], bytes: &[u8], number: u32) -> std::ops::Range<usize> {
        let number = number as usize;
        let start = if number == 0 { 0 } else { ends[number - 1] };
        debug_assert!(ends[number] <= bytes.len());
        start..ends[number]
    }

    /// Returns the number of `value`, which is new if it was not there.
    #[inline]
    pub fn intern(&mut self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        let (ends, bytes) = (&self.ends, &self.bytes);
        let found = self
            .table
            .find(hash, |&(low, number)| low == hash as u32 && &bytes[Self::get(ends, bytes, number)] == value);
        if let Some(&(_, number)) = found {
            return number;
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        let (hasher, ends, bytes) = (&self.hasher, &self.ends, &self.bytes);
        let rehash = |&(_, number): &(u32, u32)| hasher.hash_one(&bytes[Self::get(ends, bytes, number)]);
        self.table.insert_unique(hash, (hash as u32, number), rehash);
        number
    }

    /// Makes a sorted dictionary, and tells the code of each number.
    pub fn into_dictionary(self, kind: &Type) -> Result<(Dictionary, Vec<u32>)> {
        let values: Vec<&[u8]> =
            (0..self.len() as u32).map(|number| &self.bytes[Self::get(&self.ends, &self.bytes, number)]).collect();
        Dictionary::from_unsorted(kind, &values)
    }
}
