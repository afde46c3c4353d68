//! `tandem demo`: the Star Schema Benchmark generated, run, timed, and checked against DataFusion.
//!
//! The data goes straight into resident columns. Each query runs in every mode of this machine: `cpu`, and `gpu` where there
//! is a device. Times are the best of three runs after the first. They are judged by this machine: rows per second, and the
//! share of its memory bandwidth that reading the query's columns in that time takes. Other engines are measured by `tandem
//! bench`, as they are released. DataFusion alone (`--mode host`) must give equal rows, or the demonstration fails.

mod amount;

use std::{
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::record_batch::RecordBatch;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget};
use tandem_engine::{Devices, Mode, OnFallback, Report, Session};
use tandem_generator::GeneratorOptions;

use crate::{
    bench::{
        measure::add_missing,
        suite::{BenchQuery, Suite},
    },
    failure::Failure,
    format::grid,
    generate::RowCounter,
    progress,
};
use amount::{Amount, Tables};

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

/// What one query did.
struct Line {
    name: &'static str,
    rows: usize,
    amount: Amount,
    /// What it did in each mode.
    runs: Vec<Run>,
}

/// What one query did in one mode.
struct Run {
    time: Duration,
    /// What it ran on; more than one if that differed from run to run.
    places: Vec<String>,
    /// Why parts of it fell back.
    reasons: Vec<String>,
    equal: bool,
}

