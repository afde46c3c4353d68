//! What the tests of the whole engine share: configurations to run under, a session as a sqllogictest database, and values
//! spelled for comparison.
//!
//! `slt.rs` runs `sql/*.slt` under each configuration of `configs/*.toml`, `corpus.rs` DataFusion's own files, `suites.rs` the benchmark
//! queries, `random_sql.rs` random statements (`random`) on several engines (`oracle`), `dependencies.rs` checks the direction of dependencies between crates.

mod configuration;
mod database;
pub mod oracle;
pub mod random;
mod spelling;

use tandem_device::{Backend, testing};

pub use configuration::{Configuration, Flags, Need, Skip};
pub use database::{ColumnKind, Database, validate_rows, validate_rows_in_any_order};
pub use spelling::{normalize, spell_rows};

/// Tells whether there is a device to test on; fails where one is required.
pub fn has_device() -> bool {
    testing::has(&tandem_device::Search::from_environment().run(), Backend::OpenCl)
}
