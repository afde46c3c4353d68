//! The side of a join that rows are looked up in.
//!
//! Rows are collected as they come, then laid out once in *entries*: rows of equal key next to each other, payload
//! columns compacted and in entry order. Looking a key up gives a range of entries. Integer keys that lie densely become
//! an array index (and, where only existence matters, one bit each); other keys go through a static hash directory.

use std::{rc::Rc, sync::Arc};

use tandem_column::{AlignedVec, Bitmap, BitmapBuilder, Buffer, Code, Codes, Column, Plain, Result, Type};

use crate::{
    Error, Values, Vector,
    absorb::{LaidOut, LaidOutWay},
    directory::{Directory, Keys},
    set::Set,
};

/// A dense array may take this many bytes per key: about what a hash directory and its keys take, with room for the gain.
const DENSE_BYTES_PER_KEY: usize = 32;
/// Dense arrays up to this size are always taken: lookups that find nothing only touch one bit a place of it.
const DENSE_BYTES: usize = 8 << 20;

/// What probes will ask of a build.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    /// Some probe emits build rows, matched or not: rows with null keys must be kept.
    pub(crate) outer: bool,
    /// Null keys match null keys.
    pub(crate) null_equals_null: bool,
    /// Every probe only asks whether a match exists.
    pub(crate) existence: bool,
    /// All keys get the same hash, to test collisions.
    pub(crate) collide: bool,
    /// Rows come in the order of the only key, and so do all rows that look it up.
    pub(crate) merge: bool,
}

/// Rows of a build side, laid out for lookup.
#[derive(Debug)]
pub struct Build {
    /// How many rows there are, null keys included.
    pub(crate) rows: usize,
    /// Payload columns in entry order.
    pub(crate) payload: Vec<Arc<Column>>,
    /// Smallest and largest integer (or code) of each payload column.
    pub(crate) ranges: Vec<Option<(i64, i64)>>,
    /// How keys lead to entries.
    pub(crate) lookup: Lookup,
    /// Some key was null.
    pub(crate) null_key: bool,
    /// Entries there are: one a row, or one for each place of a dense array.
    pub(crate) entries: usize,
    /// Every key has at most one entry.
    unique: bool,
}

#[derive(Debug)]
pub(crate) enum Lookup {
    /// No keys: every entry matches.
    All,
    /// Entry = key − min, at most one row each.
    Unique(Set),
    /// Entries of key `k` are `starts[k − min] .. starts[k − min + 1]`.
    Dense { set: Set, starts: Vec<u32> },
    /// By hash of the key.
    Hash(Directory),
}

impl Build {
    /// Lays out collected rows.
    pub(crate) fn new(
        rows: usize,
        keys: Vec<Vector>,
        payload: Vec<Vector>,
        kinds: &[Type],
        used: Use,
    ) -> Result<Build> {
        if rows >= u32::MAX as usize {
            return Err(Error::exhausted(format!("the build side of a join has too many rows: {rows}")));
        }
        let null_key = keys.iter().any(|k| k.valid.as_ref().is_some_and(|v| v.contains(&0)));
        let (lookup, order) = if keys.is_empty() {
            (Lookup::All, Order::Each((0..rows as u32).collect()))
        } else {
            lay_out(rows, &keys, payload.is_empty() && used.existence, null_key, used)?
        };
        let entries = order.entries();
        let mut columns = Vec::with_capacity(payload.len());
        let mut ranges = Vec::with_capacity(payload.len());
        for (vector, kind) in payload.iter().zip(kinds) {
            let (column, range) = arrange(vector, kind, &order);
            columns.push(Arc::new(column));
            ranges.push(range);
        }
        let unique = match &lookup {
            Lookup::All => rows <= 1,
            Lookup::Unique(_) => true,
            Lookup::Dense { .. } => false,
            Lookup::Hash(directory) => directory.is_unique(),
        };
        Ok(Build { rows, payload: columns, ranges, lookup, null_key, entries, unique })
    }

