//! The memory a query may take for what it collects: builds, groups, sorted and materialised rows.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tandem_column::{Error, Result};

/// A byte limit shared by everything that counts against it.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    /// What this counts against, too.
    of: Option<Arc<MemoryBudget>>,
}

impl Default for MemoryBudget {
    fn default() -> Self {
        MemoryBudget::new(usize::MAX)
    }
}

impl MemoryBudget {
    /// Makes a budget of `limit` bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget { limit, used: AtomicUsize::new(0), of: None }
    }

    /// Makes a budget of `limit` bytes of another one: what is taken here is taken there, too.
    pub fn within(of: &Arc<MemoryBudget>, limit: usize) -> MemoryBudget {
        MemoryBudget { limit, used: AtomicUsize::new(0), of: Some(of.clone()) }
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
    /// Exhausted if the limit would be passed; nothing is taken then.
    pub fn take(&self, bytes: usize, what: &str) -> Result<()> {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        if used.saturating_add(bytes) > self.limit {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Error::exhausted(format!(
                "the memory limit is too small for {what}: raise --memory-limit or make the query smaller \
                 (limit {} MB, used {} MB, asked {} MB more)",
                self.limit >> 20,
                used >> 20,
                (bytes >> 20).max(1)
            )));
        }
        match &self.of {
            Some(of) => of.take(bytes, what).inspect_err(|_| {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
            }),
            None => Ok(()),
        }
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
    what: &'static str,
    bytes: usize,
}

impl Reservation {
    /// Makes an empty one, for `what`.
    pub fn new(budget: &Arc<MemoryBudget>, what: &'static str) -> Reservation {
        Reservation { budget: budget.clone(), what, bytes: 0 }
    }

    /// Makes the reservation at least `bytes` large.
    ///
    /// # Errors
    /// Exhausted if the budget has no more.
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            self.budget.take(bytes - self.bytes, self.what)?;
            self.bytes = bytes;
        }
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
    use super::*;

    #[test]
    fn a_share_counts_against_the_whole() {
        let whole = Arc::new(MemoryBudget::new(100));
        let (one, other) = (MemoryBudget::within(&whole, 80), MemoryBudget::within(&whole, 80));
        one.take(70, "x").unwrap();
        assert!(one.take(20, "x").is_err() && other.take(40, "x").is_err());
        assert_eq!((one.used(), other.used(), whole.used()), (70, 0, 70));
        one.give(70);
        other.take(80, "x").unwrap();
        assert_eq!(whole.used(), 80);
    }
}
