//! Resident columns: compact encodings, statistics, dictionaries; Arrow in and out.

mod arrow_type;
mod bitmap;
mod buffer;
mod codes;
mod column;
mod dictionary;
mod error;
mod float;
mod loader;
mod table;
mod types;

pub use bitmap::{Bitmap, BitmapBuilder};
pub use buffer::{AlignedVec, Buffer, PAGE, Plain};
pub use codes::{Code, Codes};
pub use column::*;
pub use dictionary::Dictionary;
pub use error::{Class, Error, Result};
pub use float::{float_order, from_float_order};
pub use loader::{LoadOptions, Loader, PartBuilder};
pub use table::*;
pub use types::*;
