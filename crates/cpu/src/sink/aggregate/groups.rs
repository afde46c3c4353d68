//! From a row's key values to the number of its group.

use std::rc::Rc;

use hashbrown::HashTable;
use tandem_column::{Result, Type};
use tandem_plan::{
    Origin,
    sink::{KeyPacking, PlacedKey},
};

use crate::{
    BytesVector, Values, Vector,
    evaluate::Slots,
    frame::Frame,
    kernel::{self, RowRun},
    lookup::{self, write_key},
};

/// Turns the values of a key with places into places, and back.
pub(super) trait Places {
    /// Returns each active row's place.
    fn places(&self, frame: &Frame<'_>) -> Result<Vec<u32>>;
    /// Returns the place of each value.
    fn places_of(&self, vector: &Vector) -> Vec<u32>;
    /// Turns places back into values.
    fn values(&self, places: impl Iterator<Item = u64>, count: usize) -> Vector;
}

impl Places for PlacedKey {
    fn places(&self, frame: &Frame<'_>) -> Result<Vec<u32>> {
        let direct = match frame.layout.body().origins[self.key.slot] {
            _ if self.key.nullable => None,
            Origin::Column(_) => frame.source_column(self.key.slot).map(|column| (column, frame.rows(), None)),
            Origin::Payload { lookup, payload } => {
                let column = &*frame.layout.physical.builds[lookup].payload[payload];
                Some((column, RowRun::List(&[]), Some(frame.build_rows(lookup)?)))
            }
            Origin::Computed => None,
        };
        if let Some((column, rows, listed)) = direct
            && let Some((base, codes)) = kernel::encoded(column)
        {
            let rows = listed.as_deref().map_or(rows, |list| RowRun::List(list));
            return Ok(kernel::fetch_offsets(base, codes, rows, self.key.min));
        }
        Ok(self.places_of(&*frame.vector(self.key.slot)?))
    }

    fn places_of(&self, vector: &Vector) -> Vec<u32> {
        let mut places: Vec<u32> = match &vector.values {
            Values::Int(values) => values.iter().map(|v| v.wrapping_sub(self.key.min) as u32).collect(),
            Values::Boolean(values) => values.iter().map(|v| i64::from(*v).wrapping_sub(self.key.min) as u32).collect(),
            Values::Code { codes, .. } => {
                codes.iter().map(|c| i64::from(*c).wrapping_sub(self.key.min) as u32).collect()
            }
            // Text without a dictionary: the nulls of a side of a join that has no row.
            Values::Bytes(_) if self.key.nullable => vec![0; vector.len()],
            _ => unreachable!("a coded group key has codes"),
        };
        if let Some(valid) = &vector.valid {
            places.iter_mut().zip(valid).filter(|(_, valid)| **valid == 0).for_each(|(place, _)| {
                *place = self.key.size as u32 - 1;
            });
        }
        places
    }

    fn values(&self, places: impl Iterator<Item = u64>, count: usize) -> Vector {
        let null = if self.key.nullable { self.key.size - 1 } else { u64::MAX };
        let mut valid = Vec::with_capacity(count);
        let ints: Vec<i64> = places
            .map(|place| {
                valid.push((place != null) as u8);
                if place == null { self.key.min } else { self.key.min.wrapping_add(place as i64) }
            })
            .collect();
        let values = match &self.dictionary {
            Some(dictionary) => {
                Values::Code { codes: ints.iter().map(|v| *v as u32).collect(), dictionary: dictionary.clone() }
            }
            None if self.kind == Type::Boolean => Values::Boolean(ints.iter().map(|v| *v as u8).collect()),
            None => Values::Int(ints),
        };
        Vector { values, valid: valid.contains(&0).then_some(valid) }
    }
}

/// Computes `Σ place × stride` for each active row.
pub(super) fn dense_groups(keys: &[PlacedKey], frame: &Frame<'_>) -> Result<Vec<u32>> {
    let mut groups: Option<Vec<u32>> = None;
    for key in keys {
        let places = key.places(frame)?;
        match &mut groups {
            None => groups = Some(places),
            Some(groups) => {
                let size = key.key.size as u32;
                groups.iter_mut().zip(&places).for_each(|(group, place)| *group = *group * size + *place);
            }
        }
    }
    Ok(groups.unwrap_or_else(|| vec![0; frame.count()]))
}

/// Turns dense group numbers back into key values.
pub(super) fn dense_values(keys: &[PlacedKey], groups: &[u32]) -> Vec<Vector> {
    let mut stride = 1u64;
    let mut out: Vec<Vector> = Vec::with_capacity(keys.len());
    for key in keys.iter().rev() {
        let places = groups.iter().map(|group| u64::from(*group) / stride % key.key.size);
        out.push(key.values(places, groups.len()));
        stride *= key.key.size;
    }
    out.reverse();
    out
}

/// Numbers the distinct keys it meets, from 0 on.
#[derive(Debug)]
pub(super) struct GroupTable {
    packing: KeyPacking,
    collide: bool,
    table: HashTable<u32>,
    integers: Vec<u64>,
    bytes: BytesVector,
    /// Key values of each group, where they cannot be read back from the packed key.
    values: Vec<Vector>,
    kinds: Vec<Type>,
}

impl GroupTable {
    pub(super) fn new(packing: KeyPacking, kinds: Vec<Type>, collide: bool) -> GroupTable {
        let values = match &packing {
            KeyPacking::Integer(_) => Vec::new(),
            KeyPacking::Bytes(_) => kinds.iter().map(Vector::empty).collect(),
        };
        let (integers, bytes) = (Vec::new(), BytesVector::default());
        GroupTable { packing, collide, table: HashTable::new(), integers, bytes, values, kinds }
    }

