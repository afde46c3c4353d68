//! Morsels on threads: the smallest scheduler that keeps all cores busy to the end.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Rows of a morsel: about a hundred per second and core, so that no core waits long for the last.
const MORSEL: usize = 1 << 18;

/// Folds all morsels of `rows` rows, each thread into a state of its own, and returns the states.
pub fn fold<S: Send>(
    rows: usize,
    threads: usize,
    start: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, Range<usize>) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut state = start();
        loop {
            let from = next.fetch_add(MORSEL, Ordering::Relaxed);
            if from >= rows {
                return state;
            }
            step(&mut state, from..(from + MORSEL).min(rows));
        }
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut states = vec![work()];
        states.extend(others.into_iter().map(|other| other.join().expect("loops do not panic")));
        states
    })
}

/// Adds up the groups of all threads.
pub fn sum_groups(states: Vec<Vec<i64>>) -> Vec<i64> {
    let add = |mut total: Vec<i64>, more: Vec<i64>| {
        total.iter_mut().zip(more).for_each(|(total, more)| *total += more);
        total
    };
    states.into_iter().reduce(add).unwrap_or_default()
}
