//! Renames of staged files to their names, flushed to the disk; an error undoes those before it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::permissions::keep_permissions;

/// Gives a staged file its name; the mode and, where allowed, the owner of a file that it replaces stay.
pub(super) fn as_file(staged: &Path, target: &Path) -> io::Result<()> {
    let file = File::open(staged)?;
    if let Ok(old) = fs::symlink_metadata(target) {
        keep_permissions(&file, &old)?;
    }
    file.sync_all()?;
    fs::rename(staged, target)?;
    sync_directory(parent(target))
}

/// Returns the directory of a path; a bare name's is the current one.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes renames last: the directory's entries are flushed, too.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Returns the files below a directory, relative to it, and flushes each.
pub(super) fn flushed_files(rows: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = directories.pop() {
        let path = rows.join(&directory);
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let name = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                directories.push(name);
            } else {
                File::open(entry.path())?.sync_all()?;
                files.push(name);
            }
        }
        sync_directory(&path)?;
    }
    Ok(files)
}

/// Moves the files below `rows` to the same places below `target`, all of them or none.
pub(super) fn into_directory(rows: &Path, target: &Path) -> io::Result<()> {
    if !rows.exists() {
        return Ok(());
    }
    let mut undo = Undo::default();
    match move_files(rows, target, &mut undo) {
        Ok(()) => Ok(()),
        Err(error) => {
            undo.run();
            Err(error)
        }
    }
}

fn move_files(rows: &Path, target: &Path, undo: &mut Undo) -> io::Result<()> {
    let files = flushed_files(rows)?;
    let mut touched = vec![target.to_path_buf()];
    // Directories first: what may still fail, fails before anything is visible.
    for file in &files {
        let mut missing: Vec<PathBuf> = Vec::new();
        let mut directory = target.join(parent(file));
        touched.push(directory.clone());
        while !directory.is_dir() {
            missing.push(directory.clone());
            if !directory.pop() {
                break;
            }
        }
        for directory in missing.into_iter().rev() {
            fs::create_dir(&directory)?;
            touched.push(parent(&directory).to_path_buf());
            undo.made.push(directory);
        }
    }
    for file in files {
        let (from, to) = (rows.join(&file), target.join(&file));
        fs::rename(&from, &to)?;
        undo.moved.push((from, to));
    }
    touched.sort();
    touched.dedup();
    touched.iter().try_for_each(|directory| sync_directory(directory))
}

/// What was done so far.
#[derive(Default)]
struct Undo {
    made: Vec<PathBuf>,
    moved: Vec<(PathBuf, PathBuf)>,
}

impl Undo {
    fn run(self) {
        // What fails here cannot be helped: the error that led here is the one to tell.
        for (from, to) in self.moved.into_iter().rev() {
            let _ = fs::rename(to, from);
        }
        for directory in self.made.into_iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_takes_everything_back() {
        let place = tempfile::tempdir().unwrap();
        let (rows, target) = (place.path().join("rows"), place.path().join("target"));
        for file in ["p=1/a.csv", "p=2/a.csv", "q=3/a.csv"] {
            fs::create_dir_all(rows.join(file).parent().unwrap()).unwrap();
            fs::write(rows.join(file), file).unwrap();
        }
        // A file cannot be renamed over a directory.
        fs::create_dir_all(target.join("q=3/a.csv/x")).unwrap();
        into_directory(&rows, &target).unwrap_err();
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
        assert_eq!(flushed_files(&rows).unwrap().len(), 3);
        fs::remove_dir_all(target.join("q=3")).unwrap();
        into_directory(&rows, &target).unwrap();
        assert_eq!(flushed_files(&target).unwrap().len(), 3);
        assert!(flushed_files(&rows).unwrap().is_empty());
    }
}
