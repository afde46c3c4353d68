//! Grouping and aggregating: an array of groups where keys have few places, a hash table otherwise.

mod accumulator;
mod groups;

use std::{
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use accumulator::{Accumulator, Groups};
use groups::{GroupTable, Key, Packing, dense_groups, dense_values};
use tandem_column::{Dictionary, Field, Repr, Result, Table, Type};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Overflow, Phase, SlotId,
    fused::{self, FusedAggregate, FusedSink, HashKey, KeyOf, ROWS_COUNT},
    scalar::decimal::power_of_ten,
};

use crate::{
    Error, MemoryBudget, Reservation, Values, Vector,
    collect::{Chunk, to_table},
    evaluate::Slots,
    frame::{Frame, Layout},
    job::Parallel,
    range::Domain,
};

/// An array of groups may have this many places: what a core's L2 cache holds of one 8-byte state, times four.
const DENSE_GROUPS: u64 = 1 << 18;
/// From this many groups on, workers' tables are merged in parallel shares of the key space.
const PARALLEL_GROUPS: usize = 1 << 14;

/// More rows than one query adds up.
const MOST_ROWS: usize = 1 << 40;
/// By so many digits the sums of decimals are wider than what is added up, where 38 digits allow it; their limit is not met.
const SPARE_DIGITS: u8 = 10;

/// An aggregation made ready.
pub(crate) struct AggregatePlan {
    keys: Vec<SlotId>,
    key_kinds: Vec<Type>,
    /// The places of each key's values, where they are known.
    places: Vec<Option<Key>>,
    mode: Mode,
    aggregates: Vec<Planned>,
    phase: Phase,
    schema: Arc<[Field]>,
    collide: bool,
    budget: Arc<MemoryBudget>,
}

struct Planned {
    aggregate: Aggregate,
    argument: Type,
    narrow: bool,
    total: bool,
    /// What codes of the argument stand for, if it has codes.
    dictionary: Option<Arc<Dictionary>>,
}

enum Mode {
    One,
    Dense { keys: Vec<Key>, groups: usize },
    Hash(Packing),
}

/// A hash table of groups that a kernel counted.
#[derive(Clone, Copy, Debug)]
pub struct HashedGroups<'t> {
    /// What numbers are made of.
    pub keys: &'t [HashKey],
    /// The number of each place; all ones where there is no group.
    pub numbers: &'t [u64],
    /// The numbers of each group.
    pub table: &'t [i64],
    /// How many each has.
    pub width: usize,
    /// Where each aggregate is among them.
    pub places: &'t [fused::Accumulator],
}

/// One worker's groups.
pub(crate) struct AggregateState {
    table: Option<GroupTable>,
    /// Which places of a dense array have met a row.
    met: Vec<u8>,
    accumulators: Vec<Accumulator>,
    reservation: Reservation,
}

/// Refuses the numbers of a group with more rows than lower halves of sums, of 32 bits, add up in 63.
fn check_halves(numbers: &[i64], places: &[fused::Accumulator]) -> Result<()> {
    let in_halves = |place: &fused::Accumulator| {
        matches!(place, fused::Accumulator::WideSum { .. } | fused::Accumulator::LimbSum { .. })
    };
    match numbers[ROWS_COUNT] > fused::MOST_HALVES && places.iter().any(in_halves) {
        true => Err(Error::unsupported("a group has too many rows for sums of a device")),
        false => Ok(()),
    }
}

/// Tells whether a sum may pass the limits of its type on the way and come back. Sums here are exact and do not notice; a
/// host that asks for a part of a sum adds up in that type, row by row, and would fail.
fn may_pass(aggregate: &Aggregate, argument: &Type, range: Option<(i64, i64)>, rows: usize) -> bool {
    if !matches!(aggregate.function, AggregateFunction::Sum | AggregateFunction::Average) {
        return false;
    }
    let state = aggregate.function.state(argument, &aggregate.kind);
    let limit = match (argument, &state[0]) {
        (Type::Decimal { precision, .. }, Type::Decimal { precision: sum, .. }) if *sum < precision + SPARE_DIGITS => {
            power_of_ten((*sum).into()).map_or(u128::MAX, i128::unsigned_abs)
        }
        (_, Type::Int64) if aggregate.overflow != Overflow::Wrap => i64::MAX.unsigned_abs().into(),
        _ => return false,
    };
    let range = range.map(|(low, high)| (low.into(), high.into())).or(argument.integer_range());
    range.is_none_or(|(low, high): (i128, i128)| {
        let most = low.unsigned_abs().max(high.unsigned_abs());
        low < 0 && high > 0 && most.saturating_mul(rows.min(MOST_ROWS) as u128) > limit
    })
}

