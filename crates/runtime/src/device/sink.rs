//! How a kernel lays out what the rows of a physical pipeline end in.

use tandem_codegen::{HashKey, KernelSink, KeyOf, OrderKey, PLACE_BITS, ValueGroups};
use tandem_column::{Data, Error, Repr, Result, Table, Type};
use tandem_pipeline::{AggregateFunction, SlotId, SortKey};
use tandem_plan::{
    Origin, Physical, SinkPlan,
    sink::{AggregatePlan, GroupLayout, PlannedAggregate, SMALL_ARRAY},
};

/// The most bytes of text that rows are sorted by on a device, eight for each 64-bit ordinal of a row: beyond, ordinals take
/// more memory than rows.
const MOST_ORDERED: usize = 64;

/// What the rows of a pipeline end in on a device: that of one pass over them, and of those that follow for some aggregates.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSink {
    /// Of the first pass.
    pub(super) first: KernelSink,
    /// Groups by the keys and a value, for each of [`AggregatePlan::distinct`].
    pub(super) distinct: Vec<KernelSink>,
    /// Values that are sorted, and the aggregate that is picked from them, if the first pass has not computed it.
    pub(super) values: Vec<(usize, KernelSink)>,
}

impl DeviceSink {
    fn new(first: KernelSink) -> DeviceSink {
        DeviceSink { first, distinct: Vec::new(), values: Vec::new() }
    }

    /// Tells whether one device must have all rows: what is between values cannot be told from that of parts of them.
    pub(super) fn is_indivisible(&self) -> bool {
        self.values
            .iter()
            .any(|(_, sink)| matches!(sink, KernelSink::Values { aggregate, .. } if is_quantile(aggregate)))
    }
}

/// Tells whether an aggregate is a value between others.
pub(super) fn is_quantile(planned: &PlannedAggregate) -> bool {
    matches!(planned.aggregate.function, AggregateFunction::Median | AggregateFunction::Quantile)
}

/// Lays out the sink of a pipeline over a table.
///
/// # Errors
/// Unsupported, with the reason, for what no kernel computes yet.
pub(crate) fn device_sink(physical: &Physical, table: &Table) -> Result<DeviceSink> {
    match &physical.sink {
        SinkPlan::Aggregate(plan) => {
            let first = groups(plan, physical)?;
            let distinct = plan.distinct.iter().map(|distinct| groups(&distinct.rows, physical));
            let values = sorted_values(plan, physical, &first);
            Ok(DeviceSink { distinct: distinct.collect::<Result<_>>()?, values, first })
        }
        SinkPlan::Sort(plan) => Ok(DeviceSink::new(KernelSink::Rows {
            values: physical.sink.values(),
            order: order(plan.keys.iter().enumerate(), physical, table)?,
        })),
        SinkPlan::Build(_) | SinkPlan::Materialize(_) => {
            Ok(DeviceSink::new(KernelSink::Rows { values: physical.sink.values(), order: Vec::new() }))
        }
        SinkPlan::Window(plan) => {
            let (keys, _) = plan.keys();
            let keys = keys.iter().map(|key| (plan.position(key.slot), key));
            let order = order(keys, physical, table)?;
            Ok(DeviceSink::new(KernelSink::Rows { values: physical.sink.values(), order }))
        }
        SinkPlan::Partition(plan) => Ok(DeviceSink::new(KernelSink::Partition {
            keys: plan.keys.clone(),
            parts: plan.parts,
            values: physical.sink.values(),
        })),
    }
}

/// Returns the entry that holds a slot's value, and how many such there are.
fn holder(physical: &Physical, slot: SlotId) -> Option<(KeyOf, u64)> {
    match physical.body.origins[slot] {
        Origin::Payload { lookup, .. } => Some((KeyOf::Entry(lookup), physical.builds[lookup].entries() as u64 + 1)),
        Origin::Column(_) | Origin::Computed => None,
    }
}

/// Lays out the values that aggregates of some groups may be picked from, once they are sorted.
fn sorted_values(plan: &AggregatePlan, physical: &Physical, first: &KernelSink) -> Vec<(usize, KernelSink)> {
    let groups = match first {
        KernelSink::Groups { keys, .. } => ValueGroups::Places(keys.clone()),
        // What is picked from finer groups says nothing of those asked for.
        KernelSink::Hashed { .. } => ValueGroups::Hashed(hash_keys(plan, physical, true)),
        _ => return Vec::new(),
    };
    let picked = |planned: &PlannedAggregate| {
        let best = matches!(planned.aggregate.function, AggregateFunction::Min | AggregateFunction::Max);
        !planned.of_distinct() && (is_quantile(planned) || best && planned.argument.repr() == Repr::Wide)
    };
    let aggregates = plan.aggregates.iter().enumerate().filter(|(_, planned)| picked(planned));
    let sinks = aggregates
        .map(|(at, planned)| (at, KernelSink::Values { groups: groups.clone(), aggregate: Box::new(planned.clone()) }));
    sinks.collect()
}

