//! A Markdown table, streamed: numbers to the right, bars escaped, line breaks as `<br>`.

use std::io::Write;

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};

use super::{
    Result, Writer,
    text::{Cells, is_number},
};
use crate::output::OutputSink;

/// Writes Markdown.
pub struct Markdown {
    sink: OutputSink,
}

impl Markdown {
    /// Writes the head of the table.
    pub fn new(schema: &SchemaRef, mut sink: OutputSink) -> Result<Self> {
        let (mut names, mut rule) = (String::from("|"), String::from("|"));
        for field in schema.fields() {
            push(&mut names, field.name());
            rule.push_str(if is_number(field.data_type()) { " ---: |" } else { " --- |" });
        }
        if !schema.fields().is_empty() {
            writeln!(sink, "{names}\n{rule}").map_err(|e| e.to_string())?;
        }
        Ok(Markdown { sink })
    }
}

impl Writer for Markdown {
    fn write(&mut self, batch: &RecordBatch) -> Result {
        let cells = Cells::new(batch)?;
        let (mut line, mut value) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            line.clear();
            line.push('|');
            for column in 0..cells.width() {
                let present = cells.spell(row, column, &mut value)?;
                push(&mut line, if present { &value } else { "NULL" });
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

fn push(line: &mut String, value: &str) {
    line.push(' ');
    line.push_str(
        &value.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>"),
    );
    line.push_str(" |");
}
