//! The pages of one column chunk, read in windows and decompressed into reused buffers.
//!
//! Nothing a header says is believed before it is checked against the chunk: a page lies within its chunk, levels within
//! their page, and a page decompresses to exactly the size its header names. Memory grows only as far as the bytes that
//! are really there ask for.

use std::{fs::File, io::Read, os::unix::fs::FileExt, sync::Arc};

use parquet::basic::Compression;
use tandem_column::{MemoryBudget, Reservation};

use super::{
    Problem, damaged,
    thrift::{self, Encoding, HeaderError, PageKind},
};

/// Bytes read at once: large enough that calls do not matter, small enough to stay in the second-level cache.
const WINDOW: usize = 512 << 10;

/// A page header longer than this is damage; real ones take tens of bytes, with statistics of long strings a few KiB.
pub(super) const HEADER_LIMIT: usize = 16 << 20;

/// The most bytes that one byte becomes: a Snappy copy of 64 bytes takes three, an LZ4 match grows by 255 a byte. A header
/// that claims more is refused before memory is cleared for it.
const SNAPPY_RATIO: usize = 32;
const LZ4_RATIO: usize = 256;

/// Buffers and decompressors that one worker keeps from chunk to chunk.
pub(super) struct Scratch {
    input: Vec<u8>,
    output: Vec<u8>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    /// What the buffers have grown to, beyond what every worker has.
    held: Reservation,
}

impl Scratch {
    pub(super) fn new(memory: &Arc<MemoryBudget>) -> Scratch {
        let held = Reservation::new(memory, "the pages of a column");
        Scratch { input: Vec::new(), output: Vec::new(), zstd: None, held }
    }

    /// Takes the memory of buffers that are to have these sizes.
    fn reserve(&mut self, input: usize, output: usize) -> Result<(), Problem> {
        let bytes = input.max(self.input.capacity()).saturating_add(output.max(self.output.capacity()));
        Ok(self.held.grow_to(bytes)?)
    }
}

/// Where a column chunk lies in its file, and how it is compressed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) compression: Compression,
    /// Whether the column may hold nulls (a maximal definition level of 1, not 0).
    pub(super) optional: bool,
}

/// A page, decompressed.
pub(super) enum Page<'a> {
    Dictionary { count: usize, values: &'a [u8] },
    Data { rows: usize, levels: Option<&'a [u8]>, encoding: Encoding, values: &'a [u8] },
}

/// Reads the pages of one chunk, in order.
pub(super) struct Pages<'a> {
    file: &'a File,
    scratch: &'a mut Scratch,
    extent: Extent,
    /// The next byte of the file that the window does not hold.
    position: u64,
    end: u64,
    /// The part of the window that is not consumed yet.
    from: usize,
    to: usize,
}

impl<'a> Pages<'a> {
    pub(super) fn new(file: &'a File, extent: Extent, scratch: &'a mut Scratch) -> Self {
        let end = extent.start.saturating_add(extent.length);
        Pages { file, scratch, extent, position: extent.start, end, from: 0, to: 0 }
    }

