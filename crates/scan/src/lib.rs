//! Files to resident tables: Parquet, CSV and Arrow IPC, just the columns a query needs.
//!
//! [`FileTable::open`] reads footers and schemas; [`FileTable::load`] decodes columns in parallel, straight into the
//! resident encoding, and leaves out row groups that statistics or the decoded predicate columns exclude. Decoded columns
//! stay in a [`ColumnCache`] of bounded size, so the next query finds them resident. Files are watched by identity (device,
//! inode, size, modification time): a file that changed is read again. [`SplitReader`] loads byte ranges of Parquet files, as a
//! scheduler of tasks hands them out, by the names of columns.
//!
//! Bytes of files are untrusted: what is damaged gives an error that names the file and the place, never a panic.
#![forbid(unsafe_code)]

mod arrow_file;
mod assemble;
mod cache;
mod csv;
mod file;
mod flatbuffer;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod ipc;
mod load;
mod parquet;
mod predicate;
mod split;
mod summary;
mod table;
mod whole;

pub use cache::ColumnCache;
pub use file::check_regular;
pub use flatbuffer::metadata_bounds;
pub use format::{Compression, Format};
pub use inspect::inspect;
pub use load::{Hold, LoadMetrics, Loading};
pub use split::{Split, SplitColumn, SplitReader};
pub use table::FileTable;
pub use tandem_column::{Class, Error, Result};
