//! A table to generate: groups of rows that can be made independently, and the loop that makes them on several threads.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tandem_column::{Error, Result};

use crate::ProgressListener;

/// Rows of a group: one Parquet row group, one part of a resident table.
pub const GROUP_ROWS: u64 = 1 << 20;
/// Rows of a batch within a group: wide enough to amortise per-batch cost, small enough to stay in the second-level cache.
pub const BATCH_ROWS: usize = 1 << 15;

/// Takes the batches of a group, in order.
pub type Emit<'a> = dyn FnMut(RecordBatch) -> Result<()> + 'a;

/// A table to generate. All methods may be called from several threads at once.
pub trait TableSource: Sync {
    /// Returns the table's name.
    fn name(&self) -> &'static str;
    /// Returns the columns' names and types.
    fn schema(&self) -> SchemaRef;
    /// Returns how many rows there are in all (about, where only generating can tell).
    fn rows(&self) -> u64;
    /// Returns how many groups there are.
    fn groups(&self) -> usize;
    /// Makes the batches of group `group` and gives each to `emit`.
    fn generate(&self, group: usize, emit: &mut Emit<'_>) -> Result<()>;
    /// Names the columns for which Parquet's dictionary encoding would only overflow.
    fn wide_columns(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Returns the rows of group `group` of a table with `rows` rows.
pub fn group_range(rows: u64, group: usize) -> std::ops::Range<u64> {
    let start = group as u64 * GROUP_ROWS;
    start..(start + GROUP_ROWS).min(rows)
}

/// Cuts a range of rows into batches.
pub fn batches(range: std::ops::Range<u64>) -> impl Iterator<Item = std::ops::Range<u64>> {
    let end = range.end;
    range.step_by(BATCH_ROWS).map(move |start| start..(start + BATCH_ROWS as u64).min(end))
}

/// Counts the rows done over all tables and tells the listener.
pub struct Counter<'a> {
    done: AtomicU64,
    total: u64,
    listener: &'a ProgressListener<'a>,
}

impl<'a> Counter<'a> {
    /// Starts counting towards the rows of all `sources`.
    pub fn new(sources: &[Box<dyn TableSource>], listener: &'a ProgressListener<'a>) -> Self {
        let counter = Counter { done: AtomicU64::new(0), total: sources.iter().map(|s| s.rows()).sum(), listener };
        (counter.listener)(0, counter.total);
        counter
    }

    /// Adds rows that are done.
    pub fn add(&self, rows: usize) {
        let done = self.done.fetch_add(rows as u64, Ordering::Relaxed) + rows as u64;
        (self.listener)(done.min(self.total), self.total);
    }
}

/// Runs `make` for each group on `threads` threads, and `take` with each result in the order of the groups. A thread whose turn
/// has not come waits with its one result, so at most `threads` results exist. The first error stops the rest.
pub fn in_order<T: Send>(
    groups: usize,
    threads: usize,
    make: impl Fn(usize) -> Result<T> + Sync,
    take: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    struct Turn<F> {
        next: usize,
        take: F,
        error: Option<Error>,
    }
    let turn = Mutex::new(Turn { next: 0, take, error: None });
    let moved = Condvar::new();
    let claimed = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let poisoned = "no thread panics while holding the turn";
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let group = claimed.fetch_add(1, Ordering::Relaxed);
            if group >= groups {
                return;
            }
            // A panic becomes an error, for others wait for this group's turn to pass.
            let made = catch_unwind(AssertUnwindSafe(|| make(group)))
                .unwrap_or_else(|_| Err(Error::internal("Generating a group of rows panicked; please report it.")));
            let guard = turn.lock().expect(poisoned);
            let mut turn =
                moved.wait_while(guard, |t| made.is_ok() && t.next != group && t.error.is_none()).expect(poisoned);
            if turn.error.is_none() {
                turn.next += 1;
                if let Err(error) = made.and_then(|made| (turn.take)(made)) {
                    turn.error = Some(error);
                    failed.store(true, Ordering::Relaxed);
                }
            }
            moved.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(groups).max(1) {
            scope.spawn(work);
        }
        work();
    });
    turn.into_inner().expect(poisoned).error.map_or(Ok(()), Err)
}
