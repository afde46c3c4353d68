//! Fuzz targets: one function for each place where Tandem reads bytes that it did not write.
//!
//! A target takes any bytes and returns, or panics where something is wrong. What is wrong: a panic of our own code, wherever it is
//! caught; an error of class Internal; more memory than [`memory`] allows; a round trip that does not come back. Panics of
//! dependencies that our code catches and answers with a sentence are as they should be ([`panics`]).
//!
//! `tests/replay.rs` runs all kept inputs as an ordinary test, `tests/libfuzzer.rs` looks for new ones (`dev/fuzz`), and
//! `tests/seeds.rs` writes the inputs to begin with.

mod commands;
mod files;
mod frames;
pub mod memory;
mod pages;
pub mod panics;
mod pipeline;
mod sql;

use tandem_column::Class;

pub use commands::{sample, with_block};
pub use pages::{CODECS, Chunk, FORMS};

/// Something to fuzz.
pub struct Target {
    /// What `dev/fuzz` calls it; also the name of its directories of inputs.
    pub name: &'static str,
    /// The most bytes of an input: enough for everything that the code tells apart, small enough to be quick.
    pub most_bytes: usize,
    /// What it does with an input.
    body: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "footer", most_bytes: 16 << 10, body: files::footer },
    Target { name: "pages", most_bytes: 8 << 10, body: pages::pages },
    Target { name: "thrift", most_bytes: 1 << 10, body: pages::header },
    Target { name: "ipc", most_bytes: 16 << 10, body: files::ipc },
    Target { name: "csv", most_bytes: 16 << 10, body: files::csv },
    Target { name: "frames", most_bytes: 4 << 10, body: frames::frames },
    Target { name: "commands", most_bytes: 8 << 10, body: commands::commands },
    Target { name: "pipeline", most_bytes: 8 << 10, body: pipeline::pipeline },
    Target { name: "sql", most_bytes: 2 << 10, body: sql::sql },
];

impl Target {
    /// Finds a target by its name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Runs an input.
    ///
    /// # Panics
    /// If the input shows a mistake.
    pub fn run(&self, bytes: &[u8]) {
        drop(panics::take());
        memory::begin();
        (self.body)(bytes);
        if let Some(panic) = panics::take() {
            panic!("our own code panicked: {panic}");
        }
    }
}

/// Takes a result as it is, unless it is an error that we say ourselves is a bug.
fn sound<T>(result: tandem_column::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.class == Class::Internal => panic!("an internal error: {error}; {}", panics::last()),
        Err(_) => None,
    }
}
