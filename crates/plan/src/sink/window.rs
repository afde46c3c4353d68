//! Window functions.

use std::sync::Arc;

use tandem_column::{Result, Type};
use tandem_pipeline::{AggregateFunction, Phase, Slot, SlotId, SortKey, Window, WindowFunction};

use super::{AggregatePlan, Bounds};
use crate::Domain;

/// The most first rows of each partition that a worker knows the places of.
const MOST_FIRST: usize = 64;

/// Functions of the rows around each row, within partitions.
#[derive(Clone, Debug)]
pub struct WindowPlan {
    /// The slots that rows of one partition are equal in.
    pub partition: Vec<SlotId>,
    /// What the rows of a partition are ordered by.
    pub order: Vec<SortKey>,
    /// What is computed.
    pub functions: Vec<Window>,
    /// Only rows whose first function is at most that come out.
    pub fetch: Option<usize>,
    /// The slots that come out, before the functions.
    pub output: Vec<SlotId>,
    /// All slots that are collected, once each.
    pub collected: Vec<SlotId>,
    /// The slots that functions and frames read.
    pub read: Vec<SlotId>,
    /// The types of the collected slots.
    pub kinds: Vec<Type>,
    /// How partitions are numbered, where few rows of each are wanted: an aggregation of nothing.
    pub numbering: Option<Arc<AggregatePlan>>,
}

impl WindowPlan {
    pub(crate) fn new(
        (partition, order): (&[SlotId], &[SortKey]),
        functions: &[Window],
        fetch: Option<usize>,
        output: &[SlotId],
        slots: &[Slot],
    ) -> WindowPlan {
        let mut read = Vec::new();
        for window in functions {
            window.function.visit_slots(&mut |slot| read.push(slot));
            // Ranges are measured by the first key.
            if matches!(window.function, WindowFunction::Nth { .. } | WindowFunction::Aggregate { .. }) {
                read.extend(order.first().map(|key| key.slot));
            }
        }
        read.sort_unstable();
        read.dedup();
        let keys = partition.iter().copied().chain(order.iter().map(|key| key.slot));
        let mut collected: Vec<SlotId> = keys.chain(read.iter().copied()).chain(output.iter().copied()).collect();
        collected.sort_unstable();
        collected.dedup();
        WindowPlan {
            partition: partition.to_vec(),
            order: order.to_vec(),
            functions: functions.to_vec(),
            fetch,
            output: output.to_vec(),
            kinds: collected.iter().map(|slot| slots[*slot].kind.clone()).collect(),
            collected,
            read,
            numbering: None,
        }
    }

    /// Plans how partitions are numbered, if few rows of each are wanted.
    ///
    /// # Errors
    /// None that an aggregation of nothing could have.
    pub(crate) fn number_partitions(&mut self, of: (&[Slot], &[Domain]), bounds: Bounds) -> Result<()> {
        if self.fetch.is_some_and(|fetch| (1..=MOST_FIRST).contains(&fetch)) {
            self.numbering = Some(Arc::new(AggregatePlan::new(&self.partition, &[], Phase::Single, of, bounds)?));
        }
        Ok(())
    }

    /// Returns the position of a slot among those that are collected.
    pub fn position(&self, slot: SlotId) -> usize {
        self.collected.binary_search(&slot).expect("every slot that the sink names is collected")
    }

    /// Returns the keys that rows are sorted by: those of the partition, as an ORDER BY has them by default, then those of the order;
    /// and how many are of the partition.
    pub fn keys(&self) -> (Vec<SortKey>, usize) {
        let mut keys: Vec<SortKey> = Vec::new();
        for slot in &self.partition {
            if keys.iter().all(|known| known.slot != *slot) {
                keys.push(SortKey { slot: *slot, descending: false, nulls_first: false });
            }
        }
        let partition = keys.len();
        for key in &self.order {
            if keys.iter().all(|known| known.slot != key.slot) {
                keys.push(key.clone());
            }
        }
        (keys, partition)
    }

    /// Returns the slot whose value, of this row or another, each output column has; none for what is computed.
    pub fn outputs(&self) -> impl Iterator<Item = Option<SlotId>> + '_ {
        let value = |window: &Window| match &window.function {
            WindowFunction::Lag { slot, .. } | WindowFunction::Nth { slot, .. } => Some(*slot),
            WindowFunction::Aggregate { aggregate, .. } => match aggregate.function {
                AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::First => aggregate.argument,
                _ => None,
            },
            _ => None,
        };
        self.output.iter().copied().map(Some).chain(self.functions.iter().map(value))
    }

    /// Tells whether rows behind those that are fetched change nothing.
    pub fn looks_back_only(&self) -> bool {
        let ranks = |window: &Window| {
            matches!(window.function, WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank)
        };
        self.fetch.is_some() && self.functions.iter().all(ranks)
    }
}
