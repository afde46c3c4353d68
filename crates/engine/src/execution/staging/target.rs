//! Where staged files go: one file, a new directory, into an existing directory, or a device.
//!
//! A symbolic link is followed, and what it leads to is replaced: the link stays. Devices and pipes are neither replaced
//! nor staged beside; their rows wait in a private directory of the system's temporary files.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::place::StagingDirectory;
use super::{SINGLE, publish};
use crate::Error;
use crate::error::wording::file_error;

/// Symbolic links followed, as many as Linux does.
const LINKS: usize = 40;

/// A target, with all links of its last name followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteTarget {
    /// One file, new or replaced.
    File { path: PathBuf },
    /// A directory that does not exist yet.
    NewDirectory { path: PathBuf },
    /// New files in a directory, which is made where it is missing.
    Into { directory: PathBuf },
    /// A device or a pipe.
    Special { path: PathBuf },
}

impl fmt::Display for WriteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (WriteTarget::File { path }
        | WriteTarget::NewDirectory { path }
        | WriteTarget::Into { directory: path }
        | WriteTarget::Special { path }) = self;
        write!(f, "{}", path.display())
    }
}

impl WriteTarget {
    /// Makes a target of one file.
    ///
    /// # Errors
    /// If it is a directory, or the directory around it is missing.
    pub(crate) fn file(path: &Path) -> Result<WriteTarget, Error> {
        if is_special(path) {
            return Ok(WriteTarget::Special { path: path.to_path_buf() });
        }
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(Error::input(format!(
                "a file name is needed, and this is a directory; name a file in it: {}",
                path.display()
            )));
        }
        let path = resolve(path).map_err(|error| file_error(&error, Some(&path.display().to_string())))?;
        require_parent(&path)?;
        Ok(WriteTarget::File { path })
    }

    /// Makes a target of a directory of files.
    ///
    /// # Errors
    /// If it is a file, or the directory around it is missing.
    pub(crate) fn directory(path: &Path) -> Result<WriteTarget, Error> {
        if path.is_dir() {
            return Ok(WriteTarget::Into { directory: path.to_path_buf() });
        }
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::input(format!(
                "a directory is needed for several files, and this is not one; choose another name: {}",
                path.display()
            )));
        }
        require_parent(path)?;
        Ok(WriteTarget::NewDirectory { path: path.to_path_buf() })
    }

    /// Returns the directory in which to stage: on the same file system, so that a rename suffices.
    pub(super) fn staging_directory(&self) -> PathBuf {
        match self {
            WriteTarget::File { path } | WriteTarget::NewDirectory { path } => publish::parent(path).to_path_buf(),
            WriteTarget::Into { directory } => directory.clone(),
            WriteTarget::Special { .. } => std::env::temp_dir(),
        }
    }

    /// Makes the directory that files go into, where it is missing; tells whether it was.
    pub(super) fn prepare(&self) -> io::Result<bool> {
        match self {
            WriteTarget::Into { directory } if !directory.is_dir() => fs::create_dir(directory).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Puts staged rows in place, whole or not at all.
    pub(super) fn publish(&self, place: &StagingDirectory) -> io::Result<()> {
        let rows = place.rows();
        match self {
            WriteTarget::File { path } => publish::as_file(&rows.join(SINGLE), path),
            WriteTarget::Special { path } => {
                let mut output = File::options().write(true).open(path)?;
                io::copy(&mut File::open(rows.join(SINGLE))?, &mut output).map(drop)
            }
            WriteTarget::NewDirectory { path } => {
                publish::flushed_files(&rows)?;
                match fs::rename(&rows, path) {
                    Ok(()) => publish::sync_directory(publish::parent(path)),
                    // Somebody made it meanwhile.
                    Err(_) if path.is_dir() => several(&place.move_into(path)?, path),
                    Err(error) => Err(error),
                }
            }
            WriteTarget::Into { directory } => several(place, directory),
        }
    }
}

/// Moves rows into a directory; a mark says that they are complete, should we be killed between two renames.
fn several(place: &StagingDirectory, directory: &Path) -> io::Result<()> {
    let marked = publish::flushed_files(&place.rows())?.len() > 1;
    if marked {
        place.mark_complete()?;
    }
    let moved = publish::into_directory(&place.rows(), directory);
    if marked && moved.is_err() {
        // All are back where they were, and must not appear later.
        place.unmark()?;
    }
    moved
}

fn require_parent(path: &Path) -> Result<(), Error> {
    if publish::parent(path).is_dir() {
        return Ok(());
    }
    Err(Error::input(format!(
        "the directory of the file does not exist; create it or write elsewhere: {}",
        path.display()
    )))
}

/// Tells whether a path exists and is neither a file nor a directory.
pub(super) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Follows the links of a path's last name, also to a file that does not exist yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = path.to_path_buf();
    for _ in 0..LINKS {
        if !fs::symlink_metadata(&resolved).is_ok_and(|data| data.is_symlink()) {
            // Links such as those of /proc lead to files that their text does not name.
            let identity = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
            return match identity(path) == identity(&resolved) {
                true => Ok(resolved),
                false => Err(io::Error::other("the symbolic link leads to a file without a name")),
            };
        }
        let link = fs::read_link(&resolved)?;
        resolved = publish::parent(&resolved).join(link);
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_their_file() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("d")).unwrap();
        symlink("d/b", place.path().join("a")).unwrap();
        symlink("c", place.path().join("d/b")).unwrap();
        let end = place.path().join("d/c");
        assert_eq!(WriteTarget::file(&place.path().join("a")).unwrap(), WriteTarget::File { path: end.clone() });
        fs::write(&end, "").unwrap();
        assert_eq!(WriteTarget::file(&place.path().join("a")).unwrap(), WriteTarget::File { path: end });
        symlink("loop", place.path().join("loop")).unwrap();
        WriteTarget::file(&place.path().join("loop")).unwrap_err();
        assert!(matches!(WriteTarget::file(Path::new("/dev/null")).unwrap(), WriteTarget::Special { .. }));
    }
}
