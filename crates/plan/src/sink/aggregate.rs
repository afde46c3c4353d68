//! How groups are told apart and what is kept of each: an array of groups where keys have few places, a hash table
//! otherwise.

use std::sync::Arc;

use tandem_column::{Dictionary, Error, Repr, Result, Type};
use tandem_pipeline::{Aggregate, AggregateFunction, Overflow, Phase, Slot, SlotId, scalar::decimal::power_of_ten};

use crate::Domain;

/// An array of groups with up to this many places always pays: what a core's L2 cache holds of one 8-byte state, times four.
pub const SMALL_ARRAY: usize = 1 << 18;
/// The most places of an array that pays where there are at least as many rows: a miss of the cache for each row, but the misses
/// of many rows at once, while a hash table's wait for each other. Beyond, clearing and merging arrays costs more.
const LARGE_ARRAY: usize = 1 << 23;
/// Bytes of a place in a worker's array, roughly: a flag, a sum and a count, with room for one more.
const PLACE_BYTES: usize = 32;
/// More rows than one query adds up.
const MOST_ROWS: usize = 1 << 40;
/// By so many digits the sums of decimals are wider than what is added up, where 38 digits allow it; their limit is not met.
const SPARE_DIGITS: u8 = 10;

/// An aggregation with its choices made.
#[derive(Clone, Debug)]
pub struct AggregatePlan {
    /// The slots of the keys.
    pub keys: Vec<SlotId>,
    /// Their types.
    pub key_kinds: Vec<Type>,
    /// The places of each key's values, where they are known.
    pub places: Vec<Option<PlacedKey>>,
    /// How groups are told apart.
    pub layout: GroupLayout,
    /// What is computed of each group.
    pub aggregates: Vec<PlannedAggregate>,
    /// Which half of the aggregation this is.
    pub phase: Phase,
    /// What aggregates of distinct values are computed of.
    pub distinct: Vec<DistinctPlan>,
    /// All hashes are equal: a test of collisions.
    pub collide: bool,
}

/// The distinct values that aggregates are computed of: an aggregation of its own, whose groups become rows of the first.
#[derive(Clone, Debug)]
pub struct DistinctPlan {
    /// Groups by the keys, then the value, then the filter of the aggregates if they have one; nothing is computed of them.
    pub rows: Arc<AggregatePlan>,
    /// The aggregates that are computed of these values.
    pub aggregates: Vec<usize>,
    /// They have a filter.
    pub filtered: bool,
}

/// What planning an aggregation knows besides slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most rows that come in.
    pub rows: usize,
    /// The bytes that the query may take.
    pub memory: usize,
    /// How many workers have groups of their own.
    pub workers: usize,
    /// All hashes are equal: a test of collisions.
    pub collide: bool,
}

/// One aggregate with its choices made.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedAggregate {
    /// What is computed.
    pub aggregate: Aggregate,
    /// The argument's type; of the final phase, its first state's.
    pub argument: Type,
    /// The type of the second argument, if it has one.
    pub second: Type,
    /// The sum of all rows fits 64 bits.
    pub narrow: bool,
    /// Every row of a group contributes, so that no count of those that do is needed.
    pub total: bool,
    /// It is computed of states that a partial aggregation left.
    pub of_states: bool,
    /// The aggregate that counts the same rows: an earlier one, where every row contributes to both.
    pub counted_by: Option<usize>,
    /// What codes of the argument stand for, if it has codes.
    pub dictionary: Option<Arc<Dictionary>>,
}

/// How groups are told apart.
#[derive(Clone, Debug)]
pub enum GroupLayout {
    /// There is one.
    One,
    /// Places of an array.
    Array {
        /// The keys; the last has places next to each other.
        keys: Vec<PlacedKey>,
        /// How many places there are.
        groups: usize,
    },
    /// A hash table.
    Hash(KeyPacking),
}

/// One key of groups whose values have places: that of a value is value − `min`, the last place is null where `nullable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupKey {
    /// The slot.
    pub slot: SlotId,
    /// The value of place 0.
    pub min: i64,
    /// How many places there are.
    pub size: u64,
    /// Whether the last place is null.
    pub nullable: bool,
}

/// A key whose values have places, and what they stand for.
#[derive(Clone, Debug)]
pub struct PlacedKey {
    /// The places.
    pub key: GroupKey,
    /// The key's type.
    pub kind: Type,
    /// What codes stand for, if the values are codes.
    pub dictionary: Option<Arc<Dictionary>>,
}

