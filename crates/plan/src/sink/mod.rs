//! Where the rows of a physical pipeline end: one file for each sink.

mod aggregate;
mod build;
mod materialize;
mod partition;
mod sort;
mod window;

use std::sync::Arc;

use tandem_column::Type;
use tandem_pipeline::{Expr, SlotId};

pub(crate) use aggregate::Bounds;
pub use aggregate::{
    AggregatePlan, DistinctPlan, GroupKey, GroupLayout, KeyPacking, PlacedKey, PlannedAggregate, SMALL_ARRAY,
};
pub use build::{BuildPlan, BuildUse};
pub use materialize::MaterializePlan;
pub use partition::PartitionPlan;
pub use sort::SortPlan;
pub use window::WindowPlan;

/// A sink with its choices made.
#[derive(Clone, Debug)]
pub enum SinkPlan {
    /// The side of a join that rows are looked up in.
    Build(BuildPlan),
    /// Groups.
    Aggregate(Arc<AggregatePlan>),
    /// Rows in order.
    Sort(SortPlan),
    /// Rows as they come.
    Materialize(MaterializePlan),
    /// Rows by hash of keys.
    Partition(PartitionPlan),
    /// Functions of the rows around each.
    Window(Arc<WindowPlan>),
}

impl SinkPlan {
    /// Returns what is collected of each row: keys first, then what comes out. Groups collect none.
    pub fn values(&self) -> Vec<Expr> {
        let slots = |slots: &[SlotId]| slots.iter().copied().map(Expr::Slot).collect::<Vec<_>>();
        match self {
            SinkPlan::Build(plan) => plan.keys.iter().cloned().chain(slots(&plan.payload)).collect(),
            SinkPlan::Sort(plan) => plan.collected().map(Expr::Slot).collect(),
            SinkPlan::Materialize(plan) => slots(&plan.output),
            SinkPlan::Partition(plan) => slots(&plan.output),
            SinkPlan::Window(plan) => slots(&plan.collected),
            SinkPlan::Aggregate(_) => Vec::new(),
        }
    }

    /// Returns the types of [`SinkPlan::values`].
    pub fn kinds(&self) -> &[Type] {
        match self {
            SinkPlan::Build(plan) => &plan.kinds,
            SinkPlan::Sort(plan) => &plan.kinds,
            SinkPlan::Materialize(plan) => &plan.kinds,
            SinkPlan::Partition(plan) => &plan.kinds,
            SinkPlan::Window(plan) => &plan.kinds,
            SinkPlan::Aggregate(_) => &[],
        }
    }

    /// Returns which of the collected values is the first that comes out.
    pub fn first_output(&self) -> usize {
        match self {
            SinkPlan::Sort(plan) => plan.keys.len(),
            SinkPlan::Build(_)
            | SinkPlan::Aggregate(_)
            | SinkPlan::Materialize(_)
            | SinkPlan::Partition(_)
            | SinkPlan::Window(_) => 0,
        }
    }

    /// Tells whether a device may keep what comes out: all of it, as plain rows.
    pub(crate) fn may_stay(&self) -> bool {
        match self {
            SinkPlan::Sort(plan) => plan.skip == 0,
            SinkPlan::Materialize(plan) => plan.skip == 0 && plan.fetch.is_none(),
            SinkPlan::Build(_) | SinkPlan::Partition(_) => false,
            SinkPlan::Aggregate(_) | SinkPlan::Window(_) => true,
        }
    }

    /// Returns the collected value that each output column has; none for what the sink computes.
    pub fn outputs(&self) -> Vec<Option<Expr>> {
        match self {
            SinkPlan::Window(plan) => plan.outputs().map(|slot| slot.map(Expr::Slot)).collect(),
            sink => sink.values().into_iter().skip(sink.first_output()).map(Some).collect(),
        }
    }

    /// Returns after how many rows no more are wanted, if they are taken as they come.
    pub fn enough(&self) -> Option<usize> {
        match self {
            SinkPlan::Materialize(plan) => plan.fetch.map(|fetch| plan.skip.saturating_add(fetch)),
            _ => None,
        }
    }
}
