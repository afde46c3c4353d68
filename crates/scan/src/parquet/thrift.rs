//! Page headers.
//!
//! The footer is read by the `parquet` crate; page headers are read here, so that pages can be decompressed into reused
//! buffers. Unknown fields are skipped.

use super::{
    Problem,
    compact::{FALSE, INT32, Input, Malformed, Parsed, STRUCT, TRUE, wrong},
    damaged,
};

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

/// Why a page header was not read: more bytes are needed, or it is damaged.
pub(super) enum HeaderError {
    Short,
    Damaged(Problem),
}

impl From<Malformed> for HeaderError {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Short => HeaderError::Short,
            Malformed::Wrong(what) => HeaderError::Damaged(damaged(format!("page header: {what}"))),
        }
    }
}

fn encoding(input: &mut Input<'_>) -> Parsed<Encoding> {
    Ok(match input.integer()? {
        0 => Encoding::Plain,
        2 | 8 => Encoding::Dictionary,
        3 => Encoding::Rle,
        _ => Encoding::Other,
    })
}

/// Reads the page header at the start of `bytes`; returns it and its length.
pub(super) fn page_header(bytes: &[u8]) -> Result<(PageHeader, usize), HeaderError> {
    let mut input = Input::new(bytes);
    let (mut kind, mut uncompressed, mut compressed) = (None, None, None);
    let (mut v1, mut dictionary, mut v2) = (None, None, None);
    input.fields(0, |input, id, field| {
        match (id, field) {
            (1, INT32) => kind = Some(input.integer()?),
            (2, INT32) => uncompressed = Some(input.size()?),
            (3, INT32) => compressed = Some(input.size()?),
            (5, STRUCT) => v1 = Some(data_v1(input)?),
            (7, STRUCT) => dictionary = Some(dictionary_page(input)?),
            (8, STRUCT) => v2 = Some(data_v2(input)?),
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
        _ => Err(Malformed::Wrong("a required field is missing").into()),
    }
}

/// Returns the length of the page header at the start of `bytes`, if it is one.
pub(crate) fn page_header_length(bytes: &[u8]) -> Option<usize> {
    page_header(bytes).ok().map(|(_, length)| length)
}

fn data_v1(input: &mut Input<'_>) -> Parsed<PageKind> {
    let (mut values, mut encoding, mut levels) = (None, Encoding::Other, Encoding::Rle);
    input.fields(1, |input, id, field| {
        match (id, field) {
            (1, INT32) => values = Some(input.size()?),
            (2, INT32) => encoding = self::encoding(input)?,
            (3, INT32) => levels = self::encoding(input)?,
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
            (1, INT32) => values = Some(input.size()?),
            (2, INT32) => encoding = self::encoding(input)?,
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
            (1, INT32) => values = Some(input.size()?),
            (2, INT32) => nulls = Some(input.size()?),
            (4, INT32) => encoding = self::encoding(input)?,
            (5, INT32) => definition = Some(input.size()?),
            (6, INT32) => repetition = Some(input.size()?),
            (7, TRUE) => is_compressed = true,
            (7, FALSE) => is_compressed = false,
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
