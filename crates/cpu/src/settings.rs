//! What a query may use, and how it runs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tandem_column::Result;

use crate::{Error, MemoryBudget};

/// Runs tasks `0..n` on all workers and waits.
pub type ParallelTasks<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> + Sync);

/// What tests change about execution: results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Rows that flow through a pipeline at a time; at least one.
    pub vector_rows: usize,
    /// Gives all keys of hash tables one hash.
    pub force_collisions: bool,
}

impl Default for Switches {
    fn default() -> Self {
        // 4096 rows of a few 8-byte slots stay within a core's L1 and L2 caches.
        Switches { vector_rows: 4096, force_collisions: false }
    }
}

/// What a query may use, and how it runs: given to its planning and to all of its jobs.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What tests change.
    pub switches: Switches,
    /// What the query may collect.
    pub memory: Arc<MemoryBudget>,
    /// Set from outside to stop the query: looked at before every vector and every batch of pairs.
    pub stop: Arc<AtomicBool>,
}

impl Settings {
    /// Returns the rows of one vector.
    pub(crate) fn vector_rows(&self) -> usize {
        self.switches.vector_rows.max(1)
    }

    /// Fails if the query was asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
    }
}