fn groups(plan: &AggregatePlan, physical: &Physical) -> Result<KernelSink> {
    let coded = |planned: &PlannedAggregate| planned.argument.repr() != Repr::Bytes || planned.dictionary.is_some();
    let best = |planned: &PlannedAggregate| {
        matches!(planned.aggregate.function, AggregateFunction::Min | AggregateFunction::Max)
    };
    if plan.aggregates.iter().any(|planned| best(planned) && !coded(planned)) {
        return Err(Error::unsupported("the smallest or largest plain string is not on the device yet"));
    }
    let scaled = |planned: &PlannedAggregate| {
        planned.aggregate.function == AggregateFunction::Average
            && planned.aggregate.kind.is_float()
            && matches!(planned.argument, Type::Decimal { .. })
    };
    if plan.aggregates.iter().any(scaled) {
        return Err(Error::unsupported("the average of decimals as a float is not on the device yet"));
    }
    let aggregates = plan.aggregates.clone();
    Ok(match &plan.layout {
        GroupLayout::One => KernelSink::Groups { keys: Vec::new(), groups: 1, aggregates },
        GroupLayout::Array { keys, groups } if *groups <= SMALL_ARRAY => {
            KernelSink::Groups { keys: keys.iter().map(|key| key.key).collect(), groups: *groups, aggregates }
        }
        // A kernel has an array for each of many work-items: large ones take too much memory.
        GroupLayout::Array { .. } | GroupLayout::Hash(_) => {
            KernelSink::Hashed { keys: hash_keys(plan, physical, false), aggregates }
        }
    })
}

/// Makes numbers of the keys: places where they are known, else the entries that hold them, unless groups are to be `exact`, or their
/// bits or texts.
fn hash_keys(plan: &AggregatePlan, physical: &Physical, exact: bool) -> Vec<HashKey> {
    let holder = |slot: SlotId| holder(physical, slot).filter(|_| !exact);
    let bits = |numbers: u64| 64 - numbers.saturating_sub(1).leading_zeros();
    let mut parts: Vec<(KeyOf, u32)> = Vec::new();
    let mut add = |of: KeyOf, bits: u32| {
        if !parts.iter().any(|(known, _)| *known == of) {
            parts.push((of, bits));
        }
    };
    let without = || plan.keys.iter().zip(&plan.places).filter(|(_, place)| place.is_none()).map(|(slot, _)| *slot);
    for slot in without() {
        match (holder(slot), physical.body.slots[slot].kind.repr()) {
            (Some((entry, entries)), _) => add(entry, bits(entries)),
            (None, Repr::Bytes) => add(KeyOf::Text(slot), PLACE_BITS),
            (None, repr) => {
                add(KeyOf::Low(slot), if repr == Repr::Boolean { 1 } else { 64 });
                if repr == Repr::Wide {
                    add(KeyOf::High(slot), 64);
                }
                add(KeyOf::Null(slot), 1);
            }
        }
    }
    let held: Vec<(KeyOf, u64)> = without().filter_map(holder).collect();
    // An entry that is told apart already tells all it holds apart, too.
    let places = plan.places.iter().flatten().map(|key| key.key);
    let places = places.filter(|key| holder(key.slot).is_none_or(|holder| !held.contains(&holder)));
    parts.extend(places.map(|key| (KeyOf::Place(key), key.bits())));
    HashKey::lay_out(&parts)
}

/// Describes an order by keys, which are values of each row.
fn order<'k>(
    keys: impl Iterator<Item = (usize, &'k SortKey)>,
    physical: &Physical,
    table: &Table,
) -> Result<Vec<OrderKey>> {
    let body = &physical.body;
    let keys = keys.map(|(value, key)| {
        let text = body.slots[key.slot].kind.repr() == Repr::Bytes;
        let plain = text && body.domains[key.slot].dictionary.is_none();
        let longest = if plain { Some(longest_text(physical, table, key.slot)?) } else { None };
        Ok(OrderKey { value, descending: key.descending, nulls_first: key.nulls_first, longest })
    });
    keys.collect()
}

/// Returns the bytes of a slot's longest text, if a device sorts by texts of so many.
fn longest_text(physical: &Physical, table: &Table, slot: SlotId) -> Result<usize> {
    let columns = match physical.body.origins[slot] {
        Origin::Column(column) => table.parts.iter().map(|part| &part.columns[column]).collect(),
        Origin::Payload { lookup, payload } => vec![&physical.builds[lookup].payload[payload]],
        Origin::Computed => return Err(Error::unsupported("an order by computed text is not on the device yet")),
    };
    let longest = columns.iter().map(|column| match &column.data {
        Data::Bytes { offsets, .. } => offsets.windows(2).map(|ends| ends[1] - ends[0]).max(),
        _ => None,
    });
    match longest.flatten().max().unwrap_or(0) as usize {
        longest if longest <= MOST_ORDERED => Ok(longest),
        longest => Err(Error::unsupported(format!("an order by text of {longest} bytes is not on the device yet"))),
    }
}
