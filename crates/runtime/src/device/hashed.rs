//! The keys of hashed groups from a device: from the numbers that stand for them to their values.

use std::rc::Rc;

use tandem_codegen::{HashKey, KeyOf, PLACE_BITS, TextBase};
use tandem_column::{Error, Repr, Result, Type};
use tandem_cpu::{Groups, Job, Values, Vector};
use tandem_device::Memory;
use tandem_pipeline::{Expr, SlotId};
use tandem_plan::{Origin, sink::AggregatePlan};

use super::{
    launch::DeviceRun,
    operators::small,
    unmatched::Piece,
    values::{Origins, valid},
};

/// What tells the groups of a hash table apart.
#[derive(Clone, Debug)]
pub(super) struct HashedGroups {
    /// The numbers of each group: earlier ones, by their places, then the group's own.
    pub(super) numbers: Vec<Memory>,
    /// What numbers are made of.
    pub(super) keys: Vec<HashKey>,
    /// The texts that keys are, by their slots and places.
    pub(super) texts: Vec<(SlotId, Memory)>,
    /// The only part that rows are of.
    pub(super) part: Option<usize>,
    /// A number is two words of 31 bits.
    pub(super) in_words: bool,
}

/// Returns the slots whose texts tell groups apart.
pub(super) fn texts_of(keys: &[HashKey]) -> Vec<SlotId> {
    keys.iter().filter_map(|key| if let KeyOf::Text(slot) = key.of { Some(slot) } else { None }).collect()
}

impl DeviceRun<'_> {
    /// Divides pieces into those whose groups are told apart in one hash table: texts of the source by where they lie in a part.
    pub(super) fn runs_of<'p>(&self, keys: &[HashKey], pieces: &'p [Piece]) -> Vec<&'p [Piece]> {
        let of_part = |slot: SlotId| {
            matches!(TextBase::of(&Expr::Slot(slot), self.body()), Some(TextBase::Stored(Origin::Column(_))))
        };
        if texts_of(keys).into_iter().any(of_part) { pieces.chunks(1).collect() } else { vec![pieces] }
    }

    /// Makes a hash table of no groups yet, for launches over some pieces.
    pub(super) fn empty_hash_table(
        &mut self,
        (keys, texts): (&[HashKey], &[SlotId]),
        places: usize,
        pieces: &[Piece],
    ) -> Result<HashedGroups> {
        let mut empty = || self.filled(places * 8, 0xff);
        let numbers = (0..HashKey::numbers(keys)).map(|_| empty()).collect::<Result<Vec<_>>>()?;
        let texts = texts.iter().map(|slot| Ok((*slot, empty()?))).collect::<Result<Vec<_>>>()?;
        self.outputs.numbers = numbers.last().cloned();
        self.outputs.earlier = numbers[..numbers.len() - 1].to_vec();
        self.outputs.texts = texts.clone();
        self.outputs.mask = small(places - 1)?;
        self.outputs.full = Some(self.filled(4, 0)?);
        let in_words = !self.accelerator.traits.int64_atomics;
        let part = if let [Piece::Part(part)] = pieces { Some(*part) } else { None };
        Ok(HashedGroups { numbers, keys: keys.to_vec(), texts, part, in_words })
    }

    /// Tells whether some row found no place in the hash table.
    pub(super) fn is_full(&mut self) -> Result<bool> {
        let Some(full) = self.outputs.full.clone() else { return Ok(false) };
        Ok(self.read_places(&full, 1)? != [0])
    }
}

impl HashedGroups {
    /// Finds the places that have a group in the tables that were read, and the number of each among other groups of the same plan.
    pub(super) fn number_groups(
        &self,
        plan: &AggregatePlan,
        job: &Job,
        tables: &[Vec<i64>],
        groups: &mut Groups,
    ) -> Result<(Vec<usize>, Vec<u32>)> {
        let (numbers, texts) = tables.split_at(self.numbers.len());
        let (met, found) = self.numbers_of(numbers);
        let origins = Origins { physical: job.physical(), table: job.table() };
        let keys = self.key_vectors(plan, origins, &found, texts)?;
        let numbered = groups.number(&keys, met.len());
        Ok((met, numbered))
    }

