//! What a file that replaces another keeps of it: the mode, and the owner and group where we may.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

/// Gives a new file the mode, owner and group of the one it replaces. Only root may give files away: elsewhere the owner
/// is this user, and a group that cannot be kept has at most the rights that everybody had.
pub(super) fn keep_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let both = fchown(file, Some(old.uid()), Some(old.gid()));
        // What is not allowed is not kept; the mode below makes up for it.
        let _ = both.or_else(|_| fchown(file, None, Some(old.gid())));
    }
    let mut mode = old.mode() & 0o777;
    if file.metadata()?.gid() != old.gid() {
        mode &= 0o707 | (mode & 0o007) << 3;
    }
    file.set_permissions(Permissions::from_mode(mode))
}
