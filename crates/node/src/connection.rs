//! One client: greeting, then one command after the other.
//!
//! Two threads serve a connection. One reads frames all the time, so that it sees at once when the client cancels or goes away, and answers
//! pings; the other runs commands and writes results. Both write whole frames under one lock.

use std::{
    any::Any,
    io,
    net::Shutdown,
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prost::Message;
use subtle::ConstantTimeEq;
use tandem_column::Result;
use tandem_pipeline::proto::decode;
use tandem_runtime::Cancel;

use crate::{
    LogLevel, command,
    connections::{GREETING, Link, NoPlace, Side},
    daemon::Daemon,
    deadline::Until,
    frame::{self, FrameKind, Lost, PROTOCOL, WireFrame},
    metrics::{self, Counters},
    proto,
};

/// The most bytes of a greeting: strings of a client that is not known yet.
const GREETING_BYTES: usize = 64 << 10;
/// The most bytes of the name of an application or executor: they are kept, and copied, for every block.
const NAME_BYTES: usize = 1 << 10;
/// The part of the limit of a message that a command may have: unlike a block it takes many times its bytes once it is read.
const EXECUTE_SHARE: usize = 8;
/// The most bytes of a ping.
const PING_BYTES: usize = 64;
/// Frames read ahead of the command that takes them.
const AHEAD: usize = 2;

/// The command that runs, as the reading thread knows it.
#[derive(Clone, Default)]
pub(crate) struct Current {
    /// Stops it.
    pub(crate) cancel: Cancel,
    /// It waits for blocks; at other times the ones that come are of a command that has failed.
    pub(crate) wants_blocks: Arc<AtomicBool>,
}

/// What the reading thread hands on.
pub(crate) enum Incoming {
    /// A command.
    Execute(Vec<u8>, Current),
    /// Any other frame.
    Other(WireFrame),
}

/// The writing side of a connection.
pub(crate) struct Writer<'s> {
    stream: &'s UnixStream,
    frame: Mutex<()>,
}

impl Writer<'_> {
    /// Writes a frame whole. A stream that fails is closed, so that the reading side notices.
    pub(crate) fn send(&self, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
        let _whole = self.frame.lock();
        let mut stream = self.stream;
        frame::write(&mut stream, kind, payload).inspect_err(|_| drop(stream.shutdown(Shutdown::Both)))
    }

    fn fail(&self, class: proto::Class, message: &str) {
        let failure = proto::Failure { class: class as i32, message: message.to_owned(), retryable: false };
        // The client may be gone: then there is nobody to tell.
        let _ = self.send(FrameKind::Failure, &failure.encode_to_vec());
    }
}

/// Tells a client that the daemon is ending, and closes.
pub(crate) fn turn_away(stream: &UnixStream) {
    // Nothing that waits for a client may hold up those who are accepted.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    let _ = frame::write(&mut &*stream, FrameKind::Failure, &no_place(NoPlace::Ending, 0).encode_to_vec());
    let _ = stream.shutdown(Shutdown::Both);
}

/// Says why a client gets no place among at most so many.
fn no_place(reason: NoPlace, most: usize) -> proto::Failure {
    let (class, message) = match reason {
        NoPlace::Ending => (proto::Class::Draining, "the daemon is ending: connect again later".to_owned()),
        NoPlace::Full => (
            proto::Class::Protocol,
            format!("too many connections: close some, or raise --max-connections (limit {most})"),
        ),
    };
    proto::Failure { class: class as i32, message, retryable: true }
}

