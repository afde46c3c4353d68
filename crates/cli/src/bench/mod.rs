//! `tandem bench`: every engine on the same data, in one run, interleaved and repeated.
//!
//! `suite` has the queries, `data` the files, `peer` the other engines (Python workers in a venv that `venv` makes), `own` ourselves,
//! `compare` checks that all agree, `measure` runs them in turn, and `table`, `json` and `html` say what came out.

pub mod suite;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use suite::Suite;

/// What `tandem bench` is told.
#[derive(Clone, Debug, Args)]
pub struct BenchArguments {
    /// Which benchmark.
    #[arg(value_enum)]
    pub suite: Suite,
    /// Scale factor of the data, from 0.01.
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    pub sf: f64,
    /// Engines to compare with, from duckdb, hyper, polars, datafusion, clickhouse; `none` for none.
    #[arg(long, value_delimiter = ',', default_value = "duckdb,hyper,polars,datafusion,clickhouse", value_name = "ENGINES")]
    pub vs: Vec<String>,
    /// Where the data is when a query starts.
    #[arg(long, value_enum, default_value_t = From::Memory)]
    pub from: From,
    /// Measured runs of each query and engine, after the first; the best counts.
    #[arg(long, default_value_t = 5, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Threads that each engine may use [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Queries to run, as `1.1,2.1`, or whole flights, as `3` [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queries: Vec<String>,
    /// Write everything measured to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with a chart to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Directory of the Parquet files; generated where they are missing [default: data/<suite>-sf<N>].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Run each engine alone, one after the other, instead of interleaved: needs memory for one at a time.
    #[arg(long)]
    pub isolated: bool,
    /// Seconds a peer may take for a query before it is stopped.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub timeout: u64,
    /// Python environment of the peers, made where it is missing.
    #[arg(long, default_value = ".venv", value_name = "DIR")]
    pub venv: PathBuf,
}

/// Where the data is when a query starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum From {
    /// Held in memory by each engine, in its own best way.
    Memory,
    /// In Parquet files, which each engine reads.
    Parquet,
}

/// Runs the benchmark and prints what came out.
///
/// # Errors
/// Bad arguments, no data, or a result of ours that differs from the peers'.
pub fn run(arguments: BenchArguments) -> Result<(), Failure> {
    arguments.suite.choose(&arguments.queries).map_err(|name| Failure::Usage(format!("there is no query {name}")))?;
    Ok(())
}
