//! Runs one pipeline over morsels of a resident table, one worker a core.
//!
//! [`Job`] is a pipeline made ready: filters compiled to code ranges and sets, builds chosen dense or hashed, group keys
//! to array indices, all from statistics. A worker takes [`Job::run`] from morsel to morsel; within one, vectors of a few
//! thousand rows flow through the steps as a [`frame::Frame`]: row numbers that shrink as rows are dropped, and values
//! that are fetched only when something needs them. `job.rs` is the place to start reading.

mod absorb;
mod aggregate;
mod build;
mod collect;
mod directory;
pub mod evaluate;
mod filter;
mod frame;
mod fused;
mod job;
mod keep;
mod kernel;
mod mask;
mod plan;
mod probe;
mod range;
mod select;
mod set;
mod simd;
mod sort;
mod support;
mod vector;

pub use absorb::{Arranged, Collected, LaidOut, LaidOutWay};
pub use aggregate::HashedGroups;
pub use build::Build;
pub use collect::values_table;
pub use job::{Job, Morsel, Output, Parallel, Settings, StepMetrics, Worker};
pub use keep::is_away;
pub use mask::code_bounds;
pub use simd::{Level, level};
pub use support::supports;
pub use tandem_column::{Class, Error, MemoryBudget, Reservation, Result};
pub use vector::{BytesVector, Values, Vector};
