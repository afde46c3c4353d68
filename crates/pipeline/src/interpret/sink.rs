//! Where rows end: builds, groups, sorted and plain rows.

use std::cmp::Ordering;

use hashbrown::HashMap;
use tandem_column::{Result, Type};

use super::{BuildRows, Evaluator, PipelineRows, Row, window};
use crate::{
    Aggregate, Expr, Phase, Pipeline, Sink, Slot, SlotId, SortKey, Value,
    partition::part_of,
    scalar::{self, aggregate::Accumulator},
};

/// Brings rows to a sink.
pub(super) fn sink(evaluator: &Evaluator<'_>, pipeline: &Pipeline, rows: Vec<Row>) -> Result<PipelineRows> {
    let slots = &pipeline.slots;
    let rows = match &pipeline.sink {
        Sink::Build { keys, payload } => {
            let keys = rows.iter().map(|row| evaluate_all(evaluator, keys, row, slots)).collect::<Result<_>>()?;
            return Ok(PipelineRows::Build(BuildRows { keys, payload: project(rows, payload) }));
        }
        Sink::Aggregate { keys, aggregates, phase } => aggregate(slots, keys, aggregates, *phase, &rows)?,
        Sink::Sort { keys, skip, fetch, output } => {
            let mut rows = rows;
            rows.sort_by(|left, right| compare_rows(left, right, keys));
            project(limit(rows, *skip, *fetch), output)
        }
        Sink::Window { partition, order, functions, fetch, output } => {
            let computed = window::window(slots, partition, order, functions, &rows)?;
            let rows = project(rows, output).into_iter().zip(computed);
            let wanted = |place: Option<&Value>| match (fetch, place.and_then(Value::as_integer)) {
                (Some(fetch), Some(place)) => place <= *fetch as i128,
                _ => true,
            };
            let rows = rows.filter(|(_, more)| wanted(more.first()));
            rows.map(|(row, more)| row.into_iter().chain(more).collect()).collect()
        }
        Sink::Partition { keys, parts, output } => {
            let mut divided = vec![Vec::new(); (*parts).max(1)];
            for row in rows {
                let part = part_of(&evaluate_all(evaluator, keys, &row, slots)?, divided.len());
                divided[part].push(row);
            }
            project(divided.into_iter().flatten().collect(), output)
        }
        Sink::Materialize { skip, fetch, output } => project(limit(rows, *skip, *fetch), output),
    };
    Ok(PipelineRows::Rows(rows))
}

/// Evaluates expressions for a row.
fn evaluate_all(evaluator: &Evaluator<'_>, exprs: &[Expr], row: &Row, slots: &[Slot]) -> Result<Row> {
    exprs.iter().map(|expr| evaluator.evaluate(expr, row, slots)).collect()
}

/// Keeps some columns, in order.
fn project(rows: Vec<Row>, output: &[SlotId]) -> Vec<Row> {
    rows.into_iter().map(|row| output.iter().map(|slot| row[*slot].clone()).collect()).collect()
}

/// Leaves out the first rows and those behind the last that is wanted.
fn limit(rows: Vec<Row>, skip: usize, fetch: Option<usize>) -> Vec<Row> {
    rows.into_iter().skip(skip).take(fetch.unwrap_or(usize::MAX)).collect()
}

/// Orders rows by sort keys.
pub(super) fn compare_rows(left: &Row, right: &Row, keys: &[SortKey]) -> Ordering {
    let compare =
        |key: &SortKey| scalar::order_nulls(&left[key.slot], &right[key.slot], key.descending, key.nulls_first);
    keys.iter().map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Makes the accumulator of an aggregate over rows of these slots.
pub(super) fn accumulator(aggregate: &Aggregate, slots: &[Slot]) -> Accumulator {
    let kind: Option<&Type> = aggregate.argument.map(|slot| &slots[slot].kind);
    Accumulator::new(aggregate, kind)
}

/// Takes a row into an accumulator, if the aggregate's filter lets it.
pub(super) fn accumulate(
    into: &mut Accumulator,
    aggregate: &Aggregate,
    slots: &[Slot],
    row: &Row,
    phase: Phase,
) -> Result<()> {
    if aggregate.filter.is_some_and(|filter| !row[filter].is_true()) {
        return Ok(());
    }
    match (phase, aggregate.argument, aggregate.second) {
        (Phase::Final, Some(first), _) => into.merge(&row[first..first + aggregate.function.state_names().len()]),
        (_, Some(y), Some(x)) => into.update_pair(&row[y], &row[x], &slots[x].kind),
        (_, Some(argument), None) => {
            into.update_ordered(&row[argument], aggregate.order.iter().map(|key| row[key.slot].clone()).collect())
        }
        (_, None, _) => into.update(&Value::Null),
    }
}

/// Groups rows by keys, in order of first appearance; without keys there is one group, even of no rows.
fn aggregate(
    slots: &[Slot],
    keys: &[SlotId],
    aggregates: &[Aggregate],
    phase: Phase,
    rows: &[Row],
) -> Result<Vec<Row>> {
    let fresh = || aggregates.iter().map(|aggregate| accumulator(aggregate, slots)).collect::<Vec<_>>();
    let mut groups: Vec<(Row, Vec<Accumulator>)> = Vec::new();
    let mut positions: HashMap<Row, usize> = HashMap::new();
    if keys.is_empty() {
        groups.push((vec![], fresh()));
        positions.insert(vec![], 0);
    }
    for row in rows {
        let key: Row = keys.iter().map(|slot| row[*slot].clone()).collect();
        let position = *positions.entry(key.clone()).or_insert_with(|| {
            groups.push((key, fresh()));
            groups.len() - 1
        });
        for (into, aggregate) in groups[position].1.iter_mut().zip(aggregates) {
            accumulate(into, aggregate, slots, row, phase)?;
        }
    }
    let finish = |(mut row, accumulators): (Row, Vec<Accumulator>)| -> Result<Row> {
        for accumulator in accumulators {
            match phase {
                Phase::Partial => row.extend(accumulator.state()?),
                Phase::Single | Phase::Final => row.push(accumulator.finish()?),
            }
        }
        Ok(row)
    };
    groups.into_iter().map(finish).collect()
}
