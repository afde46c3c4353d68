//! Staging: files that are written whole or not at all, for COPY, INSERT into files, and the shell's `-o`.
//!
//! Rows go into a hidden [`StagingDirectory`] on the same file system as the target; only when all of them are written and flushed
//! to the disk does a rename give them their name. Whatever goes wrong before (an error in the query, a full disk, a
//! cancellation, a signal), the place is removed and the target is as it was. What a killed process left is swept by
//! the next statement that writes into the same directory.
//!
//! One file is published by one rename, and so is a directory that did not exist. Several files that go into an existing
//! directory (COPY into one, INSERT into a partitioned table) are renamed one after the other: an error undoes the ones
//! before it, and a process that is killed in between leaves a mark by which the next writer finishes the work.
//!
//! Every writer holds the staging, so that a place is removed only after the last of them has ended. [`Unfinished`]
//! lists the stagings of a session, for a process that is about to end. `target` says where files go, `place` owns the
//! hidden directory, `store` is DataFusion's way into it, and `exec` ties a plan to its staging.

mod exec;
mod permissions;
mod place;
mod publish;
mod store;
mod target;
mod unfinished;

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use exec::{StagedExec, StagingUrl};
pub(crate) use place::random_name;
pub(crate) use target::WriteTarget;
pub(crate) use unfinished::Unfinished;

use self::place::StagingDirectory;
use self::unfinished::Listed;
use crate::Error;
use crate::error::wording::file_error;

/// The name of the rows of a target that is one file.
const SINGLE: &str = "rows";

/// How long a process that ends at once waits for files that are being put in place: flushing them may take a moment.
const PUBLISHING: Duration = Duration::from_secs(5);

/// Rows on their way to a target; the writers share it.
#[derive(Debug)]
struct Staging {
    target: WriteTarget,
    /// The hidden directory; none once it was put in place or given up. Locked while that happens.
    place: Mutex<Option<StagingDirectory>>,
    rows: PathBuf,
    /// The target's directory was made for these rows.
    made: bool,
    /// The first thing that went wrong while writing: writers of formats keep it to themselves.
    fault: Mutex<Option<io::Error>>,
    listed: Listed,
    /// Tells that the last writer has ended and the place is gone; dropped last.
    _ended: oneshot::Sender<()>,
}

impl Staging {
    /// Makes the hidden place of a target, and sweeps what dead processes left beside it.
    ///
    /// # Errors
    /// If nothing can be created there.
    fn create(
        target: WriteTarget,
        unfinished: &Arc<Unfinished>,
    ) -> Result<(Arc<Staging>, oneshot::Receiver<()>), Error> {
        let parent = target.staging_directory();
        let shown = target.to_string();
        let listed = unfinished.begin().ok_or_else(Error::cancelled)?;
        let made = target.prepare();
        let placed = made.and_then(|made| Ok((made, StagingDirectory::create(&parent)?)));
        let (made, place) = placed.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Error::input(format!(
                "no file can be created in this directory; give this user permission or write elsewhere: {}",
                parent.display()
            )),
            _ => file_error(&error, Some(&shown)),
        })?;
        let (sender, receiver) = oneshot::channel();
        let staging = Arc::new(Staging {
            target,
            rows: place.rows(),
            place: Mutex::new(Some(place)),
            made,
            fault: Mutex::new(None),
            listed,
            _ended: sender,
        });
        staging.listed.ready(Arc::downgrade(&staging));
        Ok((staging, receiver))
    }

    /// Puts what was written in place.
    ///
    /// # Errors
    /// If flushing or renaming fails; the target is then as it was.
    fn commit(&self) -> Result<(), Error> {
        let mut place = self.place.lock();
        let Some(staged) = place.take() else {
            return Err(Error::cancelled());
        };
        self.target.publish(&staged).map_err(|error| file_error(&error, Some(&self.target.to_string())))
    }

    /// Removes the place though writers may still run, for a process that ends; what is being put in place is waited for.
    fn discard(&self) {
        if let Some(mut place) = self.place.try_lock_for(PUBLISHING) {
            place.take();
        }
    }

    /// Remembers the first failure of a writer, and returns one for the writer to pass on.
    fn failed(&self, error: io::Error) -> io::Error {
        let copy = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
        self.fault.lock().get_or_insert(error);
        copy
    }

    /// Returns what went wrong while writing, as a sentence.
    fn fault(&self) -> Option<Error> {
        self.fault.lock().as_ref().map(|error| file_error(error, Some(&self.target.to_string())))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The place goes first: only an empty directory can be removed this way, and nothing is lost with it.
        self.place.get_mut().take();
        if self.made {
            let _ = fs::remove_dir(self.target.staging_directory());
        }
    }
}

/// A file being written beside its name, or a device or pipe written directly; dropping it leaves the old file.
#[derive(Debug)]
pub struct StagedFile {
    handle: File,
    staging: Option<Arc<Staging>>,
}

impl StagedFile {
    /// Opens a file for writing.
    ///
    /// # Errors
    /// If the path is a directory or nothing can be created beside it.
    pub(crate) fn create(path: &std::path::Path, unfinished: &Arc<Unfinished>) -> Result<StagedFile, Error> {
        let target = WriteTarget::file(path)?;
        let failed = |error: io::Error| file_error(&error, Some(&path.display().to_string()));
        if let WriteTarget::Special { path } = &target {
            let handle = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(StagedFile { handle, staging: None });
        }
        let (staging, _) = Staging::create(target, unfinished)?;
        let handle = File::create_new(staging.rows.join(SINGLE)).map_err(failed)?;
        Ok(StagedFile { handle, staging: Some(staging) })
    }

    /// Returns the handle to write to.
    pub fn handle(&self) -> &File {
        &self.handle
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If flushing or renaming fails; the old file is then as it was.
    pub fn commit(self) -> Result<(), Error> {
        self.staging.map_or(Ok(()), |staging| staging.commit())
    }
}
