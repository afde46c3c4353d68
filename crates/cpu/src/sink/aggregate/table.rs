//! From a row's key values to the number of its group, by hash.
//!
//! Keys that pack into 64 bits are one integer. Others stay columns: a row is found by the hash of all its keys alone, all rows of
//! a vector are then compared with their groups column by column, and those that differ, whose hash is another key's too, are
//! looked for one by one.

use std::rc::Rc;

use tandem_column::{Result, Type};
use tandem_plan::sink::KeyPacking;

use super::{index::Index, places::Places};
use crate::{
    Values, Vector,
    evaluate::Slots,
    frame::Frame,
    hash::{hash_rows, hash_word},
};

/// Into how many partitions groups are divided, by the lowest bits of their hashes: with 2^24 groups, one of them is about what fits
/// a core's L2 cache.
pub(super) const PARTITIONS: usize = 256;

/// Numbers the distinct keys it meets, from 0 on.
#[derive(Debug)]
pub(super) struct GroupTable {
    packing: KeyPacking,
    kinds: Vec<Type>,
    collide: bool,
    index: Index,
    /// The packed key of each group.
    integers: Vec<u64>,
    /// The key values of each group, where keys are columns, and their hash.
    values: Vec<Vector>,
    hashes: Vec<u64>,
}

impl GroupTable {
    pub(super) fn new(packing: KeyPacking, kinds: Vec<Type>, collide: bool) -> GroupTable {
        let values = match &packing {
            KeyPacking::Integer(_) => Vec::new(),
            KeyPacking::Columns(_) => kinds.iter().map(Vector::empty).collect(),
        };
        GroupTable {
            packing,
            kinds,
            collide,
            index: Index::default(),
            integers: Vec::new(),
            values,
            hashes: Vec::new(),
        }
    }

    /// Returns how many groups there are.
    pub(super) fn len(&self) -> usize {
        match &self.packing {
            KeyPacking::Integer(_) => self.integers.len(),
            KeyPacking::Columns(_) => self.hashes.len(),
        }
    }

    /// Returns each active row's group, making new ones as needed.
    pub(super) fn groups(&mut self, frame: &Frame<'_>) -> Result<Vec<u32>> {
        match &self.packing {
            KeyPacking::Integer(keys) => {
                let mut packed = vec![0u64; frame.count()];
                keys.iter().try_for_each(|(key, shift)| key.pack(frame, *shift, &mut packed))?;
                Ok(self.number_integers(&packed))
            }
            KeyPacking::Columns(slots) => {
                let vectors = slots.iter().map(|slot| frame.vector(*slot)).collect::<Result<Vec<_>>>()?;
                Ok(self.number_columns(&vectors, frame.count(), None))
            }
        }
    }