/// How the keys of hashed groups are held.
#[derive(Clone, Debug)]
pub enum KeyPacking {
    /// Each key's place shifted into one integer.
    Integer(Vec<(PlacedKey, u32)>),
    /// Column by column.
    Columns(Vec<SlotId>),
}

impl PlacedKey {
    /// Reads a slot's domain; `None` where its values have no known places.
    fn new(slot: SlotId, kind: &Type, domain: &Domain) -> Option<PlacedKey> {
        let coded = domain.dictionary.is_some() || matches!(kind.repr(), Repr::Int | Repr::Boolean);
        let (min, max) = domain.range.filter(|_| coded)?;
        let size = u64::try_from(i128::from(max) - i128::from(min) + 1 + i128::from(domain.nullable)).ok()?;
        let key = GroupKey { slot, min, size, nullable: domain.nullable };
        Some(PlacedKey { key, kind: kind.clone(), dictionary: domain.dictionary.clone() })
    }
}

impl GroupLayout {
    /// Tells whether it is the same for any number of rows.
    pub(crate) fn is_small(&self) -> bool {
        match self {
            GroupLayout::One => true,
            GroupLayout::Array { groups, .. } => *groups <= SMALL_ARRAY,
            GroupLayout::Hash(_) => false,
        }
    }
}

impl GroupKey {
    /// Returns how many bits a place takes.
    pub fn bits(&self) -> u32 {
        64 - self.size.saturating_sub(1).leading_zeros()
    }
}

impl KeyPacking {
    /// Packs into 64 bits if every key has places and they fit together.
    fn new(keys: &[SlotId], places: Option<&[PlacedKey]>) -> KeyPacking {
        let packed = places.and_then(|places| {
            let mut shift = 0;
            let mut packed = Vec::with_capacity(places.len());
            for key in places {
                let bits = key.key.bits();
                if shift + bits > 64 {
                    return None;
                }
                packed.push((key.clone(), shift));
                shift += bits;
            }
            Some(packed)
        });
        packed.map_or_else(|| KeyPacking::Columns(keys.to_vec()), KeyPacking::Integer)
    }
}

impl AggregatePlan {
    /// Plans an aggregation of at most so many rows.
    ///
    /// # Errors
    /// Unsupported for parts of sums that the host that asks for them would add up otherwise.
    pub(crate) fn new(
        keys: &[SlotId],
        aggregates: &[Aggregate],
        phase: Phase,
        (slots, domains): (&[Slot], &[Domain]),
        bounds: Bounds,
    ) -> Result<AggregatePlan> {
        let Bounds { rows, collide, .. } = bounds;
        let key_kinds: Vec<Type> = keys.iter().map(|slot| slots[*slot].kind.clone()).collect();
        let places = keys.iter().zip(&key_kinds).map(|(slot, kind)| PlacedKey::new(*slot, kind, &domains[*slot]));
        let places: Vec<Option<PlacedKey>> = places.collect();
        let all: Option<Vec<PlacedKey>> = places.iter().cloned().collect();
        let total = all
            .as_ref()
            .map(|keys| keys.iter().try_fold(1u64, |total, key| total.checked_mul(key.key.size)).unwrap_or(u64::MAX));
        let layout = match (all, total) {
            _ if keys.is_empty() => GroupLayout::One,
            // With forced collisions the hash table is what is to be tested.
            (Some(keys), Some(total)) if total <= largest_array(bounds) as u64 && !collide => {
                GroupLayout::Array { keys, groups: total as usize }
            }
            (all, _) => GroupLayout::Hash(KeyPacking::new(keys, all.as_deref())),
        };
        let aggregates = aggregates.iter().map(|aggregate| {
            let argument = aggregate.argument.map_or(Type::Int64, |slot| slots[slot].kind.clone());
            let second = aggregate.second.map_or(Type::Null, |slot| slots[slot].kind.clone());
            let domain = aggregate.argument.map(|slot| &domains[slot]);
            if phase == Phase::Partial && may_pass(aggregate, &argument, domain.and_then(|d| d.range), rows) {
                let name = aggregate.argument.map_or("", |slot| &slots[slot].name);
                return Err(Error::unsupported(format!("a sum of {name} may pass the limits of its type on the way")));
            }
            // |value| × rows bounds every partial sum.
            let narrow = domain.and_then(|d| d.range).is_some_and(|(low, high)| {
                let most = low.unsigned_abs().max(high.unsigned_abs());
                u128::from(most) * (rows as u128) < i64::MAX as u128
            });
            let total = aggregate.filter.is_none() && domain.is_some_and(|d| !d.nullable) && !keys.is_empty();
            let dictionary = domain.and_then(|domain| domain.dictionary.clone());
            let (aggregate, counted_by) = (aggregate.clone(), None);
            let of_states = phase == Phase::Final;
            Ok(PlannedAggregate { aggregate, argument, second, narrow, total, of_states, counted_by, dictionary })
        });
        let mut aggregates = aggregates.collect::<Result<Vec<_>>>()?;
        share_counts(&mut aggregates, phase);
        let distinct = distinct_plans(keys, &aggregates, (slots, domains), bounds)?;
        Ok(AggregatePlan { keys: keys.to_vec(), key_kinds, places, layout, aggregates, phase, distinct, collide })
    }

