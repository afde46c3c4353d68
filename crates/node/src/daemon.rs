//! What all connections of a daemon share, and the commands that run.

use std::{
    collections::HashMap,
    net::Shutdown,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tandem_runtime::{Cancel, Devices, MemoryBudget, Runtime};
use tandem_scan::{ColumnCache, SplitReader};

use crate::{
    Executor, LogLevel, NodeOptions,
    blocks::Blocks,
    connection,
    connections::{Connections, Link},
    log::Log,
    metrics::Counters,
};

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
    state: Mutex<DaemonState>,
    changed: Condvar,
}

#[derive(Default)]
struct DaemonState {
    next: u64,
    running: HashMap<u64, RunningCommand>,
    /// By application and executor: open connections and cores.
    executors: HashMap<(String, String), (usize, u32)>,
}

/// A command that runs.
struct RunningCommand {
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
    pub(crate) fn new(options: NodeOptions, threads: usize, token: Option<String>, devices: Arc<Devices>) -> Daemon {
        let megabytes = |megabytes: usize| megabytes.saturating_mul(1 << 20);
        Daemon {
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
        }
    }

    /// Names the devices that commands run on by default.
    pub(crate) fn device_labels(&self) -> Vec<String> {
        let devices = match self.options.mode {
            Executor::Cpu => Vec::new(),
            Executor::Gpu => self.devices.chosen().unwrap_or_default(),
        };
        devices.iter().map(|device| device.label()).collect()
    }

    /// Gives up all columns and footers of files, which the next commands read again.
    pub(crate) fn forget(&self) {
        let bytes = self.cache.byte_len();
        self.cache.clear();
        self.reader.clear();
        self.log.event(LogLevel::Info, "columns-forgotten", &[("bytes", &bytes)]);
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
        state.running.insert(id, RunningCommand { deadline, cancel: cancel.clone(), late: late.clone() });
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

    fn share_cores(&self, state: &DaemonState) {
        let cores = state.executors.values().map(|(_, cores)| *cores as usize);
        let limited = cores.clone().all(|cores| cores > 0) && !state.executors.is_empty();
        let threads = self.runtime.threads();
        self.runtime.set_active(if limited { cores.sum::<usize>().min(threads) } else { threads });
    }

    /// Stops commands whose time is over.
    pub(crate) fn stop_late(&self) {
        let now = Instant::now();
        for running in self.state.lock().running.values().filter(|running| running.deadline <= now) {
            running.late.store(true, Ordering::Relaxed);
            running.cancel.cancel();
        }
    }

    /// Takes no more commands; returns how many run.
    pub(crate) fn begin_to_drain(&self) -> usize {
        let state = self.state.lock();
        self.draining.store(true, Ordering::Relaxed);
        state.running.len()
    }

    /// Cancels all commands.
    pub(crate) fn cancel_commands(&self) {
        self.state.lock().running.values().for_each(|running| running.cancel.cancel());
    }

    /// Waits until no command runs, at most until `limit` from now; tells whether it is so.
    pub(crate) fn wait_for_commands(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while !state.running.is_empty() {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return state.running.is_empty();
            }
        }
        true
    }

    /// Serves one connection on a thread of its own.
    pub(crate) fn take(self: &Arc<Self>, link: Arc<Link>) {
        Counters::add(&self.counters.connections, 1);
        let Some(id) = self.connections.enter(&link) else {
            Counters::add(&self.counters.refused, 1);
            self.log.event(LogLevel::Warn, "refused", &[("draining", &true)]);
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
            self.log.event(LogLevel::Error, "no-thread", &[("error", &error)]);
        }
    }

    /// Gives up clients that took too long to greet.
    pub(crate) fn give_up_late(&self) {
        let late = self.connections.give_up_late();
        if late > 0 {
            Counters::add(&self.counters.refused, late as u64);
            self.log.event(LogLevel::Debug, "given-up", &[("greetings", &late)]);
        }
    }
}

/// A number that other runs do not have: of the time, the process and an address.
fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}{:016x}", RandomState::new().hash_one(std::process::id()), RandomState::new().hash_one(0))
}
