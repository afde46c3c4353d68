//! The daemon: what all connections share, the threads that accept and watch, and the way to its end.

use std::{
    collections::HashMap,
    io,
    net::{Shutdown, SocketAddr},
    os::fd::{AsFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::{
    fs::Mode,
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use tandem_column::{Error, Result};
use tandem_runtime::{Cancel, Devices, MemoryBudget, Runtime};
use tandem_scan::{ColumnCache, SplitReader};

use crate::{
    Executor, Level, NodeOptions,
    blocks::Blocks,
    connection,
    connections::{Connections, Link},
    log::Log,
    metrics::{self, Counters},
    socket::{self, Socket},
    tls, trust,
};

/// How often time limits, idle applications and the parent are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long cancelled commands and closed connections may take to be gone.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What all connections share.
pub(crate) struct Daemon {
    pub(crate) options: NodeOptions,
    pub(crate) log: Log,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) cache: Arc<ColumnCache>,
    pub(crate) reader: SplitReader,
    pub(crate) blocks: Blocks,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) counters: Counters,
    pub(crate) started: Instant,
    /// Tells this run of the daemon from others.
    pub(crate) id: String,
    pub(crate) token: Option<String>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) connections: Arc<Connections>,
    draining: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    running: HashMap<u64, Running>,
    /// By application and executor: open connections and cores.
    executors: HashMap<(String, String), (usize, u32)>,
}

/// A command that runs.
struct Running {
    deadline: Instant,
    cancel: Cancel,
    late: Arc<AtomicBool>,
}

/// The right to run a command; what it holds ends with it.
pub(crate) struct Permit<'d> {
    daemon: &'d Daemon,
    id: u64,
    late: Arc<AtomicBool>,
}

impl Permit<'_> {
    /// Tells whether the command was stopped by its time limit.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.daemon.state.lock().running.remove(&self.id);
        self.daemon.changed.notify_all();
    }
}

impl Daemon {
    /// Names the devices that commands run on by default.
    pub(crate) fn device_labels(&self) -> Vec<String> {
        let devices = match self.options.mode {
            Executor::Cpu => Vec::new(),
            Executor::Gpu => self.devices.chosen().unwrap_or_default(),
        };
        devices.iter().map(|device| device.label()).collect()
    }

    /// Gives up all columns and footers of files, which the next commands read again.
    fn forget(&self) {
        let bytes = self.cache.byte_len();
        self.cache.clear();
        self.reader.clear();
        self.log.event(Level::Info, "columns-forgotten", &[("bytes", &bytes)]);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn running(&self) -> usize {
        self.state.lock().running.len()
    }

    /// Lets a command run until its time limit; `None` while draining.
    pub(crate) fn admit(&self, cancel: &Cancel, limit: Duration) -> Option<Permit<'_>> {
        let mut state = self.state.lock();
        // Looked at under the lock: drain sets it before it counts what runs.
        if self.is_draining() {
            return None;
        }
        state.next += 1;
        let (id, late) = (state.next, Arc::new(AtomicBool::new(false)));
        let deadline = Instant::now() + limit;
        state.running.insert(id, Running { deadline, cancel: cancel.clone(), late: late.clone() });
        Some(Permit { daemon: self, id, late })
    }

    /// Notes an executor's connection, and lets as many workers run as all executors have cores.
    pub(crate) fn join(&self, application: &str, executor: &str, cores: u32) {
        let mut state = self.state.lock();
        let (open, most) = state.executors.entry((application.to_owned(), executor.to_owned())).or_insert((0, cores));
        (*open, *most) = (*open + 1, (*most).max(cores));
        self.share_cores(&state);
    }

    /// Notes that an executor's connection is gone.
    pub(crate) fn leave(&self, application: &str, executor: &str) {
        let mut state = self.state.lock();
        let key = (application.to_owned(), executor.to_owned());
        if let Some((open, _)) = state.executors.get_mut(&key) {
            *open -= 1;
            if *open == 0 {
                state.executors.remove(&key);
            }
        }
        self.share_cores(&state);
    }

