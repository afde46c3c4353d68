//! Files that only this user can have written: what is compiled is run as it is.
//!
//! A directory and its files must be this user's, and nobody else may have the right to write them. Both are looked at through
//! the opened handle, not by their names, and files are opened relative to the directory's handle: so what was looked at is what is
//! read. New ones are made for this user alone.

use std::{
    fs::{self, DirBuilder, File, Metadata},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
    process::geteuid,
};

/// A directory that only this user can write.
#[derive(Debug)]
pub(super) struct TrustedDirectory {
    handle: File,
    path: PathBuf,
}

impl TrustedDirectory {
    /// Opens a directory, if it is there. Of its path the last `own` directories must be this user's alone.
    ///
    /// # Errors
    /// Why it is not to be trusted.
    pub(super) fn open(path: &Path, own: usize) -> Result<Option<TrustedDirectory>, String> {
        for level in path.ancestors().take(own) {
            // The right to write a link's directory is the right to change the link.
            match fs::symlink_metadata(level) {
                Ok(metadata) if metadata.is_symlink() => check_owner(level, &metadata)?,
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
            match fs::metadata(level) {
                Ok(metadata) => check(level, &metadata)?,
                Err(_) => return Ok(None),
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(handle) = openat(CWD, path, flags, Mode::empty()) else { return Ok(None) };
        let handle = File::from(handle);
        match handle.metadata() {
            Ok(metadata) => check(path, &metadata)?,
            Err(_) => return Ok(None),
        }
        Ok(Some(TrustedDirectory { handle, path: path.to_path_buf() }))
    }

    /// Opens a directory, which is made if it is not there; nothing if it cannot be.
    ///
    /// # Errors
    /// Why it is not to be trusted.
    pub(super) fn create(path: &Path, own: usize) -> Result<Option<TrustedDirectory>, String> {
        // One that is there already is none of ours to change.
        match DirBuilder::new().recursive(true).mode(0o700).create(path) {
            Ok(()) => TrustedDirectory::open(path, own),
            Err(_) => Ok(None),
        }
    }

    /// Reads a file of at most so many bytes, if it is there.
    ///
    /// # Errors
    /// Why it is not to be trusted.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let path = self.path.join(name);
        // A pipe is not waited for, and a link not followed: where it leads to, others may write.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(self.handle.as_fd(), name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::LOOP) => return Err(distrust(&path)),
            Err(_) => return Ok(None),
        };
        let Ok(metadata) = file.metadata() else { return Ok(None) };
        check(&path, &metadata)?;
        if !metadata.is_file() {
            return Err(distrust(&path));
        }
        let mut bytes = Vec::new();
        let read = file.take(most).read_to_end(&mut bytes);
        Ok(read.is_ok().then_some(bytes))
    }

    /// Writes a file that appears whole or not at all, by way of another name that nobody else uses.
    pub(super) fn write(&self, name: &str, unfinished: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = self.handle.as_fd();
        let mut file = File::from(openat(directory, unfinished, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(bytes).and_then(|()| Ok(renameat(directory, unfinished, directory, name)?));
        // What is left of a failure is in the way of nobody.
        written.inspect_err(|_| {
            let _ = unlinkat(directory, unfinished, AtFlags::empty());
        })
    }
}

/// Checks that something is this user's, and that nobody else may write it.
fn check(path: &Path, metadata: &Metadata) -> Result<(), String> {
    check_owner(path, metadata)?;
    match metadata.mode() & 0o022 {
        0 => Ok(()),
        _ => Err(distrust(path)),
    }
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), String> {
    match metadata.uid() == geteuid().as_raw() {
        true => Ok(()),
        false => Err(distrust(path)),
    }
}

fn distrust(path: &Path) -> String {
    format!(
        "compiled kernels are not taken from the disk, because others than this user may have written them: make it this \
         user's alone (chmod go-w), remove it, or name another directory in TANDEM_KERNEL_CACHE: {}",
        path.display()
    )
}
