//! The memory that work may take: every byte that matters is taken from a budget before it is allocated.
//!
//! A [`MemoryBudget`] is a limit and a count; a [`Reservation`] is a part of it that is given back when it is dropped, and
//! lives as long as the memory it stands for. A budget may be part of another one (a command's within its daemon's). Where a
//! budget is used up, what can be had again (a cache) is asked to give way before the answer is no.

use std::{
    borrow::Cow,
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{Error, Result};

/// Something that holds memory of a budget and can do without it.
pub trait Reclaim: Send + Sync {
    /// Gives at least `bytes` back to the budget, or as much as it can. May be called from any thread, at any time, also while
    /// the caller holds locks of its own: takes nothing from a budget.
    fn reclaim(&self, bytes: usize);
}

/// A byte limit shared by everything that counts against it.
pub struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    /// What this counts against, too.
    of: Option<Arc<MemoryBudget>>,
    reclaimer: OnceLock<Weak<dyn Reclaim>>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBudget").field("limit", &self.limit).field("used", &self.used()).finish_non_exhaustive()
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        MemoryBudget::new(usize::MAX)
    }
}

impl MemoryBudget {
    /// Makes a budget of `limit` bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget { limit, used: AtomicUsize::new(0), of: None, reclaimer: OnceLock::new() }
    }

    /// Makes a budget of `limit` bytes of another one: what is taken here is taken there, too.
    pub fn within(of: &Arc<MemoryBudget>, limit: usize) -> MemoryBudget {
        MemoryBudget { of: Some(of.clone()), ..MemoryBudget::new(limit) }
    }

    /// Names who gives way when this budget is used up; the first one stays.
    pub fn reclaim_from(&self, reclaimer: Weak<dyn Reclaim>) {
        let _ = self.reclaimer.set(reclaimer);
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes taken now.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` for `what`.
    ///
    /// # Errors
    /// Exhausted if the limit would be passed, even after what can be reclaimed was; nothing is taken then.
    pub fn take(&self, bytes: usize, what: &str) -> Result<()> {
        if self.try_take(bytes) || self.try_reclaimed(bytes) {
            return match &self.of {
                Some(of) => of.take(bytes, what).inspect_err(|_| {
                    self.used.fetch_sub(bytes, Ordering::Relaxed);
                }),
                None => Ok(()),
            };
        }
        Err(Error::exhausted(format!(
            "the memory limit is too small for {what}: raise --memory-limit or make the query smaller \
             (limit {} MB, used {} MB, asked {} MB more)",
            self.limit >> 20,
            self.used() >> 20,
            (bytes >> 20).max(1)
        )))
    }

    /// Takes `bytes` if they are free, and disturbs nobody for them; tells whether it did.
    pub fn take_free(&self, bytes: usize) -> bool {
        if !self.try_take(bytes) {
            return false;
        }
        let taken = self.of.as_ref().is_none_or(|of| of.take_free(bytes));
        if !taken {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn try_take(&self, bytes: usize) -> bool {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn try_reclaimed(&self, bytes: usize) -> bool {
        let Some(reclaimer) = self.reclaimer.get().and_then(Weak::upgrade) else { return false };
        // What cannot fit however much is given back is not worth a cache.
        if bytes > self.limit {
            return false;
        }
        reclaimer.reclaim(bytes.saturating_sub(self.limit.saturating_sub(self.used())));
        self.try_take(bytes)
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(of) = &self.of {
            of.give(bytes);
        }
    }
}

/// Bytes taken from a budget for as long as this lives.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    what: Cow<'static, str>,
    bytes: usize,
}

impl Reservation {
    /// Makes an empty one, for `what`.
    pub fn new(budget: &Arc<MemoryBudget>, what: impl Into<Cow<'static, str>>) -> Reservation {
        Reservation { budget: budget.clone(), what: what.into(), bytes: 0 }
    }

    /// Makes one of `bytes`, for `what`.
    ///
    /// # Errors
    /// Exhausted if the budget has no more.
    pub fn take(budget: &Arc<MemoryBudget>, what: impl Into<Cow<'static, str>>, bytes: usize) -> Result<Reservation> {
        let mut taken = Reservation::new(budget, what);
        taken.resize(bytes)?;
        Ok(taken)
    }

    /// Makes one of `bytes` that are free, and disturbs nobody for them; `None` if there are not as many.
    pub fn take_free(budget: &Arc<MemoryBudget>, what: &'static str, bytes: usize) -> Option<Reservation> {
        budget.take_free(bytes).then(|| Reservation { budget: budget.clone(), what: Cow::Borrowed(what), bytes })
    }

    /// Returns the bytes taken.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the budget that they are of.
    pub fn budget(&self) -> &Arc<MemoryBudget> {
        &self.budget
    }

    /// Makes the reservation at least `bytes` large.
    ///
    /// # Errors
    /// Exhausted if the budget has no more; nothing changes then.
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        self.resize(bytes.max(self.bytes))
    }

    /// Makes the reservation larger by `bytes`.
    ///
    /// # Errors
    /// Exhausted if the budget has no more; nothing changes then.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// Splits off `bytes`, or all if there are fewer.
    pub fn split_off(&mut self, bytes: usize) -> Reservation {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Reservation { budget: self.budget.clone(), what: self.what.clone(), bytes }
    }

    /// Takes more bytes, or gives some back, until there are `bytes`.
    ///
    /// # Errors
    /// Exhausted if the budget has no more; nothing changes then.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(0) => {}
            Some(more) => self.budget.take(more, &self.what)?,
            None => self.budget.give(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_share_counts_against_the_whole() {
        let whole = Arc::new(MemoryBudget::new(100));
        let (one, other) = (MemoryBudget::within(&whole, 80), MemoryBudget::within(&whole, 80));
        one.take(70, "x").unwrap();
        assert!(one.take(20, "x").is_err() && other.take(40, "x").is_err());
        assert!(!other.take_free(40));
        assert_eq!((one.used(), other.used(), whole.used()), (70, 0, 70));
        one.give(70);
        other.take(80, "x").unwrap();
        assert_eq!(whole.used(), 80);
    }

    #[test]
    fn no_size_wraps_around() {
        let budget = Arc::new(MemoryBudget::new(100));
        budget.take(60, "x").unwrap();
        assert!(budget.take(usize::MAX, "x").is_err() && budget.take(usize::MAX - 50, "x").is_err());
        let mut reservation = Reservation::take(&budget, "y", 40).unwrap();
        assert!(reservation.add(usize::MAX).is_err() && reservation.add(1).is_err());
        reservation.resize(10).unwrap();
        assert_eq!((reservation.bytes(), budget.used()), (10, 70));
        drop(reservation);
        assert_eq!(budget.used(), 60);
    }

    /// Holds a budget's bytes until it is asked to give way.
    struct Cached(Mutex<Vec<Reservation>>);

    impl Reclaim for Cached {
        fn reclaim(&self, bytes: usize) {
            let (mut held, mut given) = (self.0.lock().unwrap(), 0);
            while given < bytes
                && let Some(one) = held.pop()
            {
                given += one.bytes();
            }
        }
    }

    #[test]
    fn what_is_cached_gives_way() {
        let budget = Arc::new(MemoryBudget::new(100));
        let held = (0..8).map(|_| Reservation::take(&budget, "cache", 10).unwrap()).collect();
        let cache = Arc::new(Cached(Mutex::new(held)));
        let weak: Weak<dyn Reclaim> = Arc::downgrade(&(cache.clone() as Arc<dyn Reclaim>));
        budget.reclaim_from(weak);
        assert!(!budget.take_free(30), "not disturbed");
        budget.take(45, "query").unwrap();
        assert_eq!((cache.0.lock().unwrap().len(), budget.used()), (5, 95));
        assert!(budget.take(101, "query").is_err());
        assert_eq!(cache.0.lock().unwrap().len(), 5, "given up for nothing");
        let part = Arc::new(MemoryBudget::within(&budget, 60));
        part.take(55, "query").unwrap();
        assert_eq!(budget.used(), 100);
        assert!(part.take(6, "query").is_err(), "its own limit");
    }
}
