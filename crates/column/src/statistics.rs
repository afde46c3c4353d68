//! What is known of each column of a table, computed part by part and merged.
//!
//! Ranges and null counts come from the blocks. One more pass finds whether a column is sorted and how many distinct
//! values it has: exactly where the values span at most 64 Ki (a set of them is kept) or are sorted, by a sketch
//! otherwise. Uniqueness is exact where it is claimed.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sketch::{DistinctSketch, mix};
use crate::{
    Bitmap, BitmapBuilder, Code, Codes, Column, ColumnStatistics, Data, Field, Parallel, Part, Repr, float_order,
    with_codes,
};

/// The widest span of values of which the exact set is kept: it fits 8 KiB.
pub(crate) const SET_SPAN: u64 = 1 << 16;

/// Uniqueness is checked with one bit per possible value while that is at most this many bits per row: a byte.
const UNIQUE_BITS_PER_ROW: u64 = 8;

/// What one pass over one column of one part finds.
struct Summary {
    sorted: bool,
    /// Sorted, and no two neighbours are equal.
    strict: bool,
    /// How often the value changes from row to row, while sorted.
    changes: usize,
    values: Values,
}

/// The distinct values of one part.
enum Values {
    Set(BitmapBuilder),
    Sketch(Box<DistinctSketch>),
    /// Counted by `Summary::changes`, or known from a dictionary.
    Counted,
}

/// Adds missing block statistics, and computes those of the columns.
pub(crate) fn compute(
    schema: &[Field],
    parts: Vec<Arc<Part>>,
    parallel: &Parallel<'_>,
) -> (Vec<Arc<Part>>, Vec<ColumnStatistics>) {
    let parts = with_blocks(parts, parallel);
    let ranges: Vec<Option<(i64, i64)>> = (0..schema.len())
        .map(|at| {
            let ranges = parts.iter().filter_map(|part| part.columns[at].range());
            ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        })
        .collect();
    let summaries: Vec<Mutex<Option<Summary>>> = (0..parts.len() * schema.len()).map(|_| Mutex::new(None)).collect();
    parallel(summaries.len(), &|task| {
        let (part, at) = (task / schema.len(), task % schema.len());
        let summary = summarise(&parts[part].columns[at], ranges[at]);
        *summaries[task].lock().unwrap_or_else(PoisonError::into_inner) = Some(summary);
    });
    let mut by_column: Vec<Vec<Summary>> = schema.iter().map(|_| Vec::with_capacity(parts.len())).collect();
    for (task, summary) in summaries.into_iter().enumerate() {
        let summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
        by_column[task % schema.len()].extend(summary);
    }
    let merged: Vec<Mutex<(Vec<Summary>, ColumnStatistics)>> =
        by_column.into_iter().map(|summaries| Mutex::new((summaries, ColumnStatistics::default()))).collect();
    parallel(merged.len(), &|at| {
        let mut slot = merged[at].lock().unwrap_or_else(PoisonError::into_inner);
        let columns: Vec<&Column> = parts.iter().map(|part| part.columns[at].as_ref()).collect();
        let summaries = std::mem::take(&mut slot.0);
        slot.1 = merge(&columns, ranges[at], summaries);
    });
    let statistics = merged.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner).1);
    (parts, statistics.collect())
}

