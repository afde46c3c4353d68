//! The Unix socket: only its user may connect, and a socket that a dead daemon left behind is replaced.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use tandem_column::{Error, Result};

use crate::trust;

/// A bound socket, removed from the file system when it is dropped.
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    pub(crate) place: SocketPlace,
}

/// Where a socket is in the file system; removes it when dropped, unless another daemon took the place.
pub(crate) struct SocketPlace {
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
        let directory = trust::directory_of(path);
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(unusable)?;
        // Where nobody else may enter nobody connects before the socket has its mode.
        trust::check_directory(directory).map_err(|error| {
            Error::input(format!("cannot listen on {}: choose another --socket ({error})", path.display()))
        })?;
        let handle = File::open(directory).map_err(unusable)?;
        // Two that start at once must not take each other's socket for one of the dead.
        let _alone = lock(handle).map_err(unusable)?;
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
            match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(unusable)?;
                }
                Err(error) => return Err(unusable(error)),
                Ok(_) => {
                    return Err(Error::input(format!(
                        "a daemon listens on {} already: use it, or end it first",
                        path.display()
                    )));
                }
            }
        }
        let listener = UnixListener::bind(path).map_err(unusable)?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(unusable)?;
        let inode = fs::symlink_metadata(path).map_err(unusable)?.ino();
        Ok(Socket { listener, place: SocketPlace { path: path.to_owned(), inode } })
    }
}

/// Locks a directory until the handle is dropped. Whoever may read a directory may lock it: the wait has an end.
fn lock(directory: File) -> io::Result<File> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            // Nobody is left to tell.
            let _ = fs::remove_file(&self.path);
        }
    }
}
