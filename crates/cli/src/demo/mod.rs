//! `tandem demo`: the Star Schema Benchmark generated, run, checked against DataFusion, and timed.
//!
//! The data goes straight into resident columns. Each query runs in every mode of this machine; DataFusion gets the
//! same rows as its own in-memory tables, and the same number of threads. Times are the best of three runs after the
//! first. Rows must be equal, or the demonstration fails.

mod peer;

use std::{
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::record_batch::RecordBatch;
use clap::Args;
use futures::TryStreamExt;
use indicatif::{ProgressBar, ProgressDrawTarget};
use tandem_engine::{Config, Mode, OnFallback, Session, Where};
use tandem_generator::Options;
use tandem_runtime::Cancel;

use crate::{failure::Failure, format::grid, generate::RowCounter, progress};

/// What `tandem demo` is told.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Scale factor, from 0.01; 1 is six million rows of lineorder.
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    sf: f64,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Runs of each query; the best counts.
const RUNS: usize = 3;

/// The 13 queries, by name.
pub const QUERIES: [(&str, &str); 13] = [
    ("1.1", include_str!("../../../../bench/suites/ssb/1.1.sql")),
    ("1.2", include_str!("../../../../bench/suites/ssb/1.2.sql")),
    ("1.3", include_str!("../../../../bench/suites/ssb/1.3.sql")),
    ("2.1", include_str!("../../../../bench/suites/ssb/2.1.sql")),
    ("2.2", include_str!("../../../../bench/suites/ssb/2.2.sql")),
    ("2.3", include_str!("../../../../bench/suites/ssb/2.3.sql")),
    ("3.1", include_str!("../../../../bench/suites/ssb/3.1.sql")),
    ("3.2", include_str!("../../../../bench/suites/ssb/3.2.sql")),
    ("3.3", include_str!("../../../../bench/suites/ssb/3.3.sql")),
    ("3.4", include_str!("../../../../bench/suites/ssb/3.4.sql")),
    ("4.1", include_str!("../../../../bench/suites/ssb/4.1.sql")),
    ("4.2", include_str!("../../../../bench/suites/ssb/4.2.sql")),
    ("4.3", include_str!("../../../../bench/suites/ssb/4.3.sql")),
];

/// What one query did.
struct Line {
    name: &'static str,
    rows: usize,
    time: Duration,
    placement: Where,
    peer: Duration,
    equal: bool,
}

/// Runs the demonstration.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let mut options = Options { sf: arguments.sf, ..Options::default() };
    if let Some(threads) = arguments.threads {
        options.threads = threads.into();
    }
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(options.threads).enable_all().build().map_err(
            |e| Failure::Statement(format!("could not start {} threads: {e}; lower --threads", options.threads)),
        )?;
    let config =
        Config { mode: Mode::Cpu, on_fallback: OnFallback::Silent, threads: options.threads, ..Config::default() };

    say(&format!("Star Schema Benchmark, scale factor {}, {} threads\n", options.sf, options.threads))?;
    let started = Instant::now();
    let counter = RowCounter::new();
    let tables = tandem_generator::ssb_tables(&options, &|done, total| counter.set(done, total))
        .map_err(|e| Failure::Statement(e.to_string()))?;
    drop(counter);
    let session = Session::new(config)?;
    let peer = peer::DataFusion::new(options.threads);
    for (name, table) in tables {
        let table = Arc::new(table);
        peer.register(&name, &table)?;
        session.register_table(&name, table)?;
    }
    let rows: usize = session.tables().iter().filter_map(|t| t.rows).sum();
    let bytes: usize = session.tables().iter().filter_map(|t| t.bytes).sum();
    say(&format!(
        "generated {} rows in {:.1} s, {:.0} MB resident\n\n",
        grid::thousands(rows),
        started.elapsed().as_secs_f64(),
        bytes as f64 / 1e6
    ))?;

    let bar = ProgressBar::new(QUERIES.len() as u64).with_style(progress::style("running [{bar:40}] {msg}"));
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let mut lines = Vec::new();
    for (name, sql) in QUERIES {
        bar.set_message(format!("query {name}"));
        lines.push(tokio.block_on(measure(name, sql, &session, &peer))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    report(&lines)
}

/// Runs one query on both engines, and compares.
async fn measure(name: &'static str, sql: &str, session: &Session, peer: &peer::DataFusion) -> Result<Line, Failure> {
    let (mut time, mut peer_time) = (Duration::MAX, Duration::MAX);
    let (mut ours, mut theirs, mut placement) = (Vec::new(), Vec::new(), Where::Host);
    // The first run of each pays for what later runs find in place, and is not counted.
    for run in 0..=RUNS {
        let started = Instant::now();
        let outcome = session.run(sql.trim().trim_end_matches(';'), &Cancel::new()).await?;
        let report = outcome.report;
        ours = outcome.stream.try_collect::<Vec<RecordBatch>>().await.map_err(tandem_engine::Error::from)?;
        let elapsed = started.elapsed();
        placement = report.placement();
        let started = Instant::now();
        theirs = peer.run(sql).await?;
        if run > 0 {
            time = time.min(elapsed);
            peer_time = peer_time.min(started.elapsed());
        }
    }
    let (ours, theirs) = (sorted_rows(&ours)?, sorted_rows(&theirs)?);
    Ok(Line { name, rows: ours.len(), time, placement, peer: peer_time, equal: ours == theirs })
}

/// Spells all rows, in an order that does not depend on ties in the query's own.
fn sorted_rows(batches: &[RecordBatch]) -> Result<Vec<String>, Failure> {
    let mut rows = Vec::new();
    for row in grid::spell(batches).map_err(Failure::Statement)? {
        rows.push(row.join("\t"));
    }
    rows.sort();
    Ok(rows)
}

/// Prints the table, the mean and what to try next; fails if any result differs.
fn report(lines: &[Line]) -> Result<(), Failure> {
    let milliseconds = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    let ratio = |line: &Line| line.peer.as_secs_f64() / line.time.as_secs_f64().max(1e-9);
    let body = lines.iter().map(|line| {
        vec![
            line.name.to_owned(),
            grid::thousands(line.rows),
            milliseconds(line.time),
            line.placement.to_string(),
            milliseconds(line.peer),
            format!("{:.1} ×", ratio(line)),
            if line.equal { "equal" } else { "DIFFERS" }.to_owned(),
        ]
    });
    let header = ["query", "rows", "time (ms)", "ran on", "DataFusion (ms)", "speed-up", "result"];
    say(&grid::draw(&header, &[false, true, true, false, true, true, false], body))?;
    let mean = (lines.iter().map(|l| ratio(l).ln()).sum::<f64>() / lines.len() as f64).exp();
    say(&format!("geometric mean of the speed-up: {mean:.1} ×\n"))?;
    let different: Vec<&str> = lines.iter().filter(|l| !l.equal).map(|l| l.name).collect();
    if !different.is_empty() {
        return Err(Failure::Statement(format!(
            "the results of these queries differ from DataFusion's: {}; please report it with the version and the scale \
             factor",
            different.join(", ")
        )));
    }
    say("all results equal DataFusion's\n\nWhat to try next:\n  \
         tandem gen ssb --sf 1 -o data        write the same tables as Parquet files\n  \
         tandem --data data                   query them in the shell; EXPLAIN shows what runs where and why\n  \
         tandem bench ssb --vs duckdb         measure against other engines\n")
}

fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|e| Failure::write("to standard output", &e))
}
