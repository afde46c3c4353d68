//! Byte ranges of Parquet files as a table: what a scheduler of tasks hands out.
//!
//! A row group belongs to the range that holds its middle byte, so that ranges which cover a file read each of its row
//! groups once. Columns are found by name, file by file: one that a file lacks is null, and values that are not in the
//! files at all (partitions, by directory) come with the range. Footers are kept, and looked up again by identity.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use tandem_column::{Error, Field, Result, Table, Type};
use tandem_pipeline::{Expr, Value};

use crate::{
    ColumnCache, assemble,
    file::Identity,
    load::{self, ColumnOrigin, Hold, Input, LoadMetrics, Loaded, Loading, Request},
    parquet::{Int96, ParquetFile},
    summary::Summaries,
};

/// Rows of a range up to which all statistics of its columns are computed: they matter for the small sides of joins.
const DETAILED_ROWS: usize = 1 << 18;

/// Footers kept.
const FOOTERS: usize = 1 << 13;

/// A column of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitColumn {
    /// Its name and type, and whether it may be null.
    pub field: Field,
    /// Its values are not in the files: which of [`Split::values`] is.
    pub partition: Option<usize>,
}

/// A byte range of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The file.
    pub path: PathBuf,
    /// The first byte of the range.
    pub start: u64,
    /// How many bytes it has.
    pub length: u64,
    /// The file's size when the range was made, if that is to be checked.
    pub size: Option<u64>,
    /// The file's modification in milliseconds since 1970 when the range was made, if that is to be checked.
    pub modified: Option<i64>,
    /// Values of columns that are not in the file.
    pub values: Vec<Value>,
}

/// Reads ranges of files. One serves all queries of a process.
#[derive(Default)]
pub struct SplitReader {
    footers: Mutex<HashMap<PathBuf, Arc<ParquetFile>>>,
    /// By the addresses of a column's pieces.
    summaries: Summaries<Vec<usize>>,
}

impl SplitReader {
    /// Makes a reader that knows no files yet.
    pub fn new() -> SplitReader {
        SplitReader::default()
    }

    /// Forgets all footers.
    pub fn clear(&self) {
        self.footers.lock().clear();
    }

    /// Loads the columns of ranges. `predicates`, over positions in `columns` and joined by "and", are a hint: row
    /// groups in which no row matches may be left out. The hold lives as long as the table is used. Blocks; runs on the
    /// runtime's workers.
    ///
    /// # Errors
    /// Input, if a file is missing, damaged or not the one that was planned for. Unsupported, if a column's type in a file does
    /// not become the one asked for. Exhausted, if the memory budget is used up. Cancelled.
    pub fn load(
        &self,
        columns: &[SplitColumn],
        case_sensitive: bool,
        splits: &[Split],
        predicates: &[Expr],
        loading: &Loading<'_>,
        metrics: &LoadMetrics,
    ) -> Result<(Table, Hold)> {
        let mut inputs = Vec::with_capacity(splits.len());
        for split in splits {
            loading.cancel.check()?;
            let file = self.open(split, loading.cache)?;
            let range = split.start..split.start.saturating_add(split.length);
            let groups = (0..file.groups()).filter(|group| range.contains(&file.group_middle(*group))).collect();
            let origins = origins(&file, columns, case_sensitive, split)?;
            inputs.push(Input { file, groups, origins });
        }
        let schema: Arc<[Field]> = columns.iter().map(|column| column.field.clone()).collect();
        let all: Vec<usize> = (0..columns.len()).collect();
        let (columns, loading, resident_only) = (&all, *loading, false);
        let request = Request { schema: &schema, columns, predicates, loading, metrics, resident_only };
        let Loaded { rows, pieces, hold } = load::parquet(&inputs, false, &request)?;
        let names: Vec<Vec<usize>> =
            pieces.iter().map(|pieces| pieces.iter().map(|piece| Arc::as_ptr(piece) as usize).collect()).collect();
        let statistics = self.summaries.of(&names, &schema, &pieces, DETAILED_ROWS, loading.runtime, loading.cancel)?;
        for (field, statistics) in schema.iter().zip(statistics.iter()) {
            if !field.nullable && statistics.nulls > 0 {
                let name = &field.name;
                return Err(Error::input(format!(
                    "column {name} has nulls, but is declared without: declare it nullable"
                )));
            }
        }
        Ok((assemble::table(schema, &rows, &pieces, statistics), hold))
    }