/// Serves a connection until it ends.
pub(crate) fn run(daemon: &Daemon, link: &Link, id: u64) {
    let stream = &link.stream;
    let writer = Writer { stream, frame: Mutex::new(()) };
    let needs_token = link.side() == Side::Remote || daemon.token.is_some();
    let hello = match stream.set_write_timeout(Some(daemon.options.client_timeout())) {
        Ok(()) => greet(daemon, stream, &writer, id, needs_token),
        Err(_) => None,
    };
    let Some(hello) = hello else {
        let _ = stream.shutdown(Shutdown::Both);
        return;
    };
    let (application, executor) = (&hello.application, &hello.executor);
    daemon.log.event(
        LogLevel::Debug,
        "connected",
        &[("id", &id), ("application", application), ("executor", executor)],
    );
    daemon.join(application, executor, hello.cores);
    daemon.blocks.connect(application);
    let (sender, receiver) = sync_channel(AHEAD);
    let current = Mutex::new(None::<Current>);
    // A panic is the daemon's fault: it is logged, the client is told, and its command stopped.
    let panicked = |place: &str, panic: &(dyn Any + Send)| {
        daemon.log.panicked(place, panic);
        writer.fail(proto::Class::Internal, "the daemon failed at this connection; please report this as a bug");
        if let Some(running) = &*current.lock() {
            running.cancel.cancel();
        }
        let _ = stream.shutdown(Shutdown::Both);
    };
    std::thread::scope(|scope| {
        let reading = || {
            let read = AssertUnwindSafe(|| read_frames(daemon, stream, &writer, &current, sender));
            catch_unwind(read).unwrap_or_else(|panic| panicked("reader", &*panic));
        };
        match std::thread::Builder::new().name(format!("reader-{id}")).spawn_scoped(scope, reading) {
            Ok(_) => {
                let run = AssertUnwindSafe(|| run_commands(daemon, &writer, &current, &receiver, application));
                catch_unwind(run).unwrap_or_else(|panic| panicked("connection", &*panic));
            }
            Err(_) => writer.fail(proto::Class::Exhausted, "the daemon has no thread for this connection"),
        }
        // The reader waits for a frame, or for room to hand one on.
        let _ = stream.shutdown(Shutdown::Both);
        drop(receiver);
    });
    daemon.blocks.disconnect(application);
    daemon.leave(application, executor);
    daemon.log.event(LogLevel::Debug, "disconnected", &[("id", &id)]);
}

/// Reads the greeting and answers it; `None` if the client is refused.
fn greet(
    daemon: &Daemon,
    stream: &UnixStream,
    writer: &Writer<'_>,
    id: u64,
    needs_token: bool,
) -> Option<proto::Hello> {
    let refuse = |message: &str| {
        Counters::add(&daemon.counters.refused, 1);
        daemon.log.event(LogLevel::Warn, "refused", &[("reason", &message)]);
        writer.fail(proto::Class::Protocol, message);
        None
    };
    let mut greeting = Until { stream, deadline: Instant::now() + GREETING };
    let frame = match frame::read(&mut greeting, |_| GREETING_BYTES, || Ok(())) {
        Ok(frame) if frame.kind == FrameKind::Hello => frame,
        Ok(_) => return refuse("a connection begins with a greeting (HELLO)"),
        Err(Lost::Refused(reason)) => return refuse(&reason),
        Err(Lost::Closed | Lost::Failed(_)) => return None,
    };
    let hello: proto::Hello = match decode(&frame.payload, "the greeting") {
        Ok(hello) => hello,
        Err(error) => return refuse(&error.message),
    };
    if hello.protocol != PROTOCOL {
        return refuse(&format!(
            "client and daemon speak different versions of the protocol: use one release (client {} with protocol {}, \
             daemon {} with protocol {PROTOCOL})",
            hello.client_version,
            hello.protocol,
            env!("CARGO_PKG_VERSION")
        ));
    }
    let expected = daemon.token.as_deref().unwrap_or_default();
    if needs_token && !bool::from(hello.token.as_bytes().ct_eq(expected.as_bytes())) {
        return refuse("the token is missing or wrong: give the client the daemon's token");
    }
    if hello.application.len().max(hello.executor.len()) > NAME_BYTES {
        return refuse(&format!("the name of an application or executor is too long: give at most {NAME_BYTES} bytes"));
    }
    if let Err(reason) = daemon.connections.greeted(id, daemon.options.max_connections) {
        Counters::add(&daemon.counters.refused, 1);
        let failure = no_place(reason, daemon.options.max_connections);
        daemon.log.event(LogLevel::Warn, "refused", &[("reason", &failure.message)]);
        // The client may be gone: then there is nobody to tell.
        let _ = writer.send(FrameKind::Failure, &failure.encode_to_vec());
        return None;
    }
    let welcome = proto::Welcome {
        protocol: PROTOCOL,
        daemon_version: env!("CARGO_PKG_VERSION").to_owned(),
        daemon: daemon.id.clone(),
        pid: std::process::id(),
        threads: daemon.runtime.threads() as u32,
        max_message_bytes: (daemon.options.max_message as u64) << 20,
        devices: daemon.device_labels(),
        query_version: tandem_pipeline::proto::VERSION,
    };
    writer.send(FrameKind::Welcome, &welcome.encode_to_vec()).ok()?;
    Some(hello)
}

