//! A peer: another engine in a Python worker process, spoken to in lines of JSON (see `bench/peers/peer.py`).

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Storage,
    contender::{Answer, Contender, Rows},
    data::TableData,
    suite::BenchQuery,
    venv::Venv,
};

/// How long starting and loading may take: an hour, for large scale factors.
const LOAD_TIMEOUT: Duration = Duration::from_secs(3600);
/// How long a worker may take to end by itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The engines there are workers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    DuckDb,
    Hyper,
    Polars,
    DataFusion,
    ClickHouse,
}

impl PeerKind {
    /// All of them.
    pub const ALL: [PeerKind; 5] =
        [PeerKind::DuckDb, PeerKind::Hyper, PeerKind::Polars, PeerKind::DataFusion, PeerKind::ClickHouse];

    /// Returns the engine's name, as in `--vs`.
    pub fn name(self) -> &'static str {
        match self {
            PeerKind::DuckDb => "duckdb",
            PeerKind::Hyper => "hyper",
            PeerKind::Polars => "polars",
            PeerKind::DataFusion => "datafusion",
            PeerKind::ClickHouse => "clickhouse",
        }
    }

    /// Returns the Python packages it needs, whose modules have the same names.
    pub fn packages(self) -> &'static [&'static str] {
        match self {
            PeerKind::DuckDb => &["duckdb"],
            PeerKind::Hyper => &["tableauhyperapi"],
            PeerKind::Polars => &["polars"],
            PeerKind::DataFusion => &["datafusion", "pyarrow"],
            PeerKind::ClickHouse => &["chdb"],
        }
    }
}

/// A running worker with its data loaded.
pub struct Peer {
    kind: PeerKind,
    version: String,
    timeout: Duration,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Why it answers no more.
    ended: Option<String>,
    /// Files of its own, removed after it.
    _scratch: tempfile::TempDir,
}

impl Peer {
    /// Starts a worker and loads the data into it.
    ///
    /// # Errors
    /// One sentence of why the engine cannot take part.
    pub fn start(
        kind: PeerKind,
        venv: &Venv,
        tables: &[TableData],
        from: Storage,
        threads: usize,
        scratch: &Path,
        timeout: Duration,
    ) -> Result<Peer, String> {
        let scratch = tempfile::Builder::new()
            .prefix(".bench-")
            .tempdir_in(scratch)
            .map_err(|error| format!("no scratch directory could be made in {}: {error}", scratch.display()))?;
        let mut child = Command::new(&venv.python)
            .arg(venv.programs.join("peer.py"))
            .arg(kind.name())
            .arg(threads.to_string())
            .env("PYTHONWARNINGS", "ignore")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("the worker could not be started: {error}"))?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut peer =
            Peer { kind, version: String::new(), timeout, child, input, lines, ended: None, _scratch: scratch };
        let hello = peer.ask(&json!({"op": "hello"}), LOAD_TIMEOUT)?;
        peer.version = hello["version"].as_str().unwrap_or("unknown").to_string();
        let tables: serde_json::Map<String, Value> = tables
            .iter()
            .map(|table| (table.name.to_string(), json!({"path": table.path, "columns": table.columns})))
            .collect();
        let from = match from {
            Storage::Memory => "memory",
            Storage::Parquet => "parquet",
        };
        let scratch = peer._scratch.path().display().to_string();
        peer.ask(
            &json!({"op": "load", "tables": tables, "from": from, "threads": threads, "scratch": scratch}),
            LOAD_TIMEOUT,
        )?;
        Ok(peer)
    }

    fn ask(&mut self, request: &Value, timeout: Duration) -> Result<Value, String> {
        if let Some(reason) = &self.ended {
            return Err(reason.clone());
        }
        let reply = self.exchange(request, timeout);
        match reply {
            Ok(reply) => match reply["error"].as_str() {
                Some(error) => Err(error.to_string()),
                None => Ok(reply),
            },
            Err(reason) => {
                self.ended = Some(reason.clone());
                // It has ended, or will not by itself.
                let _ = self.child.kill();
                Err(reason)
            }
        }
    }

    fn exchange(&mut self, request: &Value, timeout: Duration) -> Result<Value, String> {
        let ended = || "the worker ended unexpectedly, perhaps for want of memory".to_string();
        let input = self.input.as_mut().ok_or_else(ended)?;
        writeln!(input, "{request}").and_then(|()| input.flush()).map_err(|_| ended())?;
        match self.lines.recv_timeout(timeout) {
            Ok(line) => serde_json::from_str(&line).map_err(|error| format!("the worker's answer is damaged: {error}")),
            Err(RecvTimeoutError::Timeout) => Err(format!("stopped after {} s", timeout.as_secs())),
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
        }
    }
}

impl Contender for Peer {
    fn name(&self) -> &str {
        self.kind.name()
    }
    fn version(&self) -> &str {
        &self.version
    }

    fn run(&mut self, query: &BenchQuery) -> Result<Answer, String> {
        let timeout = self.timeout;
        let mut reply = self.ask(&json!({"op": "run", "query": query.name, "sql": query.sql}), timeout)?;
        let seconds = reply["seconds"].as_f64().ok_or("the worker's answer has no time")?;
        let rows: Rows = serde_json::from_value(reply["rows"].take())
            .map_err(|error| format!("the worker's rows are damaged: {error}"))?;
        Ok(Answer { time: Duration::from_secs_f64(seconds), rows, places: None, notes: Vec::new() })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input is the worker's sign to end; one that does not is stopped.
        self.input.take();
        let start = Instant::now();
        while start.elapsed() < END_TIMEOUT {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
