//! The static hash table of a build: buckets of neighbouring entries behind a directory of words.
//!
//! A word of the directory holds where its bucket begins and, in the other half, a small filter of the bucket's hashes: a
//! look-up of a key that is not there mostly ends at that one word. Within a bucket, entries lie in the order of their
//! *values*: the packed key of each, or the hash of its key columns where those do not fit 64 bits.

use std::sync::Arc;

use tandem_column::{AlignedVec, Buffer, Column};

/// A static hash table: a bucket's entries lie next to each other, equal keys adjacent and in order.
#[derive(Debug)]
pub struct HashTable {
    /// What the values are.
    pub keys: Keys,
    /// The value of each entry that has a key: the first of all.
    pub values: Buffer<u64>,
    /// A word for each bucket, a power of two of them, and one behind: the entry that it begins at, below the filter of its
    /// hashes ([`HashTable::filter`]).
    pub directory: Buffer<u64>,
    /// Every key has at most one entry.
    pub unique: bool,
    /// All keys have one hash: a test of collisions.
    pub collide: bool,
}

/// The keys of a hash table's entries.
#[derive(Debug)]
pub enum Keys {
    /// Values are all key columns packed into one integer.
    Packed(Vec<Packed>),
    /// Values are hashes of the key columns.
    Columns {
        /// The key columns, in entry order.
        columns: Vec<Arc<Column>>,
        /// No two keys of a bucket have the same hash. Otherwise entries of the same hash are in the order of their keys.
        exact: bool,
    },
}

/// Where one key lies in a packed one: 0 is null, other values count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The value packed as 1.
    pub min: i64,
    /// How many values from there on can be packed.
    pub span: u64,
    /// How many bits lie below.
    pub shift: u32,
}

/// Spreads a packed key over 64 bits.
#[inline(always)]
pub fn spread(key: u64) -> u64 {
    // Fibonacci hashing after folding the high half in; the top bits choose the bucket.
    (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl HashTable {
    /// Makes a table of packed keys in entry order; entries of bucket `b` are `starts[b] .. starts[b + 1]`.
    pub fn of_packed(packing: Vec<Packed>, values: Vec<u64>, starts: &[u32]) -> HashTable {
        let bits = (starts.len() - 1).trailing_zeros();
        let mut directory = AlignedVec::with_capacity(starts.len());
        let mut unique = true;
        for range in starts.windows(2) {
            let bucket = &values[range[0] as usize..range[1] as usize];
            let filter = bucket.iter().fold(0, |filter, value| filter | HashTable::filter(spread(*value), bits));
            unique &= bucket.windows(2).all(|pair| pair[0] != pair[1]);
            directory.push(HashTable::word(range[0], filter));
        }
        directory.push(HashTable::word(starts.last().copied().unwrap_or(0), 0));
        let (keys, values) = (Keys::Packed(packing), values.into());
        HashTable { keys, values, directory: directory.into_buffer(), unique, collide: false }
    }

    /// Makes a word of the directory.
    #[inline(always)]
    pub fn word(start: u32, filter: u32) -> u64 {
        u64::from(start) | u64::from(filter) << 32
    }

    /// Returns the bucket of a hash among two to the power of `bits`.
    #[inline(always)]
    pub fn bucket(hash: u64, bits: u32) -> usize {
        ((hash >> 1) >> (63 - bits)) as usize
    }

    /// Returns the bits that a hash sets in the filter of its bucket: one or two of 32, by what does not choose the bucket.
    #[inline(always)]
    pub fn filter(hash: u64, bits: u32) -> u32 {
        let rest = hash << bits;
        1 << (rest >> 59) | 1 << (rest >> 54 & 31)
    }

    /// Returns how many bits of a hash choose the bucket.
    pub fn bits(&self) -> u32 {
        (self.directory.len() - 1).trailing_zeros()
    }

    /// Returns where the entries of each bucket begin, and the last end.
    pub fn starts(&self) -> impl Iterator<Item = u32> + '_ {
        self.directory.iter().map(|word| *word as u32)
    }

    /// Returns the bytes held.
    pub fn byte_len(&self) -> usize {
        let columns = match &self.keys {
            Keys::Packed(_) => 0,
            Keys::Columns { columns, .. } => columns.iter().map(|column| column.byte_len()).sum(),
        };
        self.directory.byte_len() + self.values.byte_len() + columns
    }
}

impl Packed {
    /// Packs keys of such ranges into 64 bits, if they fit; one value of each range is left for null.
    pub fn all(ranges: &[(i64, i64)]) -> Option<Vec<Packed>> {
        let mut shift = 0;
        let mut packing = Vec::with_capacity(ranges.len());
        for &(min, max) in ranges {
            let span = u64::try_from(i128::from(max) - i128::from(min) + 1).ok()?;
            let bits = 64 - span.leading_zeros();
            if shift + bits > 64 {
                return None;
            }
            packing.push(Packed { min, span, shift });
            shift += bits;
        }
        Some(packing)
    }

    /// Packs a value, or null; `None` if it is outside of the range.
    #[inline(always)]
    pub fn pack(&self, value: Option<i64>) -> Option<u64> {
        match value {
            None => Some(0),
            Some(value) => {
                let offset = value.wrapping_sub(self.min) as u64;
                (value >= self.min && offset < self.span).then(|| (offset + 1) << self.shift)
            }
        }
    }

    /// Returns the value in a packed key; `None` is null.
    pub fn unpack(&self, packed: u64) -> Option<i64> {
        let bits = 64 - self.span.leading_zeros();
        let place = packed >> self.shift & if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        place.checked_sub(1).map(|offset| self.min.wrapping_add(offset as i64))
    }
}
