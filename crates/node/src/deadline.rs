//! Reading with an end: however slowly bytes come, one at a time or none at all, a deadline is kept.

use std::{
    io::{self, Read},
    net::TcpStream,
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

/// A stream whose waits can be bounded.
pub(crate) trait Stream {
    /// Bounds how long one read may wait.
    fn bound_read(&self, limit: Duration) -> io::Result<()>;
}

impl Stream for UnixStream {
    fn bound_read(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

impl Stream for TcpStream {
    fn bound_read(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }
}

/// Reads what comes before a deadline.
pub(crate) struct Until<'s, S> {
    pub(crate) stream: &'s S,
    pub(crate) deadline: Instant,
}

impl<'s, S: Stream> Read for Until<'s, S>
where
    &'s S: Read,
{
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // No time at all would mean no limit.
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.bound_read(left)?;
        (&mut &*self.stream).read(bytes)
    }
}
