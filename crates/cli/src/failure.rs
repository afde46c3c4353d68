//! How a run fails: one sentence on standard error and an exit code.

use std::{io, io::Write, process::ExitCode};

use crate::terminal;

/// Why the program, or one statement of it, stops.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// A statement or a file failed: exit code 1.
    Statement(String),
    /// Statements failed and each has already been reported: exit code 1.
    Reported,
    /// The user pressed Ctrl-C: exit code 130.
    Interrupted,
    /// SIGTERM or SIGHUP told the process to end: exit code 128 and the signal's number.
    Ended(i32),
    /// Nobody reads our output any more (`| head`): not an error.
    BrokenPipe,
}

impl Failure {
    /// Makes a failure of a write to `what`, with a remedy.
    pub fn write(what: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            io::ErrorKind::StorageFull => {
                Failure::Statement(format!("no space is left to write {what}; free some or write it elsewhere"))
            }
            _ => Failure::Statement(format!("could not write {what}: {}", sentence(error))),
        }
    }

    /// Prints the sentence to standard error, unless there is none.
    pub fn print(&self) {
        let message = match self {
            Failure::Usage(message) | Failure::Statement(message) => message.trim_end_matches('.'),
            Failure::Interrupted => "the statement was cancelled",
            Failure::Ended(_) => "the statement was cancelled because the process was told to end",
            Failure::Reported | Failure::BrokenPipe => return,
        };
        let (red, plain) = if terminal::stderr_color() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        // A closed standard error leaves nobody to tell.
        let _ = writeln!(io::stderr(), "{red}error:{plain} {message}");
    }

    /// Returns the process's exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Statement(_) | Failure::Reported => ExitCode::from(1),
            Failure::Interrupted => ExitCode::from(130),
            Failure::Ended(signal) => ExitCode::from(128 | u8::try_from(*signal).unwrap_or(0)),
            Failure::BrokenPipe => ExitCode::SUCCESS,
        }
    }
}

/// Says what an operating-system error is, without its number.
pub fn sentence(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => "unknown reason".to_owned(),
    }
}

impl From<tandem_engine::Error> for Failure {
    fn from(error: tandem_engine::Error) -> Self {
        Failure::Statement(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_have_no_numbers() {
        assert_eq!(sentence(&io::Error::from_raw_os_error(2)), "no such file or directory");
    }
}
