//! Files that somebody made to do harm: each is refused with a sentence that names it, and the process lives on.

mod arrow_files;
mod footers;
mod pipes;

use std::{path::Path, sync::mpsc, thread, time::Duration};

use tandem_column::{Class, Error, Table};
use tandem_runtime::{Cancel, RowProgress, Runtime};
use tandem_scan::{ColumnCache, FileTable, Format, Loading};

/// The stack of a thread that opens a file here: a quarter of what threads have.
const STACK: usize = 512 << 10;

/// Nothing here takes a second; who waits longer would wait for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// Opens a file on a thread with little stack, and waits for it for so long only.
fn open(path: &Path, format: Format) -> Result<FileTable, Error> {
    let (sender, receiver) = mpsc::channel();
    let path = path.to_owned();
    let opening = move || sender.send(FileTable::open(vec![path], format)).is_ok();
    thread::Builder::new().stack_size(STACK).spawn(opening).expect("a thread");
    receiver.recv_timeout(PATIENCE).expect("opening a file neither hangs nor panics")
}

/// Loads the first column.
fn load(table: &FileTable) -> Result<Table, Error> {
    let (runtime, cancel, progress) = (Runtime::new(2), Cancel::new(), RowProgress::default());
    let (cache, memory) = (ColumnCache::new(1 << 20), Default::default());
    let loading = Loading { cache: &cache, runtime: &runtime, memory: &memory, cancel: &cancel, progress: &progress };
    table.load(&[0], &[], &loading).map(|(table, _)| table)
}

/// Opens a file that must be refused; returns the sentence, which names it.
fn refused(path: &Path, format: Format) -> String {
    let error = match open(path, format) {
        Ok(table) => panic!("{} was opened: {:?}", path.display(), table.schema()),
        Err(error) => error,
    };
    assert_eq!(error.class, Class::Input, "{error}");
    assert!(error.message.contains(&path.display().to_string()) && !error.message.contains('\n'), "{error}");
    error.message
}
