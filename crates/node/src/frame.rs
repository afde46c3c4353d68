//! Frames: a length, a kind, a payload. `proto/node.proto` is the reference of what they carry and when.

use std::io::{self, Read, Write};

/// The version of the protocol, given in Hello and Welcome.
pub const PROTOCOL: u32 = 1;
/// Bytes of a frame's header: a little-endian length and the kind.
const HEADER: usize = 5;
/// Room made for a payload before its bytes are there: a header alone must not take memory.
const FIRST_ROOM: usize = 1 << 20;

/// What a frame is.
#[allow(missing_docs)] // documented in proto/node.proto
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    Hello = 1,
    Execute = 2,
    Block = 3,
    BlockEnd = 4,
    Cancel = 5,
    Release = 6,
    Ping = 7,
    Status = 8,
    Welcome = 65,
    Need = 66,
    Batches = 67,
    Trailer = 68,
    Failure = 69,
    Released = 70,
    Pong = 71,
    Report = 72,
}

impl FrameKind {
    const ALL: [FrameKind; 16] = [
        FrameKind::Hello,
        FrameKind::Execute,
        FrameKind::Block,
        FrameKind::BlockEnd,
        FrameKind::Cancel,
        FrameKind::Release,
        FrameKind::Ping,
        FrameKind::Status,
        FrameKind::Welcome,
        FrameKind::Need,
        FrameKind::Batches,
        FrameKind::Trailer,
        FrameKind::Failure,
        FrameKind::Released,
        FrameKind::Pong,
        FrameKind::Report,
    ];
}

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub struct WireFrame {
    /// What it is.
    pub kind: FrameKind,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// Why no frame was read.
#[derive(Debug)]
pub enum Lost {
    /// The other side closed between frames.
    Closed,
    /// The stream failed, ended within a frame, or was silent for too long.
    Failed(io::Error),
    /// The frame breaks a rule: the sentence says which.
    Refused(String),
}

/// Reads a frame of at most as many bytes as its kind may have; blocks until it begins. `begun` is called when its first
/// byte is there.
///
/// # Errors
/// [`Lost`], after which the stream cannot be read any further.
pub fn read(
    stream: &mut impl Read,
    most: impl FnOnce(FrameKind) -> usize,
    begun: impl FnOnce() -> io::Result<()>,
) -> Result<WireFrame, Lost> {
    let mut header = [0; HEADER];
    loop {
        match stream.read(&mut header[..1]) {
            Ok(0) => return Err(Lost::Closed),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Lost::Failed(error)),
        }
    }
    begun().map_err(Lost::Failed)?;
    stream.read_exact(&mut header[1..]).map_err(Lost::Failed)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let Some(kind) = FrameKind::ALL.into_iter().find(|kind| *kind as u8 == header[4]) else {
        return Err(Lost::Refused(format!(
            "a frame of unknown kind: use a client and a daemon of one release ({})",
            header[4]
        )));
    };
    let most = most(kind);
    if length > most {
        return Err(Lost::Refused(format!(
            "a frame is larger than the limit: send less, or raise --max-message (limit {most}, frame {length} bytes)"
        )));
    }
    let mut payload = Vec::with_capacity(length.min(FIRST_ROOM));
    stream.take(length as u64).read_to_end(&mut payload).map_err(Lost::Failed)?;
    match payload.len() == length {
        true => Ok(WireFrame { kind, payload }),
        false => Err(Lost::Failed(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Writes a frame.
///
/// # Errors
/// Those of the stream.
pub fn write(stream: &mut impl Write, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4] = kind as u8;
    stream.write_all(&header)?;
    stream.write_all(payload)
}
