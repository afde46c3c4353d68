//! How keys lead to entries: chosen by what they are, and laid out.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tandem_column::{AlignedVec, Result, Type};
use tandem_plan::{HashTable, KeyIndex, Keys, Packed, Set, dense_domain, sink::BuildUse, spread};

use super::places::RowsByPlace;
use crate::{
    ParallelTasks, Values, Vector,
    arrange::{EntryOrder, arrange_parallel},
    hash::hash_rows,
    hashed::{pack_values, written},
    lookup::{ints, is_int},
    parallel::{PIECE, cut, each, map, pieces},
};

/// Buckets of up to this many entries are sorted by moving each to its place.
const FEW: usize = 16;

/// What is known of a build's keys.
pub(super) struct Layout<'l> {
    /// The types of the keys.
    pub(super) kinds: &'l [Type],
    /// Only whether a key exists will be asked.
    pub(super) existence: bool,
    /// Some key is null.
    pub(super) null_key: bool,
    pub(super) used: BuildUse,
    pub(super) parallel: ParallelTasks<'l>,
}

impl Layout<'_> {
    /// Chooses how keys lead to entries; returns it with the row of each entry.
    pub(super) fn lay_out(&self, rows: usize, mut keys: Vec<Vector>) -> Result<(KeyIndex, EntryOrder)> {
        let Layout { null_key, used, .. } = self;
        // Rows with null keys that never match are left out from here on.
        let listed = (*null_key && !used.null_equals_null).then(|| {
            let valid = |row: &u32| keys.iter().all(|key| key.is_valid(*row as usize));
            (0..rows as u32).filter(valid).collect::<Vec<u32>>()
        });
        if let Some(listed) = &listed {
            keys.iter_mut().for_each(|key| *key = Vector::new(key.take(listed).values));
        }
        let row = |at: usize| listed.as_ref().map_or(at as u32, |listed| listed[at]);
        let keyed = listed.as_ref().map_or(rows, Vec::len);
        if keys.len() == 1 && is_int(&keys[0]) && !(*null_key && (used.null_equals_null || used.outer)) && !used.collide
        {
            let (min, max) = self.range(&keys[0])?.unwrap_or((0, -1));
            if let Some(domain) = dense_domain(keyed, min, max, self.existence) {
                return self.dense(&ints(&keys[0]), row, min, domain);
            }
        }
        let (table, mut order) = self.hashed(&keys, keyed)?;
        if listed.is_some() {
            order.iter_mut().for_each(|at| *at = row(*at as usize));
        }
        if used.outer && keyed < rows {
            // Those that no look-up finds come last.
            let mut kept = vec![false; rows];
            order.iter().for_each(|row| kept[*row as usize] = true);
            order.extend((0..rows as u32).filter(|row| !kept[*row as usize]));
        }
        Ok((KeyIndex::Hash(table), EntryOrder::Each(order)))
    }

    /// Lays keys out by their places in an array.
    fn dense(
        &self,
        values: &[i64],
        row: impl Fn(usize) -> u32 + Sync,
        min: i64,
        domain: usize,
    ) -> Result<(KeyIndex, EntryOrder)> {
        let mut set = Set::new(min, domain);
        if self.existence {
            values.iter().for_each(|value| set.insert(*value));
            return Ok((KeyIndex::Unique(Arc::new(set)), EntryOrder::Each(Vec::new())));
        }
        let place = |at: usize| (values[at].wrapping_sub(min) as u32, row(at));
        let places = RowsByPlace::new(values.len(), domain, place, self.parallel)?;
        let repeats = AtomicBool::new(false);
        let runs: Vec<_> = places.runs().collect();
        // A run has a multiple of eight places; the last one's bits go on to the end.
        let last = runs.len() - 1;
        let (length, mut bits) = (set.bits.len(), set.bits.as_mut_slice());
        let mut work = Vec::with_capacity(runs.len());
        for (at, (rows, within)) in runs.iter().enumerate() {
            let end = if at == last { length } else { within.end / 8 };
            let (slice, rest) = bits.split_at_mut(end - within.start / 8);
            work.push((slice, &places.places[rows.clone()], within.start));
            bits = rest;
        }
        each(self.parallel, work, |_, (bits, places, first): (&mut [u8], &[u32], usize)| {
            let mut twice = 0;
            for place in places.iter().map(|place| *place as usize - first) {
                twice |= bits[place / 8] >> (place % 8) & 1;
                bits[place / 8] |= 1 << (place % 8);
            }
            repeats.fetch_or(twice != 0, Ordering::Relaxed);
        })?;
        if repeats.into_inner() {
            let (starts, order) = places.sort(self.parallel)?;
            return Ok((KeyIndex::Dense { set: Arc::new(set), starts }, EntryOrder::Each(order)));
        }
        let bounds = runs.iter().map(|(rows, within)| (rows.end, within.end)).collect();
        let RowsByPlace { rows, places, .. } = places;
        Ok((KeyIndex::Unique(Arc::new(set)), EntryOrder::Some { rows, places, entries: domain, bounds }))
    }

    /// Lays keys out by their hash; returns which of them each entry has.
    fn hashed(&self, keys: &[Vector], keyed: usize) -> Result<(HashTable, Vec<u32>)> {
        let collide = self.used.collide;
        let packing = self.pack(keys)?;
        let unordered = self.values(keys, keyed, packing.as_deref())?;
        let bits = if collide { 0 } else { keyed.max(1).next_power_of_two().trailing_zeros() };
        let packed = packing.is_some();
        let hash = |value: u64| if packed { spread(value) } else { value };
        let bucket = |at: usize| (HashTable::bucket(hash(unordered[at]), bits) as u32, at as u32);
        let places = RowsByPlace::new(keyed, 1 << bits, bucket, self.parallel)?;
        let (starts, mut order) = places.sort(self.parallel)?;
        let mut values = AlignedVec::<u64>::zeroed(keyed);
        let mut directory = AlignedVec::<u64>::zeroed(starts.len());
        directory[starts.len() - 1] = HashTable::word(keyed as u32, 0);
        let (unique, exact) = (AtomicBool::new(true), AtomicBool::new(true));
        let lengths = || places.runs().map(|(rows, _)| rows.len());
        let entries = cut(&mut order, lengths()).into_iter().zip(cut(values.as_mut_slice(), lengths()));
        let words = cut(directory.as_mut_slice(), places.runs().map(|(_, buckets)| buckets.len()));
        let work = places.runs().zip(entries.zip(words)).collect();
        each(
            self.parallel,
            work,
            |_, ((rows, buckets), ((order, values), words)): (_, ((&mut [u32], &mut [u64]), &mut [u64]))| {
                values.iter_mut().zip(&*order).for_each(|(value, at)| *value = unordered[*at as usize]);
                let (mut repeated, mut mixed) = (false, false);
                for (word, ends) in words.iter_mut().zip(starts[buckets.start..=buckets.end].windows(2)) {
                    let within = ends[0] as usize - rows.start..ends[1] as usize - rows.start;
                    let (values, order) = (&mut values[within.clone()], &mut order[within]);
                    sort_bucket(values, order);
                    let filter = values.iter().fold(0, |filter, value| filter | HashTable::filter(hash(*value), bits));
                    *word = HashTable::word(ends[0], filter);
                    for at in (1..values.len()).filter(|at| values[*at] == values[at - 1]) {
                        repeated = true;
                        mixed |= !packed && !same_key(keys, order[at - 1] as usize, order[at] as usize);
                    }
                }
                unique.fetch_and(!repeated, Ordering::Relaxed);
                exact.fetch_and(!mixed, Ordering::Relaxed);
            },
        )?;
        let (mut unique, exact) = (unique.into_inner(), exact.into_inner());
        let keys = match packing {
            Some(packing) => Keys::Packed(packing),
            None => {
                let mut columns = self.key_columns(keys, &order)?;
                if !exact {
                    unique = sort_mixed(&values, &columns, &mut order);
                    columns = self.key_columns(keys, &order)?;
                }
                Keys::Columns { columns, exact }
            }
        };
        Ok((HashTable { keys, values: values.into(), directory: directory.into(), unique, collide }, order))
    }

    fn key_columns(&self, keys: &[Vector], order: &[u32]) -> Result<Vec<Arc<tandem_column::Column>>> {
        let order = EntryOrder::Each(order.to_vec());
        let columns = keys.iter().zip(self.kinds);
        columns.map(|(key, kind)| Ok(Arc::new(arrange_parallel(key, kind, &order, self.parallel)?.0))).collect()
    }

    /// Returns the packed key or the hash of each.
    fn values(&self, keys: &[Vector], keyed: usize, packing: Option<&[Packed]>) -> Result<Vec<u64>> {
        let mut values = vec![0; keyed];
        let references: Vec<&Vector> = keys.iter().collect();
        let integers: Vec<_> = keys.iter().map(ints).collect();
        each(self.parallel, values.chunks_mut(PIECE).collect(), |piece, out: &mut [u64]| match packing {
            None if self.used.collide => {}
            None => hash_rows(&references, piece * PIECE, out),
            Some(packing) => {
                let rows = piece * PIECE..piece * PIECE + out.len();
                let mut present = vec![0; out.len()];
                for ((packing, key), integers) in packing.iter().zip(keys).zip(&integers) {
                    let valid = key.valid.as_ref().map(|valid| &valid[rows.clone()]);
                    pack_values(*packing, &integers[rows.clone()], valid, out, &mut present);
                }
            }
        })?;
        Ok(values)
    }

    /// Packs integer keys into 64 bits if their ranges allow it; one value of each range is left for null.
    fn pack(&self, keys: &[Vector]) -> Result<Option<Vec<Packed>>> {
        if !keys.iter().all(is_int) {
            return Ok(None);
        }
        let ranges = keys.iter().map(|key| Ok(self.range(key)?.unwrap_or((0, 0)))).collect::<Result<Vec<_>>>()?;
        Ok(Packed::all(&ranges))
    }

    /// Returns the smallest and the largest integer of those that are not null.
    fn range(&self, key: &Vector) -> Result<Option<(i64, i64)>> {
        let values = ints(key);
        let pieces: Vec<_> = pieces(values.len()).collect();
        let ranges = map(self.parallel, pieces.len(), |piece| {
            let (mut min, mut max) = (i64::MAX, i64::MIN);
            let mut widen = |value: i64| (min, max) = (min.min(value), max.max(value));
            let rows = pieces[piece].clone();
            match &key.valid {
                None => values[rows].iter().for_each(|value| widen(*value)),
                Some(valid) => rows.filter(|row| valid[*row] != 0).for_each(|row| widen(values[row])),
            }
            (min, max)
        })?;
        let range = ranges.into_iter().reduce(|left, right| (left.0.min(right.0), left.1.max(right.1)));
        Ok(range.filter(|(min, max)| min <= max))
    }
}

