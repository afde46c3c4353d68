//! What a daemon did so far, as a report and as Prometheus text; and a small HTTP endpoint that gives it out.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tandem_column::{Error, Result};

use crate::{daemon::Daemon, deadline::Until, proto};

/// How long a request may take to arrive whole.
const REQUEST: Duration = Duration::from_secs(2);
/// The most bytes of a request.
const REQUEST_BYTES: usize = 8192;
/// Requests at once.
const REQUESTS: usize = 8;

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) commands: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) rows_in: AtomicU64,
    pub(crate) rows_out: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) blocks: AtomicU64,
    pub(crate) scan_ns: AtomicU64,
    pub(crate) compute_ns: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Ordering::Relaxed);
    }
}

/// Describes a daemon now.
pub(crate) fn report(daemon: &Daemon) -> proto::Report {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counters = &daemon.counters;
    let (blocks, block_bytes) = daemon.blocks.size();
    let (connections, greetings) = daemon.connections.counts();
    let mut report = proto::Report {
        draining: daemon.is_draining(),
        uptime_ms: daemon.started.elapsed().as_millis() as u64,
        connections: connections as u64,
        running: daemon.running() as u64,
        commands: get(&counters.commands),
        failures: get(&counters.failures),
        cache_bytes: daemon.cache.byte_len() as u64,
        cache_limit_bytes: daemon.cache.limit() as u64,
        block_bytes: block_bytes as u64,
        blocks: blocks as u64,
        prometheus: String::new(),
    };
    let mut text = String::new();
    let mut line = |name: &str, kind: &str, help: &str, value: f64| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP tandem_{name} {help}\n# TYPE tandem_{name} {kind}\ntandem_{name} {value}");
    };
    let seconds = |counter: &AtomicU64| get(counter) as f64 / 1e9;
    line("up", "gauge", "1 while commands are taken, 0 while draining", f64::from(!report.draining));
    line("uptime_seconds", "gauge", "Time since the start", report.uptime_ms as f64 / 1e3);
    line("threads", "gauge", "Worker threads", daemon.runtime.threads() as f64);
    line("threads_active", "gauge", "Worker threads that clients' cores let run", daemon.runtime.active() as f64);
    line("connections", "gauge", "Open connections", report.connections as f64);
    line("greetings", "gauge", "Clients that have not greeted yet", greetings as f64);
    line("connections_total", "counter", "Connections that came, refused ones too", get(&counters.connections) as f64);
    line("connections_refused_total", "counter", "Connections refused", get(&counters.refused) as f64);
    line("commands_running", "gauge", "Commands that run now", report.running as f64);
    line("commands_total", "counter", "Commands begun", report.commands as f64);
    line("commands_failed_total", "counter", "Commands that failed", report.failures as f64);
    line("commands_cancelled_total", "counter", "Commands that were cancelled", get(&counters.cancelled) as f64);
    line("rows_in_total", "counter", "Rows read from tables", get(&counters.rows_in) as f64);
    line("rows_out_total", "counter", "Rows of results", get(&counters.rows_out) as f64);
    line("bytes_read_total", "counter", "Compressed bytes decoded from files", get(&counters.bytes_read) as f64);
    line("bytes_out_total", "counter", "Bytes of results sent", get(&counters.bytes_out) as f64);
    line("blocks_received_total", "counter", "Blocks received", get(&counters.blocks) as f64);
    line("blocks", "gauge", "Blocks held", blocks as f64);
    line("block_bytes", "gauge", "Bytes of blocks held", block_bytes as f64);
    line("cache_bytes", "gauge", "Bytes of resident columns", report.cache_bytes as f64);
    line("cache_limit_bytes", "gauge", "The most bytes of resident columns", report.cache_limit_bytes as f64);
    line("cache_hits_total", "counter", "Columns of row groups found resident", daemon.cache.hits() as f64);
    line("cache_misses_total", "counter", "Columns of row groups decoded", daemon.cache.misses() as f64);
    line("memory_used_bytes", "gauge", "Bytes that commands hold now", daemon.memory.used() as f64);
    line("scan_seconds_total", "counter", "Time spent loading columns", seconds(&counters.scan_ns));
    line("compute_seconds_total", "counter", "Time spent running pipelines", seconds(&counters.compute_ns));
    report.prometheus = text;
    report
}

/// Listens on a loopback address.
///
/// # Errors
/// Input, if the address is not loopback or cannot be bound.
pub(crate) fn listen(address: SocketAddr) -> Result<(SocketAddr, TcpListener)> {
    if !address.ip().is_loopback() {
        return Err(Error::input(format!("metrics are only for this machine: give a loopback address, not {address}")));
    }
    let unusable =
        |error| Error::input(format!("cannot listen for metrics: choose another address ({address}: {error})"));
    let listener = TcpListener::bind(address).map_err(unusable)?;
    let bound = listener.local_addr().map_err(unusable)?;
    Ok((bound, listener))
}

/// Answers `GET /metrics` and `GET /health`, each on a thread of its own, until the listener is shut. Of more than a few
/// requests at once the oldest is given up: one that comes byte by byte keeps nobody waiting.
pub(crate) fn serve(daemon: &Arc<Daemon>, listener: &TcpListener, ended: &AtomicBool) {
    let mut open: VecDeque<Weak<TcpStream>> = VecDeque::new();
    for stream in listener.incoming() {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        open.retain(|request| request.strong_count() > 0);
        if open.len() >= REQUESTS
            && let Some(oldest) = open.pop_front().and_then(|oldest| oldest.upgrade())
        {
            // Already closed is closed.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let started = stream.and_then(|stream| {
            let stream = Arc::new(stream);
            open.push_back(Arc::downgrade(&stream));
            let daemon = daemon.clone();
            let run = move || {
                let answered = catch_unwind(AssertUnwindSafe(|| answer(&stream, &daemon)));
                // A reader that goes away misses its answer, nothing else.
                answered.map(drop).unwrap_or_else(|panic| daemon.log.panicked("metrics", &*panic));
            };
            std::thread::Builder::new().name("metrics-request".into()).spawn(run)
        });
        if started.is_err() {
            // Out of descriptors or threads, most likely: others must close some first.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    open.iter().filter_map(Weak::upgrade).for_each(|request| drop(request.shutdown(Shutdown::Both)));
}

fn answer(mut stream: &TcpStream, daemon: &Daemon) -> std::io::Result<()> {
    stream.set_write_timeout(Some(REQUEST))?;
    let mut reader = Until { stream, deadline: Instant::now() + REQUEST };
    let mut request = Vec::new();
    let mut bytes = [0; 512];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") && request.len() < REQUEST_BYTES {
        match reader.read(&mut bytes)? {
            0 => break,
            read => request.extend_from_slice(&bytes[..read]),
        }
    }
    let report = report(daemon);
    let (status, body) = match request.as_slice() {
        path if path.starts_with(b"GET /metrics ") => ("200 OK", report.prometheus),
        path if path.starts_with(b"GET /health ") && report.draining => {
            ("503 Service Unavailable", "draining\n".into())
        }
        path if path.starts_with(b"GET /health ") => ("200 OK", "ok\n".into()),
        _ => ("404 Not Found", "try /metrics or /health\n".into()),
    };
    let length = body.len();
    let head = "Content-Type: text/plain; version=0.0.4\r\nConnection: close\r\n";
    write!(stream, "HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n{body}")
}
