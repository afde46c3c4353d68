//! Statements from the command line, files and standard input.
//!
//! Text is taken line by line: a line that begins with a dot between statements is a command of the shell, everything
//! else is collected until a semicolon ends it. `-c` and `-f` stop at the first failure; standard input goes on, as a
//! shell does, and the exit code remembers.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use tandem_engine::Session;

use crate::{
    arguments::Script,
    command::{self, Flow},
    failure::{Failure, sentence},
    statement::Runner,
};

/// Runs the statements of `-c` and `-f`, in the order given.
pub fn run_arguments(runner: &mut Runner, scripts: &[Script]) -> Result<(), Failure> {
    for script in scripts {
        let flow = match script {
            Script::Text(text) => run_lines(runner, text.as_bytes(), "the command line", false)?,
            Script::File(file) => run_file(runner, file)?,
        };
        if flow == Flow::Quit {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs the statements of standard input.
pub fn run_standard_input(runner: &mut Runner) -> Result<(), Failure> {
    run_lines(runner, io::stdin().lock(), "standard input", true).map(drop)
}

/// Runs the statements of a file.
pub fn run_file(runner: &mut Runner, path: &Path) -> Result<Flow, Failure> {
    let refused = |e: &io::Error| {
        Failure::Statement(format!("could not read the file {}: {}; check its name", path.display(), sentence(e)))
    };
    if path.is_dir() {
        return Err(refused(&io::Error::from(io::ErrorKind::IsADirectory)));
    }
    let file = File::open(path).map_err(|e| refused(&e))?;
    run_lines(runner, BufReader::new(file), &format!("the file {}", path.display()), false)
}

/// Runs all statements of `reader`; with `keep_going`, past failures.
fn run_lines(runner: &mut Runner, mut reader: impl BufRead, name: &str, keep_going: bool) -> Result<Flow, Failure> {
    let (mut pending, mut line, mut failed) = (String::new(), String::new(), false);
    loop {
        line.clear();
        let read = reader.read_line(&mut line).map_err(|e| {
            Failure::Statement(format!("could not read {name}: {}; statements are UTF-8 text", sentence(&e)))
        })?;
        let outcome = if read == 0 {
            run_text(runner, &pending)
        } else if pending.trim().is_empty() && line.trim_start().starts_with('.') {
            pending.clear();
            command::run(runner, line.trim())
        } else {
            pending.push_str(&line);
            if !line.contains(';') || !Session::is_complete(&pending) {
                continue;
            }
            let outcome = run_text(runner, &pending);
            pending.clear();
            outcome
        };
        match outcome {
            Ok(Flow::Quit) => break,
            Ok(Flow::Continue) => {}
            Err(failure @ (Failure::Statement(_) | Failure::Reported | Failure::Interrupted)) if keep_going => {
                failure.print();
                failed = true;
            }
            Err(failure) => return Err(failure),
        }
        if read == 0 {
            return if failed { Err(Failure::Reported) } else { Ok(Flow::Continue) };
        }
    }
    if failed { Err(Failure::Reported) } else { Ok(Flow::Quit) }
}

/// Runs the statements of a text.
pub fn run_text(runner: &mut Runner, text: &str) -> Result<Flow, Failure> {
    if !text.trim().is_empty() {
        for statement in runner.session.split(text)? {
            runner.run(&statement)?;
        }
    }
    Ok(Flow::Continue)
}
