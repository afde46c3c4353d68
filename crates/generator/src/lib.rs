//! Generators of benchmark data: the Star Schema Benchmark and the tables of the db-benchmark by ourselves, TPC-H through the crate
//! `tpchgen`.
//!
//! Every table is a `TableSource`: groups of about a million rows, each of which can be made alone, in any order, on any
//! thread, and always comes out the same. Two outputs share it: one zstd Parquet file per table ([`write_ssb`],
//! [`write_tpch`], [`write_h2o`]) and resident tables ([`ssb_tables`], [`tpch_tables`], [`h2o_tables`]). Memory is bounded by one group per thread.

#![forbid(unsafe_code)]

mod columns;
mod h2o;
mod parquet_file;
mod random;
mod resident;
mod source;
mod ssb;
mod tpch;

use std::path::{Path, PathBuf};

pub use tandem_column::{Class, Error, Result, Table};

use source::TableSource;

/// Smallest scale factor: below it the dimensions have too few rows to mean anything.
pub const SMALLEST_SF: f64 = 0.01;
/// Largest scale factor: keys other than the order key still fit 32 bits with room to spare.
pub const LARGEST_SF: f64 = 10_000.0;
/// The fewest rows of the db-benchmark's tables: a row at least for each of a hundred groups.
pub const FEWEST_ROWS: u64 = 100;
/// The most rows of the db-benchmark's tables: keys fit 32 bits.
pub const MOST_ROWS: u64 = 1_000_000_000;
/// The seed used where none is given.
pub const DEFAULT_SEED: u64 = 42;

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneratorOptions {
    /// The scale factor, from [`SMALLEST_SF`] to [`LARGEST_SF`].
    pub sf: f64,
    /// Rows of the db-benchmark's largest tables, from [`FEWEST_ROWS`] to [`MOST_ROWS`]; the others have a scale factor.
    pub rows: u64,
    /// Chooses the data of SSB and of the db-benchmark; the same seed gives the same data whatever `threads`. TPC-H has a seed of its own.
    pub seed: u64,
    /// How many threads work, at least one.
    pub threads: usize,
}

impl Default for GeneratorOptions {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        GeneratorOptions { sf: 1.0, rows: 10_000_000, seed: DEFAULT_SEED, threads }
    }
}

/// Hears of progress: rows done and rows in all, over all tables. Called from several threads.
pub type ProgressListener<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// One file that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFile {
    /// The table's name.
    pub name: String,
    /// Where the file is.
    pub path: PathBuf,
    /// How many rows it has.
    pub rows: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Writes the five SSB tables to `dir`, one Parquet file each; makes `dir` where it is missing.
///
/// # Errors
/// A scale factor out of range, a directory that cannot be written, a full disk. No partial file is left.
pub fn write_ssb(options: &GeneratorOptions, dir: &Path, progress: &ProgressListener<'_>) -> Result<Vec<TableFile>> {
    check(options)?;
    write(&ssb::sources(options), options, dir, progress)
}

/// Writes the eight TPC-H tables to `dir`, one Parquet file each; makes `dir` where it is missing.
///
/// # Errors
/// As [`write_ssb`].
pub fn write_tpch(options: &GeneratorOptions, dir: &Path, progress: &ProgressListener<'_>) -> Result<Vec<TableFile>> {
    check(options)?;
    write(&tpch::sources(options.sf), options, dir, progress)
}

/// Writes the five tables of the db-benchmark to `dir`, one Parquet file each; makes `dir` where it is missing.
///
/// # Errors
/// As [`write_ssb`], of rows instead of a scale factor.
pub fn write_h2o(options: &GeneratorOptions, dir: &Path, progress: &ProgressListener<'_>) -> Result<Vec<TableFile>> {
    check(options)?;
    write(&h2o::sources(options), options, dir, progress)
}

/// Writes the table of the db-benchmark's group-by questions alone.
///
/// # Errors
/// As [`write_h2o`].
pub fn write_h2o_groups(
    options: &GeneratorOptions,
    dir: &Path,
    progress: &ProgressListener<'_>,
) -> Result<Vec<TableFile>> {
    check(options)?;
    write(&h2o::group_sources(options), options, dir, progress)
}

/// Generates the five SSB tables straight into resident columns.
///
/// # Errors
/// A scale factor out of range.
pub fn ssb_tables(options: &GeneratorOptions, progress: &ProgressListener<'_>) -> Result<Vec<(String, Table)>> {
    check(options)?;
    load(&ssb::sources(options), options, progress)
}

/// Generates the eight TPC-H tables straight into resident columns.
///
/// # Errors
/// A scale factor out of range.
pub fn tpch_tables(options: &GeneratorOptions, progress: &ProgressListener<'_>) -> Result<Vec<(String, Table)>> {
    check(options)?;
    load(&tpch::sources(options.sf), options, progress)
}

/// Generates the five tables of the db-benchmark straight into resident columns.
///
/// # Errors
/// A number of rows out of range.
pub fn h2o_tables(options: &GeneratorOptions, progress: &ProgressListener<'_>) -> Result<Vec<(String, Table)>> {
    check(options)?;
    load(&h2o::sources(options), options, progress)
}

/// Checks that the scale factor and the number of rows are in range.
///
/// # Errors
/// A sentence that says what the range is.
pub fn check(options: &GeneratorOptions) -> Result<()> {
    if !(FEWEST_ROWS..=MOST_ROWS).contains(&options.rows) {
        return Err(Error::input(format!(
            "The number of rows is out of range; give one from {FEWEST_ROWS} to {MOST_ROWS} instead of {}.",
            options.rows
        )));
    }
    if (SMALLEST_SF..=LARGEST_SF).contains(&options.sf) {
        return Ok(());
    }
    Err(Error::input(format!(
        "The scale factor is out of range; give one from {SMALLEST_SF} to {LARGEST_SF} instead of {}.",
        options.sf
    )))
}

fn write(
    sources: &[Box<dyn TableSource>],
    options: &GeneratorOptions,
    dir: &Path,
    progress: &ProgressListener<'_>,
) -> Result<Vec<TableFile>> {
    parquet_file::make_directory(dir)?;
    let progress = source::Counter::new(sources, progress);
    sources.iter().map(|s| parquet_file::write(s.as_ref(), dir, options.threads, &progress)).collect()
}

fn load(
    sources: &[Box<dyn TableSource>],
    options: &GeneratorOptions,
    progress: &ProgressListener<'_>,
) -> Result<Vec<(String, Table)>> {
    let progress = source::Counter::new(sources, progress);
    sources
        .iter()
        .map(|s| Ok((s.name().to_string(), resident::load(s.as_ref(), options.threads, &progress)?)))
        .collect()
}
