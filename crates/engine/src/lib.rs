//! The SQL engine: a session that plans with DataFusion and runs what it can on Tandem's own pipelines.
//!
//! A [`Session`] holds tables (resident columns, files, views) and runs one statement at a time to an [`Outcome`]: a
//! stream of Arrow batches and a [`Report`] of what ran where and why. DataFusion parses, resolves and optimises; the
//! parts of the optimised plan that Tandem's executor supports become one node each and run on the worker pool; the
//! rest stays with DataFusion, each with a reason.
//!
//! ```no_run
//! # async fn example() -> Result<(), tandem_engine::Error> {
//! use futures::TryStreamExt;
//! use tandem_engine::{Cancel, Config, Session};
//!
//! let session = Session::new(Config::default())?;
//! let outcome = session.run("SELECT 1 + 1", &Cancel::new()).await?;
//! let batches: Vec<_> = outcome.stream.try_collect().await.map_err(tandem_engine::Error::from)?;
//! # Ok(()) }
//! ```

mod analyze;
mod capture;
mod catalog;
mod config;
mod copy;
mod ddl;
mod error;
mod exec;
mod explain;
mod external;
mod files;
mod host;
mod info;
mod inspected;
mod join_order;
mod load;
mod location;
mod lower;
mod memory;
mod names;
mod nesting;
mod overflow;
mod planner;
mod planning;
mod reason;
mod report;
mod resident;
mod resident_exec;
mod run;
mod session;
mod staging;
mod statement;
mod syntax;
mod translate;
mod wording;

pub use arrow;
pub use config::{Config, Mode, OnFallback};
pub use datafusion::execution::SendableRecordBatchStream;
pub use error::{Class, Error, Result};
pub use info::{ColumnInfo, TableInfo, TableKind};
pub use report::{Report, Where};
pub use session::{Outcome, Session};
pub use staging::StagedFile;
pub use tandem_column::Table;
pub use tandem_runtime::{Cancel, Progress, QueryMetrics, Runtime};
