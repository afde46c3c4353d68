//! The daemon's process: its signals, its parent, its limits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use tandem_column::{Error, Result};
use tandem_runtime::Devices;

use crate::{LogLevel, Node, NodeOptions, node::TICK};

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
            log.event(LogLevel::Info, "parent-ended", &[]);
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
