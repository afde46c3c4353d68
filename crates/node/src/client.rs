//! A client of the daemon: connects, sends queries with their tables and blocks, takes the rows.
//!
//! See `examples/client.rs` for a whole program.

use std::{fmt, net::Shutdown, os::unix::net::UnixStream, path::Path, sync::Arc};

use arrow::{
    array::RecordBatch,
    buffer::Buffer,
    datatypes::SchemaRef,
    ipc::{reader::StreamDecoder, writer::StreamWriter},
};
use parking_lot::Mutex;
use prost::Message;
use tandem_column::{Error, Result};
use tandem_pipeline::proto::decode;

use crate::{
    frame::{self, FrameKind, Lost, PROTOCOL, WireFrame},
    proto, tls,
    trust::{self, Untrusted},
};

/// Bytes of a frame of a block.
const FRAME_BYTES: usize = 1 << 20;
/// The most bytes of a frame from a daemon.
const MOST_BYTES: usize = 1 << 30;

/// A connection to a daemon. It runs one command at a time; dropping it cancels a command.
pub struct Client {
    stream: Arc<UnixStream>,
    /// Held while a frame is written, by this client or by what stops its commands.
    writing: Arc<Mutex<()>>,
    welcome: proto::Welcome,
}

/// A block that a command can send, if the daemon needs it.
#[derive(Clone, Debug)]
pub struct BuildBlock {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

/// What a command gave.
#[derive(Debug)]
pub struct Outcome {
    /// The columns of the result.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
    /// What the daemon did.
    pub trailer: proto::Trailer,
}

/// Why a command gave nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// What to do about it.
    pub class: proto::Class,
    /// One sentence for people.
    pub message: String,
    /// The same command may succeed later.
    pub retryable: bool,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failed {}

impl Failed {
    fn new(class: proto::Class, message: impl Into<String>) -> Failed {
        Failed { class, message: message.into(), retryable: false }
    }

    fn lost(reason: &dyn fmt::Display) -> Failed {
        let message = format!("the connection to the daemon is lost: connect again ({reason})");
        Failed { class: proto::Class::Protocol, message, retryable: true }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::new(proto::Class::Internal, error.message)
    }
}

/// Cancels a client's command from another thread.
#[derive(Clone)]
pub struct Stop {
    stream: Arc<UnixStream>,
    writing: Arc<Mutex<()>>,
}

impl Stop {
    /// Asks the daemon to stop the command that runs, if one does. Waits while the client is within a frame.
    pub fn cancel(&self) {
        let _whole = self.writing.lock();
        // A daemon that is gone has stopped.
        let _ = frame::write(&mut &*self.stream, FrameKind::Cancel, &[]);
    }

    /// Closes the connection, which stops its command, also while the daemon takes nothing.
    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Client {
    /// Connects to the daemon of a Unix socket. `application` says whose blocks are meant.
    ///
    /// # Errors
    /// If no daemon listens there, it refuses this client, or the socket, its directory or who listens is not this user's:
    /// nothing is sent then.
    pub fn connect(socket: &Path, application: &str) -> Result<Client, Failed> {
        let hello = proto::Hello { application: application.to_owned(), ..Client::hello() };
        Client::connect_as(socket, &hello)
    }

    /// Returns a greeting to fill in.
    pub fn hello() -> proto::Hello {
        proto::Hello { protocol: PROTOCOL, client_version: env!("CARGO_PKG_VERSION").to_owned(), ..Default::default() }
    }

    /// Connects to the daemon of a Unix socket with a greeting.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_as(socket: &Path, hello: &proto::Hello) -> Result<Client, Failed> {
        let stream = trust::connect(socket).map_err(|untrusted| match untrusted {
            Untrusted::Absent(error) => {
                let message = format!("no daemon listens on {}: start one ({error})", socket.display());
                Failed { class: proto::Class::Protocol, message, retryable: true }
            }
            Untrusted::Place(reason) => Failed::new(
                proto::Class::Protocol,
                format!("this is not a daemon of this user, nothing was sent to it: {reason}"),
            ),
        })?;
        Client::greet(stream, hello)
    }

    /// Connects to a daemon's TLS listener. `name` is the one in its certificate, `authority` a PEM file of what to trust;
    /// the greeting carries the token.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_tls(address: &str, name: &str, authority: &Path, hello: &proto::Hello) -> Result<Client, Failed> {
        let stream = tls::connect(address, name, authority)
            .map_err(|error| Failed { retryable: true, ..Failed::new(proto::Class::Protocol, error.message) })?;
        Client::greet(stream, hello)
    }

    fn greet(stream: UnixStream, hello: &proto::Hello) -> Result<Client, Failed> {
        let mut client = Client { stream: Arc::new(stream), writing: Arc::default(), welcome: Default::default() };
        client.send(FrameKind::Hello, &hello.encode_to_vec())?;
        let welcome = client.receive(FrameKind::Welcome)?;
        client.welcome = decode(&welcome, "the daemon's greeting")?;
        Ok(client)
    }

    /// Returns what the daemon said of itself.
    pub fn welcome(&self) -> &proto::Welcome {
        &self.welcome
    }

    /// Returns what stops this client's commands.
    pub fn stop(&self) -> Stop {
        Stop { stream: self.stream.clone(), writing: self.writing.clone() }
    }

