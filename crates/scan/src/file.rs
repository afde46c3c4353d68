//! Opening files, and telling whether they are still the same.

use std::{
    fs::{File, Metadata},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;
use tandem_column::{Error, Result};

/// What tells a file's contents from other contents without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    modified: i128,
}

impl Identity {
    fn new(metadata: &Metadata) -> Identity {
        Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }

    /// Returns the modification in milliseconds since 1970, as file systems of other hosts give it.
    pub(crate) fn modified_ms(&self) -> i64 {
        i64::try_from(self.modified.div_euclid(1_000_000)).unwrap_or(i64::MAX)
    }

    /// Makes one identity of several files read as one.
    pub(crate) fn combine(files: &[Identity], salt: &impl Hash) -> Identity {
        let mut hasher = DefaultHasher::new();
        (files, salt).hash(&mut hasher);
        let size = files.iter().map(|file| file.size).sum();
        Identity { device: u64::MAX, inode: hasher.finish(), size, modified: 0 }
    }

    /// Reads the identity of a path.
    pub(crate) fn of_path(path: &Path) -> Result<Identity> {
        let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        check_regular(path, &metadata)?;
        Ok(Identity::new(&metadata))
    }

    /// Reads the identity of an open file.
    pub(crate) fn of_file(path: &Path, file: &File) -> Result<Identity> {
        file.metadata().map(|metadata| Identity::new(&metadata)).map_err(|error| unreadable(path, &error))
    }
}

/// Opens a file for reading; never waits for somebody to write into a pipe.
pub(crate) fn open(path: &Path) -> Result<(File, Identity)> {
    let failed = |error| unreadable(path, &error);
    // Looked at before it is opened, because opening a device may already do something; and again afterwards, because
    // another may have its name by then.
    check_regular(path, &std::fs::metadata(path).map_err(failed)?)?;
    let waitless = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = File::options().read(true).custom_flags(waitless.cast_signed()).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check_regular(path, &metadata)?;
    Ok((file, Identity::new(&metadata)))
}

/// Refuses what is not a file: reading from it may never end.
///
/// # Errors
/// Input, if it is a directory, a pipe, a device or a socket.
pub fn check_regular(path: &Path, metadata: &Metadata) -> Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(Error::input(format!("cannot read {}: it is a directory; name a file in it", path.display())));
    }
    let kind = match () {
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(Error::input(format!("cannot read {}: it is {kind}; copy what it gives into a file", path.display())))
}

/// Says that a file cannot be read, and what to do.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    Error::input(match error.kind() {
        io::ErrorKind::NotFound => format!("file not found: {path}; check the path"),
        io::ErrorKind::PermissionDenied => format!("cannot read {path}: permission denied; allow this user to read it"),
        _ => format!("cannot read {path}: {error}; check the file and its disk"),
    })
}

/// Says that a file's contents are wrong.
pub(crate) fn damaged(path: &Path, detail: &str) -> Error {
    Error::input(format!("{} is damaged ({detail}): restore or regenerate the file", path.display()))
}

/// Says that a file was written to while it was read.
pub(crate) fn changed(path: &Path) -> Error {
    Error::input(format!("{} changed while it was read: run the statement again", path.display()))
}
