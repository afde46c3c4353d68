//! What planning may do.

/// What capture may do.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Take sub-plans that read no table, too (`SELECT 1`); for tests.
    pub tableless: bool,
    /// Order joins by cost; otherwise they stay as the host's optimiser left them.
    pub order_joins: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { tableless: false, order_joins: true }
    }
}
