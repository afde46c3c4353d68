//! How a kernel lays out what the rows of a physical pipeline end in.

use tandem_codegen::{HashKey, KernelSink, KeyOf, OrderKey};
use tandem_column::{Data, Error, Repr, Result, Table, Type};
use tandem_pipeline::{AggregateFunction, SlotId};
use tandem_plan::{
    Origin, Physical, SinkPlan,
    sink::{AggregatePlan, GroupLayout, PlannedAggregate, SMALL_ARRAY, SortPlan},
};

/// The most bytes of text that rows are sorted by on a device, eight for each 64-bit ordinal of a row: beyond, ordinals take
/// more memory than rows.
const MOST_ORDERED: usize = 64;

/// Lays out the sink of a pipeline over a table.
///
/// # Errors
/// Unsupported, with the reason, for what no kernel computes yet.
pub(crate) fn kernel_sink(physical: &Physical, table: &Table) -> Result<KernelSink> {
    match &physical.sink {
        SinkPlan::Aggregate(plan) => groups(plan, &|slot| holder(physical, table, slot)),
        SinkPlan::Sort(plan) => {
            Ok(KernelSink::Rows { values: physical.sink.values(), order: order(plan, physical, table)? })
        }
        SinkPlan::Build(_) | SinkPlan::Materialize(_) => {
            Ok(KernelSink::Rows { values: physical.sink.values(), order: Vec::new() })
        }
        SinkPlan::Window(_) => Err(Error::unsupported("window functions are not on the device yet")),
        SinkPlan::Partition(_) => Err(Error::unsupported("partitioning for an exchange is not on the device yet")),
    }
}

/// Tells whether values of source columns are fetched on the host in the end.
pub(crate) fn fetches_source(sink: &KernelSink) -> bool {
    matches!(sink, KernelSink::Hashed { keys, .. } if keys.iter().any(|key| key.of == KeyOf::Row))
}

/// Returns what may stand for a slot's value, and how many such there are.
fn holder(physical: &Physical, table: &Table, slot: SlotId) -> Option<(KeyOf, u64)> {
    match physical.body.origins[slot] {
        Origin::Column(_) => {
            // One more number is for unmatched build rows, which have no source row.
            let numbers = table.rows() as u64 + u64::from(physical.body.emits_build_rows());
            Some((KeyOf::Row, numbers)).filter(|(_, numbers)| *numbers < 1 << 31)
        }
        Origin::Payload { lookup, .. } => Some((KeyOf::Entry(lookup), physical.builds[lookup].entries() as u64 + 1)),
        Origin::Computed => None,
    }
}

fn groups(plan: &AggregatePlan, holder: &dyn Fn(SlotId) -> Option<(KeyOf, u64)>) -> Result<KernelSink> {
    if plan.phase == tandem_pipeline::Phase::Final {
        return Err(Error::unsupported("the final half of an aggregation is not on the device yet"));
    }
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
            KernelSink::Hashed { keys: hash_keys(plan, holder)?, aggregates }
        }
    })
}

/// Makes a number of the keys: places where they are known, else the rows or entries that hold them.
fn hash_keys(plan: &AggregatePlan, holder: &dyn Fn(SlotId) -> Option<(KeyOf, u64)>) -> Result<Vec<HashKey>> {
    let mut holders: Vec<(KeyOf, u64)> = Vec::new();
    for (slot, _) in plan.keys.iter().zip(&plan.places).filter(|(_, place)| place.is_none()) {
        let holder = holder(*slot);
        let holder = holder.ok_or_else(|| Error::unsupported("groups by such keys are not on the device yet"))?;
        if !holders.contains(&holder) {
            holders.push(holder);
        }
    }
    let places = plan.places.iter().flatten().filter(|key| {
        // A row or entry that is told apart already tells all it holds apart, too.
        holder(key.key.slot).is_none_or(|holder| !holders.contains(&holder))
    });
    let places: Vec<(KeyOf, u64)> = places.map(|key| (KeyOf::Place(key.key), key.key.size)).collect();
    let mut shift = 0;
    let mut keys = Vec::with_capacity(plan.keys.len());
    for (of, size) in holders.into_iter().chain(places) {
        keys.push(HashKey { of, shift });
        shift += 64 - size.saturating_sub(1).leading_zeros();
    }
    if shift > 63 {
        return Err(Error::unsupported("groups by more than 63 bits of keys are not on the device yet"));
    }
    Ok(keys)
}

/// Describes an order whose keys are the first values of each row.
fn order(plan: &SortPlan, physical: &Physical, table: &Table) -> Result<Vec<OrderKey>> {
    let body = &physical.body;
    let keys = plan.keys.iter().enumerate().map(|(value, key)| {
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
