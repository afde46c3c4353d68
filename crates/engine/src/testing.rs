//! What tests change about execution; no part of a session's settings.

/// Switches that results must not depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Rows that flow through a pipeline at a time.
    pub vector_rows: usize,
    /// Gives all hash-table keys one hash.
    pub force_collisions: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Switches { vector_rows: 4096, force_collisions: false }
    }
}
