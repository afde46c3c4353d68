//! What an Arrow file's bytes must look like before the `arrow` crate reads them.
//!
//! The crate reserves what a footer, a block or a compressed buffer claims before it reads it, and ends the process if the
//! system refuses. So every length is checked against the file here, batch by batch; only metadata and the heads of
//! compressed buffers are read.

use std::{fs::File, io, os::unix::fs::FileExt};

use arrow_ipc::{Block, CompressionType, Message, RecordBatch, root_as_footer_with_opts, root_as_message_with_opts};

use crate::flatbuffer::{metadata_bounds, one_line};

/// What a file ends with, behind the length of its footer.
const MAGIC: &[u8; 6] = b"ARROW1";

/// The most bytes of a footer: what describes a million batches takes a tenth.
const FOOTER: u64 = 256 << 20;

/// The most bytes that one byte becomes: an LZ4 match grows by 255 a byte; a block of Zstandard of one value, four bytes long,
/// becomes 128 KiB.
const LZ4_RATIO: u64 = 256;
const ZSTD_RATIO: u64 = 32 << 10;

/// The most bytes that a buffer may become: offsets of text are 32 bits.
const BUFFER: u64 = 1 << 31;

/// Rows of a batch that need no bytes of their own: columns that are null in all rows.
const ROWS: u64 = 1 << 24;

/// What is wrong with a file.
pub(crate) enum Wrong {
    Damaged(String),
    Io(io::Error),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Wrong::Io(error)
    }
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Damaged(what.into()))
}

/// Checks everything that claims a length. Tells whether the file ends as Arrow files do; of one that does not, nothing is
/// checked.
pub(crate) fn check(file: &File, size: u64) -> Result<bool, Wrong> {
    let mut tail = [0; 10];
    let Some(end) = size.checked_sub(tail.len() as u64) else { return Ok(false) };
    file.read_exact_at(&mut tail, end)?;
    let (length, magic) = tail.split_at(4);
    if magic != MAGIC {
        return Ok(false);
    }
    let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    if length > end || length > FOOTER {
        return wrong(format!("footer: {length} bytes in a file of {size}"));
    }
    let footer = read(file, end - length, length)?;
    let footer = root_as_footer_with_opts(&metadata_bounds(footer.len()), &footer)
        .map_err(|error| Wrong::Damaged(format!("footer: {}", one_line(&error))))?;
    let blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    // Blocks lie beside each other, so together they are no longer than the file.
    let mut left = size;
    for (number, block) in blocks.enumerate() {
        let length = self::block(file, size, block).map_err(|problem| match problem {
            Wrong::Damaged(what) => Wrong::Damaged(format!("block {number}: {what}")),
            problem => problem,
        })?;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return wrong("blocks that overlap"),
        }
    }
    Ok(true)
}

/// Checks a stream of messages, which DataFusion reads from files, too.
pub(crate) fn check_stream(file: &File, size: u64) -> Result<(), Wrong> {
    let mut at = 0;
    while at < size {
        let mut head = [0; 8];
        let present = (size - at).min(8) as usize;
        file.read_exact_at(&mut head[..present], at)?;
        let (marker, length) = head.split_at(4);
        // Messages of old writers have no marker.
        let (length, start) = if marker == [0xFF; 4] { (length, at + 8) } else { (marker, at + 4) };
        let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
        if length == 0 {
            return Ok(());
        }
        if start.saturating_add(length) > size {
            return wrong("a message reaches beyond the file");
        }
        let message = read(file, start, length)?;
        let body = message_body(file, start + length, size, &message)?;
        at = start + length + body;
    }
    Ok(())
}