impl AggregateState {
    /// Takes the memory of the groups. When a table or a list grows, it is there once more in its new size.
    fn reserve(&mut self) -> Result<()> {
        let accumulators = self.accumulators.iter().map(Accumulator::byte_len).sum::<usize>();
        let bytes = self.table.as_ref().map_or(0, GroupTable::byte_len) + accumulators;
        self.reservation.grow_to(2 * bytes)
    }

    /// Takes the memory of the groups out, to hold it while something is made of them.
    pub(crate) fn hand_over(&mut self) -> Reservation {
        self.reservation.split_off(usize::MAX)
    }
}

impl AggregatePlan {
    pub(crate) fn new(
        keys: &[SlotId],
        aggregates: &[Aggregate],
        phase: Phase,
        layout: &Layout,
        domains: &[Domain],
        rows: usize,
        schema: Arc<[Field]>,
        collide: bool,
        budget: &Arc<MemoryBudget>,
    ) -> Result<AggregatePlan> {
        let key_kinds: Vec<Type> = keys.iter().map(|slot| layout.slots[*slot].kind.clone()).collect();
        let each: Vec<Option<Key>> =
            keys.iter().zip(&key_kinds).map(|(slot, kind)| Key::new(*slot, kind, &domains[*slot])).collect();
        let places: Option<Vec<Key>> = each.iter().cloned().collect();
        let total = places
            .as_ref()
            .map(|keys| keys.iter().try_fold(1u64, |total, key| total.checked_mul(key.size)).unwrap_or(u64::MAX));
        let mode = match (places, total) {
            _ if keys.is_empty() => Mode::One,
            // With forced collisions the hash table is what is to be tested.
            (Some(keys), Some(total)) if total <= DENSE_GROUPS && !collide => {
                Mode::Dense { keys, groups: total as usize }
            }
            (places, _) => Mode::Hash(Packing::new(keys, places.as_deref())),
        };
        let aggregates = aggregates
            .iter()
            .map(|aggregate| {
                let argument = aggregate.argument.map_or(Type::Int64, |slot| layout.slots[slot].kind.clone());
                let domain = aggregate.argument.map(|slot| &domains[slot]);
                if phase == Phase::Partial && may_pass(aggregate, &argument, domain.and_then(|d| d.range), rows) {
                    let name = aggregate.argument.map_or("", |slot| &layout.slots[slot].name);
                    return Err(Error::unsupported(format!(
                        "a sum of {name} may pass the limits of its type on the way"
                    )));
                }
                // |value| × rows bounds every partial sum.
                let narrow = domain.and_then(|d| d.range).is_some_and(|(low, high)| {
                    let most = low.unsigned_abs().max(high.unsigned_abs());
                    u128::from(most) * (rows as u128) < i64::MAX as u128
                });
                let total = aggregate.filter.is_none() && domain.is_some_and(|d| !d.nullable) && !keys.is_empty();
                let dictionary = domain.and_then(|domain| domain.dictionary.clone());
                Ok(Planned { aggregate: aggregate.clone(), argument, narrow, total, dictionary })
            })
            .collect::<Result<_>>()?;
        let (keys, budget) = (keys.to_vec(), budget.clone());
        Ok(AggregatePlan { keys, key_kinds, places: each, mode, aggregates, phase, schema, collide, budget })
    }

    /// Describes the choice made, for people.
    pub(crate) fn note(&self) -> String {
        match &self.mode {
            Mode::One => "one group".into(),
            Mode::Dense { groups, .. } => format!("groups as an array of {groups}"),
            Mode::Hash(Packing::Integer(_)) => "groups hashed by a packed integer".into(),
            Mode::Hash(Packing::Bytes(_)) => "groups hashed by key bytes".into(),
        }
    }

