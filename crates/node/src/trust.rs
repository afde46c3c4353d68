//! Whom a socket and a secret may be trusted to: only this user, by the file system and by the kernel's word.
//!
//! A client sends its token, its plans and its rows to whoever listens, so it looks before it speaks: the socket's directory is
//! this user's and nobody else may enter it, the socket is this user's, and so is the process behind it (SO_PEERCRED, which
//! holds whatever was renamed meanwhile). The daemon binds only where such a client would connect.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::{
        fs::{FileTypeExt, MetadataExt, OpenOptionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, net::sockopt::socket_peercred, process::geteuid};
use tandem_column::{Error, Result};

/// Rights of the group and of others.
const OTHERS: u32 = 0o077;
/// The most bytes of a file with a secret.
const SECRET_BYTES: u64 = 64 << 10;

/// Returns the directory that a socket is in.
pub(crate) fn directory_of(socket: &Path) -> &Path {
    socket.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Checks that a directory is this user's, that nobody else may enter it, and that no link leads to it.
///
/// # Errors
/// Input, with what is wrong; also if there is no such directory.
pub(crate) fn check_directory(directory: &Path) -> Result<()> {
    let shown = directory.display();
    let metadata = fs::symlink_metadata(directory).map_err(|error| Error::input(format!("{shown}: {error}")))?;
    let wrong = |what: String| Error::input(format!("{shown} {what}: use a directory of your own with mode 0700"));
    let user = geteuid().as_raw();
    match metadata.mode() & 0o7777 {
        _ if !metadata.is_dir() => Err(wrong("is not a directory, or a link to one".to_owned())),
        _ if metadata.uid() != user => Err(wrong(format!("belongs to user {}, not to {user}", metadata.uid()))),
        mode if mode & OTHERS != 0 => Err(wrong(format!("is open to others (mode {mode:04o})"))),
        _ => Ok(()),
    }
}

/// Connects to the socket of a daemon of this user; nothing has been said yet.
///
/// # Errors
/// [`Untrusted`].
pub(crate) fn connect(socket: &Path) -> Result<UnixStream, Untrusted> {
    // Absent is absent; whatever is there is looked at.
    let metadata = fs::symlink_metadata(socket).map_err(Untrusted::Absent)?;
    check_directory(directory_of(socket)).map_err(|error| Untrusted::Place(error.message))?;
    let (user, shown) = (geteuid().as_raw(), socket.display());
    if !metadata.file_type().is_socket() {
        return Err(Untrusted::Place(format!("{shown} is not a socket")));
    }
    if metadata.uid() != user {
        return Err(Untrusted::Place(format!("{shown} belongs to user {}, not to {user}", metadata.uid())));
    }
    let stream = UnixStream::connect(socket).map_err(Untrusted::Absent)?;
    let peer = socket_peercred(&stream).map_err(|error| Untrusted::Absent(error.into()))?.uid.as_raw();
    match peer == user {
        true => Ok(stream),
        false => Err(Untrusted::Place(format!("a process of user {peer} listens on {shown}, not one of user {user}"))),
    }
}

/// Why a socket was not connected to.
#[derive(Debug)]
pub(crate) enum Untrusted {
    /// Nobody listens.
    Absent(io::Error),
    /// Somebody may listen who is not this user.
    Place(String),
}

/// Reads a file with a secret, which nobody but this user or root has and nobody else may read. `what` names it and `option`
/// is how it was given.
///
/// # Errors
/// Input, with what is wrong.
pub(crate) fn read_secret(path: &Path, what: &str, option: &str) -> Result<String> {
    let shown = path.display();
    let unreadable =
        |error: io::Error| Error::input(format!("cannot read the {what}: check {option} ({shown}: {error})"));
    // Opening a pipe would wait for somebody who writes to it.
    let mut file: File =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let (user, owner, mode) = (geteuid().as_raw(), metadata.uid(), metadata.mode() & 0o7777);
    if !metadata.is_file() {
        return Err(Error::input(format!("the {what} is not a regular file: check {option} ({shown})")));
    }
    if owner != user && owner != 0 {
        return Err(Error::input(format!(
            "the {what} belongs to another user: give a file of your own to {option} ({shown}, user {owner})"
        )));
    }
    if mode & OTHERS != 0 {
        return Err(Error::input(format!(
            "the {what} may be read by others: set its mode to 0600 ({option} {shown}, mode {mode:04o})"
        )));
    }
    let mut text = String::new();
    (&mut file).take(SECRET_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    match text.len() as u64 > SECRET_BYTES {
        true => Err(Error::input(format!("the {what} is too long: check {option} ({shown})"))),
        false => Ok(text),
    }
}

/// Returns the directory that an environment variable names. One that is empty or relative counts as not set: it would mean
/// another place wherever a process is started.
pub(crate) fn directory_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
