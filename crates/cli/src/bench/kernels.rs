//! `tandem bench kernels`: what each program of a suite takes from kernel text until it runs, compiled and from our cache on disk.
//!
//! Every measured process is a new one (ourselves, with `--child`): the first of a pair finds nothing compiled, the second what
//! the first has left. A driver's own cache is off in both, where we know how.

use std::{fs, io::Write, path::PathBuf, process::Command, sync::Arc, time::Duration};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tandem_engine::{Devices, Mode, Session};
use tandem_generator::GeneratorOptions;

use super::{data, machine, own::Own, suite::Suite, table};
use crate::failure::Failure;

/// What `tandem bench kernels` is told.
#[derive(Clone, Debug, Args)]
pub struct KernelArguments {
    /// Whose queries.
    #[arg(long, value_enum, default_value_t = Suite::Ssb)]
    pub suite: Suite,
    /// Scale factor of the data, from 0.01; of h2o and windows, 1 is ten million rows. Kernels depend on what columns
    /// hold, and little on how much.
    #[arg(long, default_value_t = 0.1, value_name = "N")]
    pub sf: f64,
    /// Pairs of processes; the best time of a program counts.
    #[arg(long, default_value_t = 3, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Queries to run, as `1.1,2.1`, or whole flights, as `3` [default: all].
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub queries: Vec<String>,
    /// Write everything measured to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Directory of the Parquet files; generated where they are missing [default: data/SUITE-sfN].
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Measure in this process, and print what came out as JSON.
    #[arg(long, hide = true)]
    pub child: bool,
}

/// What one program took in one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Took {
    query: String,
    kernel: String,
    compiled: bool,
    build_ms: f64,
    launch_ms: f64,
}

impl Took {
    fn all_ms(&self) -> f64 {
        self.build_ms + self.launch_ms
    }
}

