//! The command line: every flag with its help, and usage errors as one sentence.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, error::ErrorKind};
use tandem_engine::{Mode, OnFallback, SessionBuilder};

use crate::{
    bench::BenchArguments, demo::DemoArguments, devices::DevicesArguments, failure::Failure, format::OutputFormat,
    generate::GenerateArguments,
};

/// SQL on files and resident tables, on all cores of this machine.
///
/// Without a sub-command: a shell on a terminal, else the statements of standard input.
#[derive(Debug, Parser)]
#[command(name = "tandem", version, args_conflicts_with_subcommands = true, max_term_width = 110)]
#[command(after_help = "Examples:\n  tandem -c \"SELECT count(*) FROM 'orders.parquet'\"\n  \
    tandem --data DIR                 every Parquet, CSV and Arrow file in DIR is a table\n  \
    tandem --data DIR -f report.sql --format csv -o report.csv\n  \
    tandem demo                       Star Schema Benchmark, checked and timed")]
pub struct Arguments {
    /// What to do instead of running statements.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Run these statements and exit; may be repeated, also with -f, and runs in the order given.
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    statements: Vec<String>,
    /// Run the statements of a file and exit; may be repeated, also with -c.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What both ask for, in the order given.
    #[arg(skip)]
    pub scripts: Vec<Script>,
    /// Register every Parquet, CSV and Arrow file of a directory as a table; may be repeated.
    #[arg(long, value_name = "DIR")]
    pub data: Vec<PathBuf>,
    /// How results are written.
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, value_name = "FORMAT")]
    pub format: OutputFormat,
    /// Write results to a file; it appears whole when all statements have succeeded, or not at all.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show at most N rows of a table, the rest elided; 0 shows all [default: 40 on a terminal, else all].
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
    /// Print the time of each statement to standard error.
    #[arg(long)]
    pub timer: bool,
    /// Where and with how much the engine runs.
    #[command(flatten)]
    pub engine: EngineArguments,
}

/// Statements that the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// Of `-c`.
    Text(String),
    /// Of `-f`.
    File(PathBuf),
}

/// Where the engine runs statements, and with how much.
#[derive(Clone, Debug, Args)]
pub struct EngineArguments {
    /// What runs the statements: cpu uses Tandem's pipelines on all cores, gpu kernels on the devices that `tandem devices`
    /// lists, host DataFusion alone; auto is the CPU until placement by cost exists.
    #[arg(long, value_enum, default_value_t = ModeName::Auto, value_name = "MODE")]
    pub mode: ModeName,
    /// What to do when a part of a statement runs on DataFusion, or not on the device asked for: say so, fail, or say
    /// nothing.
    #[arg(long, value_enum, default_value_t = FallbackName::Warn, value_name = "ACTION")]
    pub on_fallback: FallbackName,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory for queries and cached columns, as 512MB or 4GB [default: four fifths of the machine's].
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_limit: Option<usize>,
}

impl EngineArguments {
    /// Makes the settings of a session.
    pub fn session(&self) -> SessionBuilder {
        let mut session = SessionBuilder::default().mode(self.mode.into()).on_fallback(self.on_fallback.into());
        if let Some(limit) = self.memory_limit {
            session = session.memory_limit(limit);
        }
        if let Some(threads) = self.threads {
            session = session.threads(threads.into());
        }
        session
    }
}

/// What `tandem` can do besides running statements.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Generate benchmark data as Parquet files.
    Gen(GenerateArguments),
    /// Measure Tandem against other engines on the same data.
    Bench(Box<BenchArguments>),
    /// Generate the Star Schema Benchmark, run its 13 queries on the CPU and on a device, check and time them.
    Demo(DemoArguments),
    /// List the devices of this machine: properties, measured bandwidths, and why anything is not usable.
    Devices(DevicesArguments),
    /// Hold columns and run pipelines for all clients of this machine, over a socket.
    Serve(Box<tandem_node::NodeOptions>),
}