    /// Takes a build that a device laid out.
    pub(crate) fn laid_out(build: LaidOut) -> Build {
        let LaidOut { rows, null_key, way, payload, ranges } = build;
        let (lookup, entries, unique) = match way {
            LaidOutWay::Places { min, domain, bits, starts } => {
                let set = Set { min, domain: domain as u64, bits };
                match starts {
                    Some(starts) => {
                        let entries = starts.last().map_or(0, |end| *end as usize);
                        (Lookup::Dense { set, starts }, entries, false)
                    }
                    None => (Lookup::Unique(set), if payload.is_empty() { 0 } else { domain }, true),
                }
            }
            LaidOutWay::Hash { packing, keys, starts, entries } => {
                let directory = Directory::laid_out(packing, keys, starts);
                let unique = directory.is_unique();
                (Lookup::Hash(directory), entries, unique)
            }
        };
        Build { rows, payload, ranges, lookup, null_key, entries, unique }
    }

    /// Tells whether every key has at most one entry.
    pub(crate) fn is_unique(&self) -> bool {
        self.unique
    }

    /// Tells whether an entry holds a row.
    pub(crate) fn is_entry(&self, entry: usize) -> bool {
        match &self.lookup {
            Lookup::Unique(set) => set.contains(set.min + entry as i64),
            _ => true,
        }
    }

    /// Finds the entries of each row's key: a range, empty where there is no match.
    pub(crate) fn find(&self, keys: &[Rc<Vector>], rows: usize, null_equals_null: bool) -> Vec<(u32, u32)> {
        let mut found = match &self.lookup {
            Lookup::All => vec![(0, self.rows as u32); rows],
            Lookup::Unique(set) => ints(&keys[0])
                .iter()
                .map(|key| {
                    let place = key.wrapping_sub(set.min) as u32;
                    if set.contains(*key) { (place, place + 1) } else { (0, 0) }
                })
                .collect(),
            Lookup::Dense { set, starts } => ints(&keys[0])
                .iter()
                .map(|key| {
                    let place = key.wrapping_sub(set.min) as u64;
                    if place < set.domain { (starts[place as usize], starts[place as usize + 1]) } else { (0, 0) }
                })
                .collect(),
            Lookup::Hash(directory) => directory.find(keys, rows),
        };
        // Dense lookups hold no null key, so that a null finds nothing there in either case.
        if !null_equals_null || matches!(self.lookup, Lookup::Unique(_) | Lookup::Dense { .. }) {
            for key in keys {
                for (range, valid) in found.iter_mut().zip(key.valid.iter().flatten()) {
                    if *valid == 0 {
                        *range = (0, 0);
                    }
                }
            }
        }
        found
    }

    /// Describes the choice made, for people.
    pub(crate) fn note(&self) -> String {
        match &self.lookup {
            Lookup::All => format!("{} rows, no key", self.rows),
            Lookup::Unique(set) if self.payload.is_empty() => {
                format!("{} keys as a bitmap over {} values", set.len(), set.domain)
            }
            Lookup::Unique(set) => format!("{} keys as an array over {} values", set.len(), set.domain),
            Lookup::Dense { set, .. } => {
                format!("{} rows by an array over {} values, keys repeat", self.rows, set.domain)
            }
            Lookup::Hash(directory) if directory.starts.len() == 2 && self.rows > 1 => {
                format!("{} rows in the order of their key", self.rows)
            }
            Lookup::Hash(directory) => format!(
                "{} rows hashed by {}",
                self.rows,
                if matches!(directory.keys, Keys::Packed { .. }) { "a packed integer" } else { "key bytes" }
            ),
        }
    }

    /// Returns the bytes held.
    pub(crate) fn byte_len(&self) -> usize {
        let lookup = match &self.lookup {
            Lookup::All => 0,
            Lookup::Unique(set) => set.bits.len(),
            Lookup::Dense { set, starts } => set.bits.len() + starts.len() * 4,
            Lookup::Hash(d) => {
                d.starts.len() * 4
                    + match &d.keys {
                        Keys::Packed { values, .. } => values.len() * 8,
                        Keys::Bytes(bytes) => bytes.parts().1.len() + bytes.len() * 8,
                    }
            }
        };
        lookup + self.payload.iter().map(|column| column.byte_len()).sum::<usize>()
    }
}

pub(crate) fn ints(vector: &Vector) -> std::borrow::Cow<'_, [i64]> {
    match &vector.values {
        Values::Int(values) => values.into(),
        Values::Boolean(values) => values.iter().map(|v| i64::from(*v)).collect(),
        _ => (&[]).into(),
    }
}

