//! The stagings of a session that are under way: what a process that ends must wait for or remove.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Staging;

/// The stagings under way.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    stagings: Mutex<HashMap<u64, Weak<Staging>>>,
    next: AtomicU64,
    changed: Condvar,
}

/// An entry of the list, gone when dropped.
#[derive(Debug)]
pub(super) struct Listed {
    number: u64,
    list: Arc<Unfinished>,
}

impl Unfinished {
    /// Enters a staging.
    pub(super) fn list(self: &Arc<Self>, staging: Weak<Staging>) -> Listed {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.stagings.lock().insert(number, staging);
        Listed { number, list: self.clone() }
    }

    /// Waits until all writers have ended and their places are gone; at most for a given time.
    pub(crate) fn wait(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut stagings = self.stagings.lock();
        while !stagings.is_empty() {
            if self.changed.wait_until(&mut stagings, end).timed_out() {
                return;
            }
        }
    }

    /// Removes all places at once, though writers may still run.
    pub(crate) fn discard(&self) {
        let stagings: Vec<Weak<Staging>> = self.stagings.lock().values().cloned().collect();
        stagings.iter().filter_map(Weak::upgrade).for_each(|staging| staging.discard());
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.list.stagings.lock().remove(&self.number);
        self.list.changed.notify_all();
    }
}