/// Runs the demonstration.
pub fn run(arguments: &DemoArguments, devices: &Arc<Devices>) -> Result<(), Failure> {
    let mut options = GeneratorOptions { sf: arguments.sf, ..GeneratorOptions::default() };
    if let Some(threads) = arguments.threads {
        options.threads = threads.into();
    }
    let builder = Session::builder().mode(Mode::Cpu).on_fallback(OnFallback::Silent).threads(options.threads);
    let builder = builder.devices(devices.clone());

    say(&format!("Star Schema Benchmark, scale factor {}, {} threads\n", options.sf, options.threads))?;
    let started = Instant::now();
    let counter = RowCounter::new();
    let tables = tandem_generator::ssb_tables(&options, &|done, total| counter.set(done, total))
        .map_err(|e| Failure::Statement(e.to_string()))?;
    drop(counter);
    let session = builder.build()?;
    let tables: Tables = tables.into_iter().map(|(name, table)| (name, Arc::new(table))).collect();
    for (name, table) in &tables {
        session.register_table(name, Arc::clone(table))?;
    }
    let devices = devices.chosen().unwrap_or_default();
    let modes: &[Mode] = if devices.is_empty() { &[Mode::Cpu] } else { &[Mode::Cpu, Mode::Gpu] };
    let rows: usize = session.tables().iter().filter_map(|t| t.rows).sum();
    let bytes: usize = session.tables().iter().filter_map(|t| t.bytes).sum();
    say(&format!(
        "generated {} rows in {:.1} s, {:.0} MB resident\n",
        grid::thousands(rows),
        started.elapsed().as_secs_f64(),
        bytes as f64 / 1e6
    ))?;

    let names: Vec<String> = devices.iter().map(|device| device.name()).collect();
    let simulated = devices.iter().any(|device| device.device().info().simulated);
    say(&match names.is_empty() {
        true => "no device was found, so all runs on the CPU; `tandem devices` says why\n\n".to_owned(),
        false if simulated => {
            format!("mode gpu: {}; times are this machine's, not the model's\n\n", names.join(" and "))
        }
        false => format!("mode gpu: {}\n\n", names.join(" and ")),
    })?;
    // Before and after the queries: what disturbs one measurement may spare the other.
    let before = tandem_limit::bandwidth(options.threads);

    let queries = Suite::Ssb.queries();
    let bar = ProgressBar::new(queries.len() as u64).with_style(progress::style("running [{bar:40}] {msg}"));
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let mut lines = Vec::new();
    for query in queries {
        bar.set_message(format!("query {}", query.name));
        lines.push(measure(&query, modes, &session, Amount::of(&query, &tables))?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    report(&lines, modes, before.max(tandem_limit::bandwidth(options.threads)))
}

/// Runs one query in each mode in turn, and compares the rows with those of DataFusion alone.
fn measure(query: &BenchQuery, modes: &[Mode], session: &Session, amount: Amount) -> Result<Line, Failure> {
    session.set_mode(Mode::Host);
    let expected = sorted_rows(&execute(session, query)?.0)?;
    let run = || Run { time: Duration::MAX, places: Vec::new(), reasons: Vec::new(), equal: true };
    let runs = modes.iter().map(|_| run()).collect();
    let mut line = Line { name: query.name, rows: expected.len(), amount, runs };
    // The first run of each pays for what later runs find in place, and is not counted.
    for run in 0..=RUNS {
        for (at, mode) in modes.iter().enumerate() {
            session.set_mode(*mode);
            let started = Instant::now();
            let (ours, report) = execute(session, query)?;
            let time = started.elapsed();
            let known = &mut line.runs[at];
            if run > 0 {
                known.time = known.time.min(time);
            }
            known.equal &= sorted_rows(&ours)? == expected;
            add_missing(&mut known.places, [report.places()]);
            add_missing(&mut known.reasons, report.fallbacks());
        }
    }
    Ok(line)
}

fn execute(session: &Session, query: &BenchQuery) -> Result<(Vec<RecordBatch>, Arc<Report>), Failure> {
    let query = session.sql(query.sql);
    let report = query.report();
    Ok((query.collect()?, report))
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

/// Prints the table, the means and what to try next; fails if any result differs.
fn report(lines: &[Line], modes: &[Mode], bandwidth: f64) -> Result<(), Failure> {
    let seconds = |run: &Run| run.time.as_secs_f64().max(1e-9);
    let speed = |line: &Line, run: &Run| line.amount.rows as f64 / seconds(run) / 1e6;
    let share = |line: &Line, run: &Run| line.amount.bytes as f64 / seconds(run) / 1e9 / bandwidth.max(1e-9);
    let body = lines.iter().flat_map(|line| {
        line.runs.iter().enumerate().map(move |(mode, run)| {
            // What belongs to the query is said once.
            let once = |text: String| if mode == 0 { text } else { String::new() };
            vec![
                once(line.name.to_owned()),
                once(grid::thousands(line.rows)),
                format!("{:.2}", seconds(run) * 1e3),
                run.places.join(" or "),
                grid::thousands(speed(line, run) as usize),
                format!("{:.0} %", share(line, run) * 100.0),
                if run.equal { "equal" } else { "DIFFERS" }.to_owned(),
            ]
        })
    });
    let header = ["query", "result rows", "time (ms)", "ran on", "million rows/s", "of bandwidth", "result"];
    say(&grid::draw(&header, &[false, true, true, false, true, true, false], body))?;
    let mean = |mode: usize, figure: &dyn Fn(&Line, &Run) -> f64| {
        let logarithms = lines.iter().map(|line| figure(line, &line.runs[mode]).max(1e-9).ln());
        (logarithms.sum::<f64>() / lines.len() as f64).exp()
    };
    for (at, mode) in modes.iter().enumerate() {
        let (rows, of) = (mean(at, &speed), mean(at, &share) * 100.0);
        say(&format!("geometric mean in mode {mode}: {rows:.0} million rows/s, {of:.0} % of bandwidth\n"))?;
    }
    say(&format!(
        "rows: of all tables that a query names; bandwidth: the bytes of the columns that it names, as they are held, over its\n\
         time, of the {bandwidth:.1} GB/s at which this machine reads memory; caches and skipped blocks can bring it beyond 100 %\n"
    ))?;
    say(&fell_back(lines))?;
    let different: Vec<&str> =
        lines.iter().filter(|line| line.runs.iter().any(|run| !run.equal)).map(|line| line.name).collect();
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
         tandem bench ssb --vs duckdb         measure against other engines\n  \
         tandem devices                       what --mode gpu can run on, and how fast it is\n")
}

/// Lists each reason for which something fell back, with the queries it was one for.
fn fell_back(lines: &[Line]) -> String {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines {
        let mut of_query = Vec::new();
        line.runs.iter().for_each(|run| add_missing(&mut of_query, run.reasons.iter().cloned()));
        for reason in of_query {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                None => reasons.push((reason, vec![line.name])),
                Some((_, names)) => names.push(line.name),
            }
        }
    }
    let describe = |(reason, names): &(String, Vec<&str>)| {
        let names = if names.len() == lines.len() { "all queries".to_owned() } else { names.join(", ") };
        format!("fell back: {reason} ({names})\n")
    };
    reasons.iter().map(describe).collect()
}

fn say(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|e| Failure::write("to standard output", &e))
}
