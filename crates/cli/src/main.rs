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
use std::sync::Arc;

use arguments::{Arguments, Command};
use failure::Failure;
use statement::Runner;
use tandem_runtime::Devices;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let devices = Arc::new(Devices::from_environment());
    let code = match arguments::parse().and_then(|arguments| run(arguments, &devices)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    };
    devices.save_programs();
    code
}

/// Does what the command line asks for.
fn run(mut arguments: Arguments, devices: &Arc<Devices>) -> Result<(), Failure> {
    match arguments.command.take() {
        Some(Command::Gen(generate)) => generate::run(&generate),
        Some(Command::Bench(bench)) => bench::run(*bench, devices),
        Some(Command::Demo(demo)) => demo::run(&demo, devices),
        Some(Command::Devices(arguments)) => devices::run(&arguments, devices),
        Some(Command::Serve(options)) => {
            tandem_node::serve(*options, devices.clone()).map_err(|error| Failure::Statement(error.to_string()))
        }
        None => statements(&arguments, devices),
    }
}

/// Runs the statements of `-c` and `-f`, else of the terminal or standard input.
fn statements(arguments: &Arguments, devices: &Arc<Devices>) -> Result<(), Failure> {
    let mut runner = Runner::new(arguments, devices)?;
    let outcome = if !arguments.scripts.is_empty() {
        script::run_arguments(&mut runner, &arguments.scripts)
    } else if terminal::is_interactive() {
        shell::run(&mut runner)
    } else {
        script::run_standard_input(&mut runner)
    };
    let finished = runner.finish(outcome.is_ok());
    outcome.and(finished)
}
