//! Resident columns: compact encodings, statistics, dictionaries; Arrow in and out.

mod buffer;
mod column;
mod error;
mod table;
mod types;

pub use column::*;
pub use error::{Class, Error, Result};
pub use table::*;
pub use types::*;