/// Measures, and prints what came out.
///
/// # Errors
/// Bad arguments, no data, no device, or a query that fails.
pub fn run(arguments: KernelArguments, devices: &Arc<Devices>) -> Result<(), Failure> {
    let programs = match arguments.child {
        true => return child(&arguments, devices),
        false => Programs::measure(&arguments, devices)?,
    };
    let mut stdout = std::io::stdout();
    let text = programs.render(&arguments);
    stdout.write_all(text.as_bytes()).map_err(|e| Failure::write("to standard output", &e))?;
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", programs.json(&arguments));
        fs::write(path, text).map_err(|e| Failure::write(&path.display().to_string(), &e))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// Runs each query once and prints what its programs took.
fn child(arguments: &KernelArguments, devices: &Arc<Devices>) -> Result<(), Failure> {
    let suite = arguments.suite;
    let queries = suite.choose(&arguments.queries).map_err(|name| super::unknown_query(suite, &name))?;
    let options = suite.options(arguments.sf);
    let dir = arguments.data.clone().unwrap_or_else(|| suite.default_data(suite.size(&options)));
    let tables = data::prepare(suite, &options, &dir, &queries)?;
    let session = Session::builder().mode(Mode::Gpu).threads(options.threads).devices(devices.clone());
    let own = Own::files("tandem", session, &tables, false).map_err(Failure::Statement)?;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mut programs: Vec<Took> = Vec::new();
    for query in &queries {
        let (_, _, report) = own.execute(query).map_err(Failure::Statement)?;
        let metrics = report.metrics();
        let devices = metrics.iter().flat_map(|query| &query.pipelines).filter_map(|pipeline| pipeline.device.as_ref());
        programs.extend(devices.flat_map(|device| &device.programs).map(|program| Took {
            query: query.name.to_owned(),
            kernel: program.kernel.clone(),
            compiled: program.compiled,
            build_ms: milliseconds(program.build),
            launch_ms: milliseconds(program.launch),
        }));
    }
    println!("{}", json!(programs));
    Ok(())
}

/// The best that was measured of each program.
struct Programs {
    devices: Vec<String>,
    compiled: Vec<Took>,
    stored: Vec<Took>,
}

impl Programs {
    fn measure(arguments: &KernelArguments, devices: &Devices) -> Result<Programs, Failure> {
        let suite = arguments.suite;
        let queries = suite.choose(&arguments.queries).map_err(|name| super::unknown_query(suite, &name))?;
        let options = suite.options(arguments.sf);
        tandem_generator::check(&options).map_err(|error| Failure::Usage(error.to_string()))?;
        let devices = devices.chosen().map_err(|error| Failure::Statement(error.message))?;
        let dir = arguments.data.clone().unwrap_or_else(|| suite.default_data(suite.size(&options)));
        data::prepare(suite, &options, &dir, &queries)?;
        let devices = devices.iter().map(|device| device.name()).collect();
        let mut best = Programs { devices, compiled: Vec::new(), stored: Vec::new() };
        for pair in 1..=arguments.repeat {
            eprintln!("compiling the programs of {} queries, {pair} of {}", queries.len(), arguments.repeat);
            let failed = |error| Failure::Statement(format!("no directory for programs could be made: {error}"));
            let cache = tempfile::tempdir().map_err(failed)?;
            for (kept, compiled) in [(&mut best.compiled, true), (&mut best.stored, false)] {
                let took = spawn(arguments, cache.path())?;
                if let Some(other) = took.iter().find(|took| took.compiled != compiled) {
                    let how = if compiled { "found on disk" } else { "compiled again" };
                    let (query, kernel) = (&other.query, &other.kernel);
                    return Err(Failure::Statement(format!("a program of {query} was {how}: {kernel}")));
                }
                keep_best(kept, took)?;
            }
        }
        Ok(best)
    }

    fn render(&self, arguments: &KernelArguments) -> String {
        let head = ["query", "text to program", "first launch", "together", "from disk", "kernel"].map(String::from);
        let time = |time: f64| format!("{time:.1} ms");
        let row = |(compiled, stored): (&Took, &Took)| {
            let times = [compiled.build_ms, compiled.launch_ms, compiled.all_ms(), stored.all_ms()].map(time);
            let mut row = vec![compiled.query.clone()];
            row.extend(times);
            row.push(compiled.kernel.clone());
            row
        };
        let rows: Vec<Vec<String>> = self.compiled.iter().zip(&self.stored).map(row).collect();
        let most = |of: &dyn Fn(&Took) -> f64, from: &[Took]| time(from.iter().skip(1).map(of).fold(0.0, f64::max));
        let foot = vec![
            "most but the first".to_owned(),
            most(&|took| took.build_ms, &self.compiled),
            most(&|took| took.launch_ms, &self.compiled),
            most(&Took::all_ms, &self.compiled),
            most(&Took::all_ms, &self.stored),
            String::new(),
        ];
        format!(
            "{} {} on {}, best of {}; the first program of a process starts the driver, too\n\n{}",
            arguments.suite.name(),
            arguments.suite.size(&arguments.suite.options(arguments.sf)),
            self.devices.join(" and "),
            arguments.repeat,
            table::align(&head, &rows, &[foot])
        )
    }

    fn json(&self, arguments: &KernelArguments) -> serde_json::Value {
        json!({
            "suite": arguments.suite.name(),
            "sf": arguments.sf,
            "repeat": arguments.repeat,
            "date": machine::today(),
            "machine": machine::Machine::probe(GeneratorOptions::default().threads),
            "devices": self.devices,
            "compiled": self.compiled,
            "stored": self.stored,
        })
    }
}

/// Measures in a process of its own.
fn spawn(arguments: &KernelArguments, cache: &std::path::Path) -> Result<Vec<Took>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Statement(format!("no process could measure: {error}"));
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut child = Command::new(program);
    child.args(["bench", "kernels", "--child", "--suite", arguments.suite.name(), "--sf", &arguments.sf.to_string()]);
    if !arguments.queries.is_empty() {
        child.args(["--queries", &arguments.queries.join(",")]);
    }
    if let Some(data) = &arguments.data {
        child.arg("--data").arg(data);
    }
    child.env("TANDEM_KERNEL_CACHE", cache).env("POCL_KERNEL_CACHE", "0").env("CUDA_CACHE_DISABLE", "1");
    let output = child.stderr(std::process::Stdio::inherit()).output().map_err(|error| failed(&error))?;
    match output.status.success() {
        // It has said why.
        false => Err(Failure::Reported),
        true => serde_json::from_slice(&output.stdout).map_err(|error| failed(&error)),
    }
}

/// Keeps the better time of each program.
fn keep_best(best: &mut Vec<Took>, took: Vec<Took>) -> Result<(), Failure> {
    if best.is_empty() {
        *best = took;
        return Ok(());
    }
    let same = |(one, other): (&Took, &Took)| (&one.query, &one.kernel) == (&other.query, &other.kernel);
    if best.len() != took.len() || !best.iter().zip(&took).all(same) {
        return Err(Failure::Statement("two processes ran different programs; measure fewer queries".into()));
    }
    for (best, took) in best.iter_mut().zip(took) {
        if took.all_ms() < best.all_ms() {
            *best = took;
        }
    }
    Ok(())
}
