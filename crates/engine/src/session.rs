//! A session: tables, settings, and statements run one at a time.

use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use tandem_column::Table;
use tandem_runtime::Cancel;

use crate::{Config, Error, Mode, OnFallback, Report};

/// A session. Clones share everything.
#[derive(Clone)]
pub struct Session {}

/// What a statement gives: batches to read, and a report of its run.
pub struct Outcome {
    /// The batches' schema; without fields for statements that return nothing.
    pub schema: SchemaRef,
    /// The result; the statement runs while this is read, and dropping it cancels the rest.
    pub stream: SendableRecordBatchStream,
    /// What ran where, filled as the stream is read.
    pub report: Arc<Report>,
}

/// What holds a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// Resident columns.
    Resident,
    /// Parquet files.
    Parquet,
    /// CSV files.
    Csv,
    /// Arrow IPC files.
    Arrow,
    /// A named query.
    View,
    /// Anything else, which only the host engine reads.
    Other,
}

/// A table of the session.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// Its name, qualified only outside the default schema.
    pub name: String,
    /// What holds its rows.
    pub kind: TableKind,
    /// How many rows it has, if known without reading it.
    pub rows: Option<usize>,
    /// Bytes in memory (resident) or on disk (files).
    pub bytes: Option<usize>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its SQL type.
    pub kind: String,
    /// Whether null may occur.
    pub nullable: bool,
    /// How values are held, for people: "u16 offsets from 19920101", "dictionary of 25, u8"; empty if not resident.
    pub encoding: String,
    /// Bytes per value, where every value has as many.
    pub width: Option<usize>,
    /// Bytes of the whole column in memory.
    pub bytes: Option<usize>,
}

impl Session {
    /// Makes a session without tables.
    pub fn new(config: Config) -> Result<Session, Error> {
        let _ = config;
        Ok(Session {})
    }
    /// Returns the settings as they are now.
    pub fn config(&self) -> Config {
        Config::default()
    }
    /// Sets where the following statements run.
    pub fn set_mode(&self, mode: Mode) {
        let _ = mode;
    }
    /// Sets what happens when a part of a following statement is left to the host engine.
    pub fn set_on_fallback(&self, on_fallback: OnFallback) {
        let _ = on_fallback;
    }
    /// Splits SQL text into statements, without their semicolons; quotes and comments are respected.
    pub fn split(&self, text: &str) -> Result<Vec<String>, Error> {
        Ok(vec![text.to_string()])
    }
    /// Tells whether the text ends with a semicolon outside quotes and comments.
    pub fn is_complete(text: &str) -> bool {
        text.trim_end().ends_with(';')
    }
    /// Runs one statement.
    pub async fn run(&self, sql: &str, cancel: &Cancel) -> Result<Outcome, Error> {
        let _ = cancel;
        Err(Error::new(crate::Class::Unsupported, sql))
    }
    /// Makes a table of every Parquet, CSV or Arrow file in a directory, and of every subdirectory that holds such
    /// files; returns the tables' names.
    pub async fn register_directory(&self, directory: &Path) -> Result<Vec<String>, Error> {
        let _ = directory;
        Ok(vec![])
    }
    /// Makes a table of a file or of a directory of files of one schema.
    pub async fn register_file(&self, name: &str, path: &Path) -> Result<(), Error> {
        let _ = (name, path);
        Ok(())
    }
    /// Makes a table of resident columns, in place of any of that name.
    pub fn register_table(&self, name: &str, table: Arc<Table>) -> Result<(), Error> {
        let _ = (name, table);
        Ok(())
    }
    /// Returns the session's tables, by name.
    pub fn tables(&self) -> Vec<TableInfo> {
        vec![]
    }
    /// Returns the columns of a table.
    pub async fn describe(&self, table: &str) -> Result<Vec<ColumnInfo>, Error> {
        Err(Error::input(table))
    }
    /// Forgets the cached columns of scanned files.
    pub fn clear_cache(&self) {}
}
