//! Runs a physical pipeline over morsels of a resident table, one worker a core.
//!
//! [`Job`] is a [`tandem_plan::Physical`] made ready. A worker takes [`Job::run`] from morsel to morsel; within one, vectors
//! of a few thousand rows flow through the steps as a frame: row numbers that shrink as rows are dropped, and values that
//! are fetched only when something needs them. What a worker leaves is a [`Contribution`], and [`Job::finish`] merges all of
//! them. `job.rs` is the place to start reading; `sink/` has one file for each way that rows can end.

mod arrange;
mod coded;
mod contribution;
pub mod evaluate;
mod finish;
mod frame;
mod hash;
mod hashed;
mod job;
mod kernel;
mod lookup;
mod mask;
mod parallel;
mod probe;
mod rows;
mod sample;
mod select;
mod selector;
mod set;
mod settings;
mod simd;
mod sink;
mod support;
mod vector;

pub use arrange::EntryOrder;
pub use contribution::{Contents, Contribution, Kept, PipelineOutput, Recall};
pub use finish::StepMetrics;
pub(crate) use frame::NO_MATCH;
pub use job::{Job, Worker};
pub use rows::{Rows, values_table};
pub use sample::try_rows;
pub use selector::VectorSelector;
pub use settings::{ParallelTasks, Settings, Switches};
pub use sink::{Best, Groups, Partial};
pub use support::supports;
pub use tandem_column::{Class, Error, MemoryBudget, Reservation, Result};
pub(crate) use vector::BytesVector;
pub use vector::{Values, Vector};
