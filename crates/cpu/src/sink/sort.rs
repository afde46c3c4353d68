//! Rows in order, or the first of them.

use std::sync::Arc;

use tandem_column::Result;
use tandem_pipeline::SlotId;
use tandem_plan::sink::SortPlan;

use super::{Finishing, SinkOperator, order::order};
use crate::{
    Contents, MemoryBudget, PipelineOutput, Rows, Vector,
    frame::Frame,
    rows::{Chunk, concat_all, to_table},
};

/// Fewer rows than this are not cut back to those that are wanted.
const CUT_FROM: usize = 1 << 16;

pub(super) struct SortSink {
    pub(super) plan: SortPlan,
    pub(super) memory: Arc<MemoryBudget>,
}

impl SortSink {
    /// Returns the rows that are wanted, in order.
    fn order(&self, rows: usize, vectors: &[Vector]) -> Vec<u32> {
        let keys: Vec<&Vector> = vectors[..self.plan.keys.len()].iter().collect();
        order(&self.plan.keys, &keys, rows, self.plan.wanted())
    }
}

impl SinkOperator for SortSink {
    fn state(&self) -> Contents {
        Contents::Rows(Rows::new(self.plan.kinds.clone(), &self.memory, "sorting"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let rows = contents.rows()?;
        rows.sorted = false;
        rows.push_slots(morsel, frame, &self.plan.collected().collect::<Vec<SlotId>>())?;
        // Cut back now and then: amortised over several times as many rows as are kept.
        if self.plan.fetch.is_some() && rows.count() > self.plan.wanted().saturating_mul(4).max(CUT_FROM) {
            let (count, all) = (rows.count(), rows.concat());
            let best = self.order(count, &all);
            rows.replace(best.len(), all.iter().map(|vector| vector.take(&best)).collect());
        }
        Ok(())
    }

    fn copies(&self) -> usize {
        2
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let collected = contents.into_iter().map(Contents::into_rows).collect::<Result<Vec<Rows>>>()?;
        let sorted = matches!(collected.as_slice(), [rows] if rows.sorted);
        let (rows, all) = concat_all(&self.plan.kinds, collected);
        let order = match sorted {
            true => (0..rows.min(self.plan.wanted()) as u32).collect(),
            false => self.order(rows, &all),
        };
        let order = &order[self.plan.skip.min(order.len())..];
        let vectors = all[self.plan.keys.len()..].iter().map(|vector| vector.take(order)).collect();
        Ok(PipelineOutput::Rows(to_table(
            finishing.schema.clone(),
            vec![Chunk { morsel: 0, rows: order.len(), vectors }],
            finishing.parallel,
        )?))
    }
}
