//! DuckDB in a Python process, spoken to in lines of JSON (`duckdb.py`).

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde::Deserialize;
use serde_json::json;

const PROGRAM: &str = include_str!("duckdb.py");

/// What DuckDB says to a statement.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Its rows.
    Rows(Vec<Vec<Option<String>>>),
    /// Why there are none.
    Error(String),
}

/// A process that answers.
pub struct DuckDb {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Names the Python that has DuckDB: that of `TANDEM_PYTHON`, or of the environment that dev/setup makes.
///
/// # Panics
/// If it has no DuckDB: a comparison with nothing would pass.
pub fn python() -> PathBuf {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.venv/bin/python");
    let python = std::env::var_os("TANDEM_PYTHON").map_or_else(own, PathBuf::from);
    let found = Command::new(&python).args(["-c", "import duckdb"]).stderr(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    assert!(found, "{} has no DuckDB to compare with; run dev/setup tests", python.display());
    python
}

impl DuckDb {
    /// Starts a process.
    ///
    /// # Panics
    /// If it cannot.
    pub fn start(python: &Path) -> Self {
        let mut child = Command::new(python)
            .args(["-c", PROGRAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        DuckDb { child, input, output }
    }

    /// Asks for the answers of a case, which it computes while others compute theirs.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn ask(&mut self, setup: &[String], statements: &[String]) {
        let request = json!({"setup": setup, "statements": statements});
        let input = self.input.as_mut().expect("it takes questions");
        writeln!(input, "{request}").and_then(|()| input.flush()).expect("DuckDB's process is there");
    }

    /// Returns the answers to what was asked last.
    ///
    /// # Panics
    /// If the process has ended.
    pub fn answers(&mut self) -> Vec<Answer> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("DuckDB's process answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("DuckDB's process answered badly ({error}): {line}"))
    }
}

impl Drop for DuckDb {
    fn drop(&mut self) {
        // The end of its input is its sign to end.
        self.input.take();
        let _ = self.child.wait();
    }
}
