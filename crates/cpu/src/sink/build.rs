//! The side of a join that rows are looked up in: collected as rows, then laid out once.
//!
//! Integer keys that lie densely become an array index (and, where only existence matters, one bit each); other keys go
//! through a static hash table.

use std::sync::Arc;

use tandem_column::{Result, Type};
use tandem_pipeline::UserFunction;
use tandem_plan::{
    Build, HashTable, KeyIndex, Keys, Packed, Set, dense_domain,
    sink::{BuildPlan, BuildUse},
};

use super::{Finishing, SinkOperator};
use crate::{
    BytesVector, Contents, Error, MemoryBudget, PipelineOutput, Rows, Values, Vector,
    arrange::{EntryOrder, arrange},
    evaluate::{self, Slots},
    frame::{Frame, NO_MATCH, fetch_matches},
    lookup::{hash_bytes, ints, is_int, read_key, spread, write_key},
    rows::concat_all,
};

pub(super) struct BuildSink {
    pub(super) plan: BuildPlan,
    pub(super) functions: Vec<Arc<UserFunction>>,
    pub(super) memory: Arc<MemoryBudget>,
}

impl SinkOperator for BuildSink {
    fn state(&self) -> Contents {
        Contents::Rows(Rows::new(self.plan.kinds.clone(), &self.memory, "the build side of a join"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let keys = self.plan.keys.iter().map(|key| evaluate::evaluate(key, frame, &self.functions));
        let payload = self.plan.payload.iter().map(|slot| frame.vector(*slot));
        contents.rows()?.push(morsel, frame.count(), &keys.chain(payload).collect::<Result<Vec<_>>>()?)
    }

    fn copies(&self) -> usize {
        2
    }

    fn finish(&self, mut contents: Vec<Contents>, _: &Finishing<'_>) -> Result<PipelineOutput> {
        // One that is laid out already is the build; beside others it is rows again.
        if let [Contents::Build(_)] = contents.as_slice()
            && let Some(Contents::Build(build)) = contents.pop()
        {
            return Ok(PipelineOutput::Build(Arc::new(*build)));
        }
        let BuildPlan { keys, kinds, used, .. } = &self.plan;
        let rows = contents.into_iter().enumerate().map(|(at, contents)| match contents {
            Contents::Build(build) => Ok(Rows::of(unlay(&build, keys.len(), kinds), at, kinds, &self.memory)),
            other => other.into_rows(),
        });
        let (rows, mut vectors) = concat_all(kinds, rows.collect::<Result<Vec<_>>>()?);
        let payload = vectors.split_off(keys.len());
        Ok(PipelineOutput::Build(Arc::new(lay_out(rows, vectors, payload, &kinds[keys.len()..], *used)?)))
    }
}

/// Lays out collected rows.
fn lay_out(rows: usize, keys: Vec<Vector>, payload: Vec<Vector>, kinds: &[Type], used: BuildUse) -> Result<Build> {
    if rows >= u32::MAX as usize {
        return Err(Error::exhausted(format!("the build side of a join has too many rows: {rows}")));
    }
    let null_key = keys.iter().any(|k| k.valid.as_ref().is_some_and(|v| v.contains(&0)));
    let (index, order) = if keys.is_empty() {
        (KeyIndex::All, EntryOrder::Each((0..rows as u32).collect()))
    } else {
        lay_out_keys(rows, &keys, payload.is_empty() && used.existence, null_key, used)
    };
    let mut build = Build::new(rows, null_key, index, order.entries());
    for (vector, kind) in payload.iter().zip(kinds) {
        let (column, range) = arrange(vector, kind, &order);
        build.push(Arc::new(column), range);
    }
    Ok(build)
}

/// Chooses how keys lead to entries; returns it with the row of each entry.
fn lay_out_keys(
    rows: usize,
    keys: &[Vector],
    existence: bool,
    null_key: bool,
    used: BuildUse,
) -> (KeyIndex, EntryOrder) {
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
            return lay_out_dense(keyed, &values, min, domain, existence);
        }
    }
    lay_out_hashed(keys, keyed, rows, used)
}