    pub(crate) fn state(&self) -> AggregateState {
        let groups = match &self.mode {
            Mode::One => 1,
            Mode::Dense { groups, .. } => *groups,
            Mode::Hash(_) => 0,
        };
        let table = match &self.mode {
            Mode::Hash(packing) => Some(GroupTable::new(packing.clone(), self.key_kinds.clone(), self.collide)),
            _ => None,
        };
        let mut state = self.empty(table);
        state.met = vec![0; groups];
        state.accumulators.iter_mut().for_each(|a| a.resize(groups));
        state
    }

    fn empty(&self, table: Option<GroupTable>) -> AggregateState {
        let accumulators =
            self.aggregates.iter().map(|p| Accumulator::new(&p.aggregate, p.argument.clone(), p.narrow, p.total));
        let reservation = Reservation::new(&self.budget, "the groups of an aggregation");
        AggregateState { table, met: Vec::new(), accumulators: accumulators.collect(), reservation }
    }

    /// Adds the active rows of a frame.
    pub(crate) fn update(&self, state: &mut AggregateState, frame: &Frame<'_>) -> Result<()> {
        let rows = frame.count();
        let numbers;
        let groups = match &self.mode {
            Mode::One => {
                state.met[0] = 1;
                Groups::One
            }
            Mode::Dense { keys, .. } => {
                numbers = dense_groups(keys, frame)?;
                numbers.iter().for_each(|group| state.met[*group as usize] = 1);
                Groups::Each(&numbers)
            }
            Mode::Hash(_) => {
                let table = state.table.as_mut().expect("a hashed state has a table");
                numbers = table.groups(frame)?;
                let groups = table.len();
                state.accumulators.iter_mut().for_each(|a| a.resize(groups));
                Groups::Each(&numbers)
            }
        };
        for (planned, accumulator) in self.aggregates.iter().zip(&mut state.accumulators) {
            let vector = match planned.aggregate.argument {
                Some(slot) if planned.aggregate.function != AggregateFunction::CountRows => Some(frame.vector(slot)?),
                _ => None,
            };
            let mask = match planned.aggregate.filter {
                None => None,
                Some(slot) => {
                    let filter = frame.vector(slot)?;
                    let Values::Boolean(values) = &filter.values else {
                        return Err(crate::Error::internal("an aggregate's filter is a boolean slot"));
                    };
                    let valid = filter.valid.as_ref();
                    let keep = |row: usize| values[row] & valid.map_or(1, |valid| valid[row]);
                    Some((0..rows).map(keep).collect::<Vec<u8>>())
                }
            };
            accumulator.update(groups, rows, vector.as_deref(), mask.as_deref());
        }
        state.reserve()
    }

