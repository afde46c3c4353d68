//! Comma-separated values after RFC 4180, with a header line; null is an empty field, the empty string is `""`.

use std::io::Write;

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};

use super::{Result, Writer, text::Cells};
use crate::output::OutputSink;

/// Writes CSV.
pub struct Csv {
    sink: OutputSink,
}

impl Csv {
    /// Writes the header line.
    pub fn new(schema: &SchemaRef, mut sink: OutputSink) -> Result<Self> {
        let mut line = String::new();
        for (index, field) in schema.fields().iter().enumerate() {
            push(&mut line, index, field.name());
        }
        line.push('\n');
        sink.write_all(line.as_bytes()).map_err(|e| e.to_string())?;
        Ok(Csv { sink })
    }
}

impl Writer for Csv {
    fn write(&mut self, batch: &RecordBatch) -> Result {
        let cells = Cells::new(batch)?;
        let (mut line, mut value) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            for column in 0..cells.width() {
                if cells.spell(row, column, &mut value)? {
                    push(&mut line, column, &value);
                } else if column > 0 {
                    line.push(',');
                }
            }
            line.push('\n');
            self.sink.write_all(line.as_bytes()).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result {
        self.sink.flush().map_err(|e| e.to_string())
    }
}

/// Appends one field, quoted where it must be.
fn push(line: &mut String, column: usize, value: &str) {
    if column > 0 {
        line.push(',');
    }
    if value.is_empty() || value.contains([',', '"', '\n', '\r']) {
        line.push('"');
        line.push_str(&value.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(value);
    }
}