pub(crate) fn is_int(vector: &Vector) -> bool {
    matches!(vector.values, Values::Int(_) | Values::Boolean(_))
}

/// Which row each entry holds.
pub(crate) enum Order {
    /// One for each entry.
    Each(Vec<u32>),
    /// Row `rows[i]` goes to entry `places[i]`; the other entries hold none.
    Some { rows: Vec<u32>, places: Vec<u32>, entries: usize },
}

impl Order {
    fn entries(&self) -> usize {
        match self {
            Order::Each(rows) => rows.len(),
            Order::Some { entries, .. } => *entries,
        }
    }

    /// Returns a value for each entry, the default where it holds no row.
    fn arrange<T: Plain>(&self, value: impl Fn(usize) -> T) -> AlignedVec<T> {
        match self {
            Order::Each(rows) => rows.iter().map(|row| value(*row as usize)).collect(),
            Order::Some { rows, places, entries } => {
                // Fresh zeroed memory costs nothing for the places that stay empty.
                let mut out = AlignedVec::zeroed(*entries);
                let slots = out.as_mut_slice();
                rows.iter().zip(places).for_each(|(row, place)| slots[*place as usize] = value(*row as usize));
                out
            }
        }
    }

    /// Returns the row of each entry, `None` where it holds none.
    fn rows(&self) -> Vec<Option<u32>> {
        match self {
            Order::Each(rows) => rows.iter().copied().map(Some).collect(),
            Order::Some { rows, places, entries } => {
                let mut out = vec![None; *entries];
                rows.iter().zip(places).for_each(|(row, place)| out[*place as usize] = Some(*row));
                out
            }
        }
    }
}

/// Chooses how keys lead to entries; returns it with the row of each entry.
fn lay_out(rows: usize, keys: &[Vector], existence: bool, null_key: bool, used: Use) -> Result<(Lookup, Order)> {
    let keyed: Vec<u32> = if null_key && !used.null_equals_null {
        let valid = |row: &u32| keys.iter().all(|k| k.is_valid(*row as usize));
        (0..rows as u32).filter(valid).collect()
    } else {
        (0..rows as u32).collect()
    };
    if keys.len() == 1 && is_int(&keys[0]) && !(null_key && (used.null_equals_null || used.outer)) && !used.collide {
        let values = ints(&keys[0]);
        let of = |row: &u32| values[*row as usize];
        let min = keyed.iter().map(of).min().unwrap_or(0);
        let max = keyed.iter().map(of).max().unwrap_or(-1);
        if let Some(domain) = dense_domain(keyed.len(), min, max, existence) {
            return Ok(lay_out_dense(keyed, &values, min, domain, existence));
        }
    }
    Directory::lay_out(keys, keyed, rows, used)
}

/// Returns how many places keys from `min` to `max` take, if that is worth it.
pub(crate) fn dense_domain(keys: usize, min: i64, max: i64, existence: bool) -> Option<usize> {
    let domain = (i128::from(max) - i128::from(min) + 1) as u128;
    // A place is a bit, and unless only existence matters about four bytes of order and payload.
    let bytes = domain.saturating_mul(if existence { 1 } else { 33 }) / 8;
    let pays = bytes <= (keys * DENSE_BYTES_PER_KEY).max(DENSE_BYTES) as u128;
    // Places are numbers of 32 bits.
    (pays && domain < u32::MAX.into()).then_some(domain as usize)
}

fn lay_out_dense(keyed: Vec<u32>, values: &[i64], min: i64, domain: usize, existence: bool) -> (Lookup, Order) {
    let mut set = Set::new(min, domain);
    let mut repeats = false;
    for row in &keyed {
        let value = values[*row as usize];
        repeats |= set.contains(value);
        set.insert(value);
    }
    if existence {
        return (Lookup::Unique(set), Order::Each(Vec::new()));
    }
    let place = |row: &u32| values[*row as usize].wrapping_sub(min) as usize;
    if !repeats {
        let places = keyed.iter().map(|row| place(row) as u32).collect();
        return (Lookup::Unique(set), Order::Some { rows: keyed, places, entries: domain });
    }
    let mut starts = vec![0u32; domain + 1];
    keyed.iter().for_each(|row| starts[place(row) + 1] += 1);
    (0..domain).for_each(|i| starts[i + 1] += starts[i]);
    let mut next = starts.clone();
    let mut order = vec![0u32; keyed.len()];
    for row in &keyed {
        let slot = &mut next[place(row)];
        order[*slot as usize] = *row;
        *slot += 1;
    }
    (Lookup::Dense { set, starts }, Order::Each(order))
}