    /// Describes the sink for a kernel; `stands` tells what may stand for a slot's value, and how many such there are.
    ///
    /// # Errors
    /// Unsupported, for keys that no number of 63 bits stands for.
    pub(crate) fn fused(&self, stands: &dyn Fn(SlotId) -> Option<(KeyOf, u64)>) -> Result<FusedSink> {
        let words = |planned: &Planned| planned.argument.repr() != Repr::Bytes || planned.dictionary.is_some();
        let best =
            |planned: &Planned| matches!(planned.aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
        if self.aggregates.iter().any(|planned| best(planned) && !words(planned)) {
            return Err(Error::unsupported("the smallest or largest plain string is not on the device yet"));
        }
        let scaled = |planned: &Planned| {
            planned.aggregate.function == AggregateFunction::Average
                && planned.aggregate.kind.is_float()
                && matches!(planned.argument, Type::Decimal { .. })
        };
        if self.aggregates.iter().any(scaled) {
            return Err(Error::unsupported("the average of decimals as a float is not on the device yet"));
        }
        let aggregates = self
            .aggregates
            .iter()
            .map(|planned| FusedAggregate { aggregate: planned.aggregate.clone(), narrow: planned.narrow });
        let aggregates = aggregates.collect();
        let (keys, groups) = match &self.mode {
            Mode::One => (Vec::new(), 1),
            Mode::Dense { keys, groups } => (keys.iter().map(Key::fused).collect(), *groups),
            Mode::Hash(_) => return Ok(FusedSink::Hashed { keys: self.hash_keys(stands)?, aggregates }),
        };
        Ok(FusedSink::Groups { keys, groups, aggregates })
    }

    /// Returns what codes of an output column stand for: keys come first, and only words are chosen from words.
    pub(crate) fn output_words(&self, output: usize) -> Option<Arc<Dictionary>> {
        match output.checked_sub(self.keys.len()) {
            None => self.places[output].as_ref()?.dictionary.clone(),
            Some(aggregate) => self.aggregates[aggregate].dictionary.clone(),
        }
    }

    /// Makes a number of the keys: places where they are known, else the rows or entries that hold them.
    fn hash_keys(&self, stands: &dyn Fn(SlotId) -> Option<(KeyOf, u64)>) -> Result<Vec<HashKey>> {
        let mut holders: Vec<(KeyOf, u64)> = Vec::new();
        for (slot, _) in self.keys.iter().zip(&self.places).filter(|(_, place)| place.is_none()) {
            let holder = stands(*slot);
            let holder = holder.ok_or_else(|| Error::unsupported("groups by such keys are not on the device yet"))?;
            if !holders.contains(&holder) {
                holders.push(holder);
            }
        }
        let places = self.places.iter().flatten().filter(|key| {
            // A row or entry that is told apart already tells all it holds apart, too.
            stands(key.slot).is_none_or(|holder| !holders.contains(&holder))
        });
        let places: Vec<(KeyOf, u64)> = places.map(|key| (KeyOf::Place(key.fused()), key.size)).collect();
        let mut shift = 0;
        let mut keys = Vec::with_capacity(self.keys.len());
        for (of, size) in holders.into_iter().chain(places) {
            keys.push(HashKey { of, shift });
            shift += 64 - size.saturating_sub(1).leading_zeros();
        }
        if shift > 63 {
            return Err(Error::unsupported("groups by more than 63 bits of keys are not on the device yet"));
        }
        Ok(keys)
    }

    /// Adds groups of a hash table that a kernel counted, `width` numbers each; returns how many rows they have.
    pub(crate) fn absorb_hashed(
        &self,
        state: &mut AggregateState,
        hashed: &HashedGroups<'_>,
        fetch: &dyn Fn(SlotId, KeyOf, Vec<u64>) -> Result<Option<Rc<Vector>>>,
    ) -> Result<u64> {
        let HashedGroups { keys, numbers, table, width, places } = *hashed;
        let met: Vec<usize> = (0..numbers.len()).filter(|place| numbers[*place] != u64::MAX).collect();
        let part = |at: usize| {
            let above = keys.get(at + 1).map_or(64, |next| next.shift);
            let (shift, bits) = (keys[at].shift, above - keys[at].shift);
            let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            met.iter().map(move |place| if bits == 0 { 0 } else { numbers[*place] >> shift & mask })
        };
        let mut vectors = Vec::with_capacity(self.keys.len());
        for (slot, place) in self.keys.iter().zip(&self.places) {
            let own = keys.iter().position(|key| matches!(key.of, KeyOf::Place(group) if group.slot == *slot));
            if let (Some(at), Some(key)) = (own, place) {
                vectors.push(Rc::new(key.values(part(at), met.len())));
                continue;
            }
            let mut found = None;
            for (at, key) in keys.iter().enumerate().filter(|(_, key)| !matches!(key.of, KeyOf::Place(_))) {
                found = found.or(fetch(*slot, key.of, part(at).collect())?);
            }
            vectors.push(found.ok_or_else(|| Error::internal("a group has no key"))?);
        }
        let group_table = state.table.as_mut().expect("a hashed state has a table");
        let groups = group_table.groups_of(&vectors, met.len());
        let count = group_table.len();
        state.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(count));
        let mut rows = 0;
        for (place, group) in met.iter().zip(groups) {
            let numbers = &table[place * width..(place + 1) * width];
            check_halves(numbers, places)?;
            rows += numbers[ROWS_COUNT] as u64;
            for ((accumulator, places), planned) in state.accumulators.iter_mut().zip(places).zip(&self.aggregates) {
                accumulator.absorb(group as usize, numbers, places, planned.dictionary.as_deref());
            }
        }
        state.reserve()?;
        Ok(rows)
    }

