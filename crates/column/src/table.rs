//! A resident table: parts of whole columns, and what is known of all of them together.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};

use crate::unify::unify;
use crate::{Column, Error, Result, Type, statistics};

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
    pub fn from_arrow(field: &arrow_schema::Field) -> Result<Field> {
        let unsupported = |_| {
            Error::unsupported(format!("no column holds the type of column {}: {}", field.name(), field.data_type()))
        };
        Ok(Field::new(field.name(), Type::from_arrow(field.data_type()).map_err(unsupported)?, field.is_nullable()))
    }

    /// Gives the Arrow field.
    pub fn to_arrow(&self) -> arrow_schema::Field {
        arrow_schema::Field::new(&self.name, self.kind.to_arrow(), self.nullable)
    }

    /// Takes the fields of an Arrow schema.
    ///
    /// # Errors
    /// If a type is not supported.
    pub fn all_from_arrow(schema: &Schema) -> Result<Arc<[Field]>> {
        schema.fields().iter().map(|field| Field::from_arrow(field)).collect()
    }
}

impl Part {
    /// Makes a part of columns.
    ///
    /// # Panics
    /// If a column has another number of rows.
    pub fn new(rows: usize, columns: Vec<Column>) -> Part {
        assert!(columns.iter().all(|column| column.rows == rows), "all columns of a part have as many rows");
        Part { rows, columns: columns.into_iter().map(Arc::new).collect() }
    }

    /// Returns the memory that is held, in bytes, without dictionaries.
    pub fn byte_len(&self) -> usize {
        self.columns.iter().map(|column| column.byte_len()).sum()
    }

    /// Gives some rows as an Arrow batch of exactly the given schema, whose columns are the part's by position.
    ///
    /// # Errors
    /// If a column does not become the type asked for.
    pub fn batch(&self, range: Range<usize>, schema: &SchemaRef) -> Result<RecordBatch> {
        if schema.fields().len() != self.columns.len() {
            let (has, wants) = (self.columns.len(), schema.fields().len());
            return Err(Error::internal(format!("a batch of {wants} columns is asked of a part of {has}")));
        }
        let columns = self.columns.iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| column.to_arrow_as(range.clone(), field.data_type()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(range.len()));
        Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
    }
}

impl Table {
    /// Makes a table of parts without looking at values: of the statistics, only null counts are known.
    pub fn new(schema: Arc<[Field]>, parts: Vec<Arc<Part>>) -> Table {
        let nulls = |at: usize| parts.iter().map(|part| part.columns[at].null_count()).sum();
        let statistics = (0..schema.len()).map(|at| ColumnStatistics { nulls: nulls(at), ..Default::default() });
        Table { statistics: statistics.collect(), schema, parts }
    }

    /// Makes a table of parts and computes all statistics.
    pub fn with_statistics(schema: Arc<[Field]>, parts: Vec<Arc<Part>>) -> Table {
        Self::with_statistics_on(schema, parts, &serial)
    }

    /// Makes a table of parts and computes all statistics in parallel.
    pub fn with_statistics_on(schema: Arc<[Field]>, parts: Vec<Arc<Part>>, parallel: &Parallel<'_>) -> Table {
        let (parts, statistics) = statistics::compute(&schema, parts, parallel);
        Table { schema, parts, statistics: statistics.into() }
    }

    /// Makes a table without rows.
    pub fn empty(schema: Arc<[Field]>) -> Table {
        Self::with_statistics(schema, Vec::new())
    }

    /// Encodes Arrow rows, one part per batch, without statistics over all.
    ///
    /// # Errors
    /// If a type is not supported or a batch does not fit the schema.
    pub fn from_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Table> {
        let fields = Field::all_from_arrow(schema)?;
        let mut parts = Vec::with_capacity(batches.len());
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            check_width(&fields, batch.num_columns())?;
            let columns = fields.iter().zip(batch.columns());
            let columns = columns.map(|(field, array)| Column::from_arrow(array, &field.kind).map(Arc::new));
            parts.push(Arc::new(Part { rows: batch.num_rows(), columns: columns.collect::<Result<_>>()? }));
        }
        let parts = unify(&fields, parts, false, &serial, None)?;
        Ok(Table::new(fields, parts))
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
    pub fn to_batches(&self, batch_rows: usize) -> Result<Vec<RecordBatch>> {
        let schema = self.arrow_schema();
        let mut batches = Vec::new();
        for part in &self.parts {
            for start in (0..part.rows).step_by(batch_rows.max(1)) {
                batches.push(part.batch(start..part.rows.min(start + batch_rows.max(1)), &schema)?);
            }
        }
        Ok(batches)
    }

    /// Gives rows of one part as an Arrow batch of exactly the given schema, whose columns are the table's by position.
    ///
    /// # Errors
    /// If a column does not become the type asked for.
    pub fn batch(&self, part: usize, range: Range<usize>, schema: &SchemaRef) -> Result<RecordBatch> {
        self.parts[part].batch(range, schema)
    }

    /// Returns the memory that is held, in bytes; shared dictionaries count once.
    pub fn byte_len(&self) -> usize {
        (0..self.schema.len()).map(|column| self.column_byte_len(column)).sum()
    }

    /// Returns the memory that one column holds, in bytes; its dictionary counts once.
    pub fn column_byte_len(&self, column: usize) -> usize {
        let dictionary = self.parts.first().and_then(|part| part.columns[column].dictionary().map(|d| d.byte_len()));
        dictionary.unwrap_or(0) + self.parts.iter().map(|part| part.columns[column].byte_len()).sum::<usize>()
    }

    /// Describes the encoding of a column for people, as of its first part.
    pub fn encoding(&self, column: usize) -> String {
        self.parts.first().map_or_else(|| "no rows".into(), |part| part.columns[column].encoding())
    }

    /// Returns a table of some of the columns, in the order asked for, sharing them.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn project(&self, columns: &[usize]) -> Table {
        let pick = |part: &Arc<Part>| {
            let columns = columns.iter().map(|&at| part.columns[at].clone()).collect();
            Arc::new(Part { rows: part.rows, columns })
        };
        Table {
            schema: columns.iter().map(|&at| self.schema[at].clone()).collect(),
            parts: self.parts.iter().map(pick).collect(),
            statistics: columns.iter().map(|&at| self.statistics[at].clone()).collect(),
        }
    }
}

/// Checks that rows have as many columns as the schema.
pub(crate) fn check_width(schema: &[Field], columns: usize) -> Result<()> {
    match columns == schema.len() {
        true => Ok(()),
        false => Err(Error::internal(format!("rows of {columns} columns are added to a table of {}", schema.len()))),
    }
}
