//! Looking at a file before another reader than ours gets it.

use std::path::Path;

use tandem_column::Result;

use crate::{Format, file, ipc, parquet};

/// Checks that a file can be handed to a reader that believes what it says: it is a file, not a pipe or a device, and nothing in
/// a Parquet or Arrow file claims more than its bytes can hold.
///
/// # Errors
/// Input, if the file is missing, unreadable or damaged; unsupported, if it is encrypted.
pub fn inspect(path: &Path, format: Option<&Format>) -> Result<()> {
    match format {
        Some(Format::Parquet) => parquet::ParquetFile::open(path, parquet::Int96::Nanoseconds).map(drop),
        Some(Format::Arrow) => ipc::check_any(path),
        Some(Format::Csv { .. }) | None => file::open(path).map(drop),
    }
}
