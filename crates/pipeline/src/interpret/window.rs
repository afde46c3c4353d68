//! Window functions: for each row, something of the rows around it.

use hashbrown::HashMap;
use tandem_column::Result;

use super::{
    Row,
    sink::{accumulate, accumulator, compare_rows},
};
use crate::{Phase, Slot, SlotId, SortKey, Value, Window, WindowFrame, WindowFunction};

/// Computes the functions for every row, in the order of rows.
pub(super) fn window(
    slots: &[Slot],
    partition: &[SlotId],
    order: &[SortKey],
    functions: &[Window],
    rows: &[Row],
) -> Result<Vec<Row>> {
    let mut partitions: HashMap<Row, Vec<usize>> = HashMap::new();
    for (position, row) in rows.iter().enumerate() {
        let key = partition.iter().map(|slot| row[*slot].clone()).collect();
        partitions.entry(key).or_default().push(position);
    }
    let mut computed = vec![Row::new(); rows.len()];
    for mut members in partitions.into_values() {
        members.sort_by(|left, right| compare_rows(&rows[*left], &rows[*right], order));
        for window in functions {
            for (at, position) in members.iter().enumerate() {
                let value = one(slots, order, &window.function, rows, &members, at)?;
                computed[*position].push(value);
            }
        }
    }
    Ok(computed)
}

/// Computes a function for the row at place `at` of its ordered partition.
fn one(
    slots: &[Slot],
    order: &[SortKey],
    function: &WindowFunction,
    rows: &[Row],
    members: &[usize],
    at: usize,
) -> Result<Value> {
    let place = |at: usize| Ok(Value::Integer(at as i128 + 1));
    let new_peers =
        |place: &usize| *place == 0 || compare_rows(&rows[members[*place - 1]], &rows[members[*place]], order).is_ne();
    match function {
        WindowFunction::RowNumber => place(at),
        WindowFunction::Rank => place((0..=at).rev().find(|place| new_peers(place)).unwrap_or(0)),
        WindowFunction::DenseRank => place((1..=at).filter(|place| new_peers(place)).count()),
        WindowFunction::Lag { slot, offset } => {
            let from = (at as i128) - i128::from(*offset);
            let found = usize::try_from(from).ok().and_then(|from| members.get(from));
            Ok(found.map_or(Value::Null, |position| rows[*position][*slot].clone()))
        }
        WindowFunction::Aggregate { aggregate, frame } => {
            let mut into = accumulator(aggregate, slots);
            for position in framed(members, at, frame) {
                accumulate(&mut into, aggregate, &rows[*position], Phase::Single)?;
            }
            into.finish()
        }
    }
}

/// Returns the rows of the frame around place `at`.
fn framed<'a>(members: &'a [usize], at: usize, frame: &WindowFrame) -> &'a [usize] {
    let bound = |bound: i64| (at as i128 + i128::from(bound)).clamp(-1, members.len() as i128);
    let start = frame.start.map_or(0, |start| bound(start).max(0) as usize);
    let end = frame.end.map_or(members.len() as i128, |end| bound(end) + 1).min(members.len() as i128) as usize;
    members.get(start..end).unwrap_or(&[])
}
