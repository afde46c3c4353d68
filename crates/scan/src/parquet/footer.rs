//! What a Parquet file says of itself: columns, types, row groups. Checked once, so that later code may rely on it.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef, TimeUnit};
use base64::prelude::{BASE64_STANDARD, Engine};
use parquet::{
    arrow::{ARROW_SCHEMA_META_KEY, parquet_to_arrow_schema},
    basic::Type as PhysicalType,
    errors::ParquetError,
    file::metadata::{KeyValue, ParquetMetaData, ParquetMetaDataReader},
    schema::types::ColumnDescriptor,
};
use tandem_column::{Error, Field, Repr, Result, Type};

use super::{number::Physical, statistics::Ranges, structure, text::Lengths};
use crate::{
    file::{self, Identity},
    flatbuffer,
};

/// The most rows of a row group: row numbers within a part are 32 bits, and writers make groups of about a million.
const GROUP_ROWS: i64 = 1 << 31;

/// The most bytes of a footer: a thousand row groups of a thousand columns take less. A file with holes can claim one that takes
/// no room on the disk, but would in memory.
const FOOTER: u64 = 256 << 20;

/// How a column is stored, as far as our own decoder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    Boolean,
    Integer(Physical),
    Wide(Physical),
    Float32,
    Float64,
    Bytes(Lengths),
    /// Anything else: the Arrow reader.
    Arrow,
}

/// A top-level column of the file.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Its position among the file's primitive columns, where it is one.
    pub(super) index: usize,
    pub(super) storage: Storage,
    pub(super) optional: bool,
}

/// A Parquet file's footer.
pub(crate) struct ParquetFile {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) metadata: Arc<ParquetMetaData>,
    /// The Arrow types as stored, strings not as views.
    pub(super) schema: SchemaRef,
    pub(crate) fields: Arc<[Field]>,
    /// Why a column cannot be loaded, by position.
    pub(crate) unsupported: Vec<Option<String>>,
    pub(super) leaves: Vec<Leaf>,
    /// What statistics say of the columns.
    pub(super) ranges: Ranges,
}

/// What 96-bit timestamps are read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Int96 {
    /// Nanoseconds without a zone, as DataFusion reads them.
    Nanoseconds,
    /// Instants in microseconds, as Spark reads them: all of its years fit.
    Instants,
}

