//! Blocks as clients send them: Arrow streams, whose bytes nobody has looked at yet.

use arrow::{
    array::RecordBatch,
    buffer::Buffer,
    datatypes::{DataType, SchemaRef},
    ipc::{reader::StreamDecoder, root_as_message_with_opts},
};
use tandem_column::{Error, Result, guarded, panic_text};
use tandem_scan::metadata_bounds;

/// The most rows of a block: what row numbers of builds can tell apart.
const MOST_ROWS: usize = u32::MAX as usize;
/// What a message begins with.
const MESSAGE: [u8; 4] = [0xFF; 4];

/// Reads an Arrow stream whole. What it makes takes at most a small multiple of its bytes.
///
/// # Errors
/// Input, if it is damaged, cut off or compressed; unsupported, if a few bytes of a column may stand for many.
pub(crate) fn read(bytes: Vec<u8>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let wrong = |detail: &str| {
        Error::input(format!("a block is not an Arrow stream: send what Arrow's stream writer gives ({detail})"))
    };
    check_messages(&bytes).map_err(wrong)?;
    // Damaged bytes may meet an assertion in code that is not ours.
    let decoded = guarded(|| {
        let mut decoder = StreamDecoder::new();
        let mut buffer = Buffer::from(bytes);
        let mut batches = Vec::new();
        while let Some(batch) = decoder.decode(&mut buffer)? {
            batches.push(batch);
        }
        decoder.finish()?;
        Ok((decoder.schema(), batches))
    });
    let decoded = decoded.map_err(|panic| wrong(&format!("it cannot be decoded: {}", panic_text(&*panic))))?;
    let (schema, batches) = decoded.map_err(|error: arrow::error::ArrowError| wrong(&error.to_string()))?;
    let schema = schema.ok_or_else(|| wrong("it has no schema"))?;
    if let Some(field) = schema.fields().iter().find(|field| !is_plain(field.data_type())) {
        let (name, kind) = (field.name(), field.data_type());
        return Err(Error::unsupported(format!(
            "a block's columns are plain numbers, text or bytes: convert column {name} ({kind})"
        )));
    }
    let rows = batches.iter().fold(0usize, |rows, batch| rows.saturating_add(batch.num_rows()));
    match rows > MOST_ROWS {
        true => Err(Error::unsupported(format!("a block has too many rows: send at most {MOST_ROWS} ({rows})"))),
        false => Ok((schema, batches)),
    }
}

/// Tells whether every row of a column takes bytes of its own.
fn is_plain(kind: &DataType) -> bool {
    use DataType::{Binary, Boolean, LargeBinary, LargeUtf8, Utf8};
    kind.is_primitive() || matches!(kind, Boolean | Utf8 | LargeUtf8 | Binary | LargeBinary)
}

/// Follows the messages of a stream to its end, and refuses those of which a few bytes stand for many: compressed ones, whose size is
/// whatever they say, and those that use the same bytes again and again.
fn check_messages(mut bytes: &[u8]) -> Result<(), &'static str> {
    const CUT: &str = "it is cut off";
    loop {
        let (marker, rest) = bytes.split_first_chunk::<4>().ok_or(CUT)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or(CUT)?;
        let length = u32::from_le_bytes(*length) as usize;
        if *marker != MESSAGE {
            return Err("a message does not begin as one");
        }
        if length == 0 {
            return Ok(());
        }
        let (message, rest) = rest.split_at_checked(length).ok_or(CUT)?;
        let message = root_as_message_with_opts(&metadata_bounds(message.len()), message)
            .map_err(|_| "a message cannot be read")?;
        let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
        let batch = message.header_as_record_batch().or(dictionary);
        if batch.is_some_and(|batch| batch.compression().is_some()) {
            return Err("it is compressed");
        }
        let body = usize::try_from(message.bodyLength()).map_err(|_| CUT)?;
        let buffers = batch.and_then(|batch| batch.buffers()).into_iter().flatten();
        let lengths = buffers.map(|buffer| usize::try_from(buffer.length()).unwrap_or(usize::MAX));
        if lengths.fold(0, usize::saturating_add) > body {
            return Err("its buffers are longer than its body");
        }
        bytes = rest.get(body..).ok_or(CUT)?;
    }
}
