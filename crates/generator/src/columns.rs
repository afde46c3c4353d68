//! Batches of columns without nulls.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tandem_column::{Error, Result};

/// Makes a schema of columns without nulls.
pub fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|(name, kind)| Field::new(*name, kind.clone(), false)).collect::<Vec<_>>()))
}

/// Makes a batch of a schema's columns.
pub fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| Error::internal(format!("A generated batch does not fit its schema: {error}.")))
}

/// Makes a column of integers.
pub fn integers(values: impl IntoIterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

/// Makes a column of floats.
pub fn floats(values: impl IntoIterator<Item = f64>) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values))
}

/// Makes a column of text.
pub fn strings<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}