    fn share_cores(&self, state: &State) {
        let cores = state.executors.values().map(|(_, cores)| *cores as usize);
        let limited = cores.clone().all(|cores| cores > 0) && !state.executors.is_empty();
        let threads = self.runtime.threads();
        self.runtime.set_active(if limited { cores.sum::<usize>().min(threads) } else { threads });
    }

    /// Stops commands whose time is over.
    fn stop_late(&self) {
        let now = Instant::now();
        for running in self.state.lock().running.values().filter(|running| running.deadline <= now) {
            running.late.store(true, Ordering::Relaxed);
            running.cancel.cancel();
        }
    }

    /// Waits until something is so, at most until `limit` from now; tells whether it is.
    fn wait_until(&self, limit: Duration, so: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while !so(&state) {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return so(&state);
            }
        }
        true
    }

    /// Serves one connection on a thread of its own.
    fn take(self: &Arc<Self>, link: Arc<Link>) {
        Counters::add(&self.counters.connections, 1);
        let Some(id) = self.connections.enter(&link) else {
            Counters::add(&self.counters.refused, 1);
            self.log.event(Level::Warn, "refused", &[("draining", &true)]);
            return connection::turn_away(&link.stream);
        };
        let daemon = self.clone();
        let run = move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| connection::run(&daemon, &link, id))) {
                daemon.log.panicked("connection", &*panic);
            }
            // What is shared with others must not keep it open.
            let _ = link.stream.shutdown(Shutdown::Both);
            daemon.connections.leave(id);
        };
        if let Err(error) = std::thread::Builder::new().name(format!("client-{id}")).spawn(run) {
            self.connections.leave(id);
            self.log.event(Level::Error, "no-thread", &[("error", &error)]);
        }
    }

    /// Gives up clients that took too long to greet.
    fn give_up_late(&self) {
        let late = self.connections.give_up_late();
        if late > 0 {
            Counters::add(&self.counters.refused, late as u64);
            self.log.event(Level::Debug, "given-up", &[("greetings", &late)]);
        }
    }
}

/// A daemon that runs.
pub struct Node {
    daemon: Arc<Daemon>,
    place: Option<socket::SocketPlace>,
    tls: Option<SocketAddr>,
    /// Answers until the end, so that it can tell of the draining.
    metrics: Option<(SocketAddr, OwnedFd)>,
    /// What the threads that accept wait on.
    listeners: Vec<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
}