    /// Returns the group of each row of key values, making new ones as needed.
    pub(super) fn groups_of(&mut self, vectors: &[Rc<Vector>], rows: usize) -> Vec<u32> {
        match &self.packing {
            KeyPacking::Integer(keys) => {
                let mut packed = vec![0u64; rows];
                for ((key, shift), vector) in keys.iter().zip(vectors).filter(|((key, _), _)| key.key.bits() > 0) {
                    let places = key.places_of(vector);
                    packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= place << shift);
                }
                self.number_integers(&packed)
            }
            KeyPacking::Columns(_) => self.number_columns(vectors, rows, None),
        }
    }

    fn number_integers(&mut self, keys: &[u64]) -> Vec<u32> {
        let collide = self.collide;
        let (index, integers) = (&mut self.index, &mut self.integers);
        // Rows of a group often follow each other.
        let (mut last, mut last_group) = (keys.first().copied().unwrap_or(0).wrapping_add(1), 0);
        let groups = keys.iter().map(|&key| {
            if key != last {
                let hash = if collide { 0 } else { hash_word(key) };
                let (group, added) =
                    index.find_or_add(hash, integers.len() as u32, |group| integers[group as usize] == key);
                if added {
                    integers.push(key);
                }
                (last, last_group) = (key, group);
            }
            last_group
        });
        groups.collect()
    }

    /// `known` are the hashes of the rows, if somebody has them.
    fn number_columns(&mut self, vectors: &[Rc<Vector>], rows: usize, known: Option<&[u64]>) -> Vec<u32> {
        let computed;
        let hashes = match known {
            Some(hashes) => hashes,
            None if self.collide => {
                computed = vec![0; rows];
                &computed
            }
            None => {
                let mut hashes = vec![0; rows];
                hash_rows(&vectors.iter().map(Rc::as_ref).collect::<Vec<_>>(), 0, &mut hashes);
                computed = hashes;
                &computed
            }
        };
        let (index, all) = (&mut self.index, &mut self.hashes);
        let mut fresh = Vec::new();
        let groups = hashes.iter().enumerate().map(|(row, &hash)| {
            let (group, added) = index.find_or_add(hash, all.len() as u32, |group| all[group as usize] == hash);
            if added {
                all.push(hash);
                fresh.push(row as u32);
            }
            group
        });
        let mut groups: Vec<u32> = groups.collect();
        self.append(vectors, &fresh);
        let mut differs = vec![0u8; rows];
        self.values
            .iter()
            .zip(vectors)
            .for_each(|(values, vector)| mark_different(values, vector, &groups, &mut differs));
        if differs.contains(&1) {
            let colliding = (0..rows).filter(|row| differs[*row] != 0);
            colliding.for_each(|row| groups[row] = self.number_one(vectors, row, hashes[row]));
        }
        groups
    }

    /// Returns the group of a row whose hash another group has, too.
    #[cold]
    fn number_one(&mut self, vectors: &[Rc<Vector>], row: usize, hash: u64) -> u32 {
        let (hashes, values) = (&self.hashes, &self.values);
        let equal = |group: u32| {
            let same = |(values, vector): (&Vector, &Rc<Vector>)| {
                let mut differs = [0];
                mark_different(values, &vector.take(&[row as u32]), &[group], &mut differs);
                differs == [0]
            };
            hashes[group as usize] == hash && values.iter().zip(vectors).all(same)
        };
        let (group, added) = self.index.find_or_add(hash, hashes.len() as u32, equal);
        if added {
            self.hashes.push(hash);
            self.append(vectors, &[row as u32]);
        }
        group
    }

    /// Keeps the keys of new groups.
    fn append(&mut self, vectors: &[Rc<Vector>], rows: &[u32]) {
        if !rows.is_empty() {
            self.values.iter_mut().zip(vectors).for_each(|(values, vector)| values.append(&vector.take(rows)));
        }
    }

    /// Puts groups in the order of their partitions; returns their old numbers in that order, and the first of each partition.
    /// No further keys can be numbered.
    pub(super) fn partition(&mut self) -> (Vec<u32>, Vec<u32>) {
        let collide = self.collide;
        let part = |hash: u64| hash as usize % PARTITIONS;
        let parts: Vec<u8> = match &self.packing {
            KeyPacking::Integer(_) if collide => vec![0; self.len()],
            KeyPacking::Integer(_) => self.integers.iter().map(|key| part(hash_word(*key)) as u8).collect(),
            KeyPacking::Columns(_) => self.hashes.iter().map(|hash| part(*hash) as u8).collect(),
        };
        let mut starts = vec![0u32; PARTITIONS + 1];
        parts.iter().for_each(|part| starts[*part as usize + 1] += 1);
        (0..PARTITIONS).for_each(|part| starts[part + 1] += starts[part]);
        let (mut next, mut order) = (starts.clone(), vec![0u32; parts.len()]);
        for (group, part) in parts.iter().enumerate() {
            order[next[*part as usize] as usize] = group as u32;
            next[*part as usize] += 1;
        }
        let pick = |of: &[u64]| order.iter().map(|group| of[*group as usize]).collect::<Vec<u64>>();
        match &self.packing {
            KeyPacking::Integer(_) => self.integers = pick(&self.integers),
            KeyPacking::Columns(_) => {
                self.hashes = pick(&self.hashes);
                self.values.iter_mut().for_each(|values| *values = values.take(&order));
            }
        }
        self.index = Index::default();
        (order, starts)
    }

    /// Takes over a run of groups of another table; returns pairs of (their number, ours).
    pub(super) fn absorb(&mut self, other: &GroupTable, groups: std::ops::Range<u32>) -> Vec<(u32, u32)> {
        let run = groups.start as usize..groups.end as usize;
        let ours = match &self.packing {
            KeyPacking::Integer(_) => self.number_integers(&other.integers[run]),
            KeyPacking::Columns(_) => {
                let rows: Vec<u32> = groups.clone().collect();
                let vectors: Vec<Rc<Vector>> = other.values.iter().map(|values| Rc::new(values.take(&rows))).collect();
                self.number_columns(&vectors, rows.len(), Some(&other.hashes[run]))
            }
        };
        groups.zip(ours).collect()
    }

    /// Makes room for so many groups.
    pub(super) fn reserve(&mut self, groups: usize) {
        self.index.reserve(groups);
        match &self.packing {
            KeyPacking::Integer(_) => self.integers.reserve(groups),
            KeyPacking::Columns(_) => self.hashes.reserve(groups),
        }
    }

    /// Returns the key values of all groups.
    pub(super) fn into_values(self) -> Vec<Vector> {
        match &self.packing {
            KeyPacking::Integer(keys) => keys
                .iter()
                .map(|(key, shift)| {
                    let bits = key.key.bits();
                    let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
                    let shift = if bits == 0 { 0 } else { *shift };
                    key.values(self.integers.iter().map(|packed| packed >> shift & mask), self.integers.len())
                })
                .collect(),
            KeyPacking::Columns(_) => self.values,
        }
    }

    /// Makes an empty table of the same kind.
    pub(super) fn fresh(&self) -> GroupTable {
        GroupTable::new(self.packing.clone(), self.kinds.clone(), self.collide)
    }

    pub(super) fn byte_len(&self) -> usize {
        let values: usize = self.values.iter().map(Vector::held_bytes).sum();
        self.index.byte_len() + (self.integers.len() + self.hashes.len()) * 8 + values
    }
}

