//! Values as text, shared by the text formats.

use arrow::{
    array::{Array, ArrayRef, RecordBatch},
    datatypes::DataType,
    util::display::{ArrayFormatter, DurationFormat, FormatOptions},
};

use super::Result;

/// How values are spelled: ISO dates and times, nothing for null.
const OPTIONS: FormatOptions<'static> =
    FormatOptions::new().with_display_error(false).with_null("").with_duration_format(DurationFormat::Pretty);

/// The columns of a batch, ready to be spelled value by value.
pub struct Cells<'a> {
    columns: Vec<(&'a ArrayRef, ArrayFormatter<'a>)>,
}

impl<'a> Cells<'a> {
    /// Prepares a batch.
    pub fn new(batch: &'a RecordBatch) -> Result<Self> {
        let columns = batch.columns().iter().map(|column| {
            let formatter = ArrayFormatter::try_new(column, &OPTIONS).map_err(|e| e.to_string())?;
            Ok((column, formatter))
        });
        Ok(Cells { columns: columns.collect::<Result<_>>()? })
    }

    /// Returns how many columns there are.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Writes one value to `text`, which is emptied first; returns false for null.
    pub fn spell(&self, row: usize, column: usize, text: &mut String) -> Result<bool> {
        text.clear();
        let (array, formatter) = &self.columns[column];
        if array.is_null(row) || array.data_type().is_null() {
            return Ok(false);
        }
        formatter.value(row).write(text).map_err(|e| e.to_string())?;
        Ok(true)
    }
}

/// Tells whether values of a type are aligned to the right.
pub fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}