/// Checks a message of a stream, whose body begins at `start`; returns how long that is.
fn message_body(file: &File, start: u64, size: u64, message: &[u8]) -> Result<u64, Wrong> {
    let message = verified(message)?;
    match u64::try_from(message.bodyLength()) {
        Ok(body) if start.saturating_add(body) <= size => {
            if let Some(found) = batch_of(&message) {
                batch(file, start, body, &found)?;
            }
            Ok(body)
        }
        _ => wrong("a message reaches beyond the file"),
    }
}

fn verified(message: &[u8]) -> Result<Message<'_>, Wrong> {
    root_as_message_with_opts(&metadata_bounds(message.len()), message)
        .map_err(|error| Wrong::Damaged(one_line(&error)))
}

/// Returns the rows of a message, be they a batch or a dictionary.
fn batch_of<'a>(message: &Message<'a>) -> Option<RecordBatch<'a>> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    message.header_as_record_batch().or(dictionary)
}

fn read(file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Checks a block, and the batch in it; returns how long it is.
fn block(file: &File, size: u64, block: &Block) -> Result<u64, Wrong> {
    let number = |value: i64| u64::try_from(value).ok();
    let place = (number(block.offset()), number(block.metaDataLength().into()), number(block.bodyLength()));
    let (Some(start), Some(head), Some(body)) = place else { return wrong("a negative length") };
    let length = head.saturating_add(body);
    if start.saturating_add(length) > size {
        return wrong("it reaches beyond the file");
    }
    let message = read(file, start, head)?;
    let message = match message.split_first_chunk::<4>() {
        Some((&[0xFF, 0xFF, 0xFF, 0xFF], rest)) => rest.get(4..).unwrap_or_default(),
        Some((_, rest)) => rest,
        None => return wrong("it has no metadata"),
    };
    match batch_of(&verified(message)?) {
        Some(found) => batch(file, start + head, body, &found)?,
        None => return wrong("it holds no rows"),
    }
    Ok(length)
}

/// Checks the buffers of a batch, whose bytes begin at `start`, and that its rows are no more than they can hold.
fn batch(file: &File, start: u64, body: u64, batch: &RecordBatch<'_>) -> Result<(), Wrong> {
    let ratio = match batch.compression().map(|compression| compression.codec()) {
        None => None,
        Some(CompressionType::LZ4_FRAME) => Some(LZ4_RATIO),
        Some(_) => Some(ZSTD_RATIO),
    };
    let (mut left, mut bytes) = (body, 0u64);
    for buffer in batch.buffers().into_iter().flatten() {
        let (Ok(offset), Ok(length)) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length())) else {
            return wrong("a negative length");
        };
        let Some(rest) = left.checked_sub(length) else { return wrong("buffers that overlap") };
        if offset.saturating_add(length) > body {
            return wrong("a buffer reaches beyond its block");
        }
        left = rest;
        let size = match ratio {
            Some(ratio) if length >= 8 => compressed(file, start + offset, length, ratio)?,
            _ => length,
        };
        bytes = bytes.saturating_add(size);
    }
    let most = ROWS.max(bytes.saturating_mul(8));
    let rows = std::iter::once(batch.length());
    let lengths = rows.chain(batch.nodes().into_iter().flatten().map(|node| node.length()));
    for length in lengths {
        if u64::try_from(length).map_or(true, |length| length > most) {
            return wrong(format!("{length} rows in {bytes} bytes"));
        }
    }
    Ok(())
}

/// Returns how many bytes a compressed buffer says it becomes, if it can.
fn compressed(file: &File, start: u64, length: u64, ratio: u64) -> Result<u64, Wrong> {
    let mut head = [0; 8];
    file.read_exact_at(&mut head, start)?;
    let inside = length - head.len() as u64;
    match (i64::from_le_bytes(head), u64::from_le_bytes(head)) {
        // Not compressed after all.
        (-1, _) => Ok(inside),
        (0.., size) if size <= BUFFER && size <= inside.saturating_mul(ratio) => Ok(size),
        (size, _) => wrong(format!("a buffer of {inside} bytes claims to become {size}")),
    }
}