/// Reads frames until the connection ends, and stops the running command when it does.
fn read_frames(
    daemon: &Daemon,
    stream: &UnixStream,
    writer: &Writer<'_>,
    current: &Mutex<Option<Current>>,
    sender: SyncSender<Incoming>,
) {
    let limit = daemon.options.max_message << 20;
    let most = |kind: FrameKind| if kind == FrameKind::Execute { limit / EXECUTE_SHARE } else { limit };
    let begun = || stream.set_read_timeout(Some(daemon.options.client_timeout()));
    let refused = loop {
        if stream.set_read_timeout(None).is_err() {
            break None;
        }
        let frame = match frame::read(&mut &*stream, most, begun) {
            Ok(frame) => frame,
            Err(Lost::Refused(reason)) => break Some(reason),
            Err(Lost::Closed | Lost::Failed(_)) => break None,
        };
        let handed_on = match frame.kind {
            FrameKind::Ping if frame.payload.len() > PING_BYTES => break Some("a ping is too long".to_owned()),
            FrameKind::Ping => writer.send(FrameKind::Pong, &frame.payload).is_ok(),
            FrameKind::Status => writer.send(FrameKind::Report, &metrics::report(daemon).encode_to_vec()).is_ok(),
            FrameKind::Cancel => {
                if let Some(running) = &*current.lock() {
                    running.cancel.cancel();
                }
                true
            }
            FrameKind::Execute | FrameKind::Release if current.lock().is_some() => {
                break Some("one command at a time: wait for the end of the last one".to_owned());
            }
            FrameKind::Execute => {
                let running = current.lock().insert(Current::default()).clone();
                sender.send(Incoming::Execute(frame.payload, running)).is_ok()
            }
            FrameKind::Release => sender.send(Incoming::Other(frame)).is_ok(),
            // Nothing that no command takes may keep this thread from seeing the client's end.
            FrameKind::Block | FrameKind::BlockEnd => {
                let wanted =
                    current.lock().as_ref().is_some_and(|running| running.wants_blocks.load(Ordering::Relaxed));
                !wanted || sender.send(Incoming::Other(frame)).is_ok()
            }
            _ => break Some("a client sends no such frame: see node.proto".to_owned()),
        };
        if !handed_on {
            break None;
        }
    };
    // The reason comes before what the command says once it is stopped.
    if let Some(reason) = &refused {
        daemon.log.event(LogLevel::Warn, "protocol", &[("reason", reason)]);
        writer.fail(proto::Class::Protocol, reason);
    }
    if let Some(running) = &*current.lock() {
        running.cancel.cancel();
    }
    if refused.is_some() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Runs commands until no more come.
fn run_commands(
    daemon: &Daemon,
    writer: &Writer<'_>,
    current: &Mutex<Option<Current>>,
    receiver: &Receiver<Incoming>,
    application: &str,
) {
    while let Ok(incoming) = receiver.recv() {
        let sent = match incoming {
            Incoming::Execute(payload, running) => {
                let ended = command::run(daemon, writer, receiver, application, &payload, &running);
                // Before the answer: the client may send its next command as soon as it has it.
                *current.lock() = None;
                match ended {
                    Ok(trailer) => writer.send(FrameKind::Trailer, &trailer.encode_to_vec()),
                    Err(failure) => writer.send(FrameKind::Failure, &failure.encode_to_vec()),
                }
            }
            Incoming::Other(frame) if frame.kind == FrameKind::Release => match released(daemon, &frame) {
                Ok(()) => writer.send(FrameKind::Released, &[]),
                Err(error) => writer.send(FrameKind::Failure, &command::failure(&error).encode_to_vec()),
            },
            // A block of a command that has failed meanwhile.
            Incoming::Other(_) => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn released(daemon: &Daemon, frame: &WireFrame) -> Result<()> {
    let release: proto::Release = decode(&frame.payload, "the release")?;
    daemon.blocks.release(&release.application);
    Ok(())
}
