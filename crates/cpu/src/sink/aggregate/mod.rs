//! Groups: an array of them where keys have few places, a hash table otherwise.
//!
//! Each worker has groups of its own (`groups`), found by their places in an array (`places`) or by hash (`table`, `index`); a
//! group's aggregates are arrays of states (`accumulator`), which rows change (`update`), or lists of all values (`quantiles`, `collected`). In the end all workers' groups are
//! merged, in parallel (`merge`), and results are made of them (`finish`).
//! Aggregates of distinct values are computed of the groups of a second aggregation, by the keys and the value.

mod accumulator;
mod collected;
mod ends;
mod finish;
mod groups;
mod index;
mod lists;
mod merge;
mod partial;
mod places;
mod quantiles;
mod selection;
mod sketches;
mod table;
mod update;

use std::sync::Arc;

use accumulator::GroupOf;
use groups::truth;
use tandem_column::Result;
use tandem_pipeline::{AggregateFunction, Phase, SlotId};
use tandem_plan::sink::{AggregatePlan, PlannedAggregate};

pub use groups::Groups;
pub use partial::{Best, Partial};
pub(super) use update::floats;

use super::{Finishing, SinkOperator};
use crate::{Contents, Error, MemoryBudget, PipelineOutput, evaluate::Slots, frame::Frame, rows::to_table};

/// Bits of the number of a row among those that a worker met; the number of its morsel is above them. So rows are known to have come
/// before others, whichever worker met them.
const ROW_BITS: u32 = 40;

pub(super) struct AggregateSink {
    pub(super) plan: Arc<AggregatePlan>,
    pub(super) memory: Arc<MemoryBudget>,
    pub(super) vector_rows: usize,
}

impl SinkOperator for AggregateSink {
    fn state(&self) -> Contents {
        Contents::Groups(Box::new(Groups::new(&self.plan, &self.memory, self.vector_rows)))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        add_rows(&self.plan, contents.groups()?, frame, morsel)
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let groups = contents.into_iter().map(|contents| match contents {
            Contents::Groups(groups) => Ok(*groups),
            _ => Err(Error::internal("a contribution to another sink")),
        });
        let chunks = self.merge(groups.collect::<Result<Vec<_>>>()?, finishing.parallel)?;
        Ok(PipelineOutput::Rows(to_table(finishing.schema.clone(), chunks, finishing.parallel)?))
    }
}

/// Adds the active rows of a frame, which are of a morsel, to groups, and to the distinct values of theirs.
fn add_rows(plan: &AggregatePlan, state: &mut Groups, frame: &Frame<'_>, morsel: usize) -> Result<()> {
    let rows = frame.count();
    let came = (morsel as u64) << ROW_BITS | state.seen;
    state.seen += rows as u64;
    let numbers = state.groups(frame)?;
    let groups = numbers.as_deref().map_or(GroupOf::One, GroupOf::Each);
    for (planned, accumulator) in plan.aggregates.iter().zip(&mut state.set.accumulators) {
        if planned.of_distinct() {
            continue;
        }
        let filter = planned.aggregate.filter.map(|slot| frame.vector(slot)).transpose()?;
        let mask = filter.map(|filter| truth(&filter, rows));
        let vectors = arguments(planned, plan.phase).map(|slot| frame.vector(slot)).collect::<Result<Vec<_>>>()?;
        match plan.phase {
            Phase::Final => accumulator.update_states(groups, rows, &vectors, mask.as_deref())?,
            _ => accumulator.update(groups, rows, &vectors, mask.as_deref(), came),
        }
    }
    for (distinct, state) in plan.distinct.iter().zip(&mut state.distinct) {
        add_rows(&distinct.rows, state, frame, morsel)?;
    }
    state.end_vector(rows)
}

/// Returns the slots that an aggregate reads of each row: its arguments, then what it is ordered by; in the final phase all of its
/// states. Where only rows are counted, none.
fn arguments(planned: &PlannedAggregate, phase: Phase) -> impl Iterator<Item = SlotId> {
    let function = planned.aggregate.function;
    let states = if phase == Phase::Final { function.state_names().len() } else { 1 };
    let counts_rows = function == AggregateFunction::CountRows
        || function == AggregateFunction::Count && planned.total && planned.aggregate.filter.is_none();
    let first = planned.aggregate.argument.filter(|_| phase == Phase::Final || !counts_rows);
    let order = planned.aggregate.order.iter().map(|key| key.slot);
    first.into_iter().flat_map(move |first| first..first + states).chain(planned.aggregate.second).chain(order)
}
