//! What the tests of the whole engine share: a session as a sqllogictest database, and values spelled for comparison.
//!
//! `slt.rs` runs `sql/*.slt` under several configurations, `corpus.rs` DataFusion's own files, `suites.rs` the benchmark
//! queries, `dependencies.rs` checks the direction of dependencies between crates.

mod database;
mod spelling;

pub use database::{ColumnKind, Database, validate_rows, validate_rows_in_any_order};
pub use spelling::{normalize, spell_rows};

/// Says why nothing is tested where there is no device; fails where one is required.
pub fn has_device() -> bool {
    let devices = tandem_runtime::devices();
    let required = std::env::var_os("TANDEM_REQUIRE_OPENCL").is_some();
    assert!(!required || !devices.accelerators.is_empty(), "no device is usable: {:?}", devices.unusable);
    if devices.accelerators.is_empty() {
        println!("not tested, no device is usable: {:?}", devices.unusable);
    }
    !devices.accelerators.is_empty()
}
