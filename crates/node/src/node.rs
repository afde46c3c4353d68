//! A daemon that runs: its sockets, the threads that accept and watch, and the way to its end.

use std::{
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
    time::Duration,
};

use rustix::io::Errno;
use tandem_column::{Error, Result};
use tandem_runtime::Devices;

use crate::{
    Executor, LogLevel, NodeOptions,
    connections::Link,
    daemon::Daemon,
    metrics,
    socket::{self, Socket},
    tls, trust,
};

/// How often time limits, idle applications and the parent are looked at.
pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long cancelled commands and closed connections may take to be gone.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// A daemon that runs.
pub struct Node {
    pub(crate) daemon: Arc<Daemon>,
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
        let daemon = Arc::new(Daemon::new(options, threads, token, devices));
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
        daemon.log.event(LogLevel::Info, "started", &values);
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
        let running = daemon.begin_to_drain();
        daemon.log.event(LogLevel::Info, "draining", &[("running", &running), ("limit_s", &limit.as_secs())]);
        // Those who wait for connections wake up, and see the flag.
        for listener in self.listeners.drain(..) {
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        }
        self.place = None;
        daemon.connections.end();
        if !daemon.wait_for_commands(limit) {
            daemon.cancel_commands();
            daemon.wait_for_commands(LAST_WAIT);
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
        daemon.log.event(LogLevel::Info, "ended", &[("uptime_s", &daemon.started.elapsed().as_secs())]);
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
            daemon.log.event(LogLevel::Error, "accept", &[("error", &error)]);
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
