//! Loading: rows from many threads become parts of compact columns.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::{Column, Field, PART_ROWS, Parallel, Result, Table, serial};

/// How a [`Loader`] works.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The table's name, for messages.
    pub name: String,
    /// Rows of a part.
    pub part_rows: usize,
    /// The most memory that encoded and waiting rows may take, in bytes.
    pub byte_limit: Option<usize>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { name: "table".into(), part_rows: PART_ROWS, byte_limit: None }
    }
}

/// Takes rows from many threads and makes a table of them.
pub struct Loader {}

impl Loader {
    /// Makes a loader of an empty table.
    pub fn new(_schema: Arc<[Field]>, _options: LoadOptions) -> Loader {
        todo!()
    }
    /// Takes rows. Sequence numbers are 0, 1, 2, … and give the order of rows; they may arrive out of order and from
    /// many threads. The thread whose rows complete a part encodes it here.
    ///
    /// # Errors
    /// If a value does not fit its column, a type is not supported, or the byte limit is exceeded.
    pub fn append(&self, _sequence: u64, _batch: RecordBatch) -> Result<()> {
        todo!()
    }
    /// Takes rows that are already columns, as a part of their own; shares sequence numbers with [`Self::append`].
    ///
    /// # Errors
    /// If the columns do not fit the schema, or the byte limit is exceeded.
    pub fn append_part(&self, _sequence: u64, _columns: Vec<Column>) -> Result<()> {
        todo!()
    }
    /// Returns the memory that encoded and waiting rows take, in bytes.
    pub fn byte_len(&self) -> usize {
        todo!()
    }
    /// Returns how many rows arrived.
    pub fn rows(&self) -> usize {
        todo!()
    }
    /// Makes the table, on this thread alone.
    ///
    /// # Errors
    /// As [`Self::append`], for the rows still waiting.
    pub fn finish(self) -> Result<Table> {
        self.finish_with(&serial)
    }
    /// Makes the table in parallel.
    ///
    /// # Errors
    /// As [`Self::append`], for the rows still waiting.
    pub fn finish_with(self, _parallel: &Parallel<'_>) -> Result<Table> {
        todo!()
    }
}

/// Collects the rows of one part and encodes them in their own narrowest encoding, for scanners that fill
/// [`Loader::append_part`] themselves.
pub struct PartBuilder {}

impl PartBuilder {
    /// Makes an empty one.
    pub fn new(_schema: Arc<[Field]>) -> PartBuilder {
        todo!()
    }
    /// Takes rows.
    pub fn push(&mut self, _batch: RecordBatch) {
        todo!()
    }
    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        todo!()
    }
    /// Encodes the rows.
    ///
    /// # Errors
    /// If a value does not fit its column or a type is not supported.
    pub fn finish(self) -> Result<Vec<Column>> {
        todo!()
    }
}
