//! Page headers: the part of Thrift's compact protocol that Parquet pages use.
//!
//! The footer is read by the `parquet` crate; page headers are read here, so that pages can be decompressed into reused
//! buffers. Bytes are untrusted: every length is checked, nesting is bounded, unknown fields are skipped.

use super::{Problem, damaged};

/// How the values of a page are laid out, as far as we decode them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    /// Indices into the dictionary page (`PLAIN_DICTIONARY` and `RLE_DICTIONARY` are the same in data pages).
    Dictionary,
    Rle,
    /// Left to the `parquet` crate.
    Other,
}

/// What a page header says, by page type. Sizes are not negative.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageHeader {
    pub(super) kind: PageKind,
    pub(super) uncompressed: usize,
    pub(super) compressed: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum PageKind {
    Dictionary {
        values: usize,
        encoding: Encoding,
    },
    DataV1 {
        values: usize,
        encoding: Encoding,
        levels: Encoding,
    },
    DataV2 {
        values: usize,
        nulls: usize,
        encoding: Encoding,
        definition_bytes: usize,
        repetition_bytes: usize,
        compressed: bool,
    },
    /// Index pages and kinds we do not know: skipped.
    Other,
}

/// Structures nest three deep in a page header; deeper is damage.
const DEPTH: usize = 8;

struct Input<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// The end of the input was reached: more bytes are needed, or the chunk is truncated.
pub(super) enum HeaderError {
    Short,
    Damaged(Problem),
}

type Parsed<T> = Result<T, HeaderError>;

fn wrong<T>(what: &str) -> Parsed<T> {
    Err(HeaderError::Damaged(damaged(format!("page header: {what}"))))
}

impl Input<'_> {
    fn byte(&mut self) -> Parsed<u8> {
        let byte = *self.bytes.get(self.position).ok_or(HeaderError::Short)?;
        self.position += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Parsed<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        wrong("number too long")
    }

    fn integer(&mut self) -> Parsed<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn size(&mut self) -> Parsed<usize> {
        match i32::try_from(self.integer()?).ok().and_then(|value| usize::try_from(value).ok()) {
            Some(size) => Ok(size),
            None => wrong("negative size"),
        }
    }

    fn advance(&mut self, count: u64) -> Parsed<()> {
        let left = (self.bytes.len() - self.position) as u64;
        if count > left {
            return Err(HeaderError::Short);
        }
        self.position += count as usize;
        Ok(())
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        if depth > DEPTH {
            return wrong("nested too deeply");
        }
        match kind {
            1 | 2 => Ok(()),
            3 => self.advance(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.advance(8),
            8 => {
                let length = self.varint()?;
                self.advance(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                let element = head & 15;
                for _ in 0..count {
                    match element {
                        1 | 2 => self.advance(1)?,
                        _ => self.skip(element, depth + 1)?,
                    }
                }
                Ok(())
            }
            12 => self.fields(depth + 1, |input, _, kind| input.skip(kind, depth + 1)),
            _ => wrong("unknown field type"),
        }
    }

    /// Calls `field(input, id, type)` for each field of a structure; it must consume the field's value.
    fn fields(&mut self, depth: usize, mut field: impl FnMut(&mut Self, i64, u8) -> Parsed<()>) -> Parsed<()> {
        if depth > DEPTH {
            return wrong("nested too deeply");
        }
        let mut last = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let id = match head >> 4 {
                0 => self.integer()?,
                delta => last.wrapping_add(i64::from(delta)),
            };
            last = id;
            field(self, id, head & 15)?;
        }
    }

    fn encoding(&mut self) -> Parsed<Encoding> {
        Ok(match self.integer()? {
            0 => Encoding::Plain,
            2 | 8 => Encoding::Dictionary,
            3 => Encoding::Rle,
            _ => Encoding::Other,
        })
    }
}

/// Reads the page header at the start of `bytes`; returns it and its length.
pub(super) fn page_header(bytes: &[u8]) -> Parsed<(PageHeader, usize)> {
    let mut input = Input { bytes, position: 0 };
    let (mut kind, mut uncompressed, mut compressed) = (None, None, None);
    let (mut v1, mut dictionary, mut v2) = (None, None, None);
    input.fields(0, |input, id, field| {
        match (id, field) {
            (1, 5) => kind = Some(input.integer()?),
            (2, 5) => uncompressed = Some(input.size()?),
            (3, 5) => compressed = Some(input.size()?),
            (5, 12) => v1 = Some(data_v1(input)?),
            (7, 12) => dictionary = Some(dictionary_page(input)?),
            (8, 12) => v2 = Some(data_v2(input)?),
            (_, other) => input.skip(other, 1)?,
        }
        Ok(())
    })?;
    let kind = match kind {
        Some(0) => v1,
        Some(2) => dictionary,
        Some(3) => v2,
        Some(_) => Some(PageKind::Other),
        None => None,
    };
    match (kind, uncompressed, compressed) {
        (Some(kind), Some(uncompressed), Some(compressed)) => {
            Ok((PageHeader { kind, uncompressed, compressed }, input.position))
        }
        _ => wrong("a required field is missing"),
    }
}

fn data_v1(input: &mut Input<'_>) -> Parsed<PageKind> {
    let (mut values, mut encoding, mut levels) = (None, Encoding::Other, Encoding::Rle);
    input.fields(1, |input, id, field| {
        match (id, field) {
            (1, 5) => values = Some(input.size()?),
            (2, 5) => encoding = input.encoding()?,
            (3, 5) => levels = input.encoding()?,
            (_, other) => input.skip(other, 2)?,
        }
        Ok(())
    })?;
    match values {
        Some(values) => Ok(PageKind::DataV1 { values, encoding, levels }),
        None => wrong("the number of values is missing"),
    }
}

fn dictionary_page(input: &mut Input<'_>) -> Parsed<PageKind> {
    let (mut values, mut encoding) = (None, Encoding::Other);
    input.fields(1, |input, id, field| {
        match (id, field) {
            (1, 5) => values = Some(input.size()?),
            (2, 5) => encoding = input.encoding()?,
            (_, other) => input.skip(other, 2)?,
        }
        Ok(())
    })?;
    match values {
        Some(values) => Ok(PageKind::Dictionary { values, encoding }),
        None => wrong("the number of values is missing"),
    }
}

fn data_v2(input: &mut Input<'_>) -> Parsed<PageKind> {
    let (mut values, mut nulls, mut definition, mut repetition) = (None, None, None, None);
    let (mut encoding, mut is_compressed) = (Encoding::Other, true);
    input.fields(1, |input, id, field| {
        match (id, field) {
            (1, 5) => values = Some(input.size()?),
            (2, 5) => nulls = Some(input.size()?),
            (4, 5) => encoding = input.encoding()?,
            (5, 5) => definition = Some(input.size()?),
            (6, 5) => repetition = Some(input.size()?),
            (7, 1) => is_compressed = true,
            (7, 2) => is_compressed = false,
            (_, other) => input.skip(other, 2)?,
        }
        Ok(())
    })?;
    match (values, nulls, definition, repetition) {
        (Some(values), Some(nulls), Some(definition_bytes), Some(repetition_bytes)) => Ok(PageKind::DataV2 {
            values,
            nulls,
            encoding,
            definition_bytes,
            repetition_bytes,
            compressed: is_compressed,
        }),
        _ => wrong("a required field is missing"),
    }
}