    /// Describes the choice made, for people.
    pub(crate) fn note(&self) -> String {
        use AggregateFunction as F;
        let layout = match &self.layout {
            GroupLayout::One => "one group".into(),
            GroupLayout::Array { groups, .. } => format!("groups as an array of {groups}"),
            GroupLayout::Hash(KeyPacking::Integer(_)) => "groups hashed by a packed integer".into(),
            GroupLayout::Hash(KeyPacking::Columns(_)) => "groups hashed by columns".into(),
        };
        let adds = |planned: &&PlannedAggregate| matches!(planned.aggregate.function, F::Sum | F::Average);
        let mut sums = self.aggregates.iter().filter(adds).peekable();
        match sums.peek().is_some() && sums.all(|planned| planned.narrow) {
            true => format!("{layout}, sums fit 64 bits"),
            false => layout,
        }
    }

    /// Returns what codes of an output column stand for: keys come first, and only dictionary codes are chosen from them.
    pub fn output_dictionary(&self, output: usize) -> Option<Arc<Dictionary>> {
        match output.checked_sub(self.keys.len()) {
            None => self.places[output].as_ref()?.dictionary.clone(),
            Some(aggregate) => self.aggregates[aggregate].dictionary.clone(),
        }
    }
}

/// Returns the most places that an array of groups may have: an eighth of the memory for all workers, and each with about as many
/// rows as places, since all places are merged in the end.
fn largest_array(bounds: Bounds) -> usize {
    let workers = bounds.workers.max(1);
    let room = bounds.memory / 8 / workers / PLACE_BYTES;
    let rows = bounds.rows.saturating_mul(2) / workers;
    rows.min(room).clamp(SMALL_ARRAY, LARGE_ARRAY)
}

/// Lets aggregates that count the same rows count them once.
fn share_counts(aggregates: &mut [PlannedAggregate], phase: Phase) {
    use AggregateFunction as F;
    if phase == Phase::Final {
        // What is counted there are states, each with a count of its own.
        return;
    }
    let mut first = None;
    for (at, planned) in aggregates.iter_mut().enumerate() {
        let every_row = match planned.aggregate.function {
            F::CountRows => planned.aggregate.filter.is_none(),
            F::Count | F::Average => planned.total && !planned.aggregate.distinct,
            _ => false,
        };
        if every_row {
            planned.counted_by = first;
            first = first.or(Some(at));
        }
    }
}

/// Plans the distinct values of aggregates that are computed of such.
fn distinct_plans(
    keys: &[SlotId],
    aggregates: &[PlannedAggregate],
    (slots, domains): (&[Slot], &[Domain]),
    bounds: Bounds,
) -> Result<Vec<DistinctPlan>> {
    let mut plans: Vec<DistinctPlan> = Vec::new();
    for (at, planned) in aggregates.iter().enumerate() {
        let Some(argument) = planned.aggregate.argument.filter(|_| planned.of_distinct()) else { continue };
        let filter = planned.aggregate.filter;
        let by: Vec<SlotId> = keys.iter().copied().chain([argument]).chain(filter).collect();
        match plans.iter_mut().find(|plan| plan.rows.keys == by && plan.filtered == filter.is_some()) {
            Some(known) => known.aggregates.push(at),
            None => {
                let rows = AggregatePlan::new(&by, &[], Phase::Single, (slots, domains), bounds)?;
                plans.push(DistinctPlan { rows: Arc::new(rows), aggregates: vec![at], filtered: filter.is_some() });
            }
        }
    }
    Ok(plans)
}

impl PlannedAggregate {
    /// Tells whether it is computed of distinct values; those to which repetition makes no difference are not.
    pub fn of_distinct(&self) -> bool {
        let function = self.aggregate.function;
        self.aggregate.distinct && !function.ignores_repetition() && function != AggregateFunction::First
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
