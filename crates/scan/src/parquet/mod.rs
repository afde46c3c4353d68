//! Parquet: footers by the `parquet` crate, pages by our own decoder.
//!
//! The way of a column chunk: [`page`] reads and decompresses pages, [`fixed`] and [`text`] turn them into resident
//! codes, [`chunk`] puts the column together. Encodings and types that these do not know go through [`fallback`], the
//! Arrow reader of the `parquet` crate, which knows all of them and is slower.

mod chunk;
mod compact;
mod distinct;
mod fallback;
mod fixed;
mod footer;
mod hybrid;
mod number;
mod page;
mod statistics;
mod structure;
mod text;
mod thrift;
mod unpack;
mod validity;

use std::io;

use tandem_column::Error;

pub(crate) use chunk::{DecodeBuffers, decode};
pub(crate) use distinct::distinct_of;
pub(crate) use footer::{Int96, ParquetFile};
pub(crate) use statistics::{Bounds, bounds, bounds_of, range_of};
pub(crate) use thrift::page_header_length;

/// Why a chunk was not decoded.
pub(crate) enum Problem {
    /// The file's bytes are wrong.
    Damaged(String),
    /// A layout that only the `parquet` crate knows.
    Unsupported,
    /// A value outside the range that statistics gave.
    Misfit,
    /// The file cannot be read.
    Io(io::Error),
    /// There is no memory for it.
    Exhausted(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Problem::Exhausted(error)
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("the file is truncated"),
            _ => Problem::Io(error),
        }
    }
}

fn damaged(what: impl Into<String>) -> Problem {
    Problem::Damaged(what.into())
}
