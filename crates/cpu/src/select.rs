//! Dropping rows by several filters at once, in the order that measurement shows to be best.
//!
//! Range filters over a run of rows become bit masks, which cost next to nothing; set filters follow; among each, the one
//! that drops most rows per cost is first. General expressions see only what is left.

use std::{sync::Arc, time::Instant};

use tandem_column::{BLOCK_ROWS, Column, Part, Result};
use tandem_pipeline::UserFunction;

use crate::{
    evaluate::{self, Slots},
    filter::Filter,
    frame::{Frame, Layout, Origin},
    job::Counter,
    kernel,
    mask::Mask,
    set::{self, CodeSet, Set},
};

/// Vectors between two looks at the order of set filters.
const REORDER: u32 = 64;
/// Below this share of rows kept by masks, listing them first is cheaper than testing all rows against a set.
const SPARSE: f64 = 0.3;

/// Filters that may run in any order, and behind them general ones in theirs.
#[derive(Default)]
pub(crate) struct Selection {
    /// Each filter with the step it belongs to, whose liveness applies.
    filters: Vec<Placed>,
}

pub(crate) struct Placed {
    pub(crate) filter: Filter,
    /// A set filter laid out for its column's codes, where all parts have the same.
    pub(crate) aligned: Option<CodeSet>,
    /// The step after which liveness is read.
    pub(crate) step: usize,
    /// Which counter it reports to.
    pub(crate) counter: usize,
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
    pub(crate) fn push(&mut self, placed: Placed) {
        self.filters.push(placed);
    }