impl Node {
    /// Starts a daemon: binds its sockets and begins to accept. Commands that ask for devices run on `devices`.
    ///
    /// # Errors
    /// Input, if a socket, certificate or token cannot be used.
    pub fn start(options: NodeOptions, devices: Arc<Devices>) -> Result<Node> {
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let token = options.token_file.as_ref().map(|path| trust::read_secret(path, "token", "--token-file"));
        let token = token.transpose()?.map(|token| token.trim().to_owned());
        if token.as_ref().is_some_and(|token| token.len() < 16) {
            return Err(Error::input("the token is too short: give at least 16 characters in --token-file"));
        }
        if options.mode == Executor::Gpu {
            devices.chosen()?;
        }
        let remote = options.listen.map(|address| tls::listen(address, &options)).transpose()?;
        let metrics_listener = options.metrics.map(metrics::listen).transpose()?;
        let Socket { listener, place } = Socket::bind(&options.socket)?;
        let megabytes = |megabytes: usize| megabytes.saturating_mul(1 << 20);
        let daemon = Arc::new(Daemon {
            log: Log(options.log),
            runtime: Runtime::new(threads),
            cache: ColumnCache::new(megabytes(options.cache)),
            reader: SplitReader::new(),
            blocks: Blocks::new(megabytes(options.blocks)),
            memory: Arc::new(MemoryBudget::new(megabytes(options.memory_limit))),
            counters: Counters::default(),
            started: Instant::now(),
            id: random_id(),
            token,
            devices,
            connections: Arc::default(),
            draining: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
            options,
        });
        let ended = Arc::new(AtomicBool::new(false));
        let (listeners, threads_started) = (Vec::new(), Vec::new());
        let (tls, metrics) = (None, None);
        let mut node = Node { daemon, place: Some(place), tls, metrics, listeners, threads: threads_started, ended };
        let daemon = node.daemon.clone();
        node.listeners.push(duplicate(&listener)?);
        node.spawn("accept", move || {
            accept(&daemon, listener.incoming(), |stream| {
                daemon.take(Link::local(stream));
                Ok(())
            });
        })?;
        if let Some((address, listener)) = remote {
            node.tls = Some(address);
            node.listeners.push(duplicate(listener.socket())?);
            let daemon = node.daemon.clone();
            node.spawn("accept-tls", move || {
                accept(&daemon, listener.socket().incoming(), |stream| {
                    // Without a place for its thread it is closed.
                    let guard = daemon.connections.tunnel(daemon.options.max_connections, daemon.log);
                    let link = guard.map(|guard| listener.wrap(stream, guard)).transpose()?;
                    link.into_iter().for_each(|link| daemon.take(link));
                    Ok(())
                });
            })?;
        }
        let (daemon, ended) = (node.daemon.clone(), node.ended.clone());
        node.spawn("clock", move || {
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                daemon.stop_late();
                daemon.give_up_late();
                daemon.blocks.sweep(Duration::from_secs(daemon.options.linger));
            }
        })?;
        if let Some((address, listener)) = metrics_listener {
            node.metrics = Some((address, duplicate(&listener)?));
            let (daemon, ended) = (node.daemon.clone(), node.ended.clone());
            node.spawn("metrics", move || metrics::serve(&daemon, &listener, &ended))?;
        }
        let daemon = &node.daemon;
        let (socket, pid) = (daemon.options.socket.display(), std::process::id());
        let values: [(&str, &dyn std::fmt::Display); 4] =
            [("socket", &socket), ("pid", &pid), ("threads", &threads), ("version", &env!("CARGO_PKG_VERSION"))];
        daemon.log.event(Level::Info, "started", &values);
        Ok(node)
    }

    /// Starts a thread that the daemon cannot do without: if it panics that is logged, and it begins again.
    fn spawn(&mut self, name: &'static str, run: impl Fn() + Send + 'static) -> Result<()> {
        let (log, ended) = (self.daemon.log, self.ended.clone());
        let again = move || {
            while let Err(panic) = catch_unwind(AssertUnwindSafe(&run)) {
                log.panicked(name, &*panic);
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(TICK);
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(again);
        self.threads.push(thread.map_err(|error| Error::exhausted(format!("cannot start a thread: {error}")))?);
        Ok(())
    }

    /// Returns the Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.daemon.options.socket.clone()
    }

    /// Returns the address of the TLS listener, if there is one.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls
    }

    /// Returns the address of the metrics endpoint, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|(address, _)| *address)
    }

    /// Takes no new connections and commands, waits for those that run, then cancels the rest and ends.
    pub fn drain(mut self, limit: Duration) {
        self.end(limit);
    }

    fn end(&mut self, limit: Duration) {
        let daemon = &self.daemon;
        let running = {
            let state = daemon.state.lock();
            daemon.draining.store(true, Ordering::Relaxed);
            state.running.len()
        };
        daemon.log.event(Level::Info, "draining", &[("running", &running), ("limit_s", &limit.as_secs())]);
        // Those who wait for connections wake up, and see the flag.
        for listener in self.listeners.drain(..) {
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
        self.place = None;
        daemon.connections.end();
        if !daemon.wait_until(limit, |state| state.running.is_empty()) {
            daemon.state.lock().running.values().for_each(|running| running.cancel.cancel());
            daemon.wait_until(LAST_WAIT, |state| state.running.is_empty());
        }
        // First the way in alone: the answer of a command that has just ended may still be on its way out.
        for way in [Shutdown::Read, Shutdown::Both] {
            daemon.connections.shut(way);
            daemon.connections.wait_for_none(LAST_WAIT);
        }
        self.ended.store(true, Ordering::Relaxed);
        if let Some((_, listener)) = self.metrics.take() {
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                daemon.log.panicked("thread", &*panic);
            }
        }
        let daemon = &self.daemon;
        daemon.log.event(Level::Info, "ended", &[("uptime_s", &daemon.started.elapsed().as_secs())]);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end(Duration::ZERO);
        }
    }
}

