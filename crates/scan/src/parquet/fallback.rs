//! Everything our decoder does not know, through the Arrow reader of the `parquet` crate.

use std::{fs::File, os::unix::fs::FileExt};

use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    },
    basic::Type as PhysicalType,
    errors::ParquetError,
    schema::types::ColumnDescriptor,
};
use tandem_column::{Class, Column, Reservation};

use super::{
    ParquetFile, Problem,
    compact::Malformed,
    damaged,
    footer::plain_message,
    page::HEADER_LIMIT,
    structure,
    thrift::{self, HeaderError, PageKind},
};

/// Rows of a batch: enough that encoding is not dominated by joining batches.
const BATCH_ROWS: usize = 64 << 10;

/// Bytes read for a page header at first: most take tens.
const HEADER_BYTES: usize = 256;

/// Bytes of a page that are reserved on its header's word, however small it is: writers make pages of a megabyte.
const PAGE_BYTES: usize = 32 << 20;

/// The most bytes that one byte of DEFLATE becomes. Zstandard reaches more with small pages only, of less than [`PAGE_BYTES`].
const DEFLATE_RATIO: usize = 1032;

/// Decodes a column of a row group.
pub(super) fn decode(
    parquet: &ParquetFile,
    group: usize,
    column: usize,
    held: &mut Reservation,
) -> Result<Column, Problem> {
    // Damaged bytes may meet an assertion in code that is not ours.
    tandem_column::guarded(|| read(parquet, group, column, held))
        .unwrap_or_else(|_| Err(damaged("its pages cannot be decoded")))
}

fn read(parquet: &ParquetFile, group: usize, column: usize, held: &mut Reservation) -> Result<Column, Problem> {
    let kind = &parquet.fields[column].kind;
    let mut options = ArrowReaderOptions::new();
    if parquet.is_int96(column) {
        options = options.with_schema(parquet.schema.clone());
    }
    let metadata = ArrowReaderMetadata::try_new(parquet.metadata.clone(), options).map_err(problem)?;
    let mask = ProjectionMask::roots(metadata.parquet_schema(), [column]);
    // A file of its own: the reader moves the file's position, which clones of a handle share.
    let file = parquet.reopen().map_err(|error| damaged(error.message))?;
    check_pages(parquet, &file, group, column)?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(problem)?;
    held.resize(0)?;
    let mut columns = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| damaged(error.to_string()))?;
        let Some(array) = batch.columns().first() else { return Err(damaged("a batch without its column")) };
        // The batch, its column, and the whole that its column becomes a part of.
        held.add(array.get_array_memory_size().saturating_mul(3))?;
        columns.push(Column::from_arrow(array, kind).map_err(|error| match error.class {
            Class::Unsupported => Problem::Unsupported,
            _ => damaged(error.message),
        })?);
    }
    if columns.is_empty() {
        return Ok(Column::nulls(kind.clone(), 0));
    }
    let columns: Vec<&Column> = columns.iter().collect();
    Column::concat(&columns).map(|column| column.compact()).map_err(|error| damaged(error.message))
}

/// Checks the page headers of a column, which the `parquet` crate would believe: a list in one can keep it busy for hours.
fn check_pages(parquet: &ParquetFile, file: &File, group: usize, column: usize) -> Result<(), Problem> {
    let group = parquet.metadata.row_group(group);
    let schema = group.schema_descr();
    let chunks = group.columns().iter().enumerate().filter(|(leaf, _)| schema.get_column_root_idx(*leaf) == column);
    let mut bytes = Vec::new();
    for (_, chunk) in chunks {
        let (start, length) = chunk.byte_range();
        let (mut at, end) = (start, start.saturating_add(length));
        let mut wanted = HEADER_BYTES;
        while at < end {
            let present = usize::try_from(end - at).unwrap_or(usize::MAX).min(wanted);
            bytes.resize(present, 0);
            file.read_exact_at(&mut bytes, at)?;
            match structure::check_page(&bytes) {
                Ok((header, body)) => {
                    check_sizes(&bytes, chunk.column_descr())?;
                    at += header as u64 + body as u64;
                    wanted = HEADER_BYTES;
                }
                Err(Malformed::Short) if present == wanted && wanted < HEADER_LIMIT => wanted *= 4,
                Err(Malformed::Short) => return Err(damaged("a page header is cut off")),
                Err(Malformed::Wrong(what)) => return Err(damaged(format!("page header: {what}"))),
            }
        }
    }
    Ok(())
}

/// Checks what a page's header makes the `parquet` crate reserve: the page's size, and room for a dictionary's values.
fn check_sizes(header: &[u8], column: &ColumnDescriptor) -> Result<(), Problem> {
    let (header, _) = thrift::page_header(header).map_err(|error| match error {
        HeaderError::Short => damaged("a page header is cut off"),
        HeaderError::Damaged(problem) => problem,
    })?;
    let size = header.uncompressed;
    if size > PAGE_BYTES.max(header.compressed.saturating_mul(DEFLATE_RATIO)) {
        return Err(damaged(format!("a page of {size} bytes in {}", header.compressed)));
    }
    // Texts have their length in front; flags have no dictionary.
    let width = match column.physical_type() {
        PhysicalType::BOOLEAN => 1,
        PhysicalType::INT32 | PhysicalType::FLOAT | PhysicalType::BYTE_ARRAY => 4,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8,
        PhysicalType::INT96 => 12,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(1).max(1),
    };
    match header.kind {
        PageKind::Dictionary { values, .. } if values > size / width => {
            Err(damaged(format!("a dictionary of {values} values in {size} bytes")))
        }
        _ => Ok(()),
    }
}

fn problem(error: ParquetError) -> Problem {
    match error {
        ParquetError::NYI(_) => Problem::Unsupported,
        error => damaged(plain_message(&error)),
    }
}
