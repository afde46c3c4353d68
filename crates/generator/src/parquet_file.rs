//! Writes a source to one zstd Parquet file: threads encode whole row groups, and append them in order.
//!
//! The file grows under a temporary name beside its own and is renamed when complete, so that a reader never sees part of
//! it, and whatever goes wrong removes it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use parquet::{
    arrow::arrow_writer::{ArrowColumnChunk, ArrowWriter, ArrowWriterOptions, compute_leaves},
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
    schema::types::ColumnPath,
};
use tandem_column::{Class, Error, Result};

use crate::{
    TableFile,
    source::{Counter, GROUP_ROWS, TableSource, in_order},
};

/// Makes a directory and its parents where missing.
pub fn make_directory(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|error| io_error(&error, dir))
}

/// Writes `source` to `dir/<name>.parquet`.
pub fn write(source: &dyn TableSource, dir: &Path, threads: usize, progress: &Counter<'_>) -> Result<TableFile> {
    let path = dir.join(format!("{}.parquet", source.name()));
    let partial = Partial(dir.join(format!(".{}.parquet.{}.partial", source.name(), std::process::id())));
    let file = File::create(&partial.0).map_err(|error| io_error(&error, dir))?;
    let failure = Arc::new(Mutex::new(None));
    let explain = |error: ParquetError| match failure.lock().ok().and_then(|mut f| f.take()) {
        Some(error) => io_error(&error, &path),
        None => Error::internal(format!("Writing Parquet failed ({error}): {}.", path.display())),
    };

    let options = ArrowWriterOptions::new().with_properties(properties(source)).with_skip_arrow_metadata(true);
    let output = Recorder { file, failure: Arc::clone(&failure) };
    let schema = source.schema();
    let writer = ArrowWriter::try_new_with_options(output, Arc::clone(&schema), options).map_err(explain)?;
    let (mut writer, factory) = writer.into_serialized_writer().map_err(explain)?;
    let mut rows = 0;
    in_order(
        source.groups(),
        threads,
        |group| {
            let mut columns = factory.create_column_writers(group).map_err(explain)?;
            let mut rows = 0;
            source.generate(group, &mut |batch| {
                for ((field, array), column) in schema.fields().iter().zip(batch.columns()).zip(&mut columns) {
                    for leaf in compute_leaves(field, array).map_err(explain)? {
                        column.write(&leaf).map_err(explain)?;
                    }
                }
                rows += batch.num_rows() as u64;
                progress.add(batch.num_rows());
                Ok(())
            })?;
            let chunks: Result<Vec<_>> = columns.into_iter().map(|c| c.close().map_err(explain)).collect();
            Ok((chunks?, rows))
        },
        |(chunks, count): (Vec<ArrowColumnChunk>, u64)| {
            let mut group = writer.next_row_group().map_err(explain)?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group).map_err(explain)?;
            }
            group.close().map_err(explain)?;
            rows += count;
            Ok(())
        },
    )?;
    writer.close().map_err(explain)?;
    let bytes = fs::metadata(&partial.0).map_err(|error| io_error(&error, &path))?.len();
    fs::rename(&partial.0, &path).map_err(|error| io_error(&error, &path))?;
    Ok(TableFile { name: source.name().to_string(), path, rows, bytes })
}

fn properties(source: &dyn TableSource) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS as usize * 2))
        .set_created_by(concat!("tandem ", env!("CARGO_PKG_VERSION")).to_string());
    for name in source.wide_columns() {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*name), false);
    }
    properties.build()
}

/// A file under its temporary name; removed unless it was renamed.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename there is nothing to remove, and nobody to tell if removing fails.
        let _ = fs::remove_file(&self.0);
    }
}

/// Remembers the file system's own error, which Parquet's errors reduce to text.
struct Recorder {
    file: File,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Recorder {
    fn record<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let copy = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            if let Ok(mut failure) = self.failure.lock() {
                failure.get_or_insert(error);
            }
            copy
        })
    }
}

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.file.write(bytes);
        self.record(result)
    }
    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.flush();
        self.record(result)
    }
}

fn io_error(error: &io::Error, path: &Path) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::exhausted(format!(
            "The disk is full; free some space or choose another directory than the one of {path}."
        )),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::input(format!("The directory cannot be written; change its permissions or choose another: {path}."))
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => {
            Error::input(format!("The output must be a directory of files; remove what is in the way: {path}."))
        }
        _ => Error::new(Class::Input, format!("Writing failed ({error}); choose another directory than {path}.")),
    }
}
