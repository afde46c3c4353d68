//! What a query may use, and how it runs.

use std::sync::Arc;

use tandem_column::{Cancel, Result};

use crate::MemoryBudget;

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

/// What a query may use, and how it runs: given to its planning and to all of its jobs, wherever they run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What tests change.
    pub switches: Switches,
    /// What the query may collect.
    pub memory: Arc<MemoryBudget>,
    /// Stops the query from outside: looked at before every vector and every batch of pairs.
    pub cancel: Cancel,
}

impl From<Switches> for Settings {
    fn from(switches: Switches) -> Settings {
        Settings { switches, ..Settings::default() }
    }
}

impl Settings {
    /// Returns the rows of one vector.
    pub(crate) fn vector_rows(&self) -> usize {
        self.switches.vector_rows.max(1)
    }
}
