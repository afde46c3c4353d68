//! Who is connected. A client that has not greeted yet has one of a few places apart, for a short time; with its greeting
//! accepted it moves to a place among the connections.
//!
//! Clients of this machine and those over TCP have places of their own, so that none of them waits for the others. When all
//! places for greetings are taken the oldest one is given up: silent clients keep nobody out.

use std::{
    collections::HashMap,
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use crate::{log::Log, tls::Outer};

/// How long a client may take to say who it is, its TLS handshake included.
pub(crate) const GREETING: Duration = Duration::from_secs(5);
/// Clients of one side that are about to greet: each takes up to four descriptors and two threads.
const GREETING_PLACES: usize = 64;
/// How long a client has its place for certain: an honest burst of connections waits for this long at most, and an honest
/// client is done long before.
const GRACE: Duration = Duration::from_millis(200);

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// On this machine.
    Local,
    /// Behind TCP and TLS.
    Remote,
}

/// A connection: its plain end, and the encrypted one if it is remote.
pub(crate) struct Link {
    pub(crate) stream: UnixStream,
    outer: Option<Arc<Outer>>,
}

impl Link {
    /// Makes one of a client on this machine.
    pub(crate) fn local(stream: UnixStream) -> Arc<Link> {
        Arc::new(Link { stream, outer: None })
    }

    /// Makes one of a remote client.
    pub(crate) fn remote(stream: UnixStream, outer: Arc<Outer>) -> Arc<Link> {
        Arc::new(Link { stream, outer: Some(outer) })
    }

    pub(crate) fn side(&self) -> Side {
        if self.outer.is_some() { Side::Remote } else { Side::Local }
    }

    /// Closes it at once, whatever is on its way.
    pub(crate) fn close(&self) {
        if let Some(outer) = &self.outer {
            outer.close();
        }
        // Already closed is closed.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Why a client that has greeted gets no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All are taken.
    Full,
    /// The daemon is ending, or the client was given up meanwhile.
    Ending,
}

struct Entry {
    link: Arc<Link>,
    since: Instant,
    greeted: bool,
}

#[derive(Default)]
struct State {
    next: u64,
    entries: HashMap<u64, Entry>,
    /// Threads that move bytes of connections over TLS.
    tunnels: usize,
    ending: bool,
}

impl State {
    fn count(&self, side: Side, greeted: bool) -> usize {
        self.entries.values().filter(|entry| entry.greeted == greeted && entry.link.side() == side).count()
    }

    /// Finds the client that has been about to greet for longest.
    fn oldest(&self, of: impl Fn(Side) -> bool) -> Option<(u64, Instant)> {
        let greeting = self.entries.iter().filter(|(_, entry)| !entry.greeted && of(entry.link.side()));
        greeting.map(|(id, entry)| (*id, entry.since)).min_by_key(|(_, since)| *since)
    }

    fn give_up(&mut self, id: u64) {
        if let Some(entry) = self.entries.remove(&id) {
            entry.link.close();
        }
    }
}

/// All connections.
#[derive(Default)]
pub(crate) struct Connections {
    state: Mutex<State>,
    changed: Condvar,
}

impl Connections {
    /// Gives a client a place until it has greeted, if need be that of the oldest one; `None` once the daemon is ending.
    pub(crate) fn enter(&self, link: &Arc<Link>) -> Option<u64> {
        let (side, mut state) = (link.side(), self.state.lock());
        while !state.ending && state.count(side, false) >= GREETING_PLACES {
            let Some((oldest, since)) = state.oldest(|of| of == side) else { break };
            if since.elapsed() >= GRACE {
                state.give_up(oldest);
            } else {
                self.changed.wait_until(&mut state, since + GRACE);
            }
        }
        if state.ending {
            return None;
        }
        state.next += 1;
        let id = state.next;
        state.entries.insert(id, Entry { link: link.clone(), since: Instant::now(), greeted: false });
        Some(id)
    }

