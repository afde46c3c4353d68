//! One result as an Arrow IPC file.

use arrow::{datatypes::SchemaRef, ipc::writer::FileWriter, record_batch::RecordBatch};

use super::{Result, Writer};
use crate::output::OutputSink;

/// Writes Arrow IPC.
pub struct Arrow {
    inner: FileWriter<OutputSink>,
}

impl Arrow {
    /// Writes the file's head.
    pub fn new(schema: &SchemaRef, sink: OutputSink) -> Result<Self> {
        let inner = FileWriter::try_new(sink, schema)
            .map_err(|e| format!("the result cannot be written as an Arrow file: {e}"))?;
        Ok(Arrow { inner })
    }
}

impl Writer for Arrow {
    fn write(&mut self, batch: &RecordBatch) -> Result {
        self.inner.write(batch).map_err(|e| format!("the result cannot be written as an Arrow file: {e}"))
    }

    fn finish(mut self: Box<Self>) -> Result {
        self.inner.finish().and_then(|()| self.inner.flush()).map_err(|e| e.to_string())
    }
}
