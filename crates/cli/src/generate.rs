//! `tandem gen`: benchmark data as Parquet files, one per table.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Mutex,
    time::Instant,
};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget};
use tandem_generator::{DEFAULT_SEED, GeneratorOptions};

use crate::{failure::Failure, progress};

/// What `tandem gen` is told.
#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// Which benchmark's tables.
    #[arg(value_enum)]
    suite: Dataset,
    /// Scale factor of ssb and tpch, from 0.01; 1 is about six million rows in the largest table.
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    sf: f64,
    /// Rows of the largest tables of h2o, as 1e6.
    #[arg(long, default_value = "1e7", value_name = "N", value_parser = parse_rows)]
    rows: u64,
    /// Directory to write to; made where it is missing.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Seed of the data of ssb and h2o; TPC-H has its own.
    #[arg(long, default_value_t = DEFAULT_SEED, value_name = "N")]
    seed: u64,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The benchmarks whose data we generate.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dataset {
    /// The Star Schema Benchmark: lineorder, customer, supplier, part, date.
    Ssb,
    /// TPC-H: lineitem, orders and six more.
    Tpch,
    /// The db-benchmark: g1 for its group-by questions; x, small, medium and big for its joins.
    H2o,
}

/// Reads a number of rows, as `10000000` or `1e7`.
///
/// # Errors
/// A sentence, where it is none.
pub fn parse_rows(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number >= 0.0 => Ok(number as u64),
        _ => Err("give a whole number, as 1000000 or 1e6".to_string()),
    }
}

/// Writes the files.
pub fn run(arguments: &GenerateArguments) -> Result<(), Failure> {
    let mut options = GeneratorOptions {
        sf: arguments.sf,
        rows: arguments.rows,
        seed: arguments.seed,
        ..GeneratorOptions::default()
    };
    if let Some(threads) = arguments.threads {
        options.threads = threads.into();
    }
    let started = Instant::now();
    let counter = RowCounter::new();
    let generate = match arguments.suite {
        Dataset::Ssb => tandem_generator::write_ssb,
        Dataset::Tpch => tandem_generator::write_tpch,
        Dataset::H2o => tandem_generator::write_h2o,
    };
    let files = generate(&options, &arguments.output, &|done, total| counter.set(done, total))
        .map_err(|e| Failure::Statement(e.to_string()))?;
    drop(counter);
    let mut text = String::new();
    for file in &files {
        let megabytes = file.bytes as f64 / 1e6;
        text.push_str(&format!("{:>14} rows {megabytes:>10.1} MB  {}\n", file.rows, file.path.display()));
    }
    text.push_str(&format!("generated in {:.1} s\n", started.elapsed().as_secs_f64()));
    text.push_str(&format!("try: tandem --data {}\n", arguments.output.display()));
    let mut stdout = io::stdout();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|e| Failure::write("to standard output", &e))
}

/// A bar of rows generated, on a terminal.
pub struct RowCounter {
    bar: ProgressBar,
    last: Mutex<u64>,
}

impl RowCounter {
    /// Shows an empty bar.
    pub fn new() -> Self {
        let bar = ProgressBar::no_length()
            .with_style(progress::style("generating [{bar:40}] {percent:>3} %  {human_pos} of {human_len} rows"));
        bar.set_draw_target(ProgressDrawTarget::stderr());
        RowCounter { bar, last: Mutex::new(0) }
    }

    /// Says how many rows of how many are done; reports of several threads may come out of order.
    pub fn set(&self, done: u64, total: u64) {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = done.max(*last);
        self.bar.set_length(total);
        self.bar.set_position(*last);
    }
}

impl Drop for RowCounter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
