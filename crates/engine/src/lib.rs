//! The SQL engine: a session that plans with DataFusion and runs what it can on Tandem's own pipelines.
//!
//! A [`Session`] holds tables (resident columns, files, views) and runs one statement at a time to an [`Outcome`]: a
//! stream of Arrow batches and a [`Report`] of what ran where and why. DataFusion parses, resolves and optimises; the
//! parts of the optimised plan that Tandem's executor supports become one node each and run on the worker pool; the
//! rest stays with DataFusion, each with a reason.
//!
//! The folders are a statement's way: `sql` (what it is, and what is to be done for it), `planning` (capture, join order,
//! lowering), `execution` (the nodes that run), over `tables`; `explain` tells what ran where.
//!
//! ```no_run
//! # async fn example() -> Result<(), tandem_engine::Error> {
//! use futures::TryStreamExt;
//! use tandem_engine::{Cancel, Config, Session};
//!
//! let session = Session::new(Config::default())?;
//! let outcome = session.run("SELECT 1 + 1", &Cancel::new()).await?;
//! let batches: Vec<_> = outcome.stream.try_collect().await?;
//! # Ok(()) }
//! ```

mod config;
mod error;
mod execution;
mod explain;
mod planning;
mod session;
mod sql;
mod tables;

pub use arrow;
pub use config::{Config, Mode, OnFallback};
pub use error::{Class, Error, Result};
pub use execution::host::BatchStream;
pub use execution::staging::StagedFile;
pub use explain::report::{Report, Where};
pub use session::{Outcome, Session};
pub use tables::info::{ColumnInfo, TableInfo, TableKind};
pub use tandem_column::Table;
pub use tandem_runtime::{Cancel, Progress, QueryMetrics, Runtime};