/// Makes a compact column of a vector's values in entry order, with their range.
pub(crate) fn arrange(vector: &Vector, kind: &Type, order: &Order) -> (Column, Option<(i64, i64)>) {
    let validity = vector.valid.as_ref().map(|valid| {
        let mut bits = BitmapBuilder::with_capacity(order.entries());
        order.rows().iter().for_each(|row| bits.push(row.is_none_or(|row| valid[row as usize] != 0)));
        bits.finish()
    });
    match &vector.values {
        Values::Int(values) => {
            let range = range_of(values.iter().copied(), vector);
            let base = range.map_or(0, |r| r.0);
            let span = range.map_or(0, |r| r.1.wrapping_sub(r.0) as u64);
            let codes = place(order, Codes::width_for(span), |row| values[row].wrapping_sub(base) as u64);
            (Column::from_offsets(kind.clone(), base, codes, validity), range)
        }
        Values::Boolean(values) => {
            let codes = place(order, 1, |row| values[row].into());
            (Column::from_offsets(kind.clone(), 0, codes, validity), Some((0, 1)))
        }
        Values::Code { codes, dictionary } => {
            let range = range_of(codes.iter().map(|c| i64::from(*c)), vector);
            let width = Codes::width_for(range.map_or(0, |r| r.1 as u64)).min(4);
            let codes = place(order, width, |row| codes[row].into());
            (Column::from_codes(kind.clone(), codes, dictionary.clone(), validity), range)
        }
        Values::Wide(values) => (Column::from_i128(kind.clone(), order.arrange(|row| values[row]), validity), None),
        Values::Float(values) if *kind == Type::Float32 => {
            (Column::from_f32(order.arrange(|row| values[row] as f32), validity), None)
        }
        Values::Float(values) => (Column::from_f64(order.arrange(|row| values[row]), validity), None),
        Values::Bytes(values) => {
            let mut offsets = AlignedVec::<u64>::with_capacity(order.entries() + 1);
            let mut bytes = AlignedVec::<u8>::new();
            offsets.push(0);
            for row in order.rows() {
                if let Some(row) = row {
                    bytes.extend_from_slice(values.get(row as usize));
                }
                offsets.push(bytes.len() as u64);
            }
            (Column::from_bytes(kind.clone(), offsets.into(), bytes.into(), validity), None)
        }
    }
}

fn range_of(values: impl Iterator<Item = i64>, vector: &Vector) -> Option<(i64, i64)> {
    let fold = |range: Option<(i64, i64)>, v: i64| Some(range.map_or((v, v), |(l, h)| (l.min(v), h.max(v))));
    match &vector.valid {
        None => values.fold(None, fold),
        Some(valid) => values.zip(valid).filter(|(_, valid)| **valid != 0).map(|(v, _)| v).fold(None, fold),
    }
}

/// Writes codes of the given width in entry order; codes of null rows that do not fit are cut to the width.
fn place(order: &Order, width: usize, code: impl Fn(usize) -> u64) -> Codes {
    fn write<T: Code>(order: &Order, code: impl Fn(usize) -> u64) -> Codes {
        T::codes(Buffer::from(order.arrange(|row| T::truncate(code(row)))))
    }
    match width {
        1 => write::<u8>(order, code),
        2 => write::<u16>(order, code),
        4 => write::<u32>(order, code),
        _ => write::<u64>(order, code),
    }
}

/// Turns validity bytes into a bitmap; `None` if all are valid.
pub(crate) fn validity(valid: Option<&Vec<u8>>) -> Option<Bitmap> {
    let valid = valid.filter(|valid| valid.contains(&0))?;
    Some(valid.iter().map(|v| *v != 0).collect())
}