    /// Returns the filters in the order they were planned.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().map(|placed| &placed.filter)
    }

    pub(crate) fn state(&self) -> SelectionState {
        let positions = |wanted: fn(&Filter) -> bool| {
            self.filters.iter().enumerate().filter(|(_, placed)| wanted(&placed.filter)).map(|(i, _)| i).collect()
        };
        SelectionState {
            ranges: positions(|filter| matches!(filter, Filter::Between { .. })),
            sets: positions(|filter| matches!(filter, Filter::Member { .. })),
            seen: vec![(0, 0); self.filters.len()],
            vectors: 0,
            mask: Mask::default(),
            rows: Vec::new(),
        }
    }

    /// Tells whether block statistics exclude every row of a morsel.
    pub(crate) fn excludes(&self, layout: &Layout, part: &Part, start: usize) -> bool {
        self.filters.iter().any(|placed| {
            let (slot, low, high) = match &placed.filter {
                Filter::Between { slot, low, high } => (*slot, *low, *high),
                Filter::Member { slot, set } => {
                    (*slot, set.min, set.min.saturating_add_unsigned(set.domain.saturating_sub(1)))
                }
                Filter::General(_) => return false,
            };
            let Origin::Source(column) = layout.origins[slot] else { return false };
            let column = &part.columns[column];
            match column.blocks.get(start / BLOCK_ROWS) {
                Some(block) => block.range.is_some_and(|(min, max)| max < low || min > high),
                None => false,
            }
        })
    }

    /// Returns for each filter whether block statistics show that every row of a morsel passes.
    pub(crate) fn covered(&self, layout: &Layout, part: &Part, start: usize) -> Vec<bool> {
        let covers = |placed: &Placed| {
            let Filter::Between { slot, low, high } = &placed.filter else { return false };
            let Origin::Source(column) = layout.origins[*slot] else { return false };
            let column = &part.columns[column];
            let block = column.blocks.get(start / BLOCK_ROWS);
            let inside = block.and_then(|b| b.range).is_some_and(|(min, max)| *low <= min && max <= *high);
            inside && column.validity.is_none()
        };
        self.filters.iter().map(covers).collect()
    }

    /// Drops the rows of a frame that some filter does not keep; `None` if none is left.
    pub(crate) fn apply<'a>(
        &self,
        frame: Frame<'a>,
        counters: &mut [Counter],
        functions: &[Arc<UserFunction>],
    ) -> Result<Option<Frame<'a>>> {
        match self.apply_encoded(frame, counters)? {
            Some(frame) => self.apply_general(frame, counters, functions),
            None => Ok(None),
        }
    }

    /// Drops the rows of a frame that some general expression does not keep; `None` if none is left.
    pub(crate) fn apply_general<'a>(
        &self,
        mut frame: Frame<'a>,
        counters: &mut [Counter],
        functions: &[Arc<UserFunction>],
    ) -> Result<Option<Frame<'a>>> {
        for placed in &self.filters {
            let Filter::General(expr) = &placed.filter else { continue };
            let began = Instant::now();
            let kept = evaluate::select(expr, &frame, functions)?;
            count(&mut counters[placed.counter], frame.count(), kept.len(), began);
            if kept.is_empty() {
                return Ok(None);
            }
            if kept.len() < frame.count() {
                frame = frame.take(&kept, placed.step)?;
            }
        }
        Ok(Some(frame))
    }

    /// Lists the rows of a run that the encoded filters keep, in the state's first rows, and returns how many; `None` if
    /// every row passes without a look.
    pub(crate) fn apply_run(
        &self,
        layout: &Layout,
        part: &Part,
        start: usize,
        count: usize,
        covered: &[bool],
        state: &mut SelectionState,
        counters: &mut [Counter],
    ) -> Option<usize> {
        state.begin(self, count);
        let column = |slot: usize| match layout.origins[slot] {
            Origin::Source(column) => &*part.columns[column],
            _ => unreachable!("encoded filters read source columns"),
        };
        let mut left = count;
        for at in 0..state.ranges.len() {
            let index = state.ranges[at];
            let placed = &self.filters[index];
            let Filter::Between { slot, low, high } = &placed.filter else { continue };
            if covered.get(index) == Some(&true) {
                continue;
            }
            let clock = state.clock();
            let column = column(*slot);
            let (base, codes) = kernel::encoded(column).expect("range filters are on encoded columns");
            state.mask.keep_between(base, codes, start, count, *low, *high);
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
            let Filter::Member { slot, set } = &placed.filter else { continue };
            let clock = state.clock();
            let column = column(*slot);
            let (base, codes) = kernel::encoded(column).expect("set filters are on encoded columns");
            let aligned = placed.aligned.as_ref();
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

    /// Applies the encoded filters to a frame that is no longer a run of the source.
    fn apply_encoded<'a>(&self, mut frame: Frame<'a>, counters: &mut [Counter]) -> Result<Option<Frame<'a>>> {
        for placed in &self.filters {
            let began = Instant::now();
            let before = frame.count();
            let (slot, test): (_, Box<dyn Fn(i64) -> bool>) = match &placed.filter {
                Filter::General(_) => continue,
                Filter::Between { slot, low, high } => (*slot, Box::new(move |v| (*low..=*high).contains(&v))),
                Filter::Member { slot, set } => {
                    let set: &Set = set;
                    (*slot, Box::new(move |v| set.contains(v)))
                }
            };
            let vector = frame.vector(slot)?;
            let value = |row: usize| match &vector.values {
                crate::Values::Int(values) => values[row],
                crate::Values::Boolean(values) => values[row].into(),
                crate::Values::Code { codes, .. } => codes[row].into(),
                _ => 0,
            };
            let kept: Vec<u32> =
                (0..before as u32).filter(|row| vector.is_valid(*row as usize) && test(value(*row as usize))).collect();
            count(&mut counters[placed.counter], before, kept.len(), began);
            if kept.is_empty() {
                return Ok(None);
            }
            if kept.len() < before {
                frame = frame.take(&kept, placed.step)?;
            }
        }
        Ok(Some(frame))
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
        let Filter::Member { set, .. } = &self.filter else { return 1.0 };
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
struct Clock(Option<Instant>);

impl SelectionState {
    fn clock(&self) -> Clock {
        Clock(self.vectors.is_multiple_of(TIMED).then(Instant::now))
    }
}

impl Clock {
    fn stop(self, counter: &mut Counter, rows_in: usize, rows_out: usize) {
        counter.rows_in += rows_in as u64;
        counter.rows_out += rows_out as u64;
        if let Some(began) = self.0 {
            counter.time += began.elapsed() * TIMED;
        }
    }
}

fn count(counter: &mut Counter, rows_in: usize, rows_out: usize, began: Instant) {
    counter.rows_in += rows_in as u64;
    counter.rows_out += rows_out as u64;
    counter.time += began.elapsed();
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
