//! The end of a job: what all places contributed becomes its output, CPU workers and devices alike.

use std::{
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use tandem_column::{Field, Result};
use tandem_plan::{SinkPlan, sink::MaterializePlan};

use crate::{
    Contents, Contribution, Job, ParallelTasks, PipelineOutput, Reservation,
    contribution::Counter,
    frame::{Frame, Matches},
    job::Operation,
    sink::{Finishing, SinkOperator, materialize_rows},
};

/// What one step of a physical pipeline did, or its sink.
#[derive(Clone, Debug, Default)]
pub struct StepMetrics {
    /// Rows that came in.
    pub rows_in: u64,
    /// Rows that went out.
    pub rows_out: u64,
    /// Time spent in it by all workers together.
    pub time: Duration,
    /// Bytes that the step's result takes, where it keeps any.
    pub bytes: u64,
    /// Rows and time were counted: devices count none of single steps, nor those of groups that stay there.
    pub counted: bool,
}

impl Job {
    /// Merges all contributions into the output; tells what each step did.
    ///
    /// # Errors
    /// Overflow of a sum, an exhausted memory budget, what a residual expression raises, or what fails a device that has to
    /// give back what it kept.
    pub fn finish(
        &self,
        all: Vec<Contribution>,
        parallel: ParallelTasks<'_>,
    ) -> Result<(PipelineOutput, Vec<StepMetrics>)> {
        self.finish_in(&*self.sink, &self.physical.schema, all, parallel)
    }

    /// Merges the rows of a build into a table of the given columns, keys first, instead of the build.
    ///
    /// # Errors
    /// As [`Job::finish`]; internal if a contribution is a build already.
    pub fn finish_as_rows(
        &self,
        schema: &Arc<[Field]>,
        all: Vec<Contribution>,
        parallel: ParallelTasks<'_>,
    ) -> Result<(PipelineOutput, Vec<StepMetrics>)> {
        let kinds = schema.iter().map(|field| field.kind.clone()).collect();
        let plan = MaterializePlan { skip: 0, fetch: None, output: Vec::new(), kinds };
        self.finish_in(&*materialize_rows(plan, &self.settings), schema, all, parallel)
    }

    fn finish_in(
        &self,
        sink: &dyn SinkOperator,
        schema: &Arc<[Field]>,
        mut all: Vec<Contribution>,
        parallel: ParallelTasks<'_>,
    ) -> Result<(PipelineOutput, Vec<StepMetrics>)> {
        self.emit_unmatched(&mut all)?;
        if all.len() > 1 {
            all.iter_mut().try_for_each(|contribution| contribution.recall(self))?;
        }
        let began = Instant::now();
        let steps = &self.physical.body.steps;
        let mut counters = vec![Counter::default(); steps.len() + 1];
        for contribution in &all {
            counters.iter_mut().zip(&contribution.counters).for_each(|(sum, counter)| sum.add(counter));
        }
        let counted = all.is_empty() || all.iter().any(|contribution| !contribution.counters.is_empty());
        let rows_in = all.iter().map(|contribution| contribution.rows).sum();
        let mut contents: Vec<_> = all.into_iter().map(|contribution| contribution.contents).collect();
        // Of groups that stay on a device, nobody has counted the rows.
        let sink_counted =
            !matches!((&self.physical.sink, contents.as_slice()), (SinkPlan::Aggregate(_), [Contents::Kept(_)]));
        // What was collected is there until the output is, which is written once more, or twice where it is put in order.
        let held: Vec<Reservation> = contents.iter_mut().filter_map(|contents| contents.hand_over()).collect();
        let bytes = held.iter().map(Reservation::bytes).sum::<usize>().saturating_mul(sink.copies());
        let _copies = Reservation::take(&self.settings.memory, "the result of a pipeline", bytes)?;
        let output = match contents.as_slice() {
            [Contents::Kept(kept)] => PipelineOutput::Rows(kept.table.clone()),
            _ => sink.finish(contents, &Finishing { schema, parallel })?,
        };
        let metrics = |counter: &Counter| StepMetrics {
            rows_in: counter.rows_in,
            rows_out: counter.rows_out,
            time: counter.time,
            bytes: 0,
            counted,
        };
        let mut metrics: Vec<StepMetrics> = counters[..steps.len()].iter().map(metrics).collect();
        metrics.push(StepMetrics {
            rows_in,
            rows_out: output.rows() as u64,
            time: counters.last().map_or(Duration::ZERO, |sink| sink.time) + began.elapsed(),
            bytes: output.byte_len() as u64,
            counted: sink_counted,
        });
        Ok((output, metrics))
    }

    /// Sends unmatched build rows, which joins emit at the end, through the steps behind them.
    fn emit_unmatched(&self, all: &mut Vec<Contribution>) -> Result<()> {
        if !self.physical.body.emits_build_rows() || all.iter().any(|contribution| contribution.unmatched) {
            return Ok(());
        }
        let mut emitted = self.worker().contribution;
        for (index, operation) in self.operations.iter().enumerate() {
            let Operation::Probe(probe) = operation else { continue };
            for entries in probe.unmatched().chunks(self.settings.vector_rows()) {
                let mut frame = Frame::detached(&self.layout, entries.len());
                frame.set_matches(probe.probe.lookup, Matches::Listed(Rc::new(entries.to_vec())));
                self.advance(&mut emitted, frame, index + 1, self.physical.morsels.len())?;
            }
        }
        if emitted.rows > 0 {
            all.push(emitted);
        }
        Ok(())
    }
}
