//! Dropping rows by several filters at once, in the order that measurement shows to be best.
//!
//! Range filters over a run of rows become bit masks, which cost next to nothing; set filters follow; among each, the one
//! that drops most rows per cost is first. General expressions see only what is left.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tandem_column::{BLOCK_ROWS, Column, Part, Result, Table};
use tandem_pipeline::{Expr, UserFunction};
use tandem_plan::{Action, Physical, Set};

use crate::{
    contribution::Counter,
    evaluate,
    frame::Frame,
    kernel,
    mask::Mask,
    set::{self, CodeSet},
};

/// Vectors between two looks at the order of set filters.
const REORDER: u32 = 64;
/// Below this share of rows kept by masks, listing them first is cheaper than testing all rows against a set.
const SPARSE: f64 = 0.3;

/// Filters that may run in any order, and behind them general ones in theirs.
#[derive(Default)]
pub(crate) struct Selection {
    filters: Vec<Placed>,
}

/// One filter of a selection.
struct Placed {
    test: Test,
    /// The pipeline's step after which liveness is read: other conjuncts of the same step may still read what is live
    /// before it.
    live: usize,
    /// Which counter it reports to.
    counter: usize,
}

enum Test {
    /// The source column's value (or code) is within these bounds and not null.
    Between { column: usize, low: i64, high: i64 },
    /// The source column's value (or code) is in the set and not null.
    Member { column: usize, set: Arc<Set>, aligned: Option<CodeSet> },
    /// Any expression.
    General(Expr),
}

/// One worker's measurements of a selection.
pub(crate) struct SelectionState {
    /// Range filters, best first.
    ranges: Vec<usize>,
    /// Set filters, best first.
    sets: Vec<usize>,
    /// Rows that each filter was asked about, and those it kept.
    seen: Vec<(u64, u64)>,
    vectors: u32,
    mask: Mask,
    /// The rows that the last [`Selection::apply_run`] kept come first; the rest is left from before.
    pub(crate) rows: Vec<u32>,
}

impl Selection {
    /// Adds a step that filters, which reports to a counter; others are not for a selection.
    pub(crate) fn push(&mut self, physical: &Physical, table: &Table, counter: usize) {
        let step = &physical.body.steps[counter];
        let test = match &step.action {
            Action::Between { column, low, high } => Test::Between { column: *column, low: *low, high: *high },
            Action::Member { column, set } => {
                let set = &physical.sets[*set];
                let aligned = align(set, physical.body.domains[*column].range, table, *column);
                Test::Member { column: *column, set: set.clone(), aligned }
            }
            Action::Filter(expr) => Test::General(expr.clone()),
            Action::Probe(_) | Action::Let { .. } => return,
        };
        self.filters.push(Placed { test, live: step.of.saturating_sub(1), counter });
    }

    pub(crate) fn state(&self) -> SelectionState {
        let positions = |wanted: fn(&Test) -> bool| {
            self.filters.iter().enumerate().filter(|(_, placed)| wanted(&placed.test)).map(|(i, _)| i).collect()
        };
        SelectionState {
            ranges: positions(|test| matches!(test, Test::Between { .. })),
            sets: positions(|test| matches!(test, Test::Member { .. })),
            seen: vec![(0, 0); self.filters.len()],
            vectors: 0,
            mask: Mask::default(),
            rows: Vec::new(),
        }
    }

    /// Returns for each filter whether block statistics show that every row of a morsel passes.
    pub(crate) fn covered(&self, part: &Part, start: usize) -> Vec<bool> {
        let covers = |placed: &Placed| {
            let Test::Between { column, low, high } = placed.test else { return false };
            let column = &part.columns[column];
            let block = column.blocks.get(start / BLOCK_ROWS);
            let inside = block.and_then(|b| b.range).is_some_and(|(min, max)| low <= min && max <= high);
            inside && column.validity.is_none()
        };
        self.filters.iter().map(covers).collect()
    }