    /// Gives a client that has greeted a place among the connections, of which its side has at most so many.
    pub(crate) fn greeted(&self, id: u64, most: usize) -> Result<(), NoPlace> {
        let mut state = self.state.lock();
        if state.ending {
            return Err(NoPlace::Ending);
        }
        let side = state.entries.get(&id).ok_or(NoPlace::Ending)?.link.side();
        if state.count(side, true) >= most {
            return Err(NoPlace::Full);
        }
        let entry = state.entries.get_mut(&id).ok_or(NoPlace::Ending)?;
        entry.greeted = true;
        if let Some(outer) = &entry.link.outer {
            outer.trust();
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Frees a client's place.
    pub(crate) fn leave(&self, id: u64) {
        self.state.lock().entries.remove(&id);
        self.changed.notify_all();
    }

    /// Gives up clients whose time to greet is over; returns how many.
    pub(crate) fn give_up_late(&self) -> usize {
        let mut state = self.state.lock();
        let late = state.entries.iter().filter(|(_, entry)| !entry.greeted && entry.since.elapsed() >= GREETING);
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        late.iter().for_each(|id| state.give_up(*id));
        late.len()
    }

    /// Gives up a client that has not greeted, a remote one first, so that its descriptors are free.
    pub(crate) fn make_room(&self) {
        let mut state = self.state.lock();
        let oldest = state.oldest(|side| side == Side::Remote).or_else(|| state.oldest(|_| true));
        if let Some((id, since)) = oldest
            && since.elapsed() >= GRACE
        {
            state.give_up(id);
        }
    }

    /// Takes no more clients, and gives up those that have not greeted.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.ending = true;
        while let Some((id, _)) = state.oldest(|_| true) {
            state.give_up(id);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Shuts one way or both of all connections.
    pub(crate) fn shut(&self, way: Shutdown) {
        for entry in self.state.lock().entries.values() {
            // Already closed is closed.
            let _ = entry.link.stream.shutdown(way);
        }
    }

    /// Waits until nobody is connected and the last bytes of all are sent, at most for a while.
    pub(crate) fn wait_for_none(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while !(state.entries.is_empty() && state.tunnels == 0) {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }

    /// Returns how many clients are connected, and how many are about to greet.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        let greeted = state.entries.values().filter(|entry| entry.greeted).count();
        (greeted, state.entries.len() - greeted)
    }

    /// Counts a thread that moves bytes while what is returned is there; `None` if there are too many for `most` connections.
    pub(crate) fn tunnel(self: &Arc<Self>, most: usize, log: Log) -> Option<Tunnel> {
        let mut state = self.state.lock();
        // Those that were given up end at once, but a thread takes its time.
        if state.tunnels >= most.saturating_add(2 * GREETING_PLACES) {
            return None;
        }
        state.tunnels += 1;
        Some(Tunnel { connections: self.clone(), log })
    }
}

/// Counts a thread that moves bytes of a connection over TLS.
pub(crate) struct Tunnel {
    connections: Arc<Connections>,
    log: Log,
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.log.panicked("tls", &"the connection is closed");
        }
        self.connections.state.lock().tunnels -= 1;
        self.connections.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (UnixStream, Arc<Link>) {
        let (client, stream) = UnixStream::pair().expect("a pair of sockets");
        (client, Link::local(stream))
    }

    #[test]
    fn the_oldest_greeting_makes_room() {
        let connections = Connections::default();
        let mut clients = Vec::new();
        for _ in 0..3 * GREETING_PLACES {
            let (client, link) = link();
            let id = connections.enter(&link).expect("the daemon is not ending");
            clients.push((client, link, id));
        }
        assert_eq!(connections.counts(), (0, GREETING_PLACES));
        let last = clients.last().expect("there are some").2;
        assert_eq!(connections.greeted(clients[0].2, 10), Err(NoPlace::Ending), "it was given up");
        assert_eq!(connections.greeted(last, 0), Err(NoPlace::Full));
        assert_eq!(connections.greeted(last, 1), Ok(()));
        assert_eq!(connections.counts(), (1, GREETING_PLACES - 1));
        connections.end();
        assert_eq!(connections.counts(), (1, 0), "who has not greeted is gone, the others stay");
        assert!(connections.enter(&link().1).is_none());
    }
}
