//! An order.

use tandem_column::Type;
use tandem_pipeline::{Slot, SlotId, SortKey};

/// A sort, or the first rows of one.
#[derive(Clone, Debug)]
pub struct SortPlan {
    /// What rows are ordered by.
    pub keys: Vec<SortKey>,
    /// How many of the first rows are left out.
    pub skip: usize,
    /// How many rows behind them are wanted.
    pub fetch: Option<usize>,
    /// The slots that come out.
    pub output: Vec<SlotId>,
    /// The types of keys, then of output.
    pub kinds: Vec<Type>,
}

impl SortPlan {
    pub(crate) fn new(
        keys: &[SortKey],
        (skip, fetch): (usize, Option<usize>),
        output: &[SlotId],
        slots: &[Slot],
    ) -> SortPlan {
        let mut plan = SortPlan { keys: keys.to_vec(), skip, fetch, output: output.to_vec(), kinds: Vec::new() };
        plan.kinds = plan.collected().map(|slot| slots[slot].kind.clone()).collect();
        plan
    }

    /// Returns the slots that are collected: keys, then output.
    pub fn collected(&self) -> impl Iterator<Item = SlotId> {
        self.keys.iter().map(|key| key.slot).chain(self.output.iter().copied())
    }

    /// Returns how many of the rows in order are looked at.
    pub fn wanted(&self) -> usize {
        self.fetch.map_or(usize::MAX, |fetch| self.skip.saturating_add(fetch))
    }
}