fn lay_out_dense(keyed: Vec<u32>, values: &[i64], min: i64, domain: usize, existence: bool) -> (KeyIndex, EntryOrder) {
    let mut set = Set::new(min, domain);
    let mut repeats = false;
    for row in &keyed {
        let value = values[*row as usize];
        repeats |= set.contains(value);
        set.insert(value);
    }
    if existence {
        return (KeyIndex::Unique(set), EntryOrder::Each(Vec::new()));
    }
    let place = |row: &u32| values[*row as usize].wrapping_sub(min) as usize;
    if !repeats {
        let places = keyed.iter().map(|row| place(row) as u32).collect();
        return (KeyIndex::Unique(set), EntryOrder::Some { rows: keyed, places, entries: domain });
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
    (KeyIndex::Dense { set, starts }, EntryOrder::Each(order))
}

/// Lays rows out by hash of their keys; those with null keys that never match come last, where they are kept.
fn lay_out_hashed(keys: &[Vector], keyed: Vec<u32>, rows: usize, used: BuildUse) -> (KeyIndex, EntryOrder) {
    let buckets = keyed.len().max(1).next_power_of_two();
    let shift = 64 - buckets.trailing_zeros();
    let bucket = |hash: u64| if used.collide || shift == 64 { 0 } else { (hash >> shift) as usize };
    let references: Vec<&Vector> = keys.iter().collect();
    let packing = pack(keys, &keyed);
    let mut bytes = BytesVector::default();
    let packed: Vec<u64> = match &packing {
        Some(packing) => keyed.iter().map(|row| pack_row(packing, keys, *row as usize).unwrap_or(0)).collect(),
        None => {
            bytes = BytesVector::with_capacity(keyed.len(), keyed.len() * 16);
            keyed.iter().for_each(|row| bytes.push_with(|out| write_key(&references, *row as usize, out)));
            Vec::new()
        }
    };
    let hashes: Vec<u64> = match &packing {
        Some(_) => packed.iter().map(|key| spread(*key)).collect(),
        None => bytes.iter().map(hash_bytes).collect(),
    };
    let mut starts = vec![0u32; buckets + 1];
    hashes.iter().for_each(|hash| starts[bucket(*hash) + 1] += 1);
    (0..buckets).for_each(|i| starts[i + 1] += starts[i]);
    let mut next = starts.clone();
    let mut order = vec![0u32; keyed.len()];
    for (i, hash) in hashes.iter().enumerate() {
        let slot = &mut next[bucket(*hash)];
        order[*slot as usize] = i as u32;
        *slot += 1;
    }
    // Equal keys of a bucket become neighbours, so that a lookup gives one range.
    for range in starts.windows(2).filter(|r| r[1] - r[0] > 1) {
        let entries = &mut order[range[0] as usize..range[1] as usize];
        match &packing {
            Some(_) => entries.sort_by_key(|i| packed[*i as usize]),
            None => entries.sort_by(|a, b| bytes.get(*a as usize).cmp(bytes.get(*b as usize))),
        }
    }
    let keys = match packing {
        Some(packing) => Keys::Packed { packing, values: order.iter().map(|i| packed[*i as usize]).collect() },
        None => Keys::Bytes(order.iter().map(|i| bytes.get(*i as usize)).collect()),
    };
    let mut order: Vec<u32> = order.iter().map(|i| keyed[*i as usize]).collect();
    if used.outer && order.len() < rows {
        let mut kept = vec![false; rows];
        order.iter().for_each(|row| kept[*row as usize] = true);
        order.extend((0..rows as u32).filter(|row| !kept[*row as usize]));
    }
    (KeyIndex::Hash(HashTable { keys, starts, collide: used.collide }), EntryOrder::Each(order))
}

/// Packs integer keys into 64 bits if their ranges allow it; one value of each range is left for null.
fn pack(keys: &[Vector], keyed: &[u32]) -> Option<Vec<Packed>> {
    let mut ranges = Vec::with_capacity(keys.len());
    for key in keys.iter() {
        if !is_int(key) {
            return None;
        }
        let values = ints(key);
        let present = || keyed.iter().filter(|row| key.is_valid(**row as usize)).map(|row| values[*row as usize]);
        ranges.push((present().min().unwrap_or(0), present().max().unwrap_or(0)));
    }
    Packed::all(&ranges)
}

fn pack_row(packing: &[Packed], keys: &[Vector], row: usize) -> Option<u64> {
    packing.iter().zip(keys).try_fold(0, |packed, (p, key)| {
        let value = if key.is_valid(row) { Some(ints_at(key, row)) } else { None };
        Some(packed | p.pack(value)?)
    })
}

fn ints_at(vector: &Vector, row: usize) -> i64 {
    match &vector.values {
        Values::Int(values) => values[row],
        Values::Boolean(values) => values[row].into(),
        _ => 0,
    }
}

/// Returns the rows of a build, as one vector per key and payload column. Of keys that are null somewhere and never match,
/// all are null.
fn unlay(build: &Build, keys: usize, kinds: &[Type]) -> (usize, Vec<Vector>) {
    let (mut entries, mut key_vectors) = (Vec::new(), Vec::new());
    match &build.index {
        KeyIndex::All => entries.extend(0..build.rows as u32),
        KeyIndex::Unique(set) => {
            let found: Vec<i64> = set.members().collect();
            entries.extend(found.iter().map(|key| key.wrapping_sub(set.min) as u32));
            key_vectors.push(int_vector(&kinds[0], found.into_iter().map(Some)));
        }
        KeyIndex::Dense { set, starts } => {
            entries.extend(0..starts.last().copied().unwrap_or(0));
            let places = starts.windows(2).enumerate();
            let repeated = places.flat_map(|(place, ends)| (ends[0]..ends[1]).map(move |_| set.min + place as i64));
            key_vectors.push(int_vector(&kinds[0], repeated.map(Some)));
        }
        KeyIndex::Hash(HashTable { keys: Keys::Packed { packing, values }, .. }) => {
            entries.extend(0..build.stored as u32);
            let unkeyed = build.stored - values.len();
            for (packed, kind) in packing.iter().zip(kinds) {
                let keyed = values.iter().map(|key| packed.unpack(*key));
                key_vectors.push(int_vector(kind, keyed.chain(std::iter::repeat_n(None, unkeyed))));
            }
        }
        KeyIndex::Hash(HashTable { keys: Keys::Bytes(bytes), .. }) => {
            entries.extend(0..build.stored as u32);
            let rows = (0..build.stored).map(|entry| (entry < bytes.len()).then(|| bytes.get(entry)));
            key_vectors = read_key(rows, &kinds[..keys]);
        }
    }
    // Rows that no lookup finds were left out: those with null keys, and, where only existence matters, repeated keys.
    let left_out = build.rows - entries.len();
    if build.null_key {
        key_vectors.iter_mut().zip(kinds).for_each(|(keys, kind)| keys.append(&Vector::nulls(kind, left_out)));
        entries.extend(std::iter::repeat_n(NO_MATCH, left_out));
    } else if let Some(last) = (entries.len() as u32).checked_sub(1) {
        let again: Vec<u32> = (0..=last).chain(std::iter::repeat_n(last, left_out)).collect();
        key_vectors.iter_mut().for_each(|keys| *keys = keys.take(&again));
        entries = again.iter().map(|at| entries[*at as usize]).collect();
    }
    let payload = build.payload.iter().map(|column| fetch_matches(column, &entries));
    let vectors = key_vectors.into_iter().chain(payload).collect();
    (entries.len(), vectors)
}

fn int_vector(kind: &Type, values: impl Iterator<Item = Option<i64>>) -> Vector {
    let (mut out, mut valid) = (Vec::new(), Vec::new());
    for value in values {
        out.push(value.unwrap_or(0));
        valid.push(value.is_some() as u8);
    }
    let values = match *kind == Type::Boolean {
        true => Values::Boolean(out.iter().map(|value| *value as u8).collect()),
        false => Values::Int(out),
    };
    Vector { values, valid: valid.contains(&0).then_some(valid) }
}
