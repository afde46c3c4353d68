//! What a session tells about its tables and their columns.

use std::path::Path;

use arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::TableType;
use tandem_column::{Codes, Data, Table};

use crate::tables::files::FileProvider;
use crate::tables::location::FileKind;
use crate::tables::resident::ResidentTable;

/// What holds a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// Resident columns.
    Resident,
    /// Parquet files.
    Parquet,
    /// CSV files.
    Csv,
    /// Arrow IPC files.
    Arrow,
    /// A named query.
    View,
    /// Anything else, which only the host engine reads.
    Other,
}

impl std::fmt::Display for TableKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TableKind::Resident => "resident",
            TableKind::Parquet => "parquet",
            TableKind::Csv => "csv",
            TableKind::Arrow => "arrow",
            TableKind::View => "view",
            TableKind::Other => "other",
        })
    }
}

/// A table of the session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// What holds its rows.
    pub kind: TableKind,
    /// How many rows it has, if known without reading it.
    pub rows: Option<usize>,
    /// Bytes in memory (resident) or on disk (files).
    pub bytes: Option<usize>,
}

/// A column of a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its SQL type.
    pub kind: String,
    /// Whether null may occur.
    pub nullable: bool,
    /// How values are held, for people: "u16 offsets from 19920101", "dictionary of 25, u8"; empty if not resident.
    pub encoding: String,
    /// Bytes per value, where every value has as many.
    pub width: Option<usize>,
    /// Bytes of the whole column in memory.
    pub bytes: Option<usize>,
}

/// Describes a table.
pub(crate) fn table(name: String, provider: &dyn TableProvider) -> TableInfo {
    if let Some(resident) = provider.downcast_ref::<ResidentTable>() {
        let table = resident.snapshot();
        return TableInfo { name, kind: TableKind::Resident, rows: Some(table.rows()), bytes: Some(table.byte_len()) };
    }
    if let Some(files) = provider.downcast_ref::<FileProvider>() {
        let kind = match files.location().kind() {
            Ok(FileKind::Parquet) => TableKind::Parquet,
            Ok(FileKind::Csv) => TableKind::Csv,
            Ok(FileKind::Arrow) => TableKind::Arrow,
            Ok(FileKind::Json) | Err(_) => TableKind::Other,
        };
        let rows = files.opened().table.as_ref().ok().and_then(|table| table.rows());
        return TableInfo { name, kind, rows, bytes: usize::try_from(files.bytes()).ok() };
    }
    let kind = if provider.table_type() == TableType::View { TableKind::View } else { TableKind::Other };
    TableInfo { name, kind, rows: None, bytes: None }
}

/// Describes the columns of a table.
pub(crate) fn columns(provider: &dyn TableProvider) -> Vec<ColumnInfo> {
    let resident = provider.downcast_ref::<ResidentTable>().map(ResidentTable::snapshot);
    let schema = provider.schema();
    let describe = |(position, field): (usize, &std::sync::Arc<arrow::datatypes::Field>)| {
        let (encoding, width) = resident.as_ref().map_or((String::new(), None), |table| encoding(table, position));
        ColumnInfo {
            name: field.name().clone(),
            kind: sql_type(field.data_type()),
            nullable: field.is_nullable(),
            encoding,
            width,
            bytes: resident.as_ref().map(|table| table.column_byte_len(position)),
        }
    };
    schema.fields().iter().enumerate().map(describe).collect()
}

/// Describes how a column is held; parts of one table may differ, then the widest counts.
fn encoding(table: &Table, position: usize) -> (String, Option<usize>) {
    let columns = table.parts.iter().map(|part| &part.columns[position]);
    let Some(widest) = columns.max_by_key(|column| width(&column.data)) else { return ("empty".into(), None) };
    let text = match &widest.data {
        Data::Int { base: 0, codes } => name(codes).to_string(),
        Data::Int { base, codes } => format!("{} offsets from {base}", name(codes)),
        Data::Wide(_) => "i128".to_string(),
        Data::Float32(_) => "f32".to_string(),
        Data::Float64(_) => "f64".to_string(),
        Data::Dictionary { codes, dictionary } => format!("dictionary of {}, {}", dictionary.len(), name(codes)),
        Data::Bytes { .. } => "plain bytes".to_string(),
        Data::Remote(_) => "on a device".to_string(),
    };
    let nulls = table.parts.iter().any(|part| part.columns[position].validity.is_some());
    (if nulls { format!("{text}, nulls") } else { text }, width(&widest.data))
}

fn name(codes: &Codes) -> &'static str {
    match codes {
        Codes::U8(_) => "u8",
        Codes::U16(_) => "u16",
        Codes::U32(_) => "u32",
        Codes::U64(_) => "u64",
    }
}

fn width(data: &Data) -> Option<usize> {
    match data {
        Data::Int { codes, .. } | Data::Dictionary { codes, .. } => Some(match codes {
            Codes::U8(_) => 1,
            Codes::U16(_) => 2,
            Codes::U32(_) => 4,
            Codes::U64(_) => 8,
        }),
        Data::Wide(_) => Some(16),
        Data::Float32(_) => Some(4),
        Data::Float64(_) => Some(8),
        Data::Bytes { .. } | Data::Remote(_) => None,
    }
}

/// Returns the SQL name of an Arrow type.
pub(crate) fn sql_type(kind: &DataType) -> String {
    match kind {
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INTEGER".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt8 => "TINYINT UNSIGNED".into(),
        DataType::UInt16 => "SMALLINT UNSIGNED".into(),
        DataType::UInt32 => "INTEGER UNSIGNED".into(),
        DataType::UInt64 => "BIGINT UNSIGNED".into(),
        DataType::Float32 => "REAL".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            format!("DECIMAL({p},{s})")
        }
        DataType::Date32 | DataType::Date64 => "DATE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(zone)) => format!("TIMESTAMP WITH TIME ZONE '{zone}'"),
        DataType::Interval(_) => "INTERVAL".into(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BYTEA".into()
        }
        DataType::Dictionary(_, values) => sql_type(values),
        other => other.to_string(),
    }
}

/// Returns the name of the table that a file becomes: its own, without extensions that tell a format.
pub(crate) fn table_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut stem = name.as_str();
    for compression in [".gz", ".zst", ".GZ", ".ZST"] {
        stem = stem.strip_suffix(compression).unwrap_or(stem);
    }
    stem.rsplit_once('.').map_or(stem, |(stem, _)| stem).to_string()
}

/// Returns the memory in bytes that the machine, or the group of processes this one is in, has; 4 GB where the system does not
/// tell.
pub(crate) fn machine_memory() -> usize {
    let kilobytes = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok()
    });
    let machine = kilobytes.map_or(4 << 30, |kilobytes| kilobytes << 10);
    // Of control groups version 2, then 1; without a limit they say "max" or a number beyond the machine.
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = group.iter().filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok());
    limits.fold(machine, usize::min)
}