/// Hands connections on until the daemon drains, which shuts the listener. Out of descriptors, memory or threads it makes
/// room, waits and goes on.
fn accept<S>(daemon: &Daemon, incoming: impl Iterator<Item = io::Result<S>>, take: impl Fn(S) -> io::Result<()>) {
    let mut short = false;
    for stream in incoming {
        if daemon.is_draining() {
            return;
        }
        let failed = match stream {
            Ok(stream) => take(stream).err().filter(is_exhaustion),
            Err(error) => Some(error),
        };
        let Some(error) = failed else {
            short = false;
            continue;
        };
        // Said once for as long as it lasts.
        if !std::mem::replace(&mut short, true) {
            daemon.log.event(Level::Error, "accept", &[("error", &error)]);
        }
        daemon.connections.make_room();
        std::thread::sleep(TICK);
    }
}

/// Tells whether an error says that the process or the machine has no more of something; others are of one client.
fn is_exhaustion(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno
        .is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::AGAIN))
}

fn duplicate(listener: &impl AsFd) -> Result<OwnedFd> {
    let duplicate = listener.as_fd().try_clone_to_owned();
    duplicate.map_err(|error| Error::exhausted(format!("no file handle is left: raise the limit ({error})")))
}

/// A number that other runs do not have: of the time, the process and an address.
fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}{:016x}", RandomState::new().hash_one(std::process::id()), RandomState::new().hash_one(0))
}

/// Runs a daemon until SIGTERM or SIGINT, or until its parent ends if it is to end with it.
///
/// # Errors
/// As [`Node::start`].
pub fn serve(options: NodeOptions, devices: Arc<Devices>) -> Result<()> {
    // Of a process of its own these may be set: whatever it makes, a socket above all, is this user's alone from the first
    // moment, and it has as many descriptors as it may have.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    raise_descriptors();
    let (with_parent, drain) = (options.with_parent, Duration::from_secs(options.drain));
    let parent = rustix::process::getppid();
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGUSR1])
        .map_err(|error| Error::internal(format!("signals cannot be watched: {error}")))?;
    let node = Node::start(options, devices)?;
    let orphaned = Arc::new(AtomicBool::new(false));
    if with_parent {
        let (orphaned, handle) = (orphaned.clone(), signals.handle());
        let log = node.daemon.log;
        let watch = move || {
            await_orphanhood(parent);
            log.event(Level::Info, "parent-ended", &[]);
            orphaned.store(true, Ordering::Relaxed);
            handle.close();
        };
        let thread = std::thread::Builder::new().name("parent".into()).spawn(watch);
        thread.map_err(|error| Error::exhausted(format!("cannot start a thread: {error}")))?;
    }
    let _ = signals.forever().find(|signal| match *signal {
        SIGUSR1 => {
            node.daemon.forget();
            false
        }
        _ => true,
    });
    // Without a parent nobody waits for results.
    node.drain(if orphaned.load(Ordering::Relaxed) { Duration::ZERO } else { drain });
    Ok(())
}

/// Raises the limit of descriptors as far as it goes: connections, files and devices share them.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // As it was is enough for a start; running out of them is survived.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Waits until standard input ends or the process has another parent.
///
/// Not by PR_SET_PDEATHSIG: that signal comes when the *thread* that started this process ends, and hosts start it
/// from threads of pools.
fn await_orphanhood(parent: Option<rustix::process::Pid>) {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    std::thread::spawn(move || {
        // Whatever comes is of no interest, only the end.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        flag.store(true, Ordering::Relaxed);
    });
    while !ended.load(Ordering::Relaxed) && rustix::process::getppid() == parent {
        std::thread::sleep(TICK);
    }
}
