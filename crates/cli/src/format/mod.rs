//! Result formats: record batches in, bytes out.
//!
//! A [`Writer`] takes the batches of one result in order. Text formats may follow each other in one output; Parquet and
//! Arrow files hold one result ([`OutputFormat::is_binary`]).

mod arrow;
mod csv;
pub mod grid;
mod json;
mod markdown;
mod parquet;
mod table;
mod text;

use ::arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use clap::ValueEnum;

use crate::output::OutputSink;

/// The formats of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values with a header line; null is empty, the empty string is quoted.
    Csv,
    /// One array of objects.
    Json,
    /// One object per line.
    Jsonl,
    /// A Markdown table.
    Markdown,
    /// A Parquet file, compressed with zstd.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

impl OutputFormat {
    /// Tells whether the format is not for terminals and holds exactly one result.
    pub fn is_binary(self) -> bool {
        matches!(self, OutputFormat::Parquet | OutputFormat::Arrow)
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            OutputFormat::Table => "table",
            OutputFormat::Csv => "csv",
            OutputFormat::Json => "json",
            OutputFormat::Jsonl => "jsonl",
            OutputFormat::Markdown => "markdown",
            OutputFormat::Parquet => "parquet",
            OutputFormat::Arrow => "arrow",
        }
    }
}

/// How tables look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Whether escape sequences colour the output.
    pub color: bool,
    /// How many rows are shown at most; the middle is elided.
    pub rows: Option<usize>,
    /// How many characters a line may have.
    pub width: Option<usize>,
}

/// Why a result could not be written, in words; I/O errors are kept by the output.
pub type Result<T = ()> = std::result::Result<T, String>;

/// Writes the batches of one result.
pub trait Writer {
    /// Writes one batch.
    fn write(&mut self, batch: &RecordBatch) -> Result;
    /// Writes what is left, and flushes.
    fn finish(self: Box<Self>) -> Result;
}

/// Makes the writer of a format.
pub fn writer(format: OutputFormat, schema: &SchemaRef, sink: OutputSink, style: Style) -> Result<Box<dyn Writer>> {
    Ok(match format {
        OutputFormat::Table => Box::new(table::TableWriter::new(schema, sink, style)),
        OutputFormat::Csv => Box::new(csv::Csv::new(schema, sink)?),
        OutputFormat::Json => Box::new(json::Array::new(schema, sink)),
        OutputFormat::Jsonl => Box::new(json::Lines::new(schema, sink)),
        OutputFormat::Markdown => Box::new(markdown::Markdown::new(schema, sink)?),
        OutputFormat::Parquet => Box::new(parquet::Parquet::new(schema, sink)?),
        OutputFormat::Arrow => Box::new(arrow::Arrow::new(schema, sink)?),
    })
}
