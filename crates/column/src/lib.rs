//! Resident columns: compact encodings, statistics, dictionaries; Arrow in and out.

mod append;
mod arrow_type;
mod bitmap;
mod blocks;
mod buffer;
mod codes;
mod column;
mod compact;
mod construct;
mod dictionary;
mod error;
mod float;
mod from_arrow;
mod interner;
mod loader;
mod sketch;
mod statistics;
mod table;
mod text;
mod to_arrow;
mod types;
mod unify;

pub use bitmap::{Bitmap, BitmapBuilder};
pub use buffer::{AlignedVec, Buffer, PAGE, Plain};
pub use codes::{Code, Codes};
pub use column::*;
pub use construct::BytesBuilder;
pub use dictionary::{DICTIONARY_BYTES, Dictionary};
pub use error::{Class, Error, Result};
pub use float::{float_order, from_float_order};
pub use loader::{LoadOptions, Loader, PartBuilder};
pub use table::*;
pub use types::*;
