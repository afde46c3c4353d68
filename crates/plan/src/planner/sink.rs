//! The choices of each sink.

use std::sync::Arc;

use tandem_column::Result;
use tandem_pipeline::{PipelineId, Sink, SlotId};

use super::Planner;
use crate::{
    SinkPlan,
    outline::waits_for,
    sink::{AggregatePlan, Bounds, BuildPlan, MaterializePlan, PartitionPlan, SortPlan, WindowPlan},
};

impl Planner<'_> {
    /// Plans the sink; with it, what the outline says of the choice.
    pub(super) fn sink(&self, id: PipelineId) -> Result<(SinkPlan, Option<String>)> {
        let (slots, domains, collide) = (&self.body.slots, &self.body.domains, self.planning.collide);
        let bounds =
            Bounds { rows: self.most_rows, memory: self.planning.memory, workers: self.planning.workers, collide };
        let mut choice = None;
        let sink = match &self.pipeline.sink {
            Sink::Build { keys, payload } => {
                let in_order =
                    |slot: SlotId| self.table.statistics.get(slot).is_some_and(|statistics| statistics.sorted);
                let order: (&dyn Fn(&str, usize) -> bool, &dyn Fn(SlotId) -> bool) = (self.planning.sorted, &in_order);
                let plan = BuildPlan::new((self.query, id), keys, payload, slots, collide, order);
                choice = plan.note();
                SinkPlan::Build(plan)
            }
            Sink::Aggregate { keys, aggregates, phase } => {
                let plan = AggregatePlan::new(keys, aggregates, *phase, (slots, domains), bounds)?;
                // Without the builds, it is not known what keys may be, or how many rows.
                let known =
                    self.waiting.is_empty() || plan.layout.is_small() && !keys.iter().any(|slot| self.open[*slot]);
                choice = Some(if known { plan.note() } else { waits_for(&self.waiting) });
                SinkPlan::Aggregate(Arc::new(plan))
            }
            Sink::Sort { keys, skip, fetch, output } => {
                SinkPlan::Sort(SortPlan::new(keys, (*skip, *fetch), output, slots))
            }
            Sink::Materialize { skip, fetch, output } => {
                SinkPlan::Materialize(MaterializePlan::new((*skip, *fetch), output, slots))
            }
            Sink::Partition { keys, parts, output } => {
                SinkPlan::Partition(PartitionPlan::new(keys, *parts, output, slots))
            }
            Sink::Window { partition, order, functions, fetch, output } => {
                let mut plan = WindowPlan::new((partition, order), functions, *fetch, output, slots);
                if plan.looks_back_only() {
                    plan.number_partitions((slots, domains), bounds)?;
                }
                SinkPlan::Window(Arc::new(plan))
            }
        };
        Ok((sink, choice))
    }
}