    /// Returns all tables, in the order in which [`Self::number_groups`] wants them.
    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        self.numbers.iter().chain(self.texts.iter().map(|(_, memory)| memory))
    }

    /// Finds the places that have a group, and for each of its numbers, that of every such place.
    fn numbers_of(&self, tables: &[Vec<i64>]) -> (Vec<usize>, Vec<Vec<u64>>) {
        let number = |stored: i64| if self.in_words { number_of_words(stored as u64) } else { stored as u64 };
        let Some((last, earlier)) = tables.split_last() else { return Default::default() };
        let met = last.iter().map(|stored| number(*stored)).enumerate().filter(|(_, number)| *number != u64::MAX);
        let (met, own): (Vec<usize>, Vec<u64>) = met.unzip();
        let mut all = vec![own];
        for table in earlier.iter().rev() {
            // A number has the place of the one before it.
            let place = |next: &u64| (next & ((1 << PLACE_BITS) - 1)) as usize;
            let before = all[all.len() - 1].iter().map(|next| number(table[place(next)])).collect();
            all.push(before);
        }
        all.reverse();
        (met, all)
    }

    /// Returns the key values of groups, from the numbers that stand for them.
    fn key_vectors(
        &self,
        plan: &AggregatePlan,
        origins: Origins<'_>,
        numbers: &[Vec<u64>],
        texts: &[Vec<i64>],
    ) -> Result<Vec<Rc<Vector>>> {
        let vectors = plan.keys.iter().zip(&plan.places).map(|(slot, place)| {
            let own = self.keys.iter().find(|key| matches!(key.of, KeyOf::Place(group) if group.slot == *slot));
            if let (Some(own), Some(key)) = (own, place) {
                let values = self.values(own.of, numbers);
                let count = values.len();
                return Ok(Rc::new(Groups::key_values(key, values.into_iter(), count)));
            }
            let kind = &origins.physical.body.slots[*slot].kind;
            let held = self.keys.iter().find_map(|key| match (key.of, origins.physical.body.origins[*slot]) {
                (KeyOf::Entry(lookup), Origin::Payload { lookup: of, .. }) if lookup == of => {
                    // 0 is no entry.
                    let entries = self.values(key.of, numbers).into_iter();
                    let entries: Vec<u32> = entries.map(|entry| (entry as u32).wrapping_sub(1)).collect();
                    Some(Ok(Vector::fetch(origins.payload_of(&Expr::Slot(*slot))?, &entries)))
                }
                (KeyOf::Text(of), _) if of == *slot => Some(self.text_values(of, origins, numbers, texts)),
                (KeyOf::Low(of), _) if of == *slot => Some(Ok(self.bit_values(of, kind, numbers))),
                _ => None,
            });
            held.unwrap_or_else(|| Err(Error::internal("a group has no key"))).map(Rc::new)
        });
        vectors.collect()
    }

    /// Returns what tells groups apart, of each.
    fn values(&self, of: KeyOf, numbers: &[Vec<u64>]) -> Vec<u64> {
        let mut values = vec![0; numbers.first().map_or(0, Vec::len)];
        for key in self.keys.iter().filter(|key| key.of == of) {
            let numbers = values.iter_mut().zip(&numbers[key.number]);
            numbers.for_each(|(value, number)| *value |= key.of_number(*number));
        }
        values
    }

    /// Returns the values whose bits tell groups apart.
    fn bit_values(&self, slot: SlotId, kind: &Type, numbers: &[Vec<u64>]) -> Vector {
        let low = self.values(KeyOf::Low(slot), numbers);
        let values = match kind.repr() {
            Repr::Boolean => Values::Boolean(low.iter().map(|bits| *bits as u8).collect()),
            Repr::Float => Values::Float(low.iter().map(|bits| f64::from_bits(*bits)).collect()),
            Repr::Wide => {
                let high = self.values(KeyOf::High(slot), numbers);
                let wide = low.iter().zip(high).map(|(low, high)| i128::from(high as i64) << 64 | i128::from(*low));
                Values::Wide(wide.collect())
            }
            _ => Values::Int(low.iter().map(|bits| *bits as i64).collect()),
        };
        let nulls = self.values(KeyOf::Null(slot), numbers).iter().map(|null| *null as u8).collect();
        Vector { values, valid: valid(Some(nulls)) }
    }

    /// Returns the texts whose places tell groups apart.
    fn text_values(
        &self,
        slot: SlotId,
        origins: Origins<'_>,
        numbers: &[Vec<u64>],
        texts: &[Vec<i64>],
    ) -> Result<Vector> {
        let at = self.texts.iter().position(|(of, _)| *of == slot);
        let table = at.and_then(|at| texts.get(at)).ok_or_else(|| Error::internal("a group's text is nowhere"))?;
        let places = self.values(KeyOf::Text(slot), numbers);
        let nulls = places.iter().map(|place| u8::from(*place == 0)).collect();
        // 0 is null.
        let slices: Vec<i64> =
            places.iter().map(|place| place.checked_sub(1).map_or(0, |place| table[place as usize])).collect();
        origins.slices(&Expr::Slot(slot), self.part, &slices, Some(nulls))
    }
}

/// Returns the number that two words of 31 bits stand for; all ones stay what they are. `NUMBER_OF_WORDS` does so in kernels.
fn number_of_words(words: u64) -> u64 {
    if words == u64::MAX { words } else { words >> 32 << 31 | words & 0x7fff_ffff }
}
