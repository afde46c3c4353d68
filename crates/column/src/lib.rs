//! Resident columns: compact encodings, statistics, dictionaries; Arrow in and out.
//!
//! A [`Table`] is a list of [`Part`]s of up to [`PART_ROWS`] rows; a part holds one [`Column`] per field, each encoded as
//! [`Data`] says: integers as offsets from a base in 1, 2, 4 or 8 bytes, text as codes into a sorted [`Dictionary`] that
//! all parts share, or plain. Blocks of [`BLOCK_ROWS`] rows carry [`BlockStatistics`], tables [`ColumnStatistics`].
//! Everything is immutable and shared by reference count; memory is page-aligned ([`Buffer`]).
//!
//! [`Loader`] makes tables from Arrow batches of many threads; [`Column::from_arrow`] and [`Column::to_arrow_as`] convert
//! single columns; `unsafe` is confined to buffers and two unchecked views of validated text.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{Int32Array, RecordBatch, StringArray};
//! use tandem_column::{Field, LoadOptions, Loader};
//!
//! let years = Int32Array::from_iter_values((0..1000).map(|i| 1992 + i / 200));
//! let colours = StringArray::from_iter_values((0..1000).map(|i| ["red", "green", "blue"][i % 3]));
//! let batch = RecordBatch::try_from_iter([
//!     ("year", Arc::new(years) as _),
//!     ("colour", Arc::new(colours) as _),
//! ])?;
//!
//! let loader = Loader::new(Field::all_from_arrow(&batch.schema())?, LoadOptions::default());
//! loader.append(0, batch.clone())?;
//! let table = loader.finish()?;
//!
//! assert_eq!(table.encoding(0), "u8 offsets from 1992");
//! assert_eq!(table.encoding(1), "dictionary of 3, u8");
//! assert_eq!(table.statistics[0].range, Some((1992, 1996)));
//! assert!(table.statistics[0].sorted);
//! assert_eq!(table.batch(0, 0..1000, &batch.schema())?, batch);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod arrow_type;
mod bitmap;
mod blocks;
mod buffer;
mod bytes;
mod cancel;
mod codes;
mod column;
mod compact;
mod construct;
mod dictionary;
mod error;
mod float;
mod from_arrow;
mod guard;
mod interner;
mod loader;
mod memory;
mod sketch;
mod statistics;
mod table;
mod text;
mod to_arrow;
mod types;
mod unify;

pub use bitmap::{Bitmap, BitmapBuilder};
pub use buffer::{AlignedVec, Buffer, PAGE, Plain};
pub use bytes::BytesVector;
pub use cancel::Cancel;
pub use codes::{Code, Codes};
pub use column::*;
pub use construct::BytesBuilder;
pub use dictionary::{DICTIONARY_BYTES, Dictionary};
pub use error::{Class, Error, Result};
pub use float::{float_order, from_float_order};
pub use guard::{guard_thread, guarded, panic_text};
pub use loader::{LoadOptions, Loader, PartBuilder};
pub use memory::{MemoryBudget, Reclaim, Reservation};
pub use statistics::value_set;
pub use table::*;
pub use types::*;
