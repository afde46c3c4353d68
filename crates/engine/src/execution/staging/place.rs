//! The hidden directory of one staging, and the sweep of those whose owner is dead.
//!
//! A place is `.tandem-staging-` and a random number, for its owner's eyes only. It holds `lock`, a file that the owner
//! keeps locked as long as it lives (the system unlocks it however the process ends, and numbers of processes say
//! nothing across containers); `rows`, what is written; and `complete`, a mark that all rows are there and are being put
//! in place one by one. A sweep takes only what has our name, our user and no owner: a place it can lock. Marked ones
//! it finishes, others it removes.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::publish;

/// How the name of every place begins.
const PREFIX: &str = ".tandem-staging-";
/// Hexadecimal digits after it: 64 bits.
const DIGITS: usize = 16;
const LOCK: &str = "lock";
const ROWS: &str = "rows";
const COMPLETE: &str = "complete";

/// Names tried before we give up: each is taken only by a sweep in the very moment of its creation.
const ATTEMPTS: usize = 64;

/// A hidden directory, locked while this lives and removed with it.
#[derive(Debug)]
pub(super) struct StagingDirectory {
    directory: PathBuf,
    /// None where the file system has no locks: nobody sweeps there.
    _lock: Option<File>,
}

/// Returns a name that nobody can guess, of 16 hexadecimal digits.
pub(crate) fn random_name() -> String {
    // The hasher's keys come from the system's random numbers.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

impl StagingDirectory {
    /// Makes a place in a directory, after a sweep.
    pub(super) fn create(parent: &Path) -> io::Result<StagingDirectory> {
        sweep(parent);
        for _ in 0..ATTEMPTS {
            let directory = parent.join(format!("{PREFIX}{}", random_name()));
            match DirBuilder::new().mode(0o700).create(&directory) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            match own(&directory) {
                Ok(Some(place)) => return Ok(place),
                Ok(None) => {}
                Err(error) => {
                    remove(&directory);
                    return Err(error);
                }
            }
        }
        Err(io::Error::other("every new directory was removed by another process"))
    }

    /// Returns the directory that rows are written to.
    pub(super) fn rows(&self) -> PathBuf {
        self.directory.join(ROWS)
    }

    /// Marks the rows as complete: from here on they are put in place, by us or by the next sweep.
    pub(super) fn mark_complete(&self) -> io::Result<()> {
        File::create_new(self.directory.join(COMPLETE))?.sync_all()?;
        File::open(&self.directory)?.sync_all()
    }

    /// Takes the mark back.
    pub(super) fn unmark(&self) -> io::Result<()> {
        fs::remove_file(self.directory.join(COMPLETE))
    }

    /// Moves the place into another directory of the same file system.
    pub(super) fn move_into(&self, directory: &Path) -> io::Result<StagingDirectory> {
        let name = self.directory.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let moved = directory.join(name);
        fs::rename(&self.directory, &moved)?;
        let lock = self._lock.as_ref().map(File::try_clone).transpose()?;
        Ok(StagingDirectory { directory: moved, _lock: lock })
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// Locks a new directory and makes its inside; nothing if a sweep was faster.
fn own(directory: &Path) -> io::Result<Option<StagingDirectory>> {
    let path = directory.join(LOCK);
    let lock = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let locked = match lock.try_lock() {
        Ok(()) if is_same(&lock, &path) => true,
        Ok(()) | Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(_)) => false,
    };
    fs::create_dir(directory.join(ROWS))?;
    if !locked {
        // Without a lock file and with something in it, no sweep takes the place.
        fs::remove_file(&path)?;
    }
    Ok(Some(StagingDirectory { directory: directory.to_path_buf(), _lock: locked.then_some(lock) }))
}

/// Tells whether a path still leads to an open file.
fn is_same(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Removes a place, the lock last: what a crash leaves of it can still be swept.
fn remove(directory: &Path) {
    // What cannot be removed is hidden and harmless; there is nobody to tell.
    let _ = fs::remove_dir_all(directory.join(ROWS));
    let _ = fs::remove_file(directory.join(COMPLETE));
    let _ = fs::remove_file(directory.join(LOCK));
    let _ = fs::remove_dir(directory);
}

/// Finishes or removes the places of dead processes in a directory.
pub(super) fn sweep(parent: &Path) {
    // A directory that cannot be listed can still be written to.
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_place(&entry.file_name()) && is_ours(&entry.path()) {
            sweep_one(parent, &entry.path());
        }
    }
}

fn is_place(name: &std::ffi::OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Tells whether a directory is this user's and closed to all others, as we make them.
fn is_ours(directory: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(directory).is_ok_and(|data| data.is_dir() && data.uid() == user && data.mode() & 0o077 == 0)
}

fn sweep_one(parent: &Path, directory: &Path) {
    let path = directory.join(LOCK);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let lock = match OpenOptions::new().write(true).custom_flags(flags.bits().cast_signed()).open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Its owner died before it made the lock, or is about to: an owner that finds it gone makes another.
            let _ = fs::remove_dir(directory);
            return;
        }
        Err(_) => return,
    };
    if lock.try_lock().is_err() || !is_same(&lock, &path) {
        return;
    }
    if directory.join(COMPLETE).exists() && publish::into_directory(&directory.join(ROWS), parent).is_err() {
        return;
    }
    remove(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_place_is_closed_and_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let place = StagingDirectory::create(parent.path()).unwrap();
        assert_eq!(fs::metadata(&place.directory).unwrap().mode() & 0o777, 0o700);
        fs::write(place.rows().join("x"), "1").unwrap();
        drop(place);
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn a_sweep_takes_the_dead_and_leaves_the_living() {
        let parent = tempfile::tempdir().unwrap();
        let living = StagingDirectory::create(parent.path()).unwrap();
        let dead = StagingDirectory::create(parent.path()).unwrap();
        fs::write(dead.rows().join("x"), "1").unwrap();
        let left = dead.directory.clone();
        // A killed process: the lock is gone, the directory is not.
        let lock = dead._lock.as_ref().unwrap().try_clone().unwrap();
        std::mem::forget(dead);
        sweep(parent.path());
        assert!(left.exists(), "still locked");
        lock.unlock().unwrap();
        sweep(parent.path());
        assert!(!left.exists());
        assert!(living.rows().exists());
    }

    #[test]
    fn what_is_not_ours_stays() {
        let parent = tempfile::tempdir().unwrap();
        let open = parent.path().join(format!("{PREFIX}{}", random_name()));
        fs::create_dir(&open).unwrap();
        fs::write(open.join(LOCK), "").unwrap();
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let other = parent.path().join(".tandem-staging-notes");
        fs::create_dir(&other).unwrap();
        let link = parent.path().join(format!("{PREFIX}{}", random_name()));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        sweep(parent.path());
        assert_eq!(names(parent.path()).len(), 3);
    }

    #[test]
    fn a_sweep_finishes_what_was_complete() {
        let parent = tempfile::tempdir().unwrap();
        let place = StagingDirectory::create(parent.path()).unwrap();
        fs::create_dir(place.rows().join("p=1")).unwrap();
        fs::write(place.rows().join("p=1/a.csv"), "1").unwrap();
        fs::write(place.rows().join("b.csv"), "2").unwrap();
        place.mark_complete().unwrap();
        place._lock.as_ref().unwrap().unlock().unwrap();
        std::mem::forget(place);
        sweep(parent.path());
        assert_eq!(fs::read_to_string(parent.path().join("p=1/a.csv")).unwrap(), "1");
        assert_eq!(fs::read_to_string(parent.path().join("b.csv")).unwrap(), "2");
        assert_eq!(names(parent.path()).len(), 2);
    }
}
