//! Virtual time, and the engines of a simulated device that are busy in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::Times;

/// The host's virtual time, in nanoseconds. Clones share it; devices on one clock can wait for each other.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    /// Makes a clock at 0.
    pub fn new() -> Clock {
        Clock::default()
    }

    /// Returns the time.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets time pass on the host.
    pub fn advance(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Waits until `moment`, if that is to come.
    pub fn wait_until(&self, moment: u64) {
        self.0.fetch_max(moment, Ordering::Relaxed);
    }
}

/// What runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    ToDevice,
    FromDevice,
    Compute,
}

/// Until when each engine of a device is busy.
#[derive(Debug)]
pub(super) struct Engines {
    clock: Clock,
    one_copy_engine: bool,
    busy: Mutex<[u64; 3]>,
}

impl Engines {
    /// Makes idle engines; one or two of them copy.
    pub(super) fn new(clock: &Clock, copy_engines: usize) -> Engines {
        Engines { clock: clock.clone(), one_copy_engine: copy_engines < 2, busy: Mutex::new([0; 3]) }
    }

    /// Returns the clock.
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Gives a command its times: as soon as the engine is free, not before `ready`.
    pub(super) fn schedule(&self, engine: Engine, ready: u64, duration: u64) -> Times {
        let place = match engine {
            Engine::FromDevice if self.one_copy_engine => Engine::ToDevice as usize,
            _ => engine as usize,
        };
        let mut busy = self.busy.lock();
        let now = self.clock.now();
        let started = now.max(ready).max(busy[place]);
        let ended = started + duration;
        busy[place] = ended;
        Times { queued: now, submitted: now, started, ended }
    }
}
