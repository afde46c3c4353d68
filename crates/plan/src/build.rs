//! The build side of a join, ready to be probed: a dense array, a bitmap or a hash table over its rows.
//!
//! Rows lie in *entries*: rows of equal key next to each other, payload columns compact and in entry order. Looking a key
//! up gives a range of entries. CPU and devices make the same value; whoever probes it, reads it.

use std::sync::{Arc, OnceLock};

use tandem_column::Column;
use tandem_pipeline::Slot;

use crate::{HashTable, Keys, Lookup, RunOrder, Set, Way};

/// A dense array may take this many bytes per key: about what a hash table and its keys take, with room for the gain.
const DENSE_BYTES_PER_KEY: usize = 32;
/// Dense arrays up to this size are always taken: lookups that find nothing only touch one bit a place of it.
const DENSE_BYTES: usize = 8 << 20;

/// The rows of a build side with an index by key: an array, a bitmap or a hash table.
#[derive(Debug)]
pub struct Build {
    /// How many rows there are, null keys included.
    pub rows: usize,
    /// Some key was null.
    pub null_key: bool,
    /// How keys lead to entries.
    pub index: KeyIndex,
    /// Payload columns in entry order.
    pub payload: Vec<Arc<Column>>,
    /// Smallest and largest integer (or code) of each payload column.
    pub ranges: Vec<Option<(i64, i64)>>,
    /// How many entries the payload has: one a row, or one for each place of a dense array.
    pub stored: usize,
    /// Every key has at most one entry.
    unique: bool,
    /// The order of the entries of each key, where probes search it.
    pub order: Option<RunOrder>,
    /// See [`Build::key_set`].
    key_set: OnceLock<Option<Arc<Set>>>,
    /// Keys are the codes of the rows that look them up (`coded.rs`).
    pub coded: bool,
}

/// How keys lead to the entries of a build.
#[derive(Debug)]
pub enum KeyIndex {
    /// No keys: every entry matches.
    All,
    /// Entry = key − min, at most one row each.
    Unique(Arc<Set>),
    /// Entries of key `k` are `starts[k − min] .. starts[k − min + 1]`.
    Dense {
        /// The keys there are.
        set: Arc<Set>,
        /// Where the entries of each place begin, and the last end.
        starts: Vec<u32>,
    },
    /// By hash of the key.
    Hash(HashTable),
}

impl Build {
    /// Makes a build of an index and the number of its rows.
    pub fn new(rows: usize, null_key: bool, index: KeyIndex, stored: usize) -> Build {
        let unique = match &index {
            KeyIndex::All => rows <= 1,
            KeyIndex::Unique(_) => true,
            KeyIndex::Dense { .. } => false,
            KeyIndex::Hash(table) => table.unique,
        };
        let (payload, ranges, key_set) = (Vec::new(), Vec::new(), OnceLock::new());
        Build { rows, null_key, index, payload, ranges, stored, unique, order: None, coded: false, key_set }
    }

    /// Adds a payload column, with the range of its integers or codes.
    pub fn push(&mut self, column: Arc<Column>, range: Option<(i64, i64)>) {
        self.payload.push(column);
        self.ranges.push(range);
    }

    /// Tells whether every key has at most one entry.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Returns the keys as bits, nulls aside, if they are integers of one column that lie closely enough together.
    ///
    /// Those of a hash table are made when they are first asked for: only a probe by a column of many rows gains from them.
    pub(crate) fn key_set(&self) -> Option<&Arc<Set>> {
        let make = || {
            let KeyIndex::Hash(HashTable { keys: Keys::Packed(packing), values, collide: false, .. }) = &self.index
            else {
                return None;
            };
            let [packed] = packing.as_slice() else { return None };
            let last = packed.min.saturating_add_unsigned(packed.span.saturating_sub(1));
            let mut set = Set::new(packed.min, dense_domain(values.len(), packed.min, last, true)?);
            values.iter().filter_map(|value| packed.unpack(*value)).for_each(|key| set.insert(key));
            Some(Arc::new(set))
        };
        match &self.index {
            KeyIndex::All => None,
            KeyIndex::Unique(set) | KeyIndex::Dense { set, .. } => Some(set),
            KeyIndex::Hash(_) => self.key_set.get_or_init(make).as_ref(),
        }
    }

