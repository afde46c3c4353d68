//! A resident table: parts of whole columns, and what is known of all of them together.

use std::sync::Arc;

use crate::{Column, Type};

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