    /// Adds groups that a kernel counted, `width` numbers each; returns how many rows they have.
    pub(crate) fn absorb(
        &self,
        state: &mut AggregateState,
        numbers: &[i64],
        width: usize,
        places: &[fused::Accumulator],
    ) -> Result<u64> {
        let mut rows = 0;
        for (group, numbers) in numbers.chunks_exact(width).enumerate() {
            let count = numbers[ROWS_COUNT];
            if count == 0 {
                continue;
            }
            check_halves(numbers, places)?;
            rows += count as u64;
            state.met[group] = 1;
            for ((accumulator, places), planned) in state.accumulators.iter_mut().zip(places).zip(&self.aggregates) {
                accumulator.absorb(group, numbers, places, planned.dictionary.as_deref());
            }
        }
        Ok(rows)
    }

    /// Merges the workers' groups into the result.
    pub(crate) fn finish(&self, mut states: Vec<AggregateState>, parallel: Parallel<'_>) -> Result<Table> {
        if states.is_empty() {
            states.push(self.state());
        }
        let chunks = match &self.mode {
            Mode::Hash(_) => self.finish_hashed(states, parallel)?,
            _ => {
                let mut states = states.into_iter();
                let mut all = states.next().expect("at least one state");
                for state in states {
                    let met = state.met.iter().enumerate().filter(|(_, met)| **met != 0);
                    let pairs: Vec<(u32, u32)> = met.map(|(g, _)| (g as u32, g as u32)).collect();
                    pairs.iter().for_each(|(g, _)| all.met[*g as usize] = 1);
                    all.accumulators.iter_mut().zip(&state.accumulators).for_each(|(a, b)| a.merge(b, &pairs));
                }
                let met = all.met.iter().enumerate().filter(|(_, met)| **met != 0 || self.keys.is_empty());
                let groups: Vec<u32> = met.map(|(group, _)| group as u32).collect();
                let keys = match &self.mode {
                    Mode::Dense { keys, .. } => dense_values(keys, &groups),
                    _ => Vec::new(),
                };
                vec![self.chunk(0, keys, &all.accumulators, &groups)?]
            }
        };
        Ok(to_table(self.schema.clone(), chunks))
    }

    fn finish_hashed(&self, states: Vec<AggregateState>, parallel: Parallel<'_>) -> Result<Vec<Chunk>> {
        let tables: Vec<&GroupTable> = states.iter().filter_map(|s| s.table.as_ref()).collect();
        let groups: usize = tables.iter().map(|t| t.len()).sum();
        if let [state] = states.as_slice() {
            let table = tables[0];
            let all: Vec<u32> = (0..table.len() as u32).collect();
            return Ok(vec![self.chunk(0, table.values(), &state.accumulators, &all)?]);
        }
        let parts = if groups >= PARALLEL_GROUPS { 16 } else { 1 };
        let shares: Vec<Vec<u32>> = tables.iter().map(|table| table.shares(parts)).collect();
        let chunks = Mutex::new(Vec::with_capacity(parts));
        parallel(parts, &|part| {
            let mut merged = self.empty(Some(tables[0].fresh()));
            for ((state, table), shares) in states.iter().zip(&tables).zip(&shares) {
                let theirs: Vec<u32> =
                    (0..table.len() as u32).filter(|group| shares[*group as usize] as usize == part).collect();
                let ours = merged.table.as_mut().expect("made with a table");
                let pairs = ours.absorb(table, &theirs);
                let groups = ours.len();
                for (a, b) in merged.accumulators.iter_mut().zip(&state.accumulators) {
                    a.resize(groups);
                    a.merge(b, &pairs);
                }
            }
            let table = merged.table.as_ref().expect("made with a table");
            let all: Vec<u32> = (0..table.len() as u32).collect();
            let chunk = self.chunk(part, table.values(), &merged.accumulators, &all)?;
            chunks.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
            Ok(())
        })?;
        let mut chunks = chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
        chunks.sort_by_key(|chunk: &Chunk| chunk.morsel);
        Ok(chunks)
    }

    fn chunk(&self, part: usize, keys: Vec<Vector>, accumulators: &[Accumulator], groups: &[u32]) -> Result<Chunk> {
        let mut vectors = keys;
        for accumulator in accumulators {
            match self.phase {
                Phase::Partial => vectors.extend(accumulator.states(groups)?),
                Phase::Single | Phase::Final => vectors.push(accumulator.finish(groups)?),
            }
        }
        Ok(Chunk { morsel: part, rows: groups.len(), vectors })
    }
}
