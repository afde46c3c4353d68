//! The shell's own commands, which begin with a dot.

use std::{path::Path, sync::Arc};

use arrow::{
    array::{ArrayRef, BooleanArray, StringArray, UInt64Array},
    record_batch::RecordBatch,
};
use clap::ValueEnum;

use crate::{
    arguments::ModeName,
    failure::Failure,
    format::OutputFormat,
    script,
    statement::{Runner, note},
};

/// Whether to read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// There may be more.
    Continue,
    /// The user is done.
    Quit,
}

/// Every command with its arguments and what it does: the shell's help and completion.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    (".help", "", "show this list"),
    (".tables", "", "list the tables with their rows and bytes"),
    (".schema", "[TABLE]", "show columns with type, encoding, width and bytes"),
    (".timer", "on|off", "print the time of each statement"),
    (".mode", "[NAME]", "choose where statements run (auto, cpu, gpu, host) or how results look (table, csv, json, …)"),
    (".rows", "N", "show at most N rows of a table; 0 shows all"),
    (".read", "FILE", "run the statements of a file"),
    (".quit", "", "leave the shell"),
];

/// Runs one command.
pub fn run(runner: &mut Runner, line: &str) -> Result<Flow, Failure> {
    let line = line.trim_end_matches(';').trim();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let argument = argument.trim();
    match name {
        ".help" => runner.print(&help())?,
        ".tables" => tables(runner)?,
        ".schema" => schema(runner, argument)?,
        ".timer" => match argument {
            "on" => runner.timer = true,
            "off" => runner.timer = false,
            _ => return Err(wrong(".timer takes on or off", argument)),
        },
        ".mode" => mode(runner, argument)?,
        ".rows" => match argument.parse() {
            Ok(rows) => runner.rows = Some(rows),
            Err(_) => return Err(wrong(".rows takes a number of rows", argument)),
        },
        ".read" if argument.is_empty() => return Err(wrong(".read takes a file", argument)),
        ".read" => return script::run_file(runner, Path::new(argument)),
        ".quit" | ".exit" => return Ok(Flow::Quit),
        _ => return Err(Failure::Statement(format!("there is no command {name}; .help lists them"))),
    }
    Ok(Flow::Continue)
}

fn wrong(rule: &str, given: &str) -> Failure {
    let given = if given.is_empty() { "nothing" } else { given };
    Failure::Statement(format!("{rule}, not {given}"))
}

fn help() -> String {
    let mut text = String::from("Statements end with a semicolon. Ctrl-C cancels one, Ctrl-D leaves.\n");
    for (name, argument, what) in COMMANDS {
        text.push_str(&format!("  {:<18}{what}\n", format!("{name} {argument}")));
    }
    text
}

fn mode(runner: &mut Runner, argument: &str) -> Result<(), Failure> {
    if argument.is_empty() {
        return runner.print(&format!("runs on: {}\nformat: {}\n", runner.session.config().mode, runner.format.name()));
    }
    if let Ok(mode) = ModeName::from_str(argument, true) {
        runner.session.set_mode(mode.into());
    } else if let Ok(format) = OutputFormat::from_str(argument, true) {
        if format.is_binary() {
            return Err(Failure::Statement(format!(
                "the format {} needs a file; use COPY … TO 'file.{}'",
                format.name(),
                format.name()
            )));
        }
        runner.format = format;
    } else {
        return Err(wrong(".mode takes auto, cpu, gpu, host, table, csv, json, jsonl or markdown", argument));
    }
    Ok(())
}

fn tables(runner: &mut Runner) -> Result<(), Failure> {
    let tables = runner.session.tables();
    if tables.is_empty() {
        note("there are no tables; start with --data DIR, or CREATE TABLE name AS SELECT … FROM 'file.parquet'");
        return Ok(());
    }
    let kinds: Vec<String> = tables.iter().map(|t| t.kind.to_string()).collect();
    let batch = batch(vec![
        ("table", strings(tables.iter().map(|t| t.name.as_str()))),
        ("kind", strings(kinds.iter().map(String::as_str))),
        ("rows", numbers(tables.iter().map(|t| t.rows))),
        ("bytes", numbers(tables.iter().map(|t| t.bytes))),
    ]);
    runner.show(&batch)
}

fn schema(runner: &mut Runner, table: &str) -> Result<(), Failure> {
    if !table.is_empty() {
        return columns(runner, table);
    }
    let tables = runner.session.tables();
    if tables.is_empty() {
        return self::tables(runner);
    }
    for table in tables {
        runner.print(&format!("{}\n", table.name))?;
        columns(runner, &table.name)?;
    }
    Ok(())
}

fn columns(runner: &mut Runner, table: &str) -> Result<(), Failure> {
    let columns = runner.session.describe(table)?;
    let batch = batch(vec![
        ("column", strings(columns.iter().map(|c| c.name.as_str()))),
        ("type", strings(columns.iter().map(|c| c.kind.as_str()))),
        ("nullable", Arc::new(BooleanArray::from_iter(columns.iter().map(|c| Some(c.nullable))))),
        ("encoding", strings(columns.iter().map(|c| c.encoding.as_str()))),
        ("width", numbers(columns.iter().map(|c| c.width))),
        ("bytes", numbers(columns.iter().map(|c| c.bytes))),
    ]);
    runner.show(&batch)
}

fn strings<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn numbers(values: impl Iterator<Item = Option<usize>>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter(values.map(|v| v.map(|v| v as u64))))
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("the columns have one length")
}
