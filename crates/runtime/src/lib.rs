//! Runs pipeline queries: a worker pool, morsels, barriers between pipelines, cancellation, metrics.
//!
//! [`Runtime::execute`] is the way of a query through this crate: pipelines one after the other, each cut into morsels
//! that the pool's workers take; every worker has a state of its own, merged when the last morsel is done.

#![deny(unsafe_code)]

mod device;
mod execute;
mod metrics;
mod pool;

use std::sync::{Arc, Mutex, PoisonError};

pub use device::{
    Accelerator, DeviceMetrics, DeviceOptions, DeviceSettings, Devices, KernelCache, ProgramMetrics, Traffic, Transfer,
};
pub use execute::{Execution, QueryInputs, RunOptions};
pub use metrics::{PipelineMetrics, QueryMetrics, RowProgress, StepMetrics};
pub use tandem_column::{Cancel, Class, Error, Result};
pub use tandem_cpu::{MemoryBudget, Settings, Switches};
pub use tandem_plan::{Outline, OutlineItem, OutlineLine};

/// A worker pool and what runs on it. One for all sessions of a process is enough: queries share it fairly.
pub struct Runtime {
    pool: pool::Pool,
}

impl Runtime {
    /// Starts a pool of `threads` workers (at least one).
    pub fn new(threads: usize) -> Arc<Runtime> {
        Arc::new(Runtime { pool: pool::Pool::new(threads) })
    }

    /// Returns how many workers there are.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Lets only so many of the workers run at once (at least one), until told otherwise.
    pub fn set_active(&self, workers: usize) {
        self.pool.set_active(workers);
    }

    /// Returns how many of the workers may run at once.
    pub fn active(&self) -> usize {
        self.pool.active()
    }

    /// Runs `f(0)` to `f(tasks - 1)` on the workers and waits for them. The calling thread only waits.
    ///
    /// # Errors
    /// The first error of a task, or cancellation; tasks not yet begun are then left out.
    pub fn parallel(&self, tasks: usize, cancel: &Cancel, f: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
        self.pool.run(tasks, cancel, &|_, task| f(task))
    }

    /// As [`Runtime::parallel`], with a state for each worker, made when it first takes a task.
    ///
    /// # Errors
    /// As [`Runtime::parallel`].
    pub fn parallel_with<S: Send>(
        &self,
        tasks: usize,
        cancel: &Cancel,
        make: impl Fn() -> S + Sync,
        f: impl Fn(&mut S, usize) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let states: Vec<Mutex<Option<S>>> = (0..self.threads()).map(|_| Mutex::new(None)).collect();
        self.pool.run(tasks, cancel, &|worker, task| {
            let mut state = states[worker].lock().unwrap_or_else(PoisonError::into_inner);
            f(state.get_or_insert_with(&make), task)
        })?;
        Ok(states.into_iter().filter_map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner)).collect())
    }
}
