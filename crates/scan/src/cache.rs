//! Decoded columns that stay resident, within a byte budget.
//!
//! The unit is one column of one row group. What was used longest ago goes first when the budget is exceeded; a column
//! larger than the whole budget is never kept. Columns that a statement is using stay, for dropping them would free nothing: so
//! every column in memory counts once, here or against the statement that decoded it and got it back. A column that two
//! loads need at once is decoded by one of them while the other waits for it: decoding never waits for anything itself,
//! so this cannot deadlock.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Condvar, Mutex};
use tandem_column::{Column, MemoryBudget, Reclaim, Reservation, Result};

use crate::file::Identity;

/// Names one column of one row group of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) file: Identity,
    pub(crate) group: u32,
    pub(crate) column: u32,
}

/// A column of a row group, in one piece or, where the row group is large, several.
pub(crate) type Pieces = Arc<[Arc<Column>]>;

enum CacheSlot {
    /// Being decoded by some thread.
    Pending,
    Ready {
        pieces: Pieces,
        held: Reservation,
        used: u64,
    },
}

/// Returns the memory that pieces take, in bytes; a dictionary that they share counts once.
pub(crate) fn byte_len(pieces: &[Arc<Column>]) -> usize {
    let dictionary = pieces.first().and_then(|piece| piece.dictionary()).map_or(0, |dictionary| dictionary.byte_len());
    dictionary + pieces.iter().map(|piece| piece.byte_len()).sum::<usize>()
}

/// Tells whether nobody but the cache has the pieces.
fn is_idle(pieces: &Pieces) -> bool {
    Arc::strong_count(pieces) == 1 && pieces.iter().all(|piece| Arc::strong_count(piece) == 1)
}

#[derive(Default)]
struct CacheState {
    slots: HashMap<Key, CacheSlot>,
    clock: u64,
    /// Insertions that do not look for room, because the last search found none.
    patience: usize,
}

