//! `tandem bench`: every engine on the same data, in one run, interleaved and repeated.
//!
//! `suite` has the queries, `data` the files, `peer` the other engines (Python workers in an environment that `venv` makes), `own`
//! ourselves and the hand-fused loops, `contest` brings them together, `measure` runs them in turn, `compare` checks that all agree, and
//! `record`, `table` and `html` say what came out; `clients` runs several statements at once, `growth` compares sizes. `spark` and
//! `kernels` measure other things.

mod clients;
mod compare;
mod contender;
mod contest;
mod data;
mod growth;
mod html;
mod kernels;
mod machine;
pub mod measure;
mod own;
mod peer;
mod record;
mod spark;
pub mod suite;
mod table;
mod venv;

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::{
    Args, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use tandem_engine::{Devices, Mode};
use tandem_generator::GeneratorOptions;

use crate::{failure::Failure, generate::parse_rows};
use machine::Machine;
use peer::PeerKind;
use record::Record;
use suite::Suite;
use venv::Venv;

/// What `tandem bench` is told.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct BenchArguments {
    /// What to measure instead of engines on this machine.
    #[command(subcommand)]
    pub under: Option<Under>,
    /// Which benchmark.
    #[arg(value_enum, required = true)]
    pub suite: Option<Suite>,
    /// Scale factor of the data of ssb and tpch, from 0.01 [default: 1]; several, as `1,10`, show how time grows.
    #[arg(long, value_delimiter = ',', value_name = "N", conflicts_with = "rows")]
    pub sf: Vec<f64>,
    /// Rows of the data of h2o and windows [default: 1e7]; several, as `1e7,1e8`, show how time grows.
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = parse_rows)]
    pub rows: Vec<u64>,
    /// Engines to compare with, from duckdb, hyper, polars, datafusion, clickhouse; `none` for none.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "duckdb,hyper,polars,datafusion,clickhouse",
        value_name = "ENGINES"
    )]
    pub vs: Vec<String>,
    /// Where Tandem runs: auto, cpu, or gpu for the devices found, beside which it runs on the CPU too.
    #[arg(long, default_value_t = Mode::Auto, value_name = "MODE", value_parser = modes())]
    pub mode: Mode,
    /// Where the data is when a query starts.
    #[arg(long, value_enum, default_value_t = Storage::Memory)]
    pub from: Storage,
    /// Measured runs of each query and engine, after the first; the best counts.
    #[arg(long, default_value_t = 5, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Threads that each engine may use [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Measure this many clients at once, too: statements a second against one at a time, and the slowest against its share.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub clients: Option<u16>,
    /// Queries to run, as `1.1,2.1`, or whole flights, as `3` or `join` [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queries: Vec<String>,
    /// Write everything measured to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with a chart to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Directory of the Parquet files of one size; generated where they are missing [default: data/SUITE-sfN or
    /// data/h2o-N].
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

/// What is measured instead.
#[derive(Clone, Debug, Subcommand)]
pub enum Under {
    /// Plain Spark against Spark with Tandem: cold and warm, and what trivial queries pay.
    Spark(spark::SparkArguments),
    /// What kernels of a device take from their text until they run: compiled, and from our cache on disk.
    Kernels(kernels::KernelArguments),
}

/// Returns what `--mode` may be here: DataFusion alone is a peer.
fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(["auto", "cpu", "gpu"]).try_map(|mode| mode.parse::<Mode>())
}

/// Where the data is when a query starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Storage {
    /// Held in memory by each engine, in its own best way.
    Memory,
    /// In Parquet files, which each engine reads.
    Parquet,
}

/// Runs the benchmark and prints what came out.
///
/// # Errors
/// Bad arguments, no data, or a result of ours that no peer confirms.
pub fn run(arguments: BenchArguments, devices: &Arc<Devices>) -> Result<(), Failure> {
    match arguments.under {
        Some(Under::Spark(arguments)) => return spark::run(arguments),
        Some(Under::Kernels(arguments)) => return kernels::run(arguments, devices),
        None => {}
    }
    let Some(suite) = arguments.suite else {
        return Err(Failure::Usage("name a benchmark, such as ssb".into()));
    };
    let queries = suite.choose(&arguments.queries).map_err(|name| unknown_query(suite, &name))?;
    let sizes = sizes(suite, &arguments)?;
    let peers = peers(&arguments.vs)?;
    let venv = if peers.is_empty() { Err(String::new()) } else { Venv::prepare(&arguments.venv) };
    let mut records = Vec::new();
    for options in &sizes {
        records.push(run_size(suite, queries.clone(), &arguments, options, devices, &peers, venv.as_ref())?);
    }
    report(&arguments, &records)
}

