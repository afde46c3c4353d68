//! Tables of files: Parquet, CSV and Arrow, one file or several of one schema.
//!
//! A [`FileProvider`] has two readers of the same files: Tandem's own ([`FileTable`], decoding into resident columns), and
//! DataFusion's listing table for what the host engine runs. Files are looked at again before each statement: what
//! changed on disk is reopened, and new files of a directory are found. Types that resident columns lack leave the
//! table to the host alone, with the reason.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::RwLock;
use tandem_scan::{Compression, FileTable, Format};

use crate::error::translate::ErrorContext;
use crate::error::wording::file_error;
use crate::error::{FromHost, IntoHost};
use crate::execution::host::panicked;
use crate::tables::location::{FileKind, Location};
use crate::tables::provider_future::{PlanFuture, boxed, ready};
use crate::{Class, Error};

/// A table of files.
#[derive(Debug)]
pub(crate) struct FileProvider {
    location: Location,
    opened: RwLock<Arc<Opened>>,
}

/// The files as they were when last looked at.
pub(crate) struct Opened {
    stamps: Vec<Stamp>,
    /// Tandem's reader, or why it cannot read these files.
    pub(crate) table: Result<Arc<FileTable>, Error>,
    listing: Arc<ListingTable>,
    schema: SchemaRef,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("stamps", &self.stamps).finish_non_exhaustive()
    }
}

/// What tells one version of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileProvider {
    /// Opens files: reads footers or the first rows, no more.
    ///
    /// # Errors
    /// If a file is missing, unreadable or damaged, or if schemas differ.
    pub(crate) async fn open(location: Location, state: &SessionState) -> Result<FileProvider, Error> {
        let opened = open(&location, state).await?;
        Ok(FileProvider { location, opened: RwLock::new(Arc::new(opened)) })
    }

    /// Returns where the files are.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// Returns the files as last looked at.
    pub(crate) fn opened(&self) -> Arc<Opened> {
        self.opened.read().clone()
    }

    /// Returns the files' bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.opened().stamps.iter().map(|stamp| stamp.bytes).sum()
    }

    /// Returns the files' paths, for messages.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.opened().stamps.iter().map(|stamp| stamp.path.display().to_string()).collect()
    }

    /// Looks at the files again, and reopens them if any changed.
    ///
    /// # Errors
    /// As [`Self::open`], and if the columns changed.
    pub(crate) async fn refresh(&self, state: &SessionState) -> Result<(), Error> {
        let current = stamps(&self.location)?;
        if current == self.opened().stamps {
            return Ok(());
        }
        let opened = open(&self.location, state).await?;
        *self.opened.write() = Arc::new(opened);
        Ok(())
    }
}

fn stamps(location: &Location) -> Result<Vec<Stamp>, Error> {
    let stamp = |path: PathBuf| match std::fs::metadata(&path) {
        Ok(data) => Ok(Stamp { bytes: data.len(), modified: data.modified().ok(), path }),
        Err(error) => Err(file_error(&error, Some(&path.display().to_string()))),
    };
    location.files()?.into_iter().map(stamp).collect()
}

async fn open(location: &Location, state: &SessionState) -> Result<Opened, Error> {
    let stamps = stamps(location)?;
    let paths: Vec<PathBuf> = stamps.iter().map(|stamp| stamp.path.clone()).collect();
    let kind = location.kind()?;
    let context = ErrorContext {
        files: paths.iter().map(|path| path.display().to_string()).collect(),
        ..ErrorContext::default()
    };
    let own = match location.format() {
        Some(format) => open_own(paths.clone(), format).await,
        None => Err(Error::unsupported(format!("only the host engine reads {kind} files"))),
    };
    let table = match own {
        Err(error) if error.class != Class::Unsupported => return Err(error),
        other => other,
    };
    let urls: Vec<ListingTableUrl> = paths.iter().map(|path| url(path)).collect::<Result<_, Error>>()?;
    let options = listing_options(kind, location);
    let schema = match &table {
        Ok(table) => host_schema(&table.arrow_schema(), kind),
        Err(_) => {
            let mut schema: Option<SchemaRef> = None;
            for (url, path) in urls.iter().zip(&paths) {
                let found = options.infer_schema(state, url).await.map_err(|error| context.translate(&error))?;
                match &schema {
                    None => schema = Some(found),
                    Some(first) if first.fields() == found.fields() => {}
                    Some(_) => return Err(different_schemas(&paths[0], path)),
                }
            }
            schema.ok_or_else(|| Error::input("a table needs at least one file"))?
        }
    };
    let config =
        ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema.clone());
    let listing = ListingTable::try_new(config).map_err(|error| context.translate(&error))?;
    let listing = listing.with_cache(state.runtime_env().cache_manager.get_file_statistic_cache());
    Ok(Opened { stamps, table, listing: Arc::new(listing), schema })
}

