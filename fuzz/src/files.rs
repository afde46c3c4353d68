//! Files of every format, opened and loaded as a table of a session is.

use std::{
    cell::OnceCell,
    fs,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use tandem_column::{MemoryBudget, Result, Table};
use tandem_runtime::{Cancel, RowProgress, Runtime};
use tandem_scan::{ColumnCache, Compression, FileTable, Format, LoadMetrics, Loading, Split, SplitColumn, SplitReader};
use tempfile::TempDir;

use crate::sound;

/// Rows up to which columns are loaded: a run of any length takes a few bytes in a file.
const MOST_ROWS: usize = 1 << 16;
/// Bytes before the footer, for column chunks to be in.
const BODY: usize = 4 << 10;
/// Bytes that a load may decode.
const BYTE_LIMIT: usize = 64 << 20;

/// What an input of `csv` begins with chooses one of these.
const DELIMITERS: [u8; 4] = [b',', b'\t', b'|', b';'];
/// As [`DELIMITERS`].
const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Gzip, Compression::Zstd];

thread_local! {
    static DIRECTORY: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Returns a path for a file of this thread.
pub(crate) fn path(name: &str) -> PathBuf {
    DIRECTORY.with(|directory| {
        let made = || tempfile::Builder::new().prefix("tandem-fuzz-").tempdir().expect("a temporary directory");
        directory.get_or_init(made).path().join(name)
    })
}

/// Writes a file for this thread's next look at it.
pub(crate) fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = path(name);
    fs::write(&path, bytes).expect("room for a temporary file");
    path
}

/// Returns a pool of one worker: what it does is the same each time.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Arc<Runtime>> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new(1))
}

/// Loads all columns that can be.
pub(crate) fn load(table: &FileTable) -> Result<Table> {
    let columns: Vec<usize> = (0..table.schema().len()).filter(|column| table.unsupported(*column).is_none()).collect();
    with(|loading| table.load(&columns, &[], loading)).map(|(table, _)| table)
}

/// Lends what a load works with.
fn with<T>(load: impl FnOnce(&Loading<'_>) -> T) -> T {
    let (memory, cancel, progress) = (Arc::new(MemoryBudget::new(BYTE_LIMIT)), Cancel::new(), RowProgress::default());
    let cache = ColumnCache::within(&memory, BYTE_LIMIT / 2);
    load(&Loading { cache: &cache, runtime: runtime(), memory: &memory, cancel: &cancel, progress: &progress })
}

/// Loads all columns of a Parquet file as a scheduler's tasks do.
pub(crate) fn load_split(table: &FileTable) -> Result<Table> {
    let columns: Vec<SplitColumn> =
        table.schema().iter().map(|field| SplitColumn { field: field.clone(), partition: None }).collect();
    let path = table.paths()[0].clone();
    let split = Split { path, start: 0, length: u64::MAX, size: None, modified: None, values: Vec::new() };
    let metrics = LoadMetrics::default();
    with(|loading| SplitReader::new().load(&columns, true, &[split], &[], loading, &metrics)).map(|(table, _)| table)
}

/// Reads every value of a table, as whoever asked for it would.
pub(crate) fn look_at(table: &Table) {
    let schema = table.arrow_schema();
    for part in &table.parts {
        let batch = part.batch(0..part.rows, &schema).expect("a loaded table is one of Arrow");
        assert_eq!(batch.num_rows(), part.rows);
    }
}

/// A Parquet file with these bytes as its footer, and nothing in its pages.
pub(crate) fn footer(bytes: &[u8]) {
    let mut whole = b"PAR1".to_vec();
    whole.resize(BODY, 0);
    whole.extend_from_slice(bytes);
    whole.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    whole.extend_from_slice(b"PAR1");
    let path = file("footer.parquet", &whole);
    let Some(table) = sound(FileTable::open(vec![path], Format::Parquet)) else { return };
    assert_eq!(table.statistics().len(), table.schema().len());
    assert_eq!(table.arrow_schema().fields().len(), table.schema().len());
    if table.rows().is_some_and(|rows| rows <= MOST_ROWS) {
        sound(load(&table)).iter().for_each(look_at);
        sound(load_split(&table)).iter().for_each(look_at);
    }
}

/// An Arrow file.
pub(crate) fn ipc(bytes: &[u8]) {
    let path = file("file.arrow", bytes);
    let Some(table) = sound(FileTable::open(vec![path], Format::Arrow)) else { return };
    sound(load(&table)).iter().for_each(look_at);
}

/// Delimited text: a byte of choices, then the file.
pub(crate) fn csv(bytes: &[u8]) {
    let Some((&choices, text)) = bytes.split_first() else { return };
    let choices = usize::from(choices);
    let delimiter = DELIMITERS[choices % 4];
    let header = [None, Some(true), Some(false)][choices / 4 % 4 % 3];
    let compression = COMPRESSIONS[choices / 16 % 4 % 3];
    let path = file("file.csv", text);
    let Some(table) = sound(FileTable::open(vec![path], Format::Csv { delimiter, header, compression })) else {
        return;
    };
    sound(load(&table)).iter().for_each(look_at);
}
