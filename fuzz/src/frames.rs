//! Frames of the daemon's protocol, one after the other, and what each kind carries.

use prost::Message;
use tandem_node::{
    frame::{self, FrameKind, Lost, WireFrame},
    proto,
};
use tandem_pipeline::proto::decode;

use crate::sound;

/// The most bytes of a frame, so that some are refused.
const MOST_BYTES: usize = 1 << 10;

/// A stream of frames. Reading stops where the stream can be read no further, and what was read is what writing would give.
pub(crate) fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest;
        match frame::read(&mut rest, |_| MOST_BYTES, || Ok(())) {
            Ok(frame) => {
                assert!(frame.payload.len() <= MOST_BYTES);
                let mut written = Vec::new();
                frame::write(&mut written, frame.kind, &frame.payload).expect("memory takes everything");
                assert_eq!(written, before[..before.len() - rest.len()]);
                read(&frame);
            }
            Err(Lost::Closed) => return assert!(rest.is_empty() && before.is_empty()),
            Err(Lost::Failed(_) | Lost::Refused(_)) => return,
        }
    }
}

fn read(frame: &WireFrame) {
    match frame.kind {
        FrameKind::Hello => same::<proto::Hello>(frame),
        FrameKind::Execute => same::<proto::Execute>(frame),
        FrameKind::Release => same::<proto::Release>(frame),
        FrameKind::Welcome => same::<proto::Welcome>(frame),
        FrameKind::Need => same::<proto::Need>(frame),
        FrameKind::Trailer => same::<proto::Trailer>(frame),
        FrameKind::Failure => same::<proto::Failure>(frame),
        FrameKind::Report => same::<proto::Report>(frame),
        FrameKind::Block
        | FrameKind::BlockEnd
        | FrameKind::Cancel
        | FrameKind::Ping
        | FrameKind::Status
        | FrameKind::Batches
        | FrameKind::Released
        | FrameKind::Pong => {}
    }
}

/// A message that is taken comes back as it is.
fn same<M: Message + Default + PartialEq>(frame: &WireFrame) {
    if let Some(message) = sound(decode::<M>(&frame.payload, "the message")) {
        let again: M = decode(&message.encode_to_vec(), "the message").expect("what was written can be read");
        assert_eq!(again.encode_to_vec(), message.encode_to_vec());
    }
}