    pub(super) fn len(&self) -> usize {
        match &self.packing {
            KeyPacking::Integer(_) => self.integers.len(),
            KeyPacking::Bytes(_) => self.bytes.len(),
        }
    }

    /// Returns each active row's group, making new ones as needed.
    pub(super) fn groups(&mut self, frame: &Frame<'_>) -> Result<Vec<u32>> {
        match &self.packing {
            KeyPacking::Integer(keys) => {
                let mut packed = vec![0u64; frame.count()];
                for (key, shift) in keys {
                    let places = key.places(frame)?;
                    packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= u64::from(place) << shift);
                }
                Ok(packed.into_iter().map(|key| self.number_integer(key)).collect())
            }
            KeyPacking::Bytes(slots) => {
                let vectors = slots.iter().map(|slot| frame.vector(*slot)).collect::<Result<Vec<_>>>()?;
                Ok(self.number_bytes(&vectors, frame.count()))
            }
        }
    }

    /// Returns the group of each row of key values, making new ones as needed.
    pub(super) fn groups_of(&mut self, vectors: &[Rc<Vector>], rows: usize) -> Vec<u32> {
        match &self.packing {
            KeyPacking::Integer(keys) => {
                let mut packed = vec![0u64; rows];
                for ((key, shift), vector) in keys.iter().zip(vectors) {
                    let places = key.places_of(vector);
                    packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= u64::from(place) << shift);
                }
                packed.into_iter().map(|key| self.number_integer(key)).collect()
            }
            KeyPacking::Bytes(_) => self.number_bytes(vectors, rows),
        }
    }

    #[inline]
    fn number_integer(&mut self, key: u64) -> u32 {
        let hash = if self.collide { 0 } else { mix(key) };
        let integers = &mut self.integers;
        match self.table.entry(
            hash,
            |group| integers[*group as usize] == key,
            |group| {
                if self.collide { 0 } else { mix(integers[*group as usize]) }
            },
        ) {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let group = integers.len() as u32;
                entry.insert(group);
                integers.push(key);
                group
            }
        }
    }

    fn number_bytes(&mut self, vectors: &[Rc<Vector>], rows: usize) -> Vec<u32> {
        let references: Vec<&Vector> = vectors.iter().map(Rc::as_ref).collect();
        let (mut key, mut fresh) = (Vec::new(), Vec::new());
        let collide = self.collide;
        let hash = |bytes: &[u8]| if collide { 0 } else { hash_bytes(bytes) };
        let groups = (0..rows).map(|row| {
            key.clear();
            write_key(&references, row, &mut key);
            let bytes = &mut self.bytes;
            match self.table.entry(hash(&key), |g| bytes.get(*g as usize) == key, |g| hash(bytes.get(*g as usize))) {
                hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
                hashbrown::hash_table::Entry::Vacant(entry) => {
                    let group = bytes.len() as u32;
                    entry.insert(group);
                    bytes.push(&key);
                    fresh.push(row as u32);
                    group
                }
            }
        });
        let groups: Vec<u32> = groups.collect();
        if !fresh.is_empty() {
            self.values.iter_mut().zip(vectors).for_each(|(values, vector)| values.append(&vector.take(&fresh)));
        }
        groups
    }

    /// Returns which of `parts` shares of the key space each group falls into.
    pub(super) fn shares(&self, parts: usize) -> Vec<u32> {
        let share = |hash: u64| (hash >> 7) as u32 % parts as u32;
        match &self.packing {
            KeyPacking::Integer(_) => self.integers.iter().map(|key| share(mix(*key))).collect(),
            KeyPacking::Bytes(_) => self.bytes.iter().map(|key| share(hash_bytes(key))).collect(),
        }
    }

    /// Takes over some groups of another table; returns pairs of (their number, ours).
    pub(super) fn absorb(&mut self, other: &GroupTable, groups: &[u32]) -> Vec<(u32, u32)> {
        match &self.packing {
            KeyPacking::Integer(_) => {
                groups.iter().map(|g| (*g, self.number_integer(other.integers[*g as usize]))).collect()
            }
            KeyPacking::Bytes(_) => {
                let vectors: Vec<Rc<Vector>> = other.values.iter().map(|v| Rc::new(v.take(groups))).collect();
                let ours = self.number_bytes(&vectors, groups.len());
                groups.iter().copied().zip(ours).collect()
            }
        }
    }

    /// Returns the key values of all groups.
    pub(super) fn values(&self) -> Vec<Vector> {
        match &self.packing {
            KeyPacking::Integer(keys) => keys
                .iter()
                .map(|(key, shift)| {
                    let bits = key.key.bits();
                    let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
                    key.values(self.integers.iter().map(|packed| packed >> shift & mask), self.integers.len())
                })
                .collect(),
            KeyPacking::Bytes(_) => self.values.clone(),
        }
    }

    /// Makes an empty table of the same kind.
    pub(super) fn fresh(&self) -> GroupTable {
        GroupTable::new(self.packing.clone(), self.kinds.clone(), self.collide)
    }

    pub(super) fn byte_len(&self) -> usize {
        self.table.capacity() * 5 + self.integers.len() * 8 + self.bytes.parts().1.len() * 2 + self.bytes.len() * 8
    }
}

#[inline(always)]
fn mix(key: u64) -> u64 {
    let key = (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    key ^ (key >> 29)
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    mix(lookup::hash_bytes(bytes))
}