/// What `--mode` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeName {
    /// The CPU, until placement by cost exists.
    Auto,
    /// Tandem's pipelines on all cores.
    Cpu,
    /// A device, with a generated kernel for each pipeline it can compute; the rest on all cores.
    Gpu,
    /// DataFusion alone.
    Host,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Auto => Mode::Auto,
            ModeName::Cpu => Mode::Cpu,
            ModeName::Gpu => Mode::Gpu,
            ModeName::Host => Mode::Host,
        }
    }
}

/// What `--on-fallback` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FallbackName {
    /// Say why on standard error.
    Warn,
    /// Fail the statement.
    Error,
    /// Say nothing.
    Silent,
}

impl From<FallbackName> for OnFallback {
    fn from(name: FallbackName) -> Self {
        match name {
            FallbackName::Warn => OnFallback::Warn,
            FallbackName::Error => OnFallback::Error,
            FallbackName::Silent => OnFallback::Silent,
        }
    }
}

/// Parses the command line; prints help or the version and exits where asked.
pub fn parse() -> Result<Arguments, Failure> {
    parse_from(std::env::args_os()).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.exit()
        }
        _ => Failure::Usage(usage_sentence(&error.render().to_string())),
    })
}

/// Parses these arguments, the name of the program first.
fn parse_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    let matches = command.try_get_matches_from_mut(arguments)?;
    let mut parsed = Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    let places = |name| matches.indices_of(name).into_iter().flatten();
    let texts = std::mem::take(&mut parsed.statements).into_iter().map(Script::Text);
    let files = std::mem::take(&mut parsed.files).into_iter().map(Script::File);
    let mut scripts: Vec<_> = places("statements").zip(texts).chain(places("files").zip(files)).collect();
    scripts.sort_by_key(|(place, _)| *place);
    parsed.scripts = scripts.into_iter().map(|(_, script)| script).collect();
    Ok(parsed)
}

/// Makes one sentence with a remedy out of clap's paragraphs: the first line, the tip, and where the help is.
fn usage_sentence(rendered: &str) -> String {
    let mut blocks = rendered.trim().split("\n\n");
    let head = blocks.next().unwrap_or_default().lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let mut sentence = head.strip_prefix("error: ").unwrap_or(&head).to_owned();
    for block in blocks.filter_map(|b| b.trim().strip_prefix("tip: ")) {
        sentence.push_str("; ");
        sentence.push_str(block.lines().next().unwrap_or_default());
    }
    sentence.push_str("; `tandem --help` lists what is accepted");
    sentence
}

/// Parses a number of bytes with an optional unit: 1000000, 512MB, 4GB, 4GiB.
fn parse_bytes(text: &str) -> Result<usize, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err("write it as 512MB or 4GB".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(value) if value * scale >= 1.0 && value * scale < 1e18 => Ok((value * scale) as usize),
        _ => Err("write it as 512MB or 4GB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("4GB"), Ok(4_000_000_000));
        assert_eq!(parse_bytes("1.5 KiB"), Ok(1536));
        assert_eq!(parse_bytes("17"), Ok(17));
        for bad in ["", "GB", "4XB", "-1", "0", "1e400GB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn scripts_keep_their_order() {
        let given = ["tandem", "-f", "a.sql", "-c", "SELECT 1", "-f", "b.sql", "-c", "SELECT 2"].map(OsString::from);
        let scripts = parse_from(given).expect("it is right").scripts;
        let text = |text: &str| Script::Text(text.to_owned());
        let file = |name: &str| Script::File(PathBuf::from(name));
        assert_eq!(scripts, [file("a.sql"), text("SELECT 1"), file("b.sql"), text("SELECT 2")]);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn usage_errors_are_one_sentence() {
        let error = Arguments::try_parse_from(["tandem", "--formt", "csv"]).expect_err("no such flag");
        let sentence = usage_sentence(&error.render().to_string());
        assert!(!sentence.contains('\n'), "{sentence}");
        assert!(sentence.contains("--formt") && sentence.contains("--format"), "{sentence}");
        let error = Arguments::try_parse_from(["tandem", "--mode", "tpu"]).expect_err("no such mode");
        let sentence = usage_sentence(&error.render().to_string());
        assert!(sentence.contains("tpu") && sentence.contains("auto, cpu, gpu, host"), "{sentence}");
    }
}
