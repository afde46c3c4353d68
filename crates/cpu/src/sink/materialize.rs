//! Rows in the order of the source, or some of the first.

use std::sync::Arc;

use tandem_column::Result;
use tandem_plan::sink::MaterializePlan;

use super::{Finishing, SinkOperator};
use crate::{
    Contents, MemoryBudget, PipelineOutput, Rows,
    frame::Frame,
    rows::{Chunk, in_order, to_table},
};

pub(super) struct MaterializeSink {
    pub(super) plan: MaterializePlan,
    pub(super) memory: Arc<MemoryBudget>,
}

impl SinkOperator for MaterializeSink {
    fn state(&self) -> Contents {
        Contents::Rows(Rows::new(self.plan.kinds.clone(), &self.memory, "the result"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        contents.rows()?.push_slots(morsel, frame, &self.plan.output)
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let rows = contents.into_iter().map(Contents::into_rows).collect::<Result<Vec<Rows>>>()?;
        let chunks = limit(in_order(rows), self.plan.skip, self.plan.fetch);
        Ok(PipelineOutput::Rows(to_table(finishing.schema.clone(), chunks, finishing.parallel)?))
    }
}

/// Cuts chunks to the rows behind the first `skip`, at most `fetch` of them.
fn limit(chunks: Vec<Chunk>, mut skip: usize, fetch: Option<usize>) -> Vec<Chunk> {
    let mut left = fetch.unwrap_or(usize::MAX);
    let mut out = Vec::with_capacity(chunks.len());
    for mut chunk in chunks {
        let from = skip.min(chunk.rows);
        let count = (chunk.rows - from).min(left);
        if count < chunk.rows {
            let kept: Vec<u32> = (from as u32..(from + count) as u32).collect();
            chunk.vectors = chunk.vectors.iter().map(|v| v.take(&kept)).collect();
            chunk.rows = count;
        }
        skip -= from;
        left -= count;
        out.push(chunk);
    }
    out
}
