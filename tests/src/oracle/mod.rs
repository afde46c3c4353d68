//! Engines side by side: the cases of `random` on our pipelines under several configurations, on DataFusion alone and on DuckDB.
//!
//! Our rows must be those of DuckDB, or of DataFusion where DuckDB does not answer; where DataFusion answers, so must we. Where we and
//! DataFusion agree and DuckDB does not, one of them is wrong, or the statement should not have been generated. A case that shows
//! otherwise is made smaller (`shrink`) and printed as statements that can be run by hand.

mod case;
mod compare;
mod duckdb;
mod engines;
mod shrink;

pub use case::Case;
pub use duckdb::python;
pub use engines::{Counts, Engines};
pub use shrink::shrink;
