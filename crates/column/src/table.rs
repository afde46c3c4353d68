//! A resident table: parts of whole columns, and what is known of all of them together.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use crate::{Column, Result, Type};

/// A named, typed column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The column's name, as written.
    pub name: String,
    /// What its values mean.
    pub kind: Type,
    /// Whether null may occur by declaration (statistics tell whether it does).
    pub nullable: bool,
}

/// A run of consecutive rows, each column in one piece. At most [`crate::PART_ROWS`] rows when we load it ourselves.
#[derive(Clone, Debug)]
pub struct Part {
    /// How many rows there are; every column has as many.
    pub rows: usize,
    /// The columns, in the table's order.
    pub columns: Vec<Arc<Column>>,
}

/// What is known of one column over all parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Smallest and largest non-null value (as in [`crate::BlockStatistics::range`]); `None` where not known or no value.
    pub range: Option<(i64, i64)>,
    /// How many rows are null.
    pub nulls: usize,
    /// About how many distinct values there are.
    pub distinct: Option<f64>,
    /// No value occurs twice (nulls aside).
    pub unique: bool,
    /// Values never decrease from row to row, and none is null.
    pub sorted: bool,
    /// The exact set of values, as offsets from `range.0`, where the range spans at most 65536 values.
    pub values: Option<Arc<crate::Bitmap>>,
}

/// A resident table. Immutable: loading and inserting make a new one that shares the old parts.
///
/// Invariants: all parts have the schema's columns; a dictionary column has the same dictionary (by pointer) in every
/// part, and is a dictionary column in every part. Loading gives an integer column one base and width in all parts, but
/// readers take both from each part: parts scanned from files may differ.
#[derive(Clone, Debug)]
pub struct Table {
    /// The columns' names and types.
    pub schema: Arc<[Field]>,
    /// The rows, in order.
    pub parts: Vec<Arc<Part>>,
    /// Statistics of each column, in the schema's order.
    pub statistics: Arc<[ColumnStatistics]>,
}

/// Rows of a part that we load ourselves: 1 Mi, so that a part of one column is a few megabytes.
pub const PART_ROWS: usize = 1 << 20;

/// Runs `f(0)`, …, `f(tasks - 1)` in any order, perhaps at once, and returns when all are done.
pub type Parallel<'a> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Sync + 'a;

/// Runs tasks one after the other: a [`Parallel`] for one thread.
pub fn serial(tasks: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..tasks).for_each(f);
}

impl Field {
    /// Makes a field.
    pub fn new(name: impl Into<String>, kind: Type, nullable: bool) -> Field {
        Field { name: name.into(), kind, nullable }
    }
    /// Takes an Arrow field.
    ///
    /// # Errors
    /// If its type is not supported.
    pub fn from_arrow(_field: &arrow_schema::Field) -> Result<Field> {
        todo!()
    }
    /// Gives the Arrow field.
    pub fn to_arrow(&self) -> arrow_schema::Field {
        arrow_schema::Field::new(&self.name, self.kind.to_arrow(), self.nullable)
    }
}

impl Part {
    /// Makes a part of columns, which must be of one length.
    pub fn new(rows: usize, columns: Vec<Column>) -> Part {
        Part { rows, columns: columns.into_iter().map(Arc::new).collect() }
    }
    /// Returns the memory that is held, in bytes.
    pub fn byte_len(&self) -> usize {
        todo!()
    }
}

impl Table {
    /// Makes a table of parts without looking at values: of the statistics, only null counts are known.
    pub fn new(_schema: Arc<[Field]>, _parts: Vec<Arc<Part>>) -> Table {
        todo!()
    }
    /// Makes a table of parts and computes all statistics.
    pub fn with_statistics(schema: Arc<[Field]>, parts: Vec<Arc<Part>>) -> Table {
        Self::with_statistics_on(schema, parts, &serial)
    }
    /// Makes a table of parts and computes all statistics in parallel.
    pub fn with_statistics_on(_schema: Arc<[Field]>, _parts: Vec<Arc<Part>>, _parallel: &Parallel<'_>) -> Table {
        todo!()
    }
    /// Makes a table without rows.
    pub fn empty(schema: Arc<[Field]>) -> Table {
        Self::new(schema, Vec::new())
    }
    /// Encodes Arrow rows as they are, one part per batch, without statistics.
    ///
    /// # Errors
    /// If a type is not supported.
    pub fn from_batches(_schema: &SchemaRef, _batches: &[RecordBatch]) -> Result<Table> {
        todo!()
    }
    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }
    /// Returns the position of a column by its exact name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.schema.iter().position(|field| field.name == name)
    }
    /// Returns the Arrow schema.
    pub fn arrow_schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.schema.iter().map(Field::to_arrow).collect::<Vec<_>>()))
    }
    /// Gives all rows as Arrow batches of at most `batch_rows` rows.
    ///
    /// # Errors
    /// If a type has no Arrow form.
    pub fn to_batches(&self, _batch_rows: usize) -> Result<Vec<RecordBatch>> {
        todo!()
    }
    /// Gives rows of one part as an Arrow batch of exactly the given schema, whose columns are the table's by position.
    ///
    /// # Errors
    /// If a column does not become the type asked for.
    pub fn batch(&self, _part: usize, _range: Range<usize>, _schema: &SchemaRef) -> Result<RecordBatch> {
        todo!()
    }
    /// Returns the memory that is held, in bytes; shared dictionaries count once.
    pub fn byte_len(&self) -> usize {
        todo!()
    }
    /// Returns the memory that one column holds, in bytes; a shared dictionary counts once.
    pub fn column_byte_len(&self, _column: usize) -> usize {
        todo!()
    }
    /// Returns a table of some of the columns, in the order asked for, sharing them.
    pub fn project(&self, _columns: &[usize]) -> Table {
        todo!()
    }
    /// Returns a table with the rows of `other` behind these; shares parts that need no new codes.
    ///
    /// # Errors
    /// If the column types differ.
    pub fn append(&self, _other: &Table) -> Result<Table> {
        todo!()
    }
}
