//! The Unix socket: only its user may connect, and a socket that a dead daemon left behind is replaced.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use tandem_column::{Error, Result};

/// A bound socket, removed from the file system when it is dropped.
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    pub(crate) place: Place,
}

/// Where a socket is in the file system; removes it when dropped, unless another daemon took the place.
pub(crate) struct Place {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Binds a socket in a directory that only this user may enter.
    ///
    /// # Errors
    /// Input, if a daemon listens there already, or the place cannot be used.
    pub(crate) fn bind(path: &Path) -> Result<Socket> {
        let unusable = |error: io::Error| {
            Error::input(format!("cannot listen on {}: choose another --socket ({error})", path.display()))
        };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unusable)?;
        let metadata = fs::metadata(directory).map_err(unusable)?;
        let sticky = metadata.mode() & 0o1000 != 0;
        if metadata.mode() & 0o022 != 0 && !sticky {
            let directory = directory.display();
            return Err(Error::input(format!(
                "others may write to {directory}: choose a directory of your own for --socket"
            )));
        }
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                return Err(Error::input(format!(
                    "a daemon listens on {} already: use it, or end it first",
                    path.display()
                )));
            }
            fs::remove_file(path).map_err(unusable)?;
        }
        let listener = UnixListener::bind(path).map_err(unusable)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(unusable)?;
        let inode = fs::symlink_metadata(path).map_err(unusable)?.ino();
        Ok(Socket { listener, place: Place { path: path.to_owned(), inode } })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            // Nobody is left to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}
