//! Signals: Ctrl-C cancels the running statement, not the shell; SIGTERM and SIGHUP cancel it and end the process.
//!
//! One task listens for each. The first signal cancels the statement that is armed; when none is, or a second signal
//! comes while that statement is still winding down, the process ends at once, after what it wrote but did not finish
//! is removed. A signal that the parent chose to ignore (`nohup`) stays ignored.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicI32, Ordering},
};

use tandem_engine::Session;
use tandem_runtime::Cancel;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
    sync::Notify,
};

/// The listener for signals; cheap to clone.
#[derive(Clone, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    running: Mutex<Option<Cancel>>,
    session: Mutex<Option<Session>>,
    /// The signal that ends the process, or 0.
    ending: AtomicI32,
    notify: Notify,
}

impl Interrupt {
    /// Starts listening on `runtime`.
    pub fn listen(runtime: &Runtime) -> Self {
        let interrupt = Interrupt::default();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            if kind != SignalKind::interrupt() && is_ignored(kind.as_raw_value()) {
                continue;
            }
            let shared = Arc::clone(&interrupt.shared);
            runtime.spawn(async move {
                // Without a handler the signal ends the process, which is right too.
                let Ok(mut signals) = signal(kind) else { return };
                while signals.recv().await.is_some() {
                    shared.signal(kind);
                }
            });
        }
        interrupt
    }

    /// Names the session whose unfinished files are removed if the process must end at once.
    pub fn watch(&self, session: &Session) {
        *lock(&self.shared.session) = Some(session.clone());
    }

    /// Makes `cancel` what signals cancel, until the guard is dropped.
    pub fn arm(&self, cancel: &Cancel) -> Armed {
        *lock(&self.shared.running) = Some(cancel.clone());
        Armed { shared: Arc::clone(&self.shared) }
    }

    /// Waits for the next signal.
    pub async fn interrupted(&self) {
        self.shared.notify.notified().await;
    }

    /// Returns the signal that ends the process, if one came.
    pub fn ending(&self) -> Option<i32> {
        Some(self.shared.ending.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

impl Shared {
    fn signal(&self, kind: SignalKind) {
        let number = kind.as_raw_value();
        let running = lock(&self.running);
        if kind != SignalKind::interrupt() {
            self.ending.store(number, Ordering::SeqCst);
        }
        match running.as_ref() {
            Some(cancel) if !cancel.is_cancelled() => {
                cancel.cancel();
                self.notify.notify_waiters();
            }
            _ => {
                if let Some(session) = lock(&self.session).as_ref() {
                    session.discard_unfinished();
                }
                std::process::exit(128 + number);
            }
        }
    }
}

/// Tells whether the process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}

/// A statement that signals cancel while this lives.
pub struct Armed {
    shared: Arc<Shared>,
}

impl Drop for Armed {
    fn drop(&mut self) {
        *lock(&self.shared.running) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
