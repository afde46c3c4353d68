//! Work cut into pieces that all workers share: each piece has its own part of the output, so nothing is locked for long.

use std::sync::Mutex;

use tandem_column::{Error, Result};

use crate::settings::ParallelTasks;

/// Rows of one piece of work: enough to be worth a task, few enough to stay in a core's cache.
pub(crate) const PIECE: usize = 1 << 16;

/// Runs tasks one after the other on the thread that asks.
pub(crate) fn serially(tasks: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    (0..tasks).try_for_each(task)
}

/// Gives each item to a task of its own.
pub(crate) fn each<T: Send>(parallel: ParallelTasks<'_>, items: Vec<T>, run: impl Fn(usize, T) + Sync) -> Result<()> {
    if items.len() <= 1 {
        items.into_iter().for_each(|item| run(0, item));
        return Ok(());
    }
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    parallel(items.len(), &|task| {
        // A task that panicked took its item with it.
        let item = items[task].lock().map_or(None, |mut item| item.take());
        item.into_iter().for_each(|item| run(task, item));
        Ok(())
    })
}

/// Changes each item in a task of its own; keeps their order.
pub(crate) fn map_each<T: Send, R: Send>(
    parallel: ParallelTasks<'_>,
    items: Vec<T>,
    run: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>> {
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    let pairs = items.into_iter().zip(&mut results).collect();
    each(parallel, pairs, |_, (item, result): (T, &mut Option<R>)| *result = Some(run(item)))?;
    let results: Option<Vec<R>> = results.into_iter().collect();
    results.ok_or_else(|| Error::internal("a task left no result"))
}

/// Returns what each of some tasks computes, in their order.
pub(crate) fn map<R: Send>(
    parallel: ParallelTasks<'_>,
    tasks: usize,
    run: impl Fn(usize) -> R + Sync,
) -> Result<Vec<R>> {
    map_each(parallel, (0..tasks).collect(), run)
}

/// Cuts `0 .. length` into pieces.
pub(crate) fn pieces(length: usize) -> impl ExactSizeIterator<Item = std::ops::Range<usize>> {
    (0..length.div_ceil(PIECE)).map(move |piece| piece * PIECE..length.min((piece + 1) * PIECE))
}

/// Cuts a slice into one of each length.
pub(crate) fn cut<T>(mut all: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut slices = Vec::with_capacity(lengths.size_hint().0);
    for length in lengths {
        let (slice, rest) = all.split_at_mut(length);
        slices.push(slice);
        all = rest;
    }
    slices
}

/// Asks for the cache line of a place of a slice; nothing outside of it is touched.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], place: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that reads nothing and raises no fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(place).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, place);
}