/// Opens files with Tandem's reader, on a thread that may wait for the disk.
async fn open_own(paths: Vec<PathBuf>, format: Format) -> Result<Arc<FileTable>, Error> {
    let opened = tokio::task::spawn_blocking(move || FileTable::open(paths, format));
    let opened = opened.await.map_err(|error| panicked("opening a file", error))?;
    Ok(Arc::new(opened?))
}

/// Makes the error of two files of one table that do not agree.
pub(crate) fn different_schemas(first: &Path, second: &Path) -> Error {
    Error::input(format!(
        "the files of a table must have the same columns; make a table of each instead: '{}' and '{}'",
        first.display(),
        second.display()
    ))
}

fn listing_options(kind: FileKind, location: &Location) -> ListingOptions {
    let format: Arc<dyn FileFormat> = match (kind, location.format()) {
        (FileKind::Parquet, _) => Arc::new(ParquetFormat::default()),
        (FileKind::Arrow, _) => Arc::new(ArrowFormat),
        (FileKind::Json, _) => Arc::new(JsonFormat::default()),
        (FileKind::Csv, Some(Format::Csv { delimiter, compression, .. })) => {
            let compression = match compression {
                Compression::None => FileCompressionType::UNCOMPRESSED,
                Compression::Gzip => FileCompressionType::GZIP,
                Compression::Zstd => FileCompressionType::ZSTD,
            };
            let format = CsvFormat::default().with_has_header(true).with_delimiter(delimiter);
            // Quoted values may hold line breaks, as Tandem's reader allows.
            Arc::new(format.with_file_compression_type(compression).with_newlines_in_values(true))
        }
        (FileKind::Csv, _) => Arc::new(CsvFormat::default().with_has_header(true)),
    };
    // The files are named one by one: no extension needs to be checked.
    ListingOptions::new(format).with_file_extension("")
}

/// Returns the schema under which the host engine reads files: as DataFusion would, it takes strings of Parquet as views.
fn host_schema(schema: &SchemaRef, kind: FileKind) -> SchemaRef {
    if kind != FileKind::Parquet {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            other => other.clone(),
        };
        Field::new(field.name(), kind, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns a file's address; in it, characters that an address or a pattern would read otherwise are escaped.
pub(crate) fn file_url(path: &Path) -> Result<String, Error> {
    let absolute = std::path::absolute(path).map_err(|error| file_error(&error, Some(&path.display().to_string())))?;
    let mut text = String::from("file://");
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => text.push(*byte as char),
            byte if byte.is_ascii_alphanumeric() => text.push(*byte as char),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(text)
}

fn url(path: &Path) -> Result<ListingTableUrl, Error> {
    ListingTableUrl::parse(file_url(path)?).out_of_host()
}

impl TableProvider for FileProvider {
    fn schema(&self) -> SchemaRef {
        self.opened().schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn scan<'s: 'a, 'c: 'a, 'p: 'a, 'f: 'a, 'a>(
        &'s self,
        state: &'c dyn Session,
        projection: Option<&'p Vec<usize>>,
        filters: &'f [Expr],
        limit: Option<usize>,
    ) -> PlanFuture<'a> {
        let listing = self.opened().listing.clone();
        boxed(async move { listing.scan(state, projection, filters, limit).await })
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.opened().listing.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.opened().listing.statistics()
    }

    fn insert_into<'s: 'a, 'c: 'a, 'a>(
        &'s self,
        _state: &'c dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _operation: InsertOp,
    ) -> PlanFuture<'a> {
        ready(Err(Error::unsupported(format!(
            "INSERT into files is not supported; load them with CREATE TABLE … AS SELECT, or write new ones with COPY: {}",
            self.location
        ))
        .into_host()))
    }
}
