//! One memory limit for everything: DataFusion's operators take their bytes from the same budget as Tandem's.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use tandem_runtime::MemoryBudget;

/// DataFusion's memory pool on Tandem's budget.
#[derive(Debug)]
pub(crate) struct BudgetPool {
    budget: Arc<MemoryBudget>,
    taken: AtomicUsize,
    /// Bytes that could not be refused and exceed the budget.
    over: AtomicUsize,
}

impl BudgetPool {
    pub(crate) fn new(budget: Arc<MemoryBudget>) -> BudgetPool {
        BudgetPool { budget, taken: AtomicUsize::new(0), over: AtomicUsize::new(0) }
    }
}

impl MemoryPool for BudgetPool {
    fn name(&self) -> &str {
        "budget"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if self.budget.take(additional, reservation.consumer().name()).is_ok() {
            self.taken.fetch_add(additional, Ordering::Relaxed);
        } else {
            self.over.fetch_add(additional, Ordering::Relaxed);
        }
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        let mut returned = 0;
        let _ = self.over.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |over| {
            returned = over.min(shrink);
            Some(over - returned)
        });
        let rest = shrink - returned;
        self.taken.fetch_sub(rest, Ordering::Relaxed);
        self.budget.give(rest);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // DataFusion's operators spill on this variant and give up on any other.
        self.budget
            .take(additional, reservation.consumer().name())
            .map_err(|error| DataFusionError::ResourcesExhausted(error.message))?;
        self.taken.fetch_add(additional, Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.taken.load(Ordering::Relaxed) + self.over.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        match self.budget.limit() {
            usize::MAX => MemoryLimit::Infinite,
            limit => MemoryLimit::Finite(limit),
        }
    }
}

impl fmt::Display for BudgetPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "budget(used: {}, limit: {})", self.budget.used(), self.budget.limit())
    }
}
