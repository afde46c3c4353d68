//! Where rows end: one file for each sink, behind one interface. A worker has a state, to which vectors are added as they
//! come; it is the worker's contribution in the end, and the sink makes its output of all contributions.

mod aggregate;
mod build;
mod materialize;
mod order;
mod partition;
mod sort;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tandem_column::{Field, Part, Result};
use tandem_plan::{Physical, SinkPlan, sink::MaterializePlan};

pub use aggregate::{Best, Groups, Partial};
pub(crate) use window::FirstRows;

use crate::{
    Contents, PipelineOutput,
    frame::Frame,
    settings::{ParallelTasks, Settings},
};

/// One sink of a job.
pub(crate) trait SinkOperator: Send + Sync {
    /// Makes the state of one more worker.
    fn state(&self) -> Contents;

    /// Adds the active rows of a frame, which are of a morsel, to a worker's state.
    ///
    /// # Errors
    /// What an expression raises, or an exhausted memory budget.
    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()>;

    /// Tells that no row of a block, of a part from row `start` on, can be in the output: it need not be looked at.
    fn excludes(&self, _part: &Part, _start: usize) -> bool {
        false
    }

    /// Tells how many times the contributions' memory is taken once more while the output is made of them.
    fn copies(&self) -> usize {
        1
    }

    /// Merges all contributions into the output.
    ///
    /// # Errors
    /// Overflow of a sum, or an exhausted memory budget.
    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput>;
}

/// What sinks need to finish.
pub(crate) struct Finishing<'f> {
    /// The columns of the rows that come out.
    pub(crate) schema: &'f Arc<[Field]>,
    /// Runs tasks on all workers.
    pub(crate) parallel: ParallelTasks<'f>,
}

/// Makes the sink that keeps rows as they are.
pub(crate) fn materialize_rows(plan: MaterializePlan, settings: &Settings) -> Box<dyn SinkOperator> {
    Box::new(materialize::MaterializeSink { plan, memory: settings.memory.clone() })
}

/// Makes the sink of a physical pipeline.
pub(crate) fn sink(physical: &Physical, settings: &Settings) -> Box<dyn SinkOperator> {
    let (functions, memory) = (physical.functions.clone(), settings.memory.clone());
    match &physical.sink {
        SinkPlan::Build(plan) => Box::new(build::BuildSink { plan: plan.clone(), functions, memory }),
        SinkPlan::Aggregate(plan) => {
            Box::new(aggregate::AggregateSink { plan: plan.clone(), memory, vector_rows: settings.vector_rows() })
        }
        SinkPlan::Sort(plan) => Box::new(sort::SortSink::new(plan.clone(), physical, memory)),
        SinkPlan::Materialize(plan) => materialize_rows(plan.clone(), settings),
        SinkPlan::Window(plan) => {
            Box::new(window::WindowSink { plan: plan.clone(), memory, cancel: settings.cancel.clone() })
        }
        SinkPlan::Partition(plan) => Box::new(partition::PartitionSink { plan: plan.clone(), functions, memory }),
    }
}
