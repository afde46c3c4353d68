//! One result as a Parquet file.

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{Result, Writer};
use crate::output::OutputSink;

/// Writes Parquet.
pub struct Parquet {
    inner: ArrowWriter<OutputSink>,
}

impl Parquet {
    /// Makes a writer.
    pub fn new(schema: &SchemaRef, sink: OutputSink) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let inner = ArrowWriter::try_new(sink, schema.clone(), Some(properties))
            .map_err(|e| format!("the result cannot be written as Parquet: {e}"))?;
        Ok(Parquet { inner })
    }
}

impl Writer for Parquet {
    fn write(&mut self, batch: &RecordBatch) -> Result {
        self.inner.write(batch).map_err(|e| format!("the result cannot be written as Parquet: {e}"))
    }

    fn finish(self: Box<Self>) -> Result {
        // Closing writes the footer; the sink is flushed by the file writer.
        self.inner.close().map(drop).map_err(|e| e.to_string())
    }
}
