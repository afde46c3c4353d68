//! Files that only DataFusion reads, looked at before it does.
//!
//! A table with declared columns is DataFusion's own: its readers believe what a file says of itself. So its files are
//! checked first, as Tandem's own reader does: when the table is made, and each time it is found, as far as they are new. What
//! is swapped between the check and the read is not seen.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use futures::TryStreamExt;
use parking_lot::Mutex;
use tandem_scan::{Format, check_regular, inspect};

use crate::Error;
use crate::error::translate::ErrorContext;
use crate::execution::host::panicked;

/// What tells one version of a file from another: its size and time of change.
type Version = (u64, i64);

/// The files that were found sound.
#[derive(Default)]
pub(crate) struct Inspected(Mutex<HashMap<PathBuf, Version>>);

impl Inspected {
    /// Checks the files of a table of DataFusion's.
    ///
    /// # Errors
    /// If one is not a file, or claims more than its bytes can hold.
    pub(crate) async fn check_table(&self, table: &ListingTable, state: &SessionState) -> Result<(), Error> {
        let options = table.options();
        self.check(table.table_paths(), &options.format.get_ext(), &options.file_extension, state).await
    }

    /// Checks the files at local places, as far as their names end in `extension`.
    ///
    /// # Errors
    /// As [`Self::check_table`].
    pub(crate) async fn check(
        &self,
        places: &[ListingTableUrl],
        format: &str,
        extension: &str,
        state: &SessionState,
    ) -> Result<(), Error> {
        let format = match format.to_ascii_lowercase().as_str() {
            "parquet" => Some(Format::Parquet),
            "arrow" => Some(Format::Arrow),
            _ => None,
        };
        let mut files = Vec::new();
        for place in places.iter().filter(|place| place.scheme() == "file") {
            let failed = |error: DataFusionError| ErrorContext::default().translate(&error);
            let path = place.get_url().to_file_path().ok();
            match path.as_ref().map(std::fs::metadata) {
                // What is not there yet may become a table by an INSERT.
                Some(Err(_)) => {}
                // Asked first, because DataFusion opens what is not a directory to learn its size.
                Some(Ok(metadata)) if !metadata.is_dir() => files.extend(path.map(|path| (path, None))),
                _ => {
                    let store = state.runtime_env().object_store(place).map_err(failed)?;
                    let listed = place.list_all_files(state, store.as_ref(), extension).await.map_err(failed)?;
                    for found in listed.try_collect::<Vec<_>>().await.map_err(failed)? {
                        let version = (found.size, found.last_modified.timestamp_micros());
                        if let (Some(path), true) = (local(found.location.as_ref()), found.size > 0) {
                            files.push((path, Some(version)));
                        }
                    }
                }
            }
        }
        files.retain(|(path, version)| version.is_none() || self.0.lock().get(path) != version.as_ref());
        let inspected = tokio::task::spawn_blocking(move || {
            for (path, _) in &files {
                look(path, format.as_ref())?;
            }
            Ok::<_, Error>(files)
        });
        let files = inspected.await.map_err(|error| panicked("looking at a file", error))??;
        self.0.lock().extend(files.into_iter().filter_map(|(path, version)| Some((path, version?))));
        Ok(())
    }
}

/// Returns the path of a local file, by the name that DataFusion's store gives it.
fn local(location: &str) -> Option<PathBuf> {
    ListingTableUrl::parse(format!("file:///{location}")).ok()?.get_url().to_file_path().ok()
}

fn look(path: &Path, format: Option<&Format>) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() || metadata.is_file() && metadata.len() == 0 => Ok(()),
        Ok(metadata) => {
            check_regular(path, &metadata)?;
            Ok(inspect(path, format)?)
        }
        // What is gone by now is missed by who reads it.
        Err(_) => Ok(()),
    }
}
