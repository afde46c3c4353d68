//! Blocks that clients sent: build sides of joins, kept for the other tasks of their application.
//!
//! A block is sent by one connection while others that need it wait (single flight). If the sender fails, the next one
//! that waits is asked. What was used longest ago goes first when the byte budget is exceeded.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tandem_column::{Error, Result, Table};
use tandem_runtime::Cancel;

/// How often a waiting command looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// Names a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) application: String,
    pub(crate) key: String,
    pub(crate) digest: Vec<u8>,
}

enum BlockSlot {
    /// A connection was asked to send it.
    Pending,
    Ready {
        table: Arc<Table>,
        bytes: usize,
        used: u64,
    },
}

#[derive(Default)]
struct BlocksState {
    slots: HashMap<Key, BlockSlot>,
    bytes: usize,
    clock: u64,
    /// Open connections of each application, and when the last one was closed.
    applications: HashMap<String, (usize, Instant)>,
}

/// The blocks of all applications.
pub(crate) struct Blocks {
    limit: usize,
    state: Mutex<BlocksState>,
    arrived: Condvar,
}

/// What a command finds of a block.
pub(crate) enum BlockState<'b> {
    /// It is here.
    Here(Arc<Table>),
    /// The command's connection must send it.
    Send(BlockArrival<'b>),
    /// Another connection sends it.
    Elsewhere,
}

impl Blocks {
    pub(crate) fn new(limit: usize) -> Blocks {
        Blocks { limit, state: Mutex::default(), arrived: Condvar::new() }
    }

    /// Looks for a block; the caller becomes its sender if nobody has or sends it.
    pub(crate) fn find(&self, key: &Key) -> BlockState<'_> {
        let mut state = self.state.lock();
        state.clock += 1;
        let clock = state.clock;
        match state.slots.get_mut(key) {
            Some(BlockSlot::Ready { table, used, .. }) => {
                *used = clock;
                BlockState::Here(table.clone())
            }
            Some(BlockSlot::Pending) => BlockState::Elsewhere,
            None => {
                state.slots.insert(key.clone(), BlockSlot::Pending);
                BlockState::Send(BlockArrival { blocks: self, key: key.clone(), landed: false })
            }
        }
    }

    /// Waits until something changed that another connection sends; not for long.
    pub(crate) fn wait(&self, cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        let mut state = self.state.lock();
        self.arrived.wait_for(&mut state, LOOK);
        drop(state);
        cancel.check()
    }

    fn put(&self, key: &Key, table: Arc<Table>) -> Result<()> {
        let bytes = table.byte_len();
        let mut state = self.state.lock();
        if bytes > self.limit {
            let (limit, bytes) = (self.limit >> 20, bytes >> 20);
            return Err(Error::exhausted(format!(
                "a block is larger than the room for blocks: raise --blocks (limit {limit} MB, block {bytes} MB)"
            )));
        }
        state.clock += 1;
        let used = state.clock;
        // Only the one asked for it puts it there, in place of its pending slot.
        state.slots.insert(key.clone(), BlockSlot::Ready { table, bytes, used });
        state.bytes += bytes;
        while state.bytes > self.limit {
            let oldest = state.slots.iter().filter_map(|(key, slot)| match slot {
                BlockSlot::Ready { used, .. } => Some((*used, key.clone())),
                BlockSlot::Pending => None,
            });
            let Some((_, oldest)) = oldest.min_by_key(|(used, _)| *used) else { break };
            state.remove(|key| *key == oldest);
        }
        Ok(())
    }

    /// Drops the blocks of an application.
    pub(crate) fn release(&self, application: &str) {
        self.state.lock().remove(|key| key.application == application);
    }

    /// Notes a new connection of an application.
    pub(crate) fn connect(&self, application: &str) {
        let mut state = self.state.lock();
        let (open, _) = state.applications.entry(application.to_owned()).or_insert((0, Instant::now()));
        *open += 1;
    }

    /// Notes that a connection of an application was closed.
    pub(crate) fn disconnect(&self, application: &str) {
        let mut state = self.state.lock();
        let state = &mut *state;
        let Some((open, closed)) = state.applications.get_mut(application) else { return };
        (*open, *closed) = (open.saturating_sub(1), Instant::now());
        // Of one that left nothing nothing is kept: clients choose the names.
        if *open == 0 && !state.slots.keys().any(|key| key.application == application) {
            state.applications.remove(application);
        }
    }

    /// Drops the blocks of applications that have had no connection for a while.
    pub(crate) fn sweep(&self, linger: Duration) {
        let mut state = self.state.lock();
        let gone = |(_, (open, closed)): &(&String, &(usize, Instant))| *open == 0 && closed.elapsed() > linger;
        let gone: Vec<String> = state.applications.iter().filter(gone).map(|(name, _)| name.clone()).collect();
        for application in gone {
            state.applications.remove(&application);
            state.remove(|key| key.application == application);
        }
    }

    /// Returns how many blocks there are, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.state.lock();
        let ready = state.slots.values().filter(|slot| matches!(slot, BlockSlot::Ready { .. })).count();
        (ready, state.bytes)
    }
}

impl BlocksState {
    fn remove(&mut self, matches: impl Fn(&Key) -> bool) {
        let bytes = &mut self.bytes;
        self.slots.retain(|key, slot| match slot {
            BlockSlot::Ready { bytes: size, .. } if matches(key) => {
                *bytes -= *size;
                false
            }
            _ => true,
        });
    }
}

/// The duty to send a block. Dropped without a block, the next one that waits is asked.
pub(crate) struct BlockArrival<'b> {
    blocks: &'b Blocks,
    key: Key,
    landed: bool,
}

impl BlockArrival<'_> {
    /// Keeps the block that arrived, and wakes those who wait for it.
    pub(crate) fn land(mut self, table: Arc<Table>) -> Result<()> {
        self.blocks.put(&self.key, table)?;
        self.landed = true;
        Ok(())
    }
}

impl Drop for BlockArrival<'_> {
    fn drop(&mut self) {
        // Once landed the block is no longer this arrival's: it may be gone, and another may be asked for it.
        if !self.landed {
            self.blocks.state.lock().slots.remove(&self.key);
        }
        self.blocks.arrived.notify_all();
    }
}
