//! From a row's key values to the number of its group.

use std::rc::Rc;

use hashbrown::HashTable;
use tandem_column::{Dictionary, Result, Type};
use tandem_pipeline::{SlotId, fused::GroupKey};

use crate::{
    BytesVector, Values, Vector,
    directory::write_key,
    evaluate::Slots,
    frame::{Frame, Origin},
    kernel::{self, Rows},
    range::Domain,
};

/// One group key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) slot: SlotId,
    pub(super) kind: Type,
    /// Place of a value: `value − min`; `size − 1` is null where `nullable`.
    pub(super) min: i64,
    pub(super) size: u64,
    pub(super) nullable: bool,
    pub(super) dictionary: Option<std::sync::Arc<Dictionary>>,
}

impl Key {
    /// Reads a slot's domain; `None` where its values have no known places.
    pub(super) fn new(slot: SlotId, kind: &Type, domain: &Domain) -> Option<Key> {
        let coded = domain.dictionary.is_some()
            || matches!(kind.repr(), tandem_column::Repr::Int | tandem_column::Repr::Boolean);
        let (min, max) = domain.range.filter(|_| coded)?;
        let size = u64::try_from(i128::from(max) - i128::from(min) + 1 + i128::from(domain.nullable)).ok()?;
        let dictionary = domain.dictionary.clone();
        Some(Key { slot, kind: kind.clone(), min, size, nullable: domain.nullable, dictionary })
    }

    /// Describes the key for a kernel.
    pub(super) fn fused(&self) -> GroupKey {
        GroupKey { slot: self.slot, min: self.min, size: self.size, nullable: self.nullable }
    }

    /// Returns each active row's place.
    fn places(&self, frame: &Frame<'_>) -> Result<Vec<u32>> {
        let direct = match &frame.layout.origins[self.slot] {
            _ if self.nullable => None,
            Origin::Source(_) => frame.source_column(self.slot).map(|column| (column, frame.rows(), None)),
            Origin::Payload { step, payload } => {
                let build = frame.layout.builds[*step].as_ref().expect("a payload slot belongs to a probe");
                Some((&*build.payload[*payload], Rows::List(&[]), Some(frame.build_rows(*step)?)))
            }
            Origin::Computed => None,
        };
        if let Some((column, rows, listed)) = direct
            && let Some((base, codes)) = kernel::encoded(column)
        {
            let rows = listed.as_deref().map_or(rows, |list| Rows::List(list));
            return Ok(kernel::fetch_offsets(base, codes, rows, self.min));
        }
        Ok(self.places_of(&*frame.vector(self.slot)?))
    }

    /// Returns the place of each value.
    fn places_of(&self, vector: &Vector) -> Vec<u32> {
        let mut places: Vec<u32> = match &vector.values {
            Values::Int(values) => values.iter().map(|v| v.wrapping_sub(self.min) as u32).collect(),
            Values::Boolean(values) => values.iter().map(|v| i64::from(*v).wrapping_sub(self.min) as u32).collect(),
            Values::Code { codes, .. } => codes.iter().map(|c| i64::from(*c).wrapping_sub(self.min) as u32).collect(),
            // Text without a dictionary: the nulls of a side of a join that has no row.
            Values::Bytes(_) if self.nullable => vec![0; vector.len()],
            _ => unreachable!("a coded group key has codes"),
        };
        if let Some(valid) = &vector.valid {
            places.iter_mut().zip(valid).filter(|(_, valid)| **valid == 0).for_each(|(place, _)| {
                *place = self.size as u32 - 1;
            });
        }
        places
    }

