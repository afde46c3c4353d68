//! JSON: one array of objects, or one object per line; nulls are written out.

use std::io::Write;

use arrow::{
    datatypes::SchemaRef,
    json::{
        WriterBuilder,
        writer::{JsonArray, JsonFormat, LineDelimited, Writer as ArrowWriter},
    },
    record_batch::RecordBatch,
};

use super::{Result, Writer};
use crate::output::OutputSink;

/// Writes one array of objects.
pub type Array = Json<JsonArray>;
/// Writes one object per line.
pub type Lines = Json<LineDelimited>;

/// Writes objects, framed by `F`.
pub struct Json<F: JsonFormat> {
    inner: ArrowWriter<OutputSink, F>,
    columns: usize,
}

impl<F: JsonFormat> Json<F> {
    /// Makes a writer.
    pub fn new(schema: &SchemaRef, sink: OutputSink) -> Self {
        Json { inner: WriterBuilder::new().with_explicit_nulls(true).build(sink), columns: schema.fields().len() }
    }
}

impl<F: JsonFormat + Ending> Writer for Json<F> {
    fn write(&mut self, batch: &RecordBatch) -> Result {
        if self.columns == 0 {
            return Ok(());
        }
        self.inner.write(batch).map_err(|e| format!("the result cannot be written as JSON: {e}"))
    }

    fn finish(mut self: Box<Self>) -> Result {
        self.inner.finish().map_err(|e| e.to_string())?;
        let sink = self.inner.get_mut();
        sink.write_all(F::ENDING).and_then(|()| sink.flush()).map_err(|e| e.to_string())
    }
}

/// What ends a result, so that the next one begins on its own line.
pub trait Ending {
    /// The bytes after the last object.
    const ENDING: &'static [u8];
}

impl Ending for JsonArray {
    const ENDING: &'static [u8] = b"\n";
}

impl Ending for LineDelimited {
    const ENDING: &'static [u8] = b"";
}