    fn send(&self, kind: FrameKind, payload: &[u8]) -> Result<(), Failed> {
        let whole = self.writing.lock();
        let written = frame::write(&mut &*self.stream, kind, payload);
        drop(whole);
        match written {
            Ok(()) => Ok(()),
            // The daemon has closed; what it said before tells why.
            Err(_) => loop {
                self.next()?;
            },
        }
    }

    fn next(&self) -> Result<WireFrame, Failed> {
        match frame::read(&mut &*self.stream, |_| MOST_BYTES, || Ok(())) {
            Ok(frame) if frame.kind == FrameKind::Failure => {
                let failure: proto::Failure = decode(&frame.payload, "the daemon's answer")?;
                let class = proto::Class::try_from(failure.class).unwrap_or(proto::Class::Internal);
                Err(Failed { class, message: failure.message, retryable: failure.retryable })
            }
            Ok(frame) => Ok(frame),
            Err(Lost::Closed) => Err(Failed::lost(&"it was closed")),
            Err(Lost::Failed(error)) => Err(Failed::lost(&error)),
            Err(Lost::Refused(reason)) => Err(Failed::lost(&reason)),
        }
    }

    fn receive(&mut self, kind: FrameKind) -> Result<Vec<u8>, Failed> {
        let frame = self.next()?;
        match frame.kind == kind {
            true => Ok(frame.payload),
            false => Err(Failed::lost(&format_args!("{:?} came in place of {kind:?}", frame.kind))),
        }
    }

    /// Runs a command and collects its rows. `block` gives the block of an index in the command, when the daemon needs it.
    ///
    /// # Errors
    /// What the daemon answers, or that it is gone.
    pub fn execute(
        &mut self,
        command: &proto::Execute,
        block: impl FnMut(usize) -> Result<BuildBlock>,
    ) -> Result<Outcome, Failed> {
        let mut batches = Vec::new();
        let (schema, trailer) = self.stream(command, block, |batch| {
            batches.push(batch);
            Ok(())
        })?;
        Ok(Outcome { schema, batches, trailer })
    }

    /// Runs a command and hands its rows on as they come.
    ///
    /// # Errors
    /// As [`Client::execute`], and what `rows` returns; the command is cancelled then.
    pub fn stream(
        &mut self,
        command: &proto::Execute,
        mut block: impl FnMut(usize) -> Result<BuildBlock>,
        mut rows: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<(SchemaRef, proto::Trailer), Failed> {
        self.send(FrameKind::Execute, &command.encode_to_vec())?;
        let mut decoder = StreamDecoder::new();
        loop {
            let frame = self.next()?;
            match frame.kind {
                FrameKind::Need => {
                    let need: proto::Need = decode(&frame.payload, "the daemon's need")?;
                    for index in need.blocks {
                        // Without its block the command cannot go on, nor can others that wait for it.
                        let block = block(index as usize).inspect_err(|_| self.stop().close())?;
                        self.send_block(index, &block)?;
                    }
                }
                FrameKind::Batches => {
                    let mut buffer = Buffer::from(frame.payload);
                    loop {
                        let decoded = decoder.decode(&mut buffer).map_err(|error| Failed::lost(&error))?;
                        let Some(batch) = decoded else { break };
                        if let Err(error) = rows(batch) {
                            self.stop().close();
                            return Err(error.into());
                        }
                    }
                }
                FrameKind::Trailer => {
                    let trailer: proto::Trailer = decode(&frame.payload, "the daemon's trailer")?;
                    let schema = decoder.schema().ok_or_else(|| Failed::lost(&"the rows have no schema"))?;
                    return Ok((schema, trailer));
                }
                // Answers to what was asked before.
                FrameKind::Pong | FrameKind::Report => {}
                other => return Err(Failed::lost(&format_args!("{other:?} came within a command"))),
            }
        }
    }

    fn send_block(&mut self, index: u32, block: &BuildBlock) -> Result<(), Failed> {
        let mut bytes = Vec::new();
        let write = |bytes: &mut Vec<u8>| {
            let mut writer = StreamWriter::try_new(bytes, &block.schema)?;
            block.batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.finish()
        };
        write(&mut bytes).map_err(Error::from)?;
        for part in bytes.chunks(FRAME_BYTES) {
            self.send(FrameKind::Block, &[&index.to_le_bytes(), part].concat())?;
        }
        self.send(FrameKind::BlockEnd, &index.to_le_bytes())
    }

    /// Asks whether the daemon answers.
    ///
    /// # Errors
    /// If it does not.
    pub fn ping(&mut self) -> Result<(), Failed> {
        self.send(FrameKind::Ping, b"tandem")?;
        self.receive(FrameKind::Pong).map(drop)
    }

    /// Asks how the daemon is.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn status(&mut self) -> Result<proto::Report, Failed> {
        self.send(FrameKind::Status, &[])?;
        let payload = self.receive(FrameKind::Report)?;
        Ok(decode(&payload, "the daemon's report")?)
    }

    /// Drops an application's blocks.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub fn release(&mut self, application: &str) -> Result<(), Failed> {
        let release = proto::Release { application: application.to_owned() };
        self.send(FrameKind::Release, &release.encode_to_vec())?;
        self.receive(FrameKind::Released).map(drop)
    }
}