/// Decoded columns of files, kept within a byte budget. Shared by all tables of a session.
pub struct ColumnCache {
    memory: Arc<MemoryBudget>,
    state: Mutex<CacheState>,
    decoded: Condvar,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ColumnCache {
    /// Makes an empty cache that holds at most `limit_bytes` bytes of columns; 0 keeps nothing.
    pub fn new(limit_bytes: usize) -> Arc<ColumnCache> {
        ColumnCache::counting(MemoryBudget::new(limit_bytes))
    }

    /// Makes an empty cache of at most `limit_bytes` bytes that count against `memory`, and are given up when it is used up.
    pub fn within(memory: &Arc<MemoryBudget>, limit_bytes: usize) -> Arc<ColumnCache> {
        let cache = ColumnCache::counting(MemoryBudget::within(memory, limit_bytes));
        let reclaimer: Weak<dyn Reclaim> = Arc::downgrade(&(cache.clone() as Arc<dyn Reclaim>));
        memory.reclaim_from(reclaimer);
        cache
    }

    fn counting(memory: MemoryBudget) -> Arc<ColumnCache> {
        Arc::new(ColumnCache {
            memory: Arc::new(memory),
            state: Mutex::default(),
            decoded: Condvar::new(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// Forgets all columns. Tables already loaded keep theirs.
    pub fn clear(&self) {
        self.remove(|_| true);
    }

    /// Returns the bytes of the columns held.
    pub fn byte_len(&self) -> usize {
        self.memory.used()
    }

    /// Returns the byte budget.
    pub fn limit(&self) -> usize {
        self.memory.limit()
    }

    /// Returns how many columns of row groups were found resident since the start.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Returns how many columns of row groups had to be decoded since the start.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// Forgets the columns of a file that changed.
    pub(crate) fn remove_file(&self, file: Identity) {
        self.remove(|key| key.file == file);
    }

    fn remove(&self, matches: impl Fn(&Key) -> bool) {
        let goes = |key: &Key, slot: &mut CacheSlot| matches!(slot, CacheSlot::Ready { .. }) && matches(key);
        let gone: Vec<(Key, CacheSlot)> = self.state.lock().slots.extract_if(|key, slot| goes(key, slot)).collect();
        // Freed when nobody waits for the lock.
        drop(gone);
    }

    /// Forgets some columns.
    pub(crate) fn remove_columns(&self, keys: &HashSet<Key>) {
        self.remove(|key| keys.contains(key));
    }

    /// Returns a column if it is resident.
    pub(crate) fn get(&self, key: &Key) -> Option<Pieces> {
        let mut state = self.state.lock();
        state.clock += 1;
        let clock = state.clock;
        match state.slots.get_mut(key) {
            Some(CacheSlot::Ready { pieces, used, .. }) => {
                *used = clock;
                let pieces = pieces.clone();
                drop(state);
                self.hits.fetch_add(1, Ordering::Relaxed);
                Some(pieces)
            }
            _ => None,
        }
    }

    /// Returns a column, decoding it if it is neither resident nor being decoded by another thread. The reservation of a
    /// column that finds no room here comes back.
    pub(crate) fn get_or_decode(
        &self,
        key: Key,
        decode: impl FnOnce() -> Result<(Pieces, Reservation)>,
    ) -> Result<(Pieces, Option<Reservation>)> {
        let mut state = self.state.lock();
        loop {
            match state.slots.get(&key) {
                Some(CacheSlot::Pending) => self.decoded.wait(&mut state),
                Some(CacheSlot::Ready { .. }) => {
                    drop(state);
                    match self.get(&key) {
                        Some(pieces) => return Ok((pieces, None)),
                        None => state = self.state.lock(),
                    }
                }
                None => break,
            }
        }
        state.slots.insert(key, CacheSlot::Pending);
        drop(state);
        self.misses.fetch_add(1, Ordering::Relaxed);
        // Whatever happens, those who wait must wake up: on failure the slot is empty again and one of them decodes.
        let decoding = Decoding { cache: self, key };
        let (pieces, held) = decode()?;
        let held = self.put(key, pieces.clone(), held)?;
        drop(decoding);
        Ok((pieces, held))
    }

    /// Keeps a column, in place of what was there; gives its reservation back if there is no room for it.
    ///
    /// # Errors
    /// Exhausted, if its memory went to somebody else in between.
    pub(crate) fn put(&self, key: Key, pieces: Pieces, mut held: Reservation) -> Result<Option<Reservation>> {
        let bytes = held.bytes();
        let mut state = self.state.lock();
        if matches!(state.slots.get(&key), Some(CacheSlot::Ready { .. })) {
            state.slots.remove(&key);
        }
        if bytes > self.memory.limit() {
            return Ok(Some(held));
        }
        let room = self.memory.limit() - self.memory.used().min(self.memory.limit());
        if bytes > room && state.patience > 0 {
            state.patience -= 1;
        } else if bytes > room {
            // A little more, so that not every insertion has to search.
            state.evict((bytes - room).max(self.memory.limit() / 16));
        }
        // The bytes change hands: where both count against one budget, they must be free first.
        held.resize(0)?;
        match Reservation::take_free(&self.memory, "cached columns", bytes) {
            Some(kept) => {
                state.clock += 1;
                let used = state.clock;
                state.slots.insert(key, CacheSlot::Ready { pieces, held: kept, used });
                Ok(None)
            }
            None => {
                drop(state);
                held.resize(bytes)?;
                Ok(Some(held))
            }
        }
    }
}

impl CacheState {
    /// Drops what was used longest ago and is not in use, until `bytes` are free or nothing is left to drop.
    fn evict(&mut self, bytes: usize) {
        let idle = self.slots.iter().filter_map(|(key, slot)| match slot {
            CacheSlot::Ready { pieces, used, held } if is_idle(pieces) => Some((*used, *key, held.bytes())),
            _ => None,
        });
        let mut by_use: Vec<(u64, Key, usize)> = idle.collect();
        by_use.sort_unstable_by_key(|&(used, ..)| used);
        let mut freed = 0;
        for (_, key, size) in by_use {
            if freed >= bytes {
                break;
            }
            self.slots.remove(&key);
            freed += size;
        }
        // While all is in use, a search for each insertion would be quadratic.
        self.patience = if freed < bytes { self.slots.len() / 16 } else { 0 };
    }
}

impl Reclaim for ColumnCache {
    fn reclaim(&self, bytes: usize) {
        self.state.lock().evict(bytes);
    }
}

/// A decode under way; wakes the waiting threads when it ends.
struct Decoding<'a> {
    cache: &'a ColumnCache,
    key: Key,
}

impl Drop for Decoding<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        if let Some(CacheSlot::Pending) = state.slots.get(&self.key) {
            state.slots.remove(&self.key);
        }
        drop(state);
        self.cache.decoded.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use tandem_column::{Error, Type};

    use super::*;

    fn key(group: u32) -> Key {
        Key { file: Identity::combine(&[], &"test"), group, column: 0 }
    }

    fn pieces() -> Pieces {
        Arc::new([Arc::new(Column::from_i64(Type::Int64, vec![1; 1000], None))])
    }

    fn one() -> usize {
        byte_len(&pieces())
    }

    fn reserved(memory: &Arc<MemoryBudget>) -> Reservation {
        Reservation::take(memory, "test", one()).expect("room")
    }

    fn put(cache: &ColumnCache, group: u32, pieces: Pieces) -> Option<Reservation> {
        cache.put(key(group), pieces, reserved(&Arc::default())).expect("room")
    }

    #[test]
    fn least_recently_used_goes_first() {
        let cache = ColumnCache::new(one() * 4);
        for group in 0..4 {
            assert!(put(&cache, group, pieces()).is_none());
        }
        assert!(cache.get(&key(0)).is_some());
        assert!(put(&cache, 4, pieces()).is_none());
        assert!(cache.byte_len() <= one() * 4);
        assert!(cache.get(&key(0)).is_some() && cache.get(&key(4)).is_some());
        assert!(cache.get(&key(1)).is_none());
        cache.clear();
        assert_eq!(cache.byte_len(), 0);
    }

    #[test]
    fn what_is_in_use_stays_and_counts_once() {
        let memory = Arc::new(MemoryBudget::new(one() * 6));
        let cache = ColumnCache::within(&memory, one() * 2);
        let used: Vec<Pieces> = (0..3).map(|_| pieces()).collect();
        let held: Vec<Option<Reservation>> = used
            .iter()
            .enumerate()
            .map(|(group, used)| cache.put(key(group as u32), used.clone(), reserved(&memory)).expect("room"))
            .collect();
        // Two are the cache's, the third is its user's.
        assert!(held[0].is_none() && held[1].is_none() && held[2].is_some());
        assert_eq!((cache.byte_len(), memory.used()), (one() * 2, one() * 3));
        // A query that needs all gets nothing of what is in use, and everything once it is not.
        assert!(memory.take(one() * 4, "a query").is_err());
        drop((used, held));
        assert!(memory.take(one() * 5, "a query").is_ok());
        assert_eq!(cache.byte_len(), one());
    }

    #[test]
    fn nothing_is_kept_without_a_budget() {
        let cache = ColumnCache::new(0);
        let memory = Arc::default();
        let (_, held) = cache.get_or_decode(key(0), || Ok((pieces(), reserved(&memory)))).expect("decodes");
        assert_eq!((cache.byte_len(), cache.misses(), memory.used()), (0, 1, one()));
        drop(held);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn one_thread_decodes_and_failures_do_not_stick() {
        let cache = ColumnCache::new(1 << 20);
        assert!(cache.get_or_decode(key(0), || Err(Error::input("no"))).is_err());
        let (decodes, memory) = (AtomicU64::new(0), Arc::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let found = cache.get_or_decode(key(0), || {
                        decodes.fetch_add(1, Ordering::Relaxed);
                        Ok((pieces(), reserved(&memory)))
                    });
                    assert!(found.is_ok());
                });
            }
        });
        assert_eq!(decodes.load(Ordering::Relaxed), 1);
    }
}