    /// Tells whether an entry holds a row.
    pub fn is_entry(&self, entry: usize) -> bool {
        match &self.index {
            KeyIndex::Unique(set) => set.contains(set.min + entry as i64),
            _ => true,
        }
    }

    /// Returns how many entries there are, for flags of each.
    pub fn entries(&self) -> usize {
        match &self.index {
            KeyIndex::Unique(set) => self.stored.max(set.domain as usize),
            _ => self.stored,
        }
    }

    /// Describes the lookup for a physical pipeline; `direct` says how rows lead into it if a source column does.
    pub(crate) fn lookup(&self, direct: Option<Way>) -> Lookup {
        let way = direct.unwrap_or_else(|| match &self.index {
            KeyIndex::All => Way::All(self.rows),
            KeyIndex::Unique(set) => Way::Unique { min: set.min, domain: set.domain },
            KeyIndex::Dense { set, .. } => Way::Dense { min: set.min, domain: set.domain },
            KeyIndex::Hash(table) => match &table.keys {
                // One bucket is all entries in the order of their keys.
                Keys::Packed(packing) if table.bits() == 0 => {
                    Way::Sorted { packing: packing.clone(), keyed: table.values.len() }
                }
                Keys::Packed(packing) => Way::Hash { packing: packing.clone(), bits: table.bits() },
                Keys::Columns { .. } => Way::Bytes,
            },
        });
        let payload = self.payload.iter().map(|column| Slot {
            name: String::new(),
            kind: column.kind.clone(),
            nullable: column.is_nullable(),
        });
        let (empty, null_key) = (self.rows == 0, self.null_key);
        Lookup { way, codes: None, payload: payload.collect(), unique: self.unique, empty, null_key }
    }

    /// Describes the choice made, for people.
    pub(crate) fn note(&self) -> String {
        let values = if self.coded { "codes" } else { "values" };
        match &self.index {
            KeyIndex::All => format!("{} rows, no key", self.rows),
            KeyIndex::Unique(set) if self.payload.is_empty() => {
                format!("{} keys as a bitmap over {} {values}", set.len(), set.domain)
            }
            KeyIndex::Unique(set) => format!("{} keys as an array over {} {values}", set.len(), set.domain),
            KeyIndex::Dense { set, .. } => {
                format!("{} rows by an array over {} {values}, keys repeat", self.rows, set.domain)
            }
            KeyIndex::Hash(table) if table.bits() == 0 && self.rows > 1 && !table.collide => {
                format!("{} rows in the order of their key", self.rows)
            }
            KeyIndex::Hash(table) => format!(
                "{} rows hashed by {}",
                self.rows,
                if matches!(table.keys, Keys::Packed(_)) { "a packed integer" } else { "their key columns" }
            ),
        }
    }

    /// Returns the bytes held.
    pub fn byte_len(&self) -> usize {
        let index = match &self.index {
            KeyIndex::All => 0,
            KeyIndex::Unique(set) => set.bits.len(),
            KeyIndex::Dense { set, starts } => set.bits.len() + starts.len() * 4,
            KeyIndex::Hash(table) => table.byte_len(),
        };
        let order = self.order.as_ref().map_or(0, RunOrder::byte_len);
        let key_set = self.key_set.get().into_iter().flatten().map(|set| set.bits.len()).sum::<usize>();
        index + order + key_set + self.payload.iter().map(|column| column.byte_len()).sum::<usize>()
    }
}

/// Returns how many places keys from `min` to `max` take, if that is worth it.
pub fn dense_domain(keys: usize, min: i64, max: i64, existence: bool) -> Option<usize> {
    let domain = (i128::from(max) - i128::from(min) + 1) as u128;
    // A place is a bit, and unless only existence matters about four bytes of order and payload.
    let bytes = domain.saturating_mul(if existence { 1 } else { 33 }) / 8;
    let pays = bytes <= (keys * DENSE_BYTES_PER_KEY).max(DENSE_BYTES) as u128;
    // Places are numbers of 32 bits.
    (pays && domain < u32::MAX.into()).then_some(domain as usize)
}