    /// Makes at least `count` unconsumed bytes present, or all that are left; returns how many there are.
    fn fill(&mut self, count: usize) -> Result<usize, Problem> {
        let present = self.to - self.from;
        let left = self.end - self.position;
        if present >= count || left == 0 {
            return Ok(present);
        }
        let wanted = (count - present).max(WINDOW).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.scratch.reserve(present.saturating_add(wanted), 0)?;
        let input = &mut self.scratch.input;
        input.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, present);
        if input.len() < present + wanted {
            let more = present + wanted - input.len();
            input.try_reserve_exact(more).map_err(|_| damaged(format!("a page of {count} bytes")))?;
            input.resize(present + wanted, 0);
        }
        self.file.read_exact_at(&mut input[present..present + wanted], self.position)?;
        self.position += wanted as u64;
        self.to += wanted;
        Ok(self.to)
    }

    fn header(&mut self) -> Result<Option<thrift::PageHeader>, Problem> {
        let mut wanted = 256;
        loop {
            let present = self.fill(wanted)?;
            if present == 0 {
                return Ok(None);
            }
            match thrift::page_header(&self.scratch.input[self.from..self.to]) {
                Ok((header, length)) => {
                    self.from += length;
                    return Ok(Some(header));
                }
                Err(HeaderError::Damaged(problem)) => return Err(problem),
                Err(HeaderError::Short) if present < wanted || wanted > HEADER_LIMIT => {
                    return Err(damaged("a page header is cut off"));
                }
                Err(HeaderError::Short) => wanted = present * 2,
            }
        }
    }

    /// Returns the next page, or `None` at the end of the chunk.
    pub(super) fn next(&mut self) -> Result<Option<Page<'_>>, Problem> {
        let (header, from) = loop {
            let Some(header) = self.header()? else { return Ok(None) };
            if self.fill(header.compressed)? < header.compressed {
                return Err(damaged("a page reaches beyond its column chunk"));
            }
            let from = self.from;
            self.from += header.compressed;
            if !matches!(header.kind, PageKind::Other) {
                break (header, from);
            }
        };
        if self.extent.compression != Compression::UNCOMPRESSED {
            self.scratch.reserve(0, header.uncompressed)?;
        }
        let Scratch { input, output, zstd, .. } = &mut *self.scratch;
        let body = &input[from..self.from];
        let codec = self.extent.compression;
        Ok(match header.kind {
            PageKind::Other => None,
            PageKind::Dictionary { values: count, encoding } => {
                if !matches!(encoding, Encoding::Plain | Encoding::Dictionary) {
                    return Err(Problem::Unsupported);
                }
                let values = decompress(codec, body, header.uncompressed, output, zstd)?;
                Some(Page::Dictionary { count, values })
            }
            PageKind::DataV1 { values: rows, encoding, levels: level_encoding } => {
                let mut values = decompress(codec, body, header.uncompressed, output, zstd)?;
                let mut levels = None;
                if self.extent.optional {
                    if level_encoding != Encoding::Rle {
                        return Err(Problem::Unsupported);
                    }
                    let (run, rest) = length_prefixed(values)?;
                    (levels, values) = (Some(run), rest);
                }
                Some(Page::Data { rows, levels, encoding, values })
            }
            PageKind::DataV2 { values: rows, nulls, encoding, definition_bytes, repetition_bytes, compressed } => {
                let before = definition_bytes.saturating_add(repetition_bytes);
                if before > body.len() || before > header.uncompressed || nulls > rows {
                    return Err(damaged("levels reach beyond their page"));
                }
                let (levels, values) = body.split_at(before);
                let present = self.extent.optional && (nulls > 0 || definition_bytes > 0);
                let levels = present.then(|| &levels[repetition_bytes..]);
                let codec = if compressed { codec } else { Compression::UNCOMPRESSED };
                let values = decompress(codec, values, header.uncompressed - before, output, zstd)?;
                Some(Page::Data { rows, levels, encoding, values })
            }
        })
    }
}

/// Splits off bytes whose length comes first, in four bytes.
pub(super) fn length_prefixed(bytes: &[u8]) -> Result<(&[u8], &[u8]), Problem> {
    bytes
        .split_first_chunk::<4>()
        .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize))
        .ok_or_else(|| damaged("levels reach beyond their page"))
}

fn decompress<'a>(
    codec: Compression,
    input: &'a [u8],
    size: usize,
    output: &'a mut Vec<u8>,
    zstd: &mut Option<zstd::bulk::Decompressor<'static>>,
) -> Result<&'a [u8], Problem> {
    if codec == Compression::UNCOMPRESSED {
        return match input.len() == size {
            true => Ok(input),
            false => Err(damaged("an uncompressed page of another size than its header says")),
        };
    }
    if size == 0 {
        return Ok(&[]);
    }
    let ratio = match codec {
        Compression::SNAPPY => SNAPPY_RATIO,
        Compression::LZ4_RAW => LZ4_RATIO,
        _ => usize::MAX,
    };
    if size / ratio > input.len() {
        return Err(damaged("a page decompresses to another size than its header says"));
    }
    let written = match codec {
        Compression::ZSTD(_) => {
            output.clear();
            output.try_reserve_exact(size).map_err(|_| damaged(format!("a page of {size} bytes")))?;
            let decompressor = match zstd {
                Some(decompressor) => decompressor,
                None => zstd.insert(zstd::bulk::Decompressor::new()?),
            };
            decompressor.decompress_to_buffer(input, output).ok()
        }
        Compression::SNAPPY => snap::raw::Decoder::new().decompress(input, at_least(output, size)).ok(),
        Compression::LZ4_RAW => lz4_flex::block::decompress_into(input, at_least(output, size)).ok(),
        Compression::GZIP(_) => {
            output.clear();
            output.try_reserve_exact(size.saturating_add(1)).map_err(|_| damaged(format!("a page of {size} bytes")))?;
            flate2::read::MultiGzDecoder::new(input).take(size as u64 + 1).read_to_end(output).ok()
        }
        _ => return Err(Problem::Unsupported),
    };
    match written {
        Some(written) if written == size => Ok(&output[..size]),
        Some(_) => Err(damaged("a page decompresses to another size than its header says")),
        None => Err(damaged("a page cannot be decompressed")),
    }
}

/// Returns the first `size` bytes, growing the buffer only.
fn at_least(buffer: &mut Vec<u8>, size: usize) -> &mut [u8] {
    if buffer.len() < size {
        buffer.reserve_exact(size - buffer.len());
        buffer.resize(size, 0);
    }
    &mut buffer[..size]
}
