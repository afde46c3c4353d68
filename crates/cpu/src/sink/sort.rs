//! Rows in order, or the first of them.
//!
//! A full sort keeps the order of equal rows, whoever collected them. Of the first rows, each worker keeps a few more than are wanted,
//! and all of them know the last that any worker still wants: what does not come before it is dropped before its other columns are
//! fetched, and whole blocks by their statistics. Which of several equal rows are the last is not determined.

use std::{
    rc::Rc,
    sync::{Arc, PoisonError, RwLock},
};

use tandem_column::{BLOCK_ROWS, Part, Result};
use tandem_pipeline::{SlotId, SortKey};
use tandem_plan::{Action, Origin, Physical, sink::SortPlan};

use super::{
    Finishing, SinkOperator,
    order::{self, bound::Bound},
};
use crate::{
    Contents, MemoryBudget, PipelineOutput, Reservation, Rows, Vector,
    evaluate::Slots,
    frame::Frame,
    rows::{concat_in_parallel, part_ranges, to_table_in_parallel},
};

/// Rows that a worker has beyond twice those that are wanted before it cuts them back: few, since the bound then moves on, and fewer
/// rows pass it.
const CUT_BEYOND: usize = 1 << 6;

pub(super) struct SortSink {
    plan: SortPlan,
    memory: Arc<MemoryBudget>,
    /// The last row that is still wanted, as far as any worker knows.
    bound: RwLock<Option<Arc<Bound>>>,
    /// The source's column of the first key, where rows reach the sink without anything that may fail.
    skipping: Option<usize>,
}

impl SortSink {
    pub(super) fn new(plan: SortPlan, physical: &Physical, memory: Arc<MemoryBudget>) -> SortSink {
        let column = |key: &SortKey| match physical.body.origins[key.slot] {
            Origin::Column(column) => Some(column),
            _ => None,
        };
        let harmless = |action: &Action| matches!(action, Action::Between { .. } | Action::Member { .. });
        let skips = plan.fetch.is_some() && physical.body.steps.iter().all(|step| harmless(&step.action));
        let skipping = plan.keys.first().filter(|_| skips).and_then(column);
        SortSink { plan, memory, bound: RwLock::new(None), skipping }
    }

    /// Returns the last row that is still wanted, as far as it is known.
    fn bound(&self) -> Option<Arc<Bound>> {
        self.bound.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns which active rows come before the bound.
    fn before(&self, bound: &Bound, frame: &Frame<'_>) -> Result<Vec<u32>> {
        let keys = &self.plan.keys;
        let Some(key) = keys.first() else { return Ok(Vec::new()) };
        let column = frame.source_column(key.slot);
        let near = match column.and_then(|column| bound.up_to_text(key, column, frame.rows())) {
            Some(near) => near,
            None => bound.up_to(key, &*frame.vector(key.slot)?),
        };
        if near.is_empty() {
            return Ok(near);
        }
        // Further keys are fetched only for rows that the first does not exclude.
        let vectors = keys.iter().map(|key| frame.vector_at(key.slot, &near).map(Rc::new));
        let before = bound.before(keys, &vectors.collect::<Result<Vec<_>>>()?, near.len());
        Ok(before.into_iter().map(|at| near[at as usize]).collect())
    }

    /// Cuts a worker's rows back to those that are wanted, and tells the others of the last.
    fn cut(&self, rows: &mut Rows) -> Result<()> {
        let (count, all) = (rows.count(), rows.concat());
        let _held = Reservation::take(&self.memory, "sorting", count.saturating_mul(order::ROW_BYTES))?;
        let keys: Vec<&Vector> = all[..self.plan.keys.len()].iter().collect();
        let best = order::order(&self.plan.keys, &keys, count, self.plan.wanted(), &order::alone)?;
        if let Some(last) = best.last().filter(|_| best.len() == self.plan.wanted()) {
            let found = Bound::of(&all[..self.plan.keys.len()], *last);
            let mut bound = self.bound.write().unwrap_or_else(PoisonError::into_inner);
            if bound.as_ref().is_none_or(|bound| found.is_before(bound, &self.plan.keys)) {
                *bound = Some(Arc::new(found));
            }
        }
        rows.replace(best.len(), all.iter().map(|vector| vector.take(&best)).collect());
        Ok(())
    }
}

impl SinkOperator for SortSink {
    fn state(&self) -> Contents {
        Contents::Rows(Rows::new(self.plan.kinds.clone(), &self.memory, "sorting"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let rows = contents.rows()?;
        rows.sorted = false;
        let slots: Vec<SlotId> = self.plan.collected().collect();
        if self.plan.fetch.is_none() {
            return rows.push_slots(morsel, frame, &slots);
        }
        match self.bound() {
            None => rows.push_slots(morsel, frame, &slots)?,
            Some(bound) => {
                let wanted = self.before(&bound, frame)?;
                if wanted.is_empty() {
                    return Ok(());
                }
                let fetch = |slot: &SlotId| frame.vector_at(*slot, &wanted).map(Rc::new);
                rows.push(morsel, wanted.len(), &slots.iter().map(fetch).collect::<Result<Vec<_>>>()?)?;
            }
        }
        // Amortised over as many rows as are kept.
        if rows.count() > self.plan.wanted().saturating_mul(2).saturating_add(CUT_BEYOND) {
            self.cut(rows)?;
        }
        Ok(())
    }

    fn excludes(&self, part: &Part, start: usize) -> bool {
        let Some((column, key)) = self.skipping.zip(self.plan.keys.first()) else { return false };
        let column = &part.columns[column];
        let Some(bound) = self.bound().and_then(|bound| bound.first_ordinal(column)) else { return false };
        let Some(block) = column.blocks.get(start / BLOCK_ROWS) else { return false };
        let after = |(low, high): (i64, i64)| if key.descending { high < bound } else { low > bound };
        block.range.is_some_and(after) && (block.nulls == 0 || !key.nulls_first)
    }

    fn copies(&self) -> usize {
        2
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let collected = contents.into_iter().map(Contents::into_rows).collect::<Result<Vec<Rows>>>()?;
        let sorted = matches!(collected.as_slice(), [rows] if rows.sorted);
        let (rows, all) = concat_in_parallel(&self.plan.kinds, collected, finishing.parallel)?;
        let (keys, output) = all.split_at(self.plan.keys.len());
        let order = match sorted {
            true => (0..rows.min(self.plan.wanted()) as u32).collect(),
            false => {
                let _held = Reservation::take(&self.memory, "sorting", rows.saturating_mul(order::ROW_BYTES))?;
                let keys: Vec<&Vector> = keys.iter().collect();
                order::order(&self.plan.keys, &keys, rows, self.plan.wanted(), finishing.parallel)?
            }
        };
        let order = &order[self.plan.skip.min(order.len())..];
        let make = |range: std::ops::Range<usize>| {
            let taken = output.iter().map(|vector| vector.take(&order[range.clone()]));
            Ok((range.len(), taken.collect()))
        };
        let table = to_table_in_parallel(finishing.schema, &part_ranges(order.len()), finishing.parallel, &make)?;
        Ok(PipelineOutput::Rows(table))
    }
}