impl ParquetFile {
    /// Reads the footer.
    pub(crate) fn open(path: &Path, int96: Int96) -> Result<ParquetFile> {
        let (file, identity) = file::open(path)?;
        let wrong = |detail: String| file::damaged(path, &format!("footer: {detail}"));
        let bytes = read_footer(path, &file, identity.size)?;
        structure::check(&bytes).map_err(|what| wrong(what.into()))?;
        // The footer's bytes are untrusted, and so is the code that reads them.
        let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&bytes)).map_err(wrong)?;
        let entries = metadata.file_metadata().key_value_metadata();
        check_arrow_schema(entries).map_err(wrong)?;
        let descriptor = metadata.file_metadata().schema_descr();
        let schema = guarded(|| parquet_to_arrow_schema(descriptor, entries)).map_err(wrong)?;
        check_groups(&metadata, identity.size).map_err(wrong)?;
        // Arrow leaves out groups without columns; those behind them would be taken for each other.
        let columns = descriptor.root_schema().get_fields().len();
        if columns != schema.fields().len() {
            return Err(wrong(format!("{columns} columns, {} of them with values", schema.fields().len())));
        }
        let schema = match int96 {
            Int96::Nanoseconds => schema,
            Int96::Instants => with_instants(&metadata, &schema),
        };
        let (mut fields, mut unsupported, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        for (position, field) in schema.fields().iter().enumerate() {
            let (kind, reason) = match Type::from_arrow(field.data_type()) {
                Ok(kind) if kind.repr() != Repr::Other => (kind, None),
                Ok(kind) => (kind, Some(format!("column {} is of type {}", field.name(), field.data_type()))),
                Err(_) => (Type::Null, Some(format!("column {} is of type {}", field.name(), field.data_type()))),
            };
            leaves.push(leaf(&metadata, position, field, &kind));
            fields.push(Field { name: field.name().clone(), kind, nullable: field.is_nullable() });
            unsupported.push(reason);
        }
        let ranges = Ranges::new(leaves.len());
        Ok(ParquetFile {
            path: path.to_owned(),
            identity,
            metadata: Arc::new(metadata),
            schema: Arc::new(schema),
            fields: fields.into(),
            unsupported,
            leaves,
            ranges,
        })
    }

    /// Opens the file again for reading, and checks that it is still the same.
    pub(crate) fn reopen(&self) -> Result<File> {
        let (file, identity) = file::open(&self.path)?;
        if identity == self.identity { Ok(file) } else { Err(file::changed(&self.path)) }
    }

    /// Returns the Arrow schema as DataFusion gives it: strings and binaries as views, without metadata.
    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        let view = |field: &Arc<ArrowField>| {
            let kind = match field.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
                DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
                other => other.clone(),
            };
            ArrowField::new(field.name(), kind, field.is_nullable())
        };
        Arc::new(Schema::new(self.schema.fields().iter().map(view).collect::<Vec<_>>()))
    }

    /// Returns how many rows a row group has.
    pub(crate) fn group_rows(&self, group: usize) -> usize {
        self.metadata.row_group(group).num_rows() as usize
    }

    /// Returns the compressed bytes of a column in a row group.
    pub(crate) fn chunk_bytes(&self, group: usize, column: usize) -> u64 {
        let chunk = self.metadata.row_group(group).columns().get(self.leaves[column].index);
        chunk.map_or(0, |chunk| chunk.byte_range().1)
    }

    /// Returns about how many bytes a column of a row group takes when it is decoded.
    pub(crate) fn decoded_bytes(&self, group: usize, column: usize) -> u64 {
        let chunk = self.metadata.row_group(group).columns().get(self.leaves[column].index);
        chunk.map_or(0, |chunk| u64::try_from(chunk.uncompressed_size()).unwrap_or(0))
    }

    /// Returns the byte in the middle of a row group, by which it belongs to one of several byte ranges, as Hadoop's
    /// readers have it.
    pub(crate) fn group_middle(&self, group: usize) -> u64 {
        let group = self.metadata.row_group(group);
        let start = group.columns().first().map_or(0, |chunk| chunk.byte_range().0);
        start + u64::try_from(group.compressed_size()).unwrap_or(0) / 2
    }

    /// Tells whether days or instants of a column may be written in the calendar that Spark had before version 3 (and for
    /// 96-bit timestamps before 3.1). Later versions say so where they were told to use it.
    pub(crate) fn has_legacy_calendar(&self, column: usize) -> bool {
        let entries = self.metadata.file_metadata().key_value_metadata();
        let entry = |key: &str| entries.and_then(|entries| entries.iter().find(|entry| entry.key == key));
        let version = entry("org.apache.spark.version").and_then(|entry| entry.value.as_deref());
        // Versions are compared as text, as Spark does.
        match self.is_int96(column) {
            // Others than Spark do not say.
            true => entry("org.apache.spark.legacyINT96").is_some() || version.is_none_or(|version| version < "3.1.0"),
            false => {
                entry("org.apache.spark.legacyDateTime").is_some() || version.is_some_and(|version| version < "3.0.0")
            }
        }
    }

    /// Tells whether a column is stored as 96-bit timestamps.
    pub(crate) fn is_int96(&self, column: usize) -> bool {
        let descriptor = self.metadata.file_metadata().schema_descr();
        let index = self.leaves[column].index;
        index < descriptor.num_columns() && descriptor.column(index).physical_type() == PhysicalType::INT96
    }

    /// Returns how many row groups there are.
    pub(crate) fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }
}

