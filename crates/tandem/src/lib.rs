//! SQL on files and Arrow data inside a Rust program, on all cores of the machine or on an OpenCL device.
//!
//! A [`Session`] holds tables and runs statements. Rows go in and come out as Arrow batches, errors are one sentence, a
//! running statement can be watched and cancelled, and its [`Report`] says what ran where and why.
//!
//! ```
//! use tandem::Session;
//!
//! let session = Session::builder().threads(2).build()?;
//! session.sql("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 1000)").collect()?;
//! let batches = session.sql("SELECT sum(n) AS total FROM t WHERE n > $1").bind(990).collect()?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok::<(), tandem::Error>(())
//! ```
//!
//! # Blocking and async
//! The work is done on the session's own threads. [`SqlQuery::collect`] and [`SqlQuery::batches`] wait for it, in any program;
//! [`SqlQuery::stream`] and awaiting the query suit an async one, with any executor. Registering files blocks for as long as
//! their footers take to read.
//!
//! `docs/05-embedding.md` in the repository is the guide; its snippets come from the programs in this crate's `examples`.

pub use tandem_engine::{
    BatchStream, Batches, Cancel, Class, ColumnInfo, Config, DeviceOptions, Devices, Error, FunctionArgument,
    KernelCache, Mode, Native, OnFallback, Parameter, PipelineReport, Progress, Report, Result, Returned,
    ScalarFunction, Session, SessionBuilder, SqlQuery, TableInfo, TableKind, Text, Transfer, Where, arrow,
};