/// Puts the entries of a bucket in the order of their values, equal ones as they come.
fn sort_bucket(values: &mut [u64], order: &mut [u32]) {
    if values.is_sorted() {
        return;
    }
    if values.len() <= FEW {
        for at in 1..values.len() {
            let mut to = at;
            while to > 0 && values[to - 1] > values[to] {
                values.swap(to - 1, to);
                order.swap(to - 1, to);
                to -= 1;
            }
        }
        return;
    }
    let mut pairs: Vec<(u64, u32)> = values.iter().copied().zip(order.iter().copied()).collect();
    pairs.sort_by_key(|(value, _)| *value);
    for ((value, at), pair) in values.iter_mut().zip(order).zip(pairs) {
        (*value, *at) = pair;
    }
}

/// Puts entries of the same hash in the order of their keys, equal ones as they come; tells whether no key repeats.
fn sort_mixed(values: &[u64], columns: &[Arc<tandem_column::Column>], order: &mut [u32]) -> bool {
    let (mut unique, mut first) = (true, 0);
    for run in values.chunk_by(|left, right| left == right) {
        if run.len() > 1 {
            let entries = first..first + run.len();
            let mut keyed: Vec<_> =
                entries.clone().map(|entry| (written(columns, entry as u32), order[entry])).collect();
            keyed.sort_by(|left, right| left.0.cmp(&right.0));
            unique &= keyed.windows(2).all(|pair| pair[0].0 != pair[1].0);
            order[entries].iter_mut().zip(keyed).for_each(|(at, (_, sorted))| *at = sorted);
        }
        first += run.len();
    }
    unique
}

/// Tells whether two rows have the same key; null equals null.
fn same_key(keys: &[Vector], left: usize, right: usize) -> bool {
    keys.iter().all(|key| match (key.is_valid(left), key.is_valid(right)) {
        (true, true) => match &key.values {
            Values::Boolean(values) => values[left] == values[right],
            Values::Int(values) => values[left] == values[right],
            Values::Wide(values) => values[left] == values[right],
            Values::Float(values) => values[left].to_bits() == values[right].to_bits(),
            Values::Code { codes, .. } => codes[left] == codes[right],
            Values::Bytes(values) => values.get(left) == values.get(right),
        },
        (left, right) => left == right,
    })
}
