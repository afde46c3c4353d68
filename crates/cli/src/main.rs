//! The binary `tandem`: a shell, a script runner, data generators, benchmarks and a demonstration.
//!
//! Nothing is computed here: statements go to [`tandem_engine::Session`], and what comes back is formatted and timed.
//! `arguments` says what can be asked for, `statement` runs one statement, `shell` and `script` feed statements to it,
//! `format` turns batches into bytes, `output` says where these go. Every failure is one sentence and an exit code
//! (`failure`).

mod arguments;
mod bench;
mod command;
mod demo;
mod devices;
mod failure;
mod format;
mod generate;
mod interrupt;
mod output;
mod progress;
mod script;
mod shell;
mod statement;
mod terminal;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use failure::Failure;
use statement::Runner;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let code = match arguments::parse().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    };
    tandem_runtime::save_programs();
    code
}

/// Does what the command line asks for.
fn run(mut arguments: Arguments) -> Result<(), Failure> {
    match arguments.command.take() {
        Some(Command::Gen(generate)) => generate::run(&generate),
        Some(Command::Bench(bench)) => bench::run(*bench),
        Some(Command::Demo(demo)) => demo::run(&demo),
        Some(Command::Devices(devices)) => devices::run(&devices),
        Some(Command::Serve(options)) => {
            tandem_node::serve(*options).map_err(|error| Failure::Statement(error.to_string()))
        }
        None => statements(&arguments),
    }
}

/// Runs the statements of `-c` and `-f`, else of the terminal or standard input.
fn statements(arguments: &Arguments) -> Result<(), Failure> {
    let mut runner = Runner::new(arguments)?;
    let outcome = if !arguments.statements.is_empty() || !arguments.files.is_empty() {
        script::run_arguments(&mut runner, arguments)
    } else if terminal::is_interactive() {
        shell::run(&mut runner)
    } else {
        script::run_standard_input(&mut runner)
    };
    let finished = runner.finish(outcome.is_ok());
    outcome.and(finished)
}