/// Runs the benchmark on data of one size.
fn run_size(
    suite: Suite,
    queries: Vec<suite::BenchQuery>,
    arguments: &BenchArguments,
    options: &GeneratorOptions,
    available: &Arc<Devices>,
    peers: &[PeerKind],
    venv: Result<&Venv, &String>,
) -> Result<Record, Failure> {
    let devices = match arguments.mode {
        Mode::Gpu => available.chosen().map_err(|error| Failure::Statement(error.message))?,
        _ => Vec::new(),
    };
    let dir = arguments.data.clone().unwrap_or_else(|| suite.default_data(suite.size(options)));
    let tables = data::prepare(suite, options, &dir, &queries)?;
    let isolated = arguments.isolated || short_of_memory(arguments, &tables, peers.len());
    let contest = contest::Contest {
        suite,
        from: arguments.from,
        mode: arguments.mode,
        threads: options.threads,
        devices: available.clone(),
        clients: arguments.clients.map(usize::from),
        timeout: Duration::from_secs(arguments.timeout),
        scratch: dir.parent().map_or_else(|| PathBuf::from("."), PathBuf::from),
        tables,
    };
    let mut record = Record {
        suite: suite.name(),
        size: suite.size(options),
        from: arguments.from,
        mode: arguments.mode,
        devices: devices.iter().map(|device| device.name()).collect(),
        threads: options.threads,
        repeat: arguments.repeat,
        isolated,
        date: machine::today(),
        machine: Machine::probe(options.threads),
        contenders: Vec::new(),
        skipped: Vec::new(),
        outcomes: vec![Vec::new(); queries.len()],
        queries,
        clients: None,
    };
    contest.run(&mut record, peers, venv)?;
    measure::verify(&mut record.outcomes);
    Ok(record)
}

/// Returns what to generate for each size that is asked for, the smallest first.
fn sizes(suite: Suite, arguments: &BenchArguments) -> Result<Vec<GeneratorOptions>, Failure> {
    let wrong =
        |right: &str, wrong: &str| Err(Failure::Usage(format!("{} takes {right} instead of {wrong}", suite.name())));
    let mut usual = GeneratorOptions::default();
    usual.threads = arguments.threads.map_or(usual.threads, usize::from);
    let mut sizes: Vec<GeneratorOptions> = match suite.is_by_rows() {
        true if !arguments.sf.is_empty() => return wrong("--rows", "--sf"),
        false if !arguments.rows.is_empty() => return wrong("--sf", "--rows"),
        true => arguments.rows.iter().map(|&rows| GeneratorOptions { rows, ..usual }).collect(),
        false => arguments.sf.iter().map(|&sf| GeneratorOptions { sf, ..usual }).collect(),
    };
    if sizes.is_empty() {
        sizes.push(usual);
    }
    for options in &sizes {
        tandem_generator::check(options).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    if sizes.len() > 1 && (arguments.html.is_some() || arguments.data.is_some()) {
        return Err(Failure::Usage("--html and --data are for one size; leave them out, or give one size".into()));
    }
    sizes.sort_by(|a, b| suite.size(a).amount().total_cmp(&suite.size(b).amount()));
    Ok(sizes)
}

fn unknown_query(suite: Suite, name: &str) -> Failure {
    Failure::Usage(format!("there is no query {name} in {}; leave out --queries for all", suite.name()))
}

/// Prints a table for each size and writes the files.
fn report(arguments: &BenchArguments, records: &[Record]) -> Result<(), Failure> {
    let tables: Vec<String> = records.iter().map(table::render).collect();
    let text = tables.join("\n") + &growth::render(records);
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes()).map_err(|e| Failure::write("to standard output", &e))?;
    let json = || match records {
        [record] => format!("{:#}\n", record.json()),
        several => format!("{:#}\n", growth::json(several)),
    };
    let html = || records.iter().map(html::render).collect::<String>();
    let files: [(&Option<PathBuf>, &dyn Fn() -> String); 2] = [(&arguments.json, &json), (&arguments.html, &html)];
    for (path, content) in files {
        if let Some(path) = path {
            std::fs::write(path, content()).map_err(|e| Failure::write(&path.display().to_string(), &e))?;
            eprintln!("wrote {}", path.display());
        }
    }
    match records.iter().flat_map(Record::wrong).collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        wrong => Err(Failure::Statement(format!("tandem failed or is alone with its result in {}", wrong.join(", ")))),
    }
}

/// Chooses the peers by name.
fn peers(names: &[String]) -> Result<Vec<PeerKind>, Failure> {
    let mut peers = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty() && *name != "none") {
        let known = PeerKind::ALL.into_iter().find(|kind| kind.name() == name);
        let all = PeerKind::ALL.map(PeerKind::name).join(", ");
        peers.push(known.ok_or_else(|| Failure::Usage(format!("there is no engine {name}; choose from {all}")))?);
    }
    peers.dedup();
    Ok(peers)
}

/// Tells whether all engines at once would not fit in memory, and says so.
fn short_of_memory(arguments: &BenchArguments, tables: &[data::TableData], peers: usize) -> bool {
    let bytes: usize = tables.iter().map(|table| table.bytes).sum();
    // Each peer holds about the plain size and works in half as much again; we and the loops hold less than it together.
    let needed = bytes as f64 * (1.5 * peers as f64 + 1.5);
    let available = machine::available_memory().map_or(f64::INFINITY, |bytes| bytes as f64);
    let short = arguments.from == Storage::Memory && needed > 0.9 * available;
    if short {
        eprintln!(
            "running one engine after the other: all at once would need about {:.0} GB of memory, and {:.0} GB are available",
            needed / 1e9,
            available / 1e9
        );
    }
    short
}
