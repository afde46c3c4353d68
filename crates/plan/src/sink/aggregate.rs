//! How groups are told apart and what is kept of each: an array of groups where keys have few places, a hash table
//! otherwise.

use std::sync::Arc;

use tandem_column::{Dictionary, Error, Repr, Result, Type};
use tandem_pipeline::{Aggregate, AggregateFunction, Overflow, Phase, Slot, SlotId, scalar::decimal::power_of_ten};

use crate::Domain;

/// An array of groups may have this many places: what a core's L2 cache holds of one 8-byte state, times four.
const DENSE_GROUPS: u64 = 1 << 18;
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
    /// The sum of all rows fits 64 bits.
    pub narrow: bool,
    /// Every row of a group contributes, so that no count of those that do is needed.
    pub total: bool,
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
    /// Written out.
    Bytes(Vec<SlotId>),
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
                // Places are fetched as 32-bit numbers.
                if bits > 32 || shift + bits > 64 {
                    return None;
                }
                packed.push((key.clone(), shift));
                shift += bits;
            }
            Some(packed)
        });
        packed.map_or_else(|| KeyPacking::Bytes(keys.to_vec()), KeyPacking::Integer)
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
        rows: usize,
        collide: bool,
    ) -> Result<AggregatePlan> {
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
            (Some(keys), Some(total)) if total <= DENSE_GROUPS && !collide => {
                GroupLayout::Array { keys, groups: total as usize }
            }
            (all, _) => GroupLayout::Hash(KeyPacking::new(keys, all.as_deref())),
        };
        let aggregates = aggregates.iter().map(|aggregate| {
            let argument = aggregate.argument.map_or(Type::Int64, |slot| slots[slot].kind.clone());
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
            Ok(PlannedAggregate { aggregate: aggregate.clone(), argument, narrow, total, dictionary })
        });
        let aggregates = aggregates.collect::<Result<_>>()?;
        Ok(AggregatePlan { keys: keys.to_vec(), key_kinds, places, layout, aggregates, phase, collide })
    }

    /// Describes the choice made, for people.
    pub(crate) fn note(&self) -> String {
        match &self.layout {
            GroupLayout::One => "one group".into(),
            GroupLayout::Array { groups, .. } => format!("groups as an array of {groups}"),
            GroupLayout::Hash(KeyPacking::Integer(_)) => "groups hashed by a packed integer".into(),
            GroupLayout::Hash(KeyPacking::Bytes(_)) => "groups hashed by key bytes".into(),
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
