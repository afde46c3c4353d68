//! Puts the entries of each key in the order of a payload column, so that probes search them.

use std::{iter, ops::Range};

use tandem_column::Result;
use tandem_pipeline::SortKey;
use tandem_plan::{KeyIndex, Keys, RunColumns, RunOrder};

use crate::{ParallelTasks, Vector, lookup::ordinals, sink::order::order};

/// Orders the entries of each key, given as the row of each; `None` where a key has one at most, or where entries of one
/// hash have several keys.
pub(super) fn order_runs(
    index: &KeyIndex,
    entries: &mut Vec<u32>,
    payload: &[Vector],
    columns: RunColumns,
    parallel: ParallelTasks<'_>,
) -> Result<Option<RunOrder>> {
    let ordered = &payload[columns.order];
    let runs = match index {
        KeyIndex::All => {
            let ascending = [SortKey { slot: 0, descending: false, nulls_first: false }];
            *entries = order(&ascending, &[ordered], entries.len(), entries.len(), parallel)?;
            iter::once(0..entries.len()).collect()
        }
        _ => {
            let Some(runs) = runs(index) else { return Ok(None) };
            let ordinals = ordinals(ordered, i64::MAX);
            for run in &runs {
                entries[run.clone()].sort_by_key(|row| ordinals[*row as usize]);
            }
            runs
        }
    };
    let by_entry = |column: usize, null: i64| -> Vec<i64> {
        let ordinals = ordinals(&payload[column], null);
        entries.iter().map(|row| ordinals[*row as usize]).collect()
    };
    // Null is what no condition is fulfilled by, or what every one is.
    let (least, most) = if columns.nulls { (i64::MAX, i64::MIN) } else { (i64::MIN, i64::MAX) };
    let mut highest = columns.highest.map_or_else(Vec::new, |column| by_entry(column, least));
    let mut lowest = columns.lowest.map_or_else(Vec::new, |column| by_entry(column, most));
    for run in runs.into_iter().filter(|run| run.len() > 1) {
        if columns.highest.is_some() {
            (run.start + 1..run.end).for_each(|at| highest[at] = highest[at].max(highest[at - 1]));
        }
        if columns.lowest.is_some() {
            (run.start + 1..run.end).rev().for_each(|at| lowest[at - 1] = lowest[at - 1].min(lowest[at]));
        }
    }
    let exact = ordered.valid.as_ref().is_none_or(|valid| !valid.contains(&0));
    Ok(Some(RunOrder { columns, values: by_entry(columns.order, i64::MAX), exact, highest, lowest }))
}

/// Returns the entries of each key that has several.
fn runs(index: &KeyIndex) -> Option<Vec<Range<usize>>> {
    let ends: Box<dyn Iterator<Item = Range<usize>>> = match index {
        KeyIndex::All | KeyIndex::Unique(_) => return None,
        KeyIndex::Dense { starts, .. } => Box::new(starts.windows(2).map(|ends| ends[0] as usize..ends[1] as usize)),
        KeyIndex::Hash(table) => {
            if table.unique || matches!(table.keys, Keys::Columns { exact: false, .. }) {
                return None;
            }
            let mut start = 0;
            Box::new(table.values.chunk_by(|left, right| left == right).map(move |run| {
                let begin = start;
                start += run.len();
                begin..start
            }))
        }
    };
    Some(ends.filter(|run| run.len() > 1).collect())
}