    /// Turns places back into values.
    pub(super) fn values(&self, places: impl Iterator<Item = u64>, count: usize) -> Vector {
        let null = if self.nullable { self.size - 1 } else { u64::MAX };
        let mut valid = Vec::with_capacity(count);
        let ints: Vec<i64> = places
            .map(|place| {
                valid.push((place != null) as u8);
                if place == null { self.min } else { self.min.wrapping_add(place as i64) }
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
pub(super) fn dense_groups(keys: &[Key], frame: &Frame<'_>) -> Result<Vec<u32>> {
    let mut groups: Option<Vec<u32>> = None;
    for key in keys {
        let places = key.places(frame)?;
        match &mut groups {
            None => groups = Some(places),
            Some(groups) => {
                let size = key.size as u32;
                groups.iter_mut().zip(&places).for_each(|(group, place)| *group = *group * size + *place);
            }
        }
    }
    Ok(groups.unwrap_or_else(|| vec![0; frame.count()]))
}

/// Turns dense group numbers back into key values.
pub(super) fn dense_values(keys: &[Key], groups: &[u32]) -> Vec<Vector> {
    let mut stride = 1u64;
    let mut out: Vec<Vector> = Vec::with_capacity(keys.len());
    for key in keys.iter().rev() {
        let places = groups.iter().map(|group| u64::from(*group) / stride % key.size);
        out.push(key.values(places, groups.len()));
        stride *= key.size;
    }
    out.reverse();
    out
}

/// How the keys of hashed groups are held.
#[derive(Clone, Debug)]
pub(super) enum Packing {
    /// Each key's place shifted into one integer.
    Integer(Vec<(Key, u32)>),
    /// Written out.
    Bytes(Vec<SlotId>),
}

impl Packing {
    /// Packs into 64 bits if every key has places and they fit together.
    pub(super) fn new(keys: &[SlotId], places: Option<&[Key]>) -> Packing {
        let packed = places.and_then(|places| {
            let mut shift = 0;
            let mut packed = Vec::with_capacity(places.len());
            for key in places {
                let bits = 64 - key.size.saturating_sub(1).leading_zeros();
                // Places are fetched as 32-bit numbers.
                if bits > 32 || shift + bits > 64 {
                    return None;
                }
                packed.push((key.clone(), shift));
                shift += bits;
            }
            Some(packed)
        });
        packed.map_or_else(|| Packing::Bytes(keys.to_vec()), Packing::Integer)
    }
}

/// Numbers the distinct keys it meets, from 0 on.
#[derive(Debug)]
pub(super) struct GroupTable {
    packing: Packing,
    collide: bool,
    table: HashTable<u32>,
    integers: Vec<u64>,
    bytes: BytesVector,
    /// Key values of each group, where they cannot be read back from the packed key.
    values: Vec<Vector>,
    kinds: Vec<Type>,
}

impl GroupTable {
    pub(super) fn new(packing: Packing, kinds: Vec<Type>, collide: bool) -> GroupTable {
        let values = match &packing {
            Packing::Integer(_) => Vec::new(),
            Packing::Bytes(_) => kinds.iter().map(Vector::empty).collect(),
        };
        let (integers, bytes) = (Vec::new(), BytesVector::default());
        GroupTable { packing, collide, table: HashTable::new(), integers, bytes, values, kinds }
    }

    pub(super) fn len(&self) -> usize {
        match &self.packing {
            Packing::Integer(_) => self.integers.len(),
            Packing::Bytes(_) => self.bytes.len(),
        }
    }

    /// Returns each active row's group, making new ones as needed.
    pub(super) fn groups(&mut self, frame: &Frame<'_>) -> Result<Vec<u32>> {
        match &self.packing {
            Packing::Integer(keys) => {
                let mut packed = vec![0u64; frame.count()];
                for (key, shift) in keys {
                    let places = key.places(frame)?;
                    packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= u64::from(place) << shift);
                }
                Ok(packed.into_iter().map(|key| self.number_integer(key)).collect())
            }
            Packing::Bytes(slots) => {
                let vectors = slots.iter().map(|slot| frame.vector(*slot)).collect::<Result<Vec<_>>>()?;
                Ok(self.number_bytes(&vectors, frame.count()))
            }
        }
    }

    /// Returns the group of each row of key values, making new ones as needed.
    pub(super) fn groups_of(&mut self, vectors: &[Rc<Vector>], rows: usize) -> Vec<u32> {
        match &self.packing {
            Packing::Integer(keys) => {
                let mut packed = vec![0u64; rows];
                for ((key, shift), vector) in keys.iter().zip(vectors) {
                    let places = key.places_of(vector);
                    packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= u64::from(place) << shift);
                }
                packed.into_iter().map(|key| self.number_integer(key)).collect()
            }
            Packing::Bytes(_) => self.number_bytes(vectors, rows),
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
            Packing::Integer(_) => self.integers.iter().map(|key| share(mix(*key))).collect(),
            Packing::Bytes(_) => self.bytes.iter().map(|key| share(hash_bytes(key))).collect(),
        }
    }

    /// Takes over some groups of another table; returns pairs of (their number, ours).
    pub(super) fn absorb(&mut self, other: &GroupTable, groups: &[u32]) -> Vec<(u32, u32)> {
        match &self.packing {
            Packing::Integer(_) => {
                groups.iter().map(|g| (*g, self.number_integer(other.integers[*g as usize]))).collect()
            }
            Packing::Bytes(_) => {
                let vectors: Vec<Rc<Vector>> = other.values.iter().map(|v| Rc::new(v.take(groups))).collect();
                let ours = self.number_bytes(&vectors, groups.len());
                groups.iter().copied().zip(ours).collect()
            }
        }
    }

    /// Returns the key values of all groups.
    pub(super) fn values(&self) -> Vec<Vector> {
        match &self.packing {
            Packing::Integer(keys) => keys
                .iter()
                .map(|(key, shift)| {
                    let bits = 64 - key.size.saturating_sub(1).leading_zeros();
                    let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
                    key.values(self.integers.iter().map(|packed| packed >> shift & mask), self.integers.len())
                })
                .collect(),
            Packing::Bytes(_) => self.values.clone(),
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
    mix(crate::directory::hash_bytes(bytes))
}
