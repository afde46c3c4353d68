//! Where a table's files are: one file, all files of a directory, or those that match a pattern.

use std::fmt;
use std::path::{Path, PathBuf};

use tandem_scan::{Format, check_regular};

use crate::Error;
use crate::error::wording::{file_error, missing};

/// A file format, known by the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Parquet,
    Csv,
    Arrow,
    Json,
}

impl FileKind {
    /// Returns the format of a file by its extension; text may be compressed.
    pub(crate) fn of(path: &Path) -> Option<FileKind> {
        match Format::from_path(path) {
            Some(Format::Parquet) => Some(FileKind::Parquet),
            Some(Format::Csv { .. }) => Some(FileKind::Csv),
            Some(Format::Arrow) => Some(FileKind::Arrow),
            None => {
                let extension = path.extension()?.to_str()?.to_lowercase();
                matches!(extension.as_str(), "json" | "jsonl" | "ndjson").then_some(FileKind::Json)
            }
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Parquet => "Parquet",
            FileKind::Csv => "CSV",
            FileKind::Arrow => "Arrow",
            FileKind::Json => "JSON",
        })
    }
}

/// A file, a directory, or a path whose last component has `*` or `?`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location(PathBuf);

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl Location {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Location {
        Location(path.into())
    }

    /// Tells whether a table's name is meant as a path: it has an extension we know, or a slash.
    pub(crate) fn looks_like(name: &str) -> bool {
        name.contains('/') || FileKind::of(Path::new(name)).is_some()
    }

    /// Returns the files, in order of their names.
    ///
    /// # Errors
    /// If there are none, or a directory cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let name = self.0.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let shown = self.0.display().to_string();
        let files = if self.0.is_dir() {
            let mut files = list(&self.0)?;
            files.retain(|path| FileKind::of(path).is_some());
            files
        } else if !self.0.exists() && name.contains(['*', '?']) {
            let directory = self.0.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut files = list(directory)?;
            files
                .retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|file| matches(name, file)));
            files
        } else {
            match std::fs::metadata(&self.0) {
                Ok(data) => {
                    check_regular(&self.0, &data)?;
                    vec![self.0.clone()]
                }
                Err(error) => return Err(file_error(&error, Some(&shown))),
            }
        };
        if files.is_empty() && self.0.is_dir() {
            return Err(Error::input(format!(
                "the directory holds no Parquet, CSV or Arrow files; check the path: {shown}"
            )));
        }
        if files.is_empty() { Err(missing(&shown)) } else { Ok(files) }
    }

    /// Returns the format of the files.
    ///
    /// # Errors
    /// If it is not known, or the files have several.
    pub(crate) fn kind(&self) -> Result<FileKind, Error> {
        let files = self.files()?;
        let first = &files[0];
        let Some(kind) = FileKind::of(first) else {
            return Err(Error::input(format!(
                "the file's format is not known by its extension; name it .parquet, .csv, .arrow or .json: {}",
                first.display()
            )));
        };
        match files.iter().find(|file| FileKind::of(file) != Some(kind)) {
            Some(other) => Err(Error::input(format!(
                "the files of a table must have one format; name one kind as in *.parquet: '{}' and '{}'",
                first.display(),
                other.display()
            ))),
            None => Ok(kind),
        }
    }

    /// Returns how Tandem's own reader reads the files, if it does. The first line of text names the columns.
    pub(crate) fn format(&self) -> Option<Format> {
        match Format::from_path(self.files().ok()?.first()?)? {
            Format::Csv { delimiter, compression, .. } => {
                Some(Format::Csv { delimiter, header: Some(true), compression })
            }
            other => Some(other),
        }
    }
}

/// Returns the files of a directory, by name; hidden ones (as half-written ones are) left out.
pub(crate) fn list(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::input(format!("the directory does not exist; check the path: {}", directory.display()))
        }
        std::io::ErrorKind::NotADirectory => {
            Error::input(format!("a directory is needed, and this is not one: {}", directory.display()))
        }
        std::io::ErrorKind::PermissionDenied => {
            Error::input(format!("the directory cannot be read; give this user permission: {}", directory.display()))
        }
        _ => file_error(&error, Some(&directory.display().to_string())),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Matches a name against a pattern of `*` (any run) and `?` (any character).
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut retry) = (0, 0, None);
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            retry = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((star, from)) = retry {
            retry = Some((star, from + 1));
            (p, n) = (star + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|character| *character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_runs_and_characters() {
        assert!(matches("*.parquet", "a.parquet"));
        assert!(matches("part-?-*.csv", "part-3-x.y.csv"));
        assert!(!matches("*.parquet", "a.parquet.tmp"));
        assert!(!matches("?", ""));
    }

    #[test]
    fn extensions_tell_formats() {
        assert_eq!(FileKind::of(Path::new("x/a.CSV.gz")), Some(FileKind::Csv));
        assert_eq!(FileKind::of(Path::new("a.parquet")), Some(FileKind::Parquet));
        assert_eq!(FileKind::of(Path::new("a.parquet.gz")), None);
        assert_eq!(FileKind::of(Path::new("parquet")), None);
    }
}