    /// Drops the rows of a frame that some general expression does not keep; `None` if none is left.
    pub(crate) fn apply_general<'a>(
        &self,
        mut frame: Frame<'a>,
        counters: &mut [Counter],
        functions: &[Arc<UserFunction>],
    ) -> Result<Option<Frame<'a>>> {
        for placed in &self.filters {
            let Test::General(expr) = &placed.test else { continue };
            let began = Instant::now();
            let kept = evaluate::select(expr, &frame, functions)?;
            counters[placed.counter].count(frame.count(), kept.len(), began.elapsed());
            if kept.is_empty() {
                return Ok(None);
            }
            if kept.len() < frame.count() {
                frame = frame.take(&kept, placed.live)?;
            }
        }
        Ok(Some(frame))
    }

    /// Lists the rows of a run that the encoded filters keep, in the state's first rows, and returns how many; `None` if
    /// every row passes without a look.
    pub(crate) fn apply_run(
        &self,
        part: &Part,
        start: usize,
        count: usize,
        covered: &[bool],
        state: &mut SelectionState,
        counters: &mut [Counter],
    ) -> Option<usize> {
        state.begin(self, count);
        let mut left = count;
        for at in 0..state.ranges.len() {
            let index = state.ranges[at];
            let placed = &self.filters[index];
            let Test::Between { column, low, high } = placed.test else { continue };
            if covered.get(index) == Some(&true) {
                continue;
            }
            let clock = state.clock();
            let column = &*part.columns[column];
            let (base, codes) = kernel::encoded(column).expect("range filters are on encoded columns");
            state.mask.keep_between(base, codes, start, count, low, high);
            if let Some(validity) = &column.validity {
                state.mask.keep_where(|row| validity.get(start + row));
            }
            let kept = state.mask.count();
            state.seen[index].0 += left as u64;
            state.seen[index].1 += kept as u64;
            clock.stop(&mut counters[placed.counter], left, kept);
            left = kept;
            if left == 0 {
                return Some(0);
            }
        }
        let mut listed: Option<usize> = None;
        if !state.mask.is_fresh() && (state.sets.is_empty() || (left as f64) < SPARSE * count as f64) {
            listed = Some(state.mask.list(start, &mut state.rows));
        }
        for at in 0..state.sets.len() {
            let index = state.sets[at];
            let placed = &self.filters[index];
            let Test::Member { column, set, aligned } = &placed.test else { continue };
            let clock = state.clock();
            let column = &*part.columns[*column];
            let (base, codes) = kernel::encoded(column).expect("set filters are on encoded columns");
            let aligned = aligned.as_ref();
            let kept = match listed {
                None => set::list_members(base, codes, start, count, &state.mask, set, aligned, &mut state.rows),
                Some(kept) => set::refine_members(base, codes, &mut state.rows[..kept], set, aligned),
            };
            let kept = keep_valid(column, &mut state.rows[..kept]);
            state.seen[index].0 += left as u64;
            state.seen[index].1 += kept as u64;
            clock.stop(&mut counters[placed.counter], left, kept);
            left = kept;
            listed = Some(kept);
            if kept == 0 {
                break;
            }
        }
        listed
    }
}

impl SelectionState {
    /// Begins a run of rows; from time to time puts the filters that drop most rows per cost first.
    fn begin(&mut self, selection: &Selection, count: usize) {
        self.mask.begin(count);
        // Listing writes whole groups of eight.
        if self.rows.len() < count + 8 {
            self.rows.resize(count + 8, 0);
        }
        self.vectors = self.vectors.wrapping_add(1);
        if self.vectors % REORDER == 8 % REORDER {
            let rank = |index: &usize| {
                let (seen, kept) = self.seen[*index];
                (1.0 - kept as f64 / seen.max(1) as f64) / selection.filters[*index].cost()
            };
            for order in [&mut self.ranges, &mut self.sets] {
                order.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
            }
        }
    }
}

impl Placed {
    /// About what a row costs, relative to other filters of the kind.
    fn cost(&self) -> f64 {
        let Test::Member { set, .. } = &self.test else { return 1.0 };
        // A lookup costs more where the set does not fit the first or second level of cache.
        match set.bits.len() {
            0..=16_384 => 1.0,
            16_385..=262_144 => 1.3,
            262_145..=4_194_304 => 2.0,
            _ => 4.0,
        }
    }
}

/// Vectors of which one is timed: reading the clock costs as much as filtering a few hundred rows.
const TIMED: u32 = 8;

/// A clock that runs for one vector in [`TIMED`].
struct SampledClock(Option<Instant>);

impl SelectionState {
    fn clock(&self) -> SampledClock {
        SampledClock(self.vectors.is_multiple_of(TIMED).then(Instant::now))
    }
}

impl SampledClock {
    fn stop(self, counter: &mut Counter, rows_in: usize, rows_out: usize) {
        counter.count(rows_in, rows_out, self.0.map_or(Duration::ZERO, |began| began.elapsed() * TIMED));
    }
}

fn keep_valid(column: &Column, rows: &mut [u32]) -> usize {
    let Some(validity) = &column.validity else { return rows.len() };
    let mut kept = 0;
    for at in 0..rows.len() {
        rows[kept] = rows[at];
        kept += validity.get(rows[at] as usize) as usize;
    }
    kept
}

/// Lays a set out for a column's codes, if every part counts them from the same value.
fn align(set: &Set, range: Option<(i64, i64)>, table: &Table, column: usize) -> Option<CodeSet> {
    let mut parts = table.parts.iter().map(|part| part.columns[column].code_form());
    let (base, mut width) = parts.next()??;
    for part in parts {
        let (_, other) = part.filter(|(other, _)| *other == base)?;
        width = width.max(other);
    }
    let (low, high) = range?;
    // Values below the base have codes that wrap around.
    let last = high.checked_sub(base).filter(|_| low >= base)?;
    // A set of more codes than the table has rows is not worth the laying out.
    let last = u64::try_from(last).ok().filter(|last| *last <= table.rows() as u64)?;
    Some(CodeSet::new(set, base, width, last))
}
