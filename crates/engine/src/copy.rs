//! COPY … TO: the whole file or nothing.
//!
//! DataFusion writes into a hidden directory beside the target; only when all rows are written and flushed to the disk is
//! the file renamed to its name. Whatever goes wrong before (an error in the query, a full disk, cancellation), the
//! directory is removed and the target is as it was.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::logical_expr::dml::CopyTo;
use datafusion::sql::parser::{CopyToStatement, Statement as SqlStatement};

use crate::Error;
use crate::location::Kind;
use crate::wording::file_error;

/// Fills in the format that DataFusion does not know by the extension.
pub(crate) fn infer_format(statement: SqlStatement) -> SqlStatement {
    match statement {
        SqlStatement::CopyTo(CopyToStatement { stored_as: None, target, source, partitioned_by, options }) => {
            let kind = Kind::of(Path::new(&target)).filter(|_| !target.to_lowercase().ends_with(".gz"));
            let stored_as = kind.map(|kind| kind.to_string().to_uppercase());
            SqlStatement::CopyTo(CopyToStatement { stored_as, target, source, partitioned_by, options })
        }
        other => other,
    }
}

/// Where the rows of one COPY go before they go to the target.
#[derive(Debug)]
pub(crate) struct Staging {
    directory: PathBuf,
    target: PathBuf,
    /// One file, rather than a directory of files.
    single: bool,
}

impl Staging {
    /// Redirects a COPY to a hidden place; nothing for targets that are not local files.
    ///
    /// # Errors
    /// If the target's directory is missing or cannot be written.
    pub(crate) fn redirect(copy: &mut CopyTo) -> Result<Option<Staging>, Error> {
        let url = copy.output_url.strip_prefix("file://").unwrap_or(&copy.output_url).to_string();
        if url.contains("://") {
            return Ok(None);
        }
        let target = PathBuf::from(&url);
        let explicit = copy.options.get("single_file_output").map(|value| value.trim() == "true");
        let single = explicit.unwrap_or_else(|| {
            copy.partition_by.is_empty() && !url.ends_with('/') && target.extension().is_some() || is_special(&target)
        });
        if single && target.is_dir() {
            return Err(Error::input(format!("COPY needs a file name, and this is a directory: {url}")));
        }
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(Error::input(format!(
                "the directory of the file does not exist; create it or write elsewhere: {}",
                parent.display()
            )));
        }
        // A device or pipe has no place beside it, and must not be replaced.
        let parent = if is_special(&target) { std::env::temp_dir() } else { parent.to_path_buf() };
        let directory = create_hidden(&parent, &target).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Error::input(format!(
                "no file can be created in this directory; give this user permission or write elsewhere: {}",
                parent.display()
            )),
            _ => file_error(&error, Some(&url)),
        })?;
        let staging = Staging { directory, target, single };
        copy.output_url = match staging.file() {
            Some(file) => file.display().to_string(),
            None => format!("{}/", staging.directory.display()),
        };
        if single {
            copy.options.insert("single_file_output".into(), "true".into());
        }
        Ok(Some(staging))
    }

    /// Returns the target, as the user named it.
    pub(crate) fn target(&self) -> String {
        self.target.display().to_string()
    }

    fn file(&self) -> Option<PathBuf> {
        // The target's own name keeps its extension, by which DataFusion decides.
        self.single.then(|| self.directory.join(self.target.file_name().unwrap_or("rows".as_ref())))
    }

    /// Puts what was written in place.
    ///
    /// # Errors
    /// If flushing or renaming fails; the target is then as it was (a directory target may have some of the files).
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.put().map_err(|error| file_error(&error, Some(&self.target())))
    }

    fn put(&self) -> io::Result<()> {
        match self.file() {
            Some(file) if is_special(&self.target) => {
                let mut output = File::options().write(true).open(&self.target)?;
                io::copy(&mut File::open(&file)?, &mut output)?;
                Ok(())
            }
            Some(file) => {
                File::open(&file)?.sync_all()?;
                fs::rename(&file, &self.target)?;
                sync_directory(&self.target)
            }
            None => {
                fs::create_dir_all(&self.target)?;
                move_files(&self.directory, &self.target)?;
                sync_directory(&self.target)
            }
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed is hidden and harmless; there is nobody to tell.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Tells whether a path exists and is neither a file nor a directory.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

fn create_hidden(parent: &Path, target: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().unwrap_or("rows".as_ref()).to_string_lossy();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!(".{name}.tandem-{}-{number}", std::process::id()));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&place)?;
            move_files(&entry.path(), &place)?;
        } else {
            File::open(entry.path())?.sync_all()?;
            fs::rename(entry.path(), &place)?;
        }
    }
    Ok(())
}

/// Makes a rename last: the directory's entry is flushed, too.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = if path.is_dir() { Some(path) } else { path.parent() };
    let directory = directory.filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}
