//! The SQL engine: a session that plans with DataFusion and runs what it can on Tandem's own pipelines.
//!
//! A [`Session`] holds tables (resident columns, files, views) and runs statements ([`SqlQuery`]): each gives a stream of Arrow
//! batches and a [`Report`] of what ran where and why. DataFusion parses, resolves and optimises; the parts of the optimised
//! plan that Tandem's executor supports become one node each and run on the worker pool; the rest stays with DataFusion, each
//! part with a reason.
//!
//! The folders are a statement's way: `sql` (what it is, and what is to be done for it), `planning` (capture, join order,
//! lowering), `execution` (the nodes that run), over `tables`; `explain` tells what ran where.
//!
//! ```
//! let session = tandem_engine::Session::builder().threads(1).build()?;
//! let batches = session.sql("SELECT 1 + 1").collect()?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok::<(), tandem_engine::Error>(())
//! ```
//!
//! Programs depend on the crate `tandem`, which is this one's interface without what only our own crates use.

mod config;
mod error;
mod execution;
mod explain;
mod functions;
mod planning;
mod session;
mod sql;
mod tables;
#[doc(hidden)]
pub mod testing;

pub use arrow;
pub use config::{Config, Mode, OnFallback};
pub use error::{Class, Error, Result};
pub use execution::host::BatchStream;
pub use execution::staging::StagedFile;
pub use explain::report::{PipelineReport, Progress, Report, Where};
pub use functions::{FunctionArgument, Native, Returned, ScalarFunction, Text};
pub use session::{Batches, Session, SessionBuilder, SqlQuery};
pub use sql::parameters::Parameter;
pub use tables::info::{ColumnInfo, TableInfo, TableKind};
pub use tandem_column::Table;
pub use tandem_runtime::{Cancel, DeviceOptions, Devices, KernelCache, Transfer};
