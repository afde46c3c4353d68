//! File formats and how names tell them.

use std::path::Path;

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet.
    Parquet,
    /// Delimited text.
    Csv {
        /// What separates values.
        delimiter: u8,
        /// Whether the first line names the columns; `None` to find out.
        header: Option<bool>,
        /// How the text is compressed.
        compression: Compression,
    },
    /// Arrow IPC files (also known as Feather).
    Arrow,
}

/// How a text file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Format {
    /// Returns comma-separated text with everything else to be found out.
    pub fn csv() -> Format {
        Format::Csv { delimiter: b',', header: None, compression: Compression::None }
    }

    /// Tells the format from a file's name: `.parquet`, `.csv`, `.tsv`, `.arrow`, `.feather`, `.ipc`, and text with `.gz`
    /// or `.zst` behind.
    pub fn from_path(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let (name, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(name), _) => (name, Compression::Gzip),
            (_, Some(name)) => (name, Compression::Zstd),
            _ => (&name[..], Compression::None),
        };
        let (_, extension) = name.rsplit_once('.')?;
        match (extension, compression) {
            ("csv", _) => Some(Format::Csv { delimiter: b',', header: None, compression }),
            ("tsv", _) => Some(Format::Csv { delimiter: b'\t', header: None, compression }),
            ("tbl", _) => Some(Format::Csv { delimiter: b'|', header: None, compression }),
            ("parquet" | "parq" | "pq", Compression::None) => Some(Format::Parquet),
            ("arrow" | "feather" | "ipc", Compression::None) => Some(Format::Arrow),
            _ => None,
        }
    }

    /// Returns the format's name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv { .. } => "csv",
            Format::Arrow => "arrow",
        }
    }
}
