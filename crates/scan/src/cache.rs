//! Decoded columns that stay resident, within a byte budget.
//!
//! The unit is one column of one row group. What was used longest ago goes first when the budget is exceeded; a column
//! larger than the whole budget is never kept. A column that two loads need at once is decoded by one of them while the
//! other waits for it: decoding never waits for anything itself, so this cannot deadlock.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Condvar, Mutex};
use tandem_column::{Column, Result};

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

enum Slot {
    /// Being decoded by some thread.
    Pending,
    Ready {
        pieces: Pieces,
        bytes: usize,
        used: u64,
    },
}

#[derive(Default)]
struct State {
    slots: HashMap<Key, Slot>,
    bytes: usize,
    clock: u64,
}

/// Decoded columns of files, kept within a byte budget. Shared by all tables of a session.
pub struct Cache {
    limit: usize,
    state: Mutex<State>,
    decoded: Condvar,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Cache {
    /// Makes an empty cache that holds at most `limit_bytes` bytes of columns; 0 keeps nothing.
    pub fn new(limit_bytes: usize) -> Arc<Cache> {
        Arc::new(Cache {
            limit: limit_bytes,
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
        self.state.lock().bytes
    }

    /// Returns the byte budget.
    pub fn limit(&self) -> usize {
        self.limit
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
        let mut state = self.state.lock();
        let State { slots, bytes, .. } = &mut *state;
        slots.retain(|key, slot| match slot {
            Slot::Ready { bytes: size, .. } if matches(key) => {
                *bytes -= *size;
                false
            }
            _ => true,
        });
    }

    /// Returns a column if it is resident.
    pub(crate) fn get(&self, key: &Key) -> Option<Pieces> {
        let mut state = self.state.lock();
        state.clock += 1;
        let clock = state.clock;
        match state.slots.get_mut(key) {
            Some(Slot::Ready { pieces, used, .. }) => {
                *used = clock;
                let pieces = pieces.clone();
                drop(state);
                self.hits.fetch_add(1, Ordering::Relaxed);
                Some(pieces)
            }
            _ => None,
        }
    }

    /// Returns a column, decoding it if it is neither resident nor being decoded by another thread.
    pub(crate) fn get_or_decode(&self, key: Key, decode: impl FnOnce() -> Result<Pieces>) -> Result<Pieces> {
        let mut state = self.state.lock();
        loop {
            match state.slots.get(&key) {
                Some(Slot::Pending) => self.decoded.wait(&mut state),
                Some(Slot::Ready { .. }) => {
                    drop(state);
                    match self.get(&key) {
                        Some(pieces) => return Ok(pieces),
                        None => state = self.state.lock(),
                    }
                }
                None => break,
            }
        }
        state.slots.insert(key, Slot::Pending);
        drop(state);
        self.misses.fetch_add(1, Ordering::Relaxed);
        // Whatever happens, those who wait must wake up: on failure the slot is empty again and one of them decodes.
        let flight = Flight { cache: self, key };
        let pieces = decode()?;
        self.put(key, pieces.clone());
        drop(flight);
        Ok(pieces)
    }

    /// Keeps a column, in place of what was there.
    pub(crate) fn put(&self, key: Key, pieces: Pieces) {
        let bytes = pieces.iter().map(|piece| piece.byte_len()).sum();
        let mut state = self.state.lock();
        if let Some(Slot::Ready { bytes, .. }) = state.slots.remove(&key) {
            state.bytes -= bytes;
        }
        if bytes > self.limit {
            return;
        }
        state.clock += 1;
        let used = state.clock;
        state.slots.insert(key, Slot::Ready { pieces, bytes, used });
        state.bytes += bytes;
        if state.bytes > self.limit {
            self.evict(&mut state);
        }
    }

    /// Drops what was used longest ago, down to a little below the budget so that not every insertion has to search.
    fn evict(&self, state: &mut State) {
        let target = self.limit - self.limit / 16;
        let mut by_use: Vec<(u64, Key, usize)> = state
            .slots
            .iter()
            .filter_map(|(key, slot)| match slot {
                Slot::Ready { used, bytes, .. } => Some((*used, *key, *bytes)),
                Slot::Pending => None,
            })
            .collect();
        by_use.sort_unstable_by_key(|&(used, ..)| used);
        // The newest stays: it fits the budget by itself.
        by_use.pop();
        for (_, key, bytes) in by_use {
            if state.bytes <= target {
                break;
            }
            state.slots.remove(&key);
            state.bytes -= bytes;
        }
    }
}

/// A decode under way; wakes the waiting threads when it ends.
struct Flight<'a> {
    cache: &'a Cache,
    key: Key,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        if let Some(Slot::Pending) = state.slots.get(&self.key) {
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

    #[test]
    fn least_recently_used_goes_first() {
        let one = pieces().iter().map(|piece| piece.byte_len()).sum::<usize>();
        let cache = Cache::new(one * 4);
        for group in 0..4 {
            cache.put(key(group), pieces());
        }
        assert!(cache.get(&key(0)).is_some());
        cache.put(key(4), pieces());
        assert!(cache.byte_len() <= one * 4);
        assert!(cache.get(&key(0)).is_some() && cache.get(&key(4)).is_some());
        assert!(cache.get(&key(1)).is_none());
        cache.clear();
        assert_eq!(cache.byte_len(), 0);
    }

    #[test]
    fn nothing_is_kept_without_a_budget() {
        let cache = Cache::new(0);
        assert!(cache.get_or_decode(key(0), || Ok(pieces())).is_ok());
        assert_eq!((cache.byte_len(), cache.misses()), (0, 1));
    }

    #[test]
    fn one_thread_decodes_and_failures_do_not_stick() {
        let cache = Cache::new(1 << 20);
        assert!(cache.get_or_decode(key(0), || Err(Error::input("no"))).is_err());
        let decodes = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let found = cache.get_or_decode(key(0), || {
                        decodes.fetch_add(1, Ordering::Relaxed);
                        Ok(pieces())
                    });
                    assert!(found.is_ok());
                });
            }
        });
        assert_eq!(decodes.load(Ordering::Relaxed), 1);
    }
}
