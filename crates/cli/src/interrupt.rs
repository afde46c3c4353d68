//! Ctrl-C: cancels the running statement, not the shell.
//!
//! One task listens for SIGINT. The first signal cancels the statement that is armed; a second one while that statement
//! is still winding down ends the process, after the unfinished output file is removed.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
};

use tandem_runtime::Cancel;
use tokio::{runtime::Runtime, sync::Notify};

/// The listener for Ctrl-C; cheap to clone.
#[derive(Clone, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    running: Mutex<Option<Cancel>>,
    unfinished: Mutex<Option<PathBuf>>,
    notify: Notify,
}

impl Interrupt {
    /// Starts listening on `runtime`.
    pub fn listen(runtime: &Runtime) -> Self {
        let interrupt = Interrupt::default();
        let shared = Arc::clone(&interrupt.shared);
        runtime.spawn(async move {
            // Without a handler Ctrl-C ends the process, which is right too.
            while tokio::signal::ctrl_c().await.is_ok() {
                shared.signal();
            }
        });
        interrupt
    }

    /// Makes `cancel` what Ctrl-C cancels, until the guard is dropped.
    pub fn arm(&self, cancel: &Cancel) -> Armed {
        *lock(&self.shared.running) = Some(cancel.clone());
        Armed { shared: Arc::clone(&self.shared) }
    }

    /// Waits for the next Ctrl-C.
    pub async fn interrupted(&self) {
        self.shared.notify.notified().await;
    }

    /// Names the temporary file to remove if the process must end at once.
    pub fn set_unfinished(&self, path: Option<PathBuf>) {
        *lock(&self.shared.unfinished) = path;
    }
}

impl Shared {
    fn signal(&self) {
        match lock(&self.running).as_ref() {
            Some(cancel) if !cancel.is_cancelled() => {
                cancel.cancel();
                self.notify.notify_waiters();
            }
            _ => {
                if let Some(path) = lock(&self.unfinished).take() {
                    let _ = std::fs::remove_file(path);
                }
                std::process::exit(130);
            }
        }
    }
}

/// A statement that Ctrl-C cancels while this lives.
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