/// Makes 96-bit timestamps instants in microseconds.
fn with_instants(metadata: &ParquetMetaData, schema: &Schema) -> Schema {
    let descriptor = metadata.file_metadata().schema_descr();
    let mut fields: Vec<ArrowField> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    for index in 0..descriptor.num_columns() {
        let column = descriptor.column(index);
        if column.physical_type() == PhysicalType::INT96 && column.path().parts().len() == 1 {
            let field = &mut fields[descriptor.get_column_root_idx(index)];
            field.set_data_type(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        }
    }
    Schema::new(fields)
}

/// Gives an error of the `parquet` crate without its prefix.
pub(super) fn plain_message(error: &ParquetError) -> String {
    let text = error.to_string();
    let text = text.split_once(": ").map_or(&text[..], |(_, detail)| detail);
    text.trim().trim_end_matches('.').to_owned()
}

/// Runs code of the `parquet` crate on untrusted bytes.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match tandem_column::guarded(read) {
        Ok(read) => read.map_err(|error| plain_message(&error)),
        Err(_) => Err("unreadable".into()),
    }
}

/// Checks the Arrow schema that writers put beside Parquet's, which the `parquet` crate decodes.
fn check_arrow_schema(entries: Option<&Vec<KeyValue>>) -> Result<(), String> {
    let found = entries.into_iter().flatten().filter(|entry| entry.key == ARROW_SCHEMA_META_KEY);
    for encoded in found.filter_map(|entry| entry.value.as_ref()) {
        // What is not even the right text is for the crate to refuse.
        if let Ok(bytes) = BASE64_STANDARD.decode(encoded) {
            flatbuffer::check_schema(&bytes).map_err(|what| format!("Arrow schema: {what}"))?;
        }
    }
    Ok(())
}

/// Reads the footer's bytes, which end eight before the file does.
fn read_footer(path: &Path, file: &File, size: u64) -> Result<Vec<u8>> {
    check_magic(path, file, size)?;
    let unreadable = |error| file::unreadable(path, &error);
    let mut length = [0; 4];
    file.read_exact_at(&mut length, size - 8).map_err(unreadable)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > size - 8 {
        return Err(file::damaged(path, &format!("footer: {length} bytes in a file of {size}")));
    }
    if length > FOOTER {
        return Err(Error::unsupported(format!(
            "the footer of {} takes {} MB, the most is {}: write larger row groups or fewer columns",
            path.display(),
            length >> 20,
            FOOTER >> 20
        )));
    }
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, size - 8 - length).map_err(unreadable)?;
    Ok(footer)
}

fn check_magic(path: &Path, file: &File, size: u64) -> Result<()> {
    let shown = path.display();
    let mut magic = [0; 4];
    let unreadable = |error| file::unreadable(path, &error);
    if size < 12 {
        return Err(Error::input(format!("not a Parquet file: {shown}; check what wrote it")));
    }
    file.read_exact_at(&mut magic, size - 4).map_err(unreadable)?;
    match &magic {
        b"PAR1" => return Ok(()),
        b"PARE" => return Err(Error::unsupported(format!("{shown} is encrypted: decrypt it first"))),
        _ => file.read_exact_at(&mut magic, 0).map_err(unreadable)?,
    }
    Err(Error::input(match &magic {
        b"PAR1" => format!("{shown} is truncated (its footer is missing): restore or regenerate the file"),
        _ => format!("not a Parquet file: {shown}; check what wrote it"),
    }))
}