    /// Returns a file's footer, read again if the file changed.
    fn open(&self, split: &Split, cache: &ColumnCache) -> Result<Arc<ParquetFile>> {
        let identity = Identity::of_path(&split.path)?;
        let changed = split.size.is_some_and(|size| size != identity.size)
            || split.modified.is_some_and(|modified| modified != identity.modified_ms());
        if changed {
            let path = split.path.display();
            return Err(Error::input(format!("{path} changed since the query was planned: run the query again")));
        }
        let known = self.footers.lock().get(&split.path).cloned();
        if let Some(known) = known {
            if known.identity == identity {
                return Ok(known);
            }
            cache.remove_file(known.identity);
        }
        let file = Arc::new(ParquetFile::open(&split.path, Int96::Instants)?);
        let mut footers = self.footers.lock();
        if footers.len() >= FOOTERS {
            footers.clear();
        }
        footers.insert(split.path.clone(), file.clone());
        Ok(file)
    }
}

/// Finds the columns in a file.
fn origins(
    file: &ParquetFile,
    columns: &[SplitColumn],
    case_sensitive: bool,
    split: &Split,
) -> Result<Arc<[ColumnOrigin]>> {
    let path = file.path.display();
    let origin = |column: &SplitColumn| {
        let name = &column.field.name;
        if let Some(partition) = column.partition {
            let value = split.values.get(partition);
            let value =
                value.ok_or_else(|| Error::input(format!("column {name} has no value in the split of {path}")))?;
            return Ok(ColumnOrigin::Constant(value.clone()));
        }
        let same = |field: &Field| match case_sensitive {
            true => field.name == *name,
            false => field.name.to_lowercase() == name.to_lowercase(),
        };
        let mut found = file.fields.iter().enumerate().filter(|(_, field)| same(field));
        let Some((position, stored)) = found.next() else { return Ok(ColumnOrigin::Constant(Value::Null)) };
        if let Some((_, other)) = found.next() {
            let (one, other) = (&stored.name, &other.name);
            return Err(Error::unsupported(format!("columns {one} and {other} of {path} differ only in case")));
        }
        if let Some(reason) = &file.unsupported[position] {
            return Err(Error::unsupported(format!("{reason}, in {path}")));
        }
        let dated = matches!(stored.kind, Type::Date | Type::Timestamp(..));
        if dated && file.has_legacy_calendar(position) {
            return Err(Error::unsupported(format!(
                "column {name} of {path} may be in the calendar of old Spark versions"
            )));
        }
        match becomes(&stored.kind, &column.field.kind) {
            true => Ok(ColumnOrigin::Stored(position)),
            false => {
                let (stored, wanted) = (&stored.kind, &column.field.kind);
                Err(Error::unsupported(format!("column {name} is {stored} in {path}, not {wanted}")))
            }
        }
    };
    columns.iter().map(origin).collect()
}

/// Tells whether every value of a stored type is, bit for bit, one of the type asked for.
fn becomes(stored: &Type, wanted: &Type) -> bool {
    match (stored, wanted) {
        (stored, wanted) if stored == wanted => true,
        // Instants are instants, in whatever zone they are shown.
        (Type::Timestamp(stored, Some(_)), Type::Timestamp(wanted, Some(_))) => stored == wanted,
        (Type::Decimal { precision, scale }, Type::Decimal { precision: more, scale: same }) => {
            scale == same && precision <= more && stored.repr() == wanted.repr()
        }
        (stored, wanted) if stored.is_integer() && wanted.is_integer() && stored.repr() == wanted.repr() => {
            match (stored.integer_range(), wanted.integer_range()) {
                (Some((low, high)), Some((least, most))) => least <= low && high <= most,
                _ => false,
            }
        }
        _ => false,
    }
}
