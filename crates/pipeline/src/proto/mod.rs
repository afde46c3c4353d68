//! The protobuf form of queries: what hosts send to a node.
//!
//! `proto/pipeline.proto` is the form's reference, the generated messages are re-exported here. [`write`](fn@write) makes a message of a query,
//! [`read`](fn@read) a verified query of a message. Reading is total: versions, enum values and fields that are not known,
//! parts that are missing and nesting that is too deep are refused with a sentence, so that bytes from outside may be
//! handed in as they are.

mod closed;
mod generated;
mod read;
mod write;

use prost::Message;
use tandem_column::{Error, Result};

pub use generated::*;
pub use read::{kind as read_kind, value as read_value};
pub use write::{kind as write_kind, value as write_value};

/// The version of the form that this code writes and reads.
pub const VERSION: u32 = 1;

/// Makes the message of a query.
pub fn write(query: &crate::Query) -> Query {
    write::query(query)
}

/// Makes a query of its message, and verifies it.
///
/// # Errors
/// Input, if the message is of another version or not a well-formed query.
pub fn read(query: &Query) -> Result<crate::Query> {
    if query.version != VERSION {
        return Err(Error::input(format!(
            "the query's version is not known here: use a client and a daemon of one release (given {}, known {VERSION})",
            query.version
        )));
    }
    let query = read::query(query)?;
    crate::verify(&query)?;
    Ok(query)
}

/// Decodes a message from bytes, all of which must be known.
///
/// Fields that are not known are dropped by the decoder; a message that has them is longer than what is left of it.
///
/// # Errors
/// Input, if the bytes are damaged, nested too deeply, or have fields that are not known here.
pub fn decode<M: Message + Default>(bytes: &[u8], what: &str) -> Result<M> {
    let message = M::decode(bytes).map_err(|error| {
        Error::input(format!("{what} cannot be decoded: send it as its .proto file says ({error})"))
    })?;
    if message.encoded_len() != bytes.len() {
        return Err(Error::input(format!(
            "{what} has fields that are not known here: use a client and a daemon of one release"
        )));
    }
    Ok(message)
}

#[cfg(test)]
mod tests;
