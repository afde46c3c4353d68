//! The stagings of a session that are under way: what a process that ends must wait for or remove.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Staging;

/// How long a process that ends at once waits for places that are just being made: that takes a few system calls.
const BEGINNING: Duration = Duration::from_secs(1);

/// The stagings under way.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    list: Mutex<List>,
    next: AtomicU64,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct List {
    /// None while the place is being made.
    stagings: HashMap<u64, Option<Weak<Staging>>>,
    /// The process is about to end: nothing begins any more.
    closed: bool,
}

/// An entry of the list, gone when dropped.
#[derive(Debug)]
pub(super) struct Listed {
    number: u64,
    list: Arc<Unfinished>,
}

impl Unfinished {
    /// Enters a staging before its place is made, so that no place is ever there without an entry; none if the process is
    /// about to end.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Listed> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut list = self.list.lock();
        if list.closed {
            return None;
        }
        list.stagings.insert(number, None);
        Some(Listed { number, list: self.clone() })
    }

    /// Waits until all writers have ended and their places are gone, at most for a given time; tells whether they are.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        self.wait_while(&mut self.list.lock(), limit, |list| !list.stagings.is_empty())
    }

    /// Removes all places at once, though writers may still run; no further ones are made.
    pub(crate) fn discard(&self) {
        let mut list = self.list.lock();
        list.closed = true;
        self.wait_while(&mut list, BEGINNING, |list| list.stagings.values().any(Option::is_none));
        let stagings: Vec<Weak<Staging>> = list.stagings.values().flatten().cloned().collect();
        MutexGuard::unlocked(&mut list, || {
            stagings.iter().filter_map(Weak::upgrade).for_each(|staging| staging.discard());
        });
        // Those that are just being dropped remove their places themselves.
        let dropped = |staging: &Option<Weak<Staging>>| staging.as_ref().is_some_and(|of| of.strong_count() == 0);
        self.wait_while(&mut list, BEGINNING, |list| list.stagings.values().any(dropped));
    }

    /// Waits as long as a condition holds, at most for a given time; tells whether it no longer does.
    fn wait_while(&self, list: &mut MutexGuard<'_, List>, limit: Duration, condition: impl Fn(&List) -> bool) -> bool {
        let end = Instant::now() + limit;
        while condition(list) {
            if self.changed.wait_until(list, end).timed_out() {
                return !condition(list);
            }
        }
        true
    }
}

impl Listed {
    /// Says that the place is there.
    pub(super) fn ready(&self, staging: Weak<Staging>) {
        self.list.list.lock().stagings.insert(self.number, Some(staging));
        self.list.changed.notify_all();
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.list.list.lock().stagings.remove(&self.number);
        self.list.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_from_before_it_is_made_and_none_is_made_at_the_end() {
        let list = Arc::new(Unfinished::default());
        let listed = list.begin().expect("nothing ends yet");
        assert!(!list.wait(Duration::ZERO), "a place that is being made is waited for");
        std::thread::scope(|scope| {
            let discarded = scope.spawn(|| list.discard());
            drop(listed);
            discarded.join().expect("it waits for the place, then ends");
        });
        assert!(list.wait(Duration::ZERO));
        assert!(list.begin().is_none(), "nothing begins at the end");
    }
}
