//! Appending rows to a table: a new table that shares the old parts.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::statistics::{SET_SPAN, compare_rows};
use crate::unify::unify;
use crate::{
    BLOCK_ROWS, Bitmap, BitmapBuilder, Column, ColumnStatistics, Error, Field, Part, Repr, Result, Table, serial,
};

impl Table {
    /// Returns a table with the rows of `other` behind these.
    ///
    /// Old parts are shared unless a dictionary gains values, which moves codes; a last part of fewer rows than a block
    /// is joined with what follows, so that many small insertions do not make many parts. Statistics are merged, not
    /// computed again: what they say stays true, but uniqueness may be lost and distinct values underestimated.
    ///
    /// # Errors
    /// If the columns' types differ.
    pub fn append(&self, other: &Table) -> Result<Table> {
        check_types(&self.schema, &other.schema)?;
        let old = self.parts.len();
        let both: Vec<Arc<Part>> = self.parts.iter().chain(&other.parts).cloned().collect();
        let unified = unify(&self.schema, both, false, &serial, None)?;
        let (before, behind) = unified.split_at(old);
        let statistics = (0..self.schema.len())
            .map(|at| {
                let first = (&self.statistics[at], self.parts.as_slice(), before);
                let second = (&other.statistics[at], other.parts.as_slice(), behind);
                merge(&self.schema[at], at, first, second)
            })
            .collect();
        let schema = self.schema.iter().zip(other.schema.iter());
        let schema = schema.map(|(a, b)| Field { nullable: a.nullable || b.nullable, ..a.clone() }).collect();
        Ok(Table { schema, parts: join_small(unified)?, statistics })
    }
}

fn check_types(old: &[Field], new: &[Field]) -> Result<()> {
    if old.len() != new.len() {
        let message = format!("the rows have {} columns, but the table has {}", new.len(), old.len());
        return Err(Error::input(message));
    }
    match old.iter().zip(new).find(|(a, b)| a.kind != b.kind) {
        None => Ok(()),
        Some((a, b)) => Err(Error::input(format!(
            "the values do not fit column {}, which is of type {}; cast them from {}",
            a.name, a.kind, b.kind
        ))),
    }
}

/// Joins neighbouring parts that together are no longer than a block.
fn join_small(parts: Vec<Arc<Part>>) -> Result<Vec<Arc<Part>>> {
    let mut joined: Vec<Arc<Part>> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(last) if last.rows + part.rows <= BLOCK_ROWS => {
                let columns = last.columns.iter().zip(&part.columns);
                let columns = columns.map(|(a, b)| Column::concat(&[a, b]).map(Arc::new)).collect::<Result<_>>()?;
                *last = Arc::new(Part { rows: last.rows + part.rows, columns });
            }
            _ => joined.push(part),
        }
    }
    Ok(joined)
}

/// Statistics of one side, with its parts before and after they were brought to one encoding.
type Side<'a> = (&'a ColumnStatistics, &'a [Arc<Part>], &'a [Arc<Part>]);

fn merge(field: &Field, at: usize, first: Side<'_>, second: Side<'_>) -> ColumnStatistics {
    let rows = |side: Side<'_>| side.1.iter().map(|part| part.rows).sum::<usize>();
    let (a, b) = (recoded(field, at, first), recoded(field, at, second));
    // Without rows there is nothing to know: the other side's statistics hold for both.
    if rows(first) == 0 {
        return b;
    }
    if rows(second) == 0 {
        return a;
    }
    // A side of nulls only has no range, and adds none.
    let is_null = |side: Side<'_>, statistics: &ColumnStatistics| statistics.nulls == rows(side);
    let range = match (a.range, b.range) {
        (Some(x), Some(y)) => Some((x.0.min(y.0), x.1.max(y.1))),
        (Some(x), None) if is_null(second, &b) => Some(x),
        (None, Some(y)) if is_null(first, &a) => Some(y),
        _ => None,
    };
    let disjoint = matches!((a.range, b.range), (Some(x), Some(y)) if x.1 < y.0 || y.1 < x.0);
    let values = range.and_then(|range| union(range, &[(&a, is_null(first, &a)), (&b, is_null(second, &b))]));
    let boundary = || {
        let last = first.2.iter().rev().find(|part| part.rows > 0)?;
        let next = second.2.iter().find(|part| part.rows > 0)?;
        Some(compare_rows(&last.columns[at], last.rows - 1, &next.columns[at], 0))
    };
    let sorted = a.sorted && b.sorted && boundary().is_some_and(Ordering::is_le);
    let strict = sorted && boundary().is_some_and(Ordering::is_lt);
    ColumnStatistics {
        range,
        nulls: a.nulls + b.nulls,
        distinct: match &values {
            Some(values) => Some(values.count_ones() as f64),
            None => a.distinct.zip(b.distinct).map(|(x, y)| if disjoint || strict { x + y } else { x.max(y) }),
        },
        unique: a.unique && b.unique && (disjoint || strict),
        sorted,
        values,
    }
}

/// Returns the statistics of one side in terms of its new codes, if its dictionary changed.
fn recoded(field: &Field, at: usize, side: Side<'_>) -> ColumnStatistics {
    let (statistics, before, after) = side;
    let mut statistics = statistics.clone();
    let (Repr::Bytes, Some(old), Some(new)) = (field.kind.repr(), before.first(), after.first()) else {
        return statistics;
    };
    let (old, new) = (old.columns[at].dictionary(), new.columns[at].dictionary());
    match (old, new) {
        (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
        (Some(old), Some(new)) => {
            let code = |old_code: i64| new.find(old.get(old_code as u32)).map(i64::from).ok();
            let range = statistics.range.and_then(|(low, high)| code(low).zip(code(high)));
            let set = statistics.values.take().zip(statistics.range).zip(range);
            statistics.values = set.and_then(|((values, (low, _)), (first, last))| {
                let mut moved = BitmapBuilder::zeroed((last - first) as usize + 1);
                for offset in values.ones() {
                    moved.set((code(low + offset as i64)? - first) as usize);
                }
                ((last - first) < SET_SPAN as i64).then(|| Arc::new(moved.finish()))
            });
            statistics.range = range;
        }
        _ => {
            // From or to plain text: codes mean nothing any more.
            (statistics.range, statistics.values) = match after.iter().filter_map(|part| part.columns[at].range()) {
                ranges if new.is_some() => (ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))), None),
                _ => (None, None),
            };
        }
    }
    statistics
}

/// Joins exact sets of values over the range of both, if it is narrow enough.
fn union(range: (i64, i64), sides: &[(&ColumnStatistics, bool)]) -> Option<Arc<Bitmap>> {
    let span = range.1.wrapping_sub(range.0) as u64;
    if span >= SET_SPAN {
        return None;
    }
    let mut all = BitmapBuilder::zeroed(span as usize + 1);
    for (side, is_null) in sides {
        if *is_null {
            continue;
        }
        let shift = side.range?.0.wrapping_sub(range.0) as usize;
        side.values.as_ref()?.ones().for_each(|offset| all.set(offset + shift));
    }
    Some(Arc::new(all.finish()))
}