/// Adds block statistics where they are missing.
fn with_blocks(parts: Vec<Arc<Part>>, parallel: &Parallel<'_>) -> Vec<Arc<Part>> {
    let missing = |column: &Column| column.blocks.is_empty() && column.rows > 0;
    if !parts.iter().any(|part| part.columns.iter().any(|column| missing(column))) {
        return parts;
    }
    let slots: Vec<Mutex<Arc<Part>>> = parts.into_iter().map(Mutex::new).collect();
    parallel(slots.len(), &|at| {
        let mut slot = slots[at].lock().unwrap_or_else(PoisonError::into_inner);
        let columns = slot.columns.iter().map(|column| match missing(column) {
            true => Arc::new(Column::clone(column).with_blocks()),
            false => column.clone(),
        });
        *slot = Arc::new(Part { rows: slot.rows, columns: columns.collect() });
    });
    slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Returns the span of a range of integers or codes, if it has one: 0 for a single value.
fn span(column: &Column, range: Option<(i64, i64)>) -> Option<u64> {
    column.codes()?;
    range.map(|(low, high)| high.wrapping_sub(low) as u64)
}

fn summarise(column: &Column, range: Option<(i64, i64)>) -> Summary {
    let (sorted, strict, changes) = order(column);
    let values = match span(column, range) {
        Some(span) if span < SET_SPAN => Values::Set(set(column, range.map_or(0, |range| range.0), span as usize + 1)),
        _ if sorted || column.dictionary().is_some() => Values::Counted,
        _ => Values::Sketch(sketch(column)),
    };
    Summary { sorted, strict, changes, values }
}

/// Tells whether values never decrease, whether they always increase, and how often they change.
fn order(column: &Column) -> (bool, bool, usize) {
    if column.null_count() > 0 {
        return (false, false, 0);
    }
    match &column.data {
        Data::Int { codes: Codes::U64(codes), base } => {
            neighbours(codes, |a, b| base.wrapping_add(*a as i64).cmp(&base.wrapping_add(*b as i64)))
        }
        Data::Int { codes, .. } | Data::Dictionary { codes, .. } => {
            with_codes!(codes, codes => neighbours(codes, Ord::cmp))
        }
        Data::Wide(values) => neighbours(values, Ord::cmp),
        Data::Float32(values) => neighbours(values, f32::total_cmp),
        Data::Float64(values) => neighbours(values, f64::total_cmp),
        Data::Bytes { offsets, bytes } => {
            let value = |pair: &[u64]| &bytes[pair[0] as usize..pair[1] as usize];
            let pairs = offsets.windows(3).map(|ends| value(&ends[..2]).cmp(value(&ends[1..])));
            count(pairs)
        }
        // Nothing is known of their order.
        Data::Remote(_) => (false, false, 0),
    }
}

fn neighbours<T>(values: &[T], compare: impl Fn(&T, &T) -> Ordering) -> (bool, bool, usize) {
    count(values.windows(2).map(|pair| compare(&pair[0], &pair[1])))
}

fn count(pairs: impl Iterator<Item = Ordering>) -> (bool, bool, usize) {
    let (mut strict, mut changes) = (true, 0);
    for pair in pairs {
        match pair {
            Ordering::Less => changes += 1,
            Ordering::Equal => strict = false,
            Ordering::Greater => return (false, false, 0),
        }
    }
    (true, strict, changes)
}

/// Calls `f` with the code of each non-null row.
fn each_code(column: &Column, mut f: impl FnMut(u64)) {
    let Some((_, codes)) = column.codes() else { return };
    match &column.validity {
        None => with_codes!(codes, codes => codes.iter().for_each(|&code| f(code.widen()))),
        Some(validity) => with_codes!(codes, codes => validity.ones().for_each(|i| f(codes[i].widen()))),
    }
}

/// Collects the exact set of values, as offsets from `low`.
fn set(column: &Column, low: i64, length: usize) -> BitmapBuilder {
    // A byte per value first: stores to bytes do not wait for each other as bits do.
    let mut seen = vec![0u8; length];
    let shift = column.codes().map_or(0, |(base, _)| base).wrapping_sub(low) as u64;
    each_code(column, |code| seen[code.wrapping_add(shift) as usize] = 1);
    let mut bits = BitmapBuilder::with_capacity(length);
    seen.iter().for_each(|&seen| bits.push(seen != 0));
    bits
}

/// Returns the values that are in any of some sets of one length.
fn union(sets: &[Bitmap]) -> Option<Bitmap> {
    let (first, others) = sets.split_first()?;
    let mut words = first.words().to_vec();
    for other in others {
        words.iter_mut().zip(other.words()).for_each(|(all, word)| *all |= word);
    }
    Some(Bitmap::new(words, first.len()))
}

/// Returns the exact set of values of a column given by its pieces, as offsets from the lowest of `range`, which holds
/// all of them; `None` if they span more than 64 Ki or are neither integers nor codes.
pub fn value_set(pieces: &[Arc<Column>], range: (i64, i64), parallel: &Parallel<'_>) -> Option<Arc<Bitmap>> {
    let spans = pieces.iter().map(|piece| span(piece, Some(range)));
    let length = spans.reduce(Option::min)??.checked_add(1).filter(|length| *length <= SET_SPAN)?;
    let sets: Vec<Mutex<Option<Bitmap>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    parallel(sets.len(), &|task| {
        let found = set(&pieces[task], range.0, length as usize).finish();
        *sets[task].lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    });
    let sets: Option<Vec<Bitmap>> =
        sets.into_iter().map(|set| set.into_inner().unwrap_or_else(PoisonError::into_inner)).collect();
    union(&sets?).map(Arc::new)
}

fn sketch(column: &Column) -> Box<DistinctSketch> {
    let mut sketch = Box::new(DistinctSketch::default());
    let valid = |i: &usize| column.is_valid(*i);
    match &column.data {
        Data::Int { base, .. } => {
            let base = *base as u64;
            each_code(column, |code| sketch.add(mix(code.wrapping_add(base))));
        }
        Data::Dictionary { .. } => each_code(column, |code| sketch.add(mix(code))),
        Data::Wide(values) => (0..column.rows).filter(valid).for_each(|i| {
            let value = values[i] as u128;
            sketch.add(mix(value as u64 ^ mix((value >> 64) as u64)));
        }),
        Data::Float32(_) | Data::Float64(_) => (0..column.rows).filter(valid).for_each(|i| {
            sketch.add(mix(float_order(column.float(i)) as u64));
        }),
        Data::Bytes { .. } => {
            (0..column.rows).filter(valid).for_each(|i| sketch.add_bytes(column.bytes_at(i)));
        }
        Data::Remote(_) => {}
    }
    sketch
}

/// Compares a row of one part with a row of another, neither null.
pub(crate) fn compare_rows(a: &Column, i: usize, b: &Column, j: usize) -> Ordering {
    match a.kind.repr() {
        Repr::Wide => a.wide(i).cmp(&b.wide(j)),
        Repr::Float => a.float(i).total_cmp(&b.float(j)),
        Repr::Bytes => a.bytes_at(i).cmp(b.bytes_at(j)),
        _ => a.int(i).cmp(&b.int(j)),
    }
}

fn merge(columns: &[&Column], range: Option<(i64, i64)>, summaries: Vec<Summary>) -> ColumnStatistics {
    let rows: usize = columns.iter().map(|column| column.rows).sum();
    let nulls: usize = columns.iter().map(|column| column.null_count()).sum();
    let filled: Vec<usize> = (0..columns.len()).filter(|at| columns[*at].rows > 0).collect();
    let mut sorted = summaries.iter().all(|summary| summary.sorted);
    let mut strict = summaries.iter().all(|summary| summary.strict);
    let mut changes: usize = summaries.iter().map(|summary| summary.changes).sum();
    if sorted {
        for pair in filled.windows(2) {
            let (a, b) = (columns[pair[0]], columns[pair[1]]);
            match compare_rows(a, a.rows - 1, b, 0) {
                Ordering::Less => changes += 1,
                Ordering::Equal => strict = false,
                Ordering::Greater => sorted = false,
            }
        }
    }
    let mut sets: Vec<Bitmap> = Vec::new();
    let mut sketch: Option<Box<DistinctSketch>> = None;
    for summary in summaries {
        match summary.values {
            Values::Set(bits) => sets.push(bits.finish()),
            Values::Sketch(found) => match &mut sketch {
                Some(all) => all.merge(&found),
                None => sketch = Some(found),
            },
            Values::Counted => {}
        }
    }
    let values = union(&sets).map(Arc::new);
    let valid = rows - nulls;
    let distinct = if valid == 0 {
        0.0
    } else if let Some(values) = &values {
        values.count_ones() as f64
    } else if sorted {
        (changes + 1) as f64
    } else if let Some(dictionary) = columns.first().and_then(|column| column.dictionary()) {
        dictionary.len().min(valid) as f64
    } else {
        // A part that is sorted by itself was not sketched: do it now that the table is not.
        let mut all = DistinctSketch::default();
        sketch.iter().for_each(|found| all.merge(found));
        columns.iter().filter(|column| order(column).0).for_each(|column| all.merge(&self::sketch(column)));
        all.estimate().min(valid as f64).max(1.0)
    };
    let unique = if sorted { strict } else { is_unique(columns, range, valid, values.as_deref()) };
    ColumnStatistics { range, nulls, distinct: Some(distinct), unique, sorted: sorted && nulls == 0, values }
}

/// Tells whether no integer or code occurs twice, if that can be found with a small bitmap.
fn is_unique(columns: &[&Column], range: Option<(i64, i64)>, valid: usize, values: Option<&Bitmap>) -> bool {
    if valid <= 1 {
        return true;
    }
    let Some(span) = columns.first().and_then(|column| span(column, range)) else { return false };
    if let Some(values) = values {
        return values.count_ones() == valid;
    }
    // With fewer possible values than rows, some value occurs twice.
    if span < valid as u64 - 1 || span >= (valid as u64).saturating_mul(UNIQUE_BITS_PER_ROW) {
        return false;
    }
    let low = range.map_or(0, |range| range.0);
    let mut seen = BitmapBuilder::zeroed(span as usize + 1);
    columns.iter().all(|column| {
        let shift = column.codes().map_or(0, |(base, _)| base).wrapping_sub(low) as u64;
        let mut fresh = |code: u64| {
            let value = code.wrapping_add(shift) as usize;
            let new = !seen.get(value);
            seen.set(value);
            new
        };
        let Some((_, codes)) = column.codes() else { return false };
        match &column.validity {
            None => with_codes!(codes, codes => codes.iter().all(|&code| fresh(code.widen()))),
            Some(validity) => with_codes!(codes, codes => validity.ones().all(|i| fresh(codes[i].widen()))),
        }
    })
}