/// Sets a byte for each row whose value differs from that of its group; nulls are equal to each other.
fn mark_different(values: &Vector, vector: &Vector, groups: &[u32], differs: &mut [u8]) {
    fn mark<T: Copy>(of: &[T], rows: &[T], groups: &[u32], differs: &mut [u8], same: impl Fn(T, T) -> bool) {
        for ((differs, group), value) in differs.iter_mut().zip(groups).zip(rows) {
            *differs |= u8::from(!same(of[*group as usize], *value));
        }
    }
    if values.valid.is_some() || vector.valid.is_some() {
        for (row, group) in groups.iter().enumerate() {
            let (valid, known) = (vector.is_valid(row), values.is_valid(*group as usize));
            differs[row] |= u8::from(valid != known || valid && !same_value(values, *group as usize, vector, row));
        }
        return;
    }
    match (&values.values, &vector.values) {
        (Values::Boolean(of), Values::Boolean(rows)) => mark(of, rows, groups, differs, |a, b| a == b),
        (Values::Int(of), Values::Int(rows)) => mark(of, rows, groups, differs, |a, b| a == b),
        (Values::Wide(of), Values::Wide(rows)) => mark(of, rows, groups, differs, |a, b| a == b),
        (Values::Float(of), Values::Float(rows)) => {
            mark(of, rows, groups, differs, |a, b| a.to_bits() == b.to_bits());
        }
        _ => {
            for ((row, group), differs) in groups.iter().enumerate().zip(differs) {
                *differs |= u8::from(!same_value(values, *group as usize, vector, row));
            }
        }
    }
}

/// Tells whether two values that are not null are the same.
fn same_value(a: &Vector, at: usize, b: &Vector, row: usize) -> bool {
    match (&a.values, &b.values) {
        (Values::Boolean(a), Values::Boolean(b)) => a[at] == b[row],
        (Values::Int(a), Values::Int(b)) => a[at] == b[row],
        (Values::Wide(a), Values::Wide(b)) => a[at] == b[row],
        (Values::Float(a), Values::Float(b)) => a[at].to_bits() == b[row].to_bits(),
        (a, b) => a.bytes(at) == b.bytes(row),
    }
}