/// Checks counts and places of row groups and column chunks.
fn check_groups(metadata: &ParquetMetaData, size: u64) -> Result<(), String> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut rows = 0i64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        if !(0..=GROUP_ROWS).contains(&group.num_rows()) {
            return Err(format!("row group {number} of {} rows", group.num_rows()));
        }
        rows = rows.saturating_add(group.num_rows());
        if group.num_columns() != columns {
            return Err(format!("row group {number} has {} of {columns} columns", group.num_columns()));
        }
        for chunk in group.columns() {
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let length = chunk.compressed_size();
            let end = start.checked_add(length).and_then(|end| u64::try_from(end).ok());
            if start < 0 || length < 0 || end.is_none_or(|end| end > size) {
                return Err(format!(
                    "row group {number}, column {}: bytes outside the file",
                    chunk.column_path().string()
                ));
            }
            if chunk.column_descr().max_rep_level() == 0 && chunk.num_values() != group.num_rows() {
                return Err(format!(
                    "row group {number}, column {}: {} values in {} rows",
                    chunk.column_path().string(),
                    chunk.num_values(),
                    group.num_rows()
                ));
            }
        }
    }
    match metadata.file_metadata().num_rows() {
        total if total == rows => Ok(()),
        total => Err(format!("{total} rows in all, {rows} in the row groups")),
    }
}

/// Finds the primitive column behind a top-level field and how our decoder would read it.
fn leaf(metadata: &ParquetMetaData, position: usize, field: &ArrowField, kind: &Type) -> Leaf {
    let descriptor = metadata.file_metadata().schema_descr();
    let mut found = (0..descriptor.num_columns()).filter(|&leaf| descriptor.get_column_root_idx(leaf) == position);
    match (found.next(), found.next()) {
        (Some(index), None) => {
            let column = descriptor.column(index);
            let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1 && !field.data_type().is_nested();
            let storage = if flat { storage(&column, field.data_type(), kind) } else { Storage::Arrow };
            Leaf { index, storage, optional: column.max_def_level() == 1 }
        }
        _ => Leaf { index: usize::MAX, storage: Storage::Arrow, optional: true },
    }
}

fn storage(column: &ColumnDescriptor, stored: &DataType, kind: &Type) -> Storage {
    let stored = match stored {
        DataType::Dictionary(_, value) => value,
        other => other,
    };
    let integer = |physical| match kind.repr() {
        Repr::Int => Storage::Integer(physical),
        Repr::Wide => Storage::Wide(physical),
        _ => Storage::Arrow,
    };
    use DataType as D;
    match (column.physical_type(), stored) {
        (PhysicalType::BOOLEAN, D::Boolean) => Storage::Boolean,
        (PhysicalType::INT32, D::Int8 | D::Int16 | D::Int32 | D::Date32) => integer(Physical::Int32),
        (PhysicalType::INT32, D::Time32(TimeUnit::Millisecond)) => integer(Physical::Int32),
        (PhysicalType::INT32, D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..)) => integer(Physical::Int32),
        (PhysicalType::INT32, D::UInt8 | D::UInt16 | D::UInt32) => integer(Physical::UInt32),
        (PhysicalType::INT64, D::Int64 | D::Time64(_)) => integer(Physical::Int64),
        (PhysicalType::INT64, D::Timestamp(unit, _)) if *unit != TimeUnit::Second => integer(Physical::Int64),
        (PhysicalType::INT64, D::Decimal64(..) | D::Decimal128(..)) => integer(Physical::Int64),
        (PhysicalType::INT64, D::UInt64) => integer(Physical::UInt64),
        (PhysicalType::FLOAT, D::Float32) => Storage::Float32,
        (PhysicalType::DOUBLE, D::Float64) => Storage::Float64,
        (PhysicalType::BYTE_ARRAY, D::Utf8 | D::LargeUtf8 | D::Utf8View) if *kind == Type::String => {
            Storage::Bytes(Lengths::Prefixed)
        }
        (PhysicalType::BYTE_ARRAY, D::Binary | D::LargeBinary | D::BinaryView) if *kind == Type::Binary => {
            Storage::Bytes(Lengths::Prefixed)
        }
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..))
            if (1..=16).contains(&column.type_length()) =>
        {
            integer(Physical::Fixed(column.type_length() as usize))
        }
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, D::FixedSizeBinary(length)) if *length > 0 && *kind == Type::Binary => {
            Storage::Bytes(Lengths::Fixed(*length as usize))
        }
        _ => Storage::Arrow,
    }
}
