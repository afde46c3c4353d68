//! Files that make one table, and loading columns of them.

use std::{path::PathBuf, sync::Arc};

use arrow::datatypes::SchemaRef;
use parking_lot::{Mutex, RwLock};
use tandem_column::{ColumnStatistics, Error, Field, Result, Table};
use tandem_pipeline::Expr;

use crate::{
    Format, assemble,
    csv::CsvFiles,
    file::Identity,
    ipc::IpcFiles,
    load::{self, Hold, Input, LoadMetrics, Loaded, Loading, Request},
    parquet::{self, Int96, ParquetFile},
    summary::{DETAILED_ROWS, Summaries},
};

/// One or more files of one schema, read as one table. Cheap to share; knows when its files change.
pub struct FileTable {
    format: Format,
    paths: Vec<PathBuf>,
    schema: Arc<[Field]>,
    arrow_schema: SchemaRef,
    unsupported: Vec<Option<String>>,
    source: RwLock<FileSource>,
    /// Files that changed since the last load, whose columns are to be forgotten.
    retired: Mutex<Vec<Identity>>,
    /// What the files say of their columns, once asked for.
    stated: Mutex<Option<Vec<ColumnStatistics>>>,
    summaries: Summaries<usize>,
}

/// The files as they were when last looked at.
#[derive(Clone)]
enum FileSource {
    Parquet(Arc<[Arc<ParquetFile>]>),
    Csv(Arc<CsvFiles>),
    Arrow(Arc<IpcFiles>),
}

/// What opening found.
struct Opened {
    source: FileSource,
    schema: Arc<[Field]>,
    arrow_schema: SchemaRef,
    unsupported: Vec<Option<String>>,
}

impl FileTable {
    /// Reads the footers or the first lines of files, and checks that they have one schema.
    ///
    /// # Errors
    /// If a file is missing, unreadable, of another format, truncated or damaged, or if two files differ in a column.
    pub fn open(paths: Vec<PathBuf>, format: Format) -> Result<FileTable> {
        if paths.is_empty() {
            return Err(Error::input("no files to read: name at least one"));
        }
        let Opened { source, schema, arrow_schema, unsupported } = open(&paths, &format)?;
        let (source, retired, stated) = (RwLock::new(source), Mutex::default(), Mutex::default());
        let summaries = Summaries::default();
        Ok(FileTable { format, paths, schema, arrow_schema, unsupported, source, retired, stated, summaries })
    }

    /// Returns how the files are written.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Returns the files.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns the columns. One that cannot be loaded (see [`FileTable::unsupported`]) has the null type.
    pub fn schema(&self) -> &Arc<[Field]> {
        &self.schema
    }

    /// Returns the columns as Arrow types, as DataFusion gives them.
    pub fn arrow_schema(&self) -> SchemaRef {
        self.arrow_schema.clone()
    }

    /// Returns why a column cannot be loaded; `None` if it can.
    pub fn unsupported(&self, column: usize) -> Option<&str> {
        self.unsupported.get(column)?.as_deref()
    }

    /// Returns how many rows there are, where the files say so.
    pub fn rows(&self) -> Option<usize> {
        match &*self.source.read() {
            FileSource::Parquet(files) => {
                Some(files.iter().flat_map(|file| (0..file.groups()).map(|group| file.group_rows(group))).sum())
            }
            FileSource::Csv(_) | FileSource::Arrow(_) => None,
        }
    }

    /// Returns the size of the files in bytes.
    pub fn byte_len(&self) -> u64 {
        match &*self.source.read() {
            FileSource::Parquet(files) => files.iter().map(|file| file.identity.size).sum(),
            FileSource::Csv(files) => files.identity().size,
            FileSource::Arrow(files) => files.identity().size,
        }
    }

    /// Returns about how many bytes columns take in memory, as far as the files say: an estimate, for planning only.
    pub fn decoded_bytes(&self, columns: &[usize]) -> u64 {
        match &*self.source.read() {
            FileSource::Parquet(files) => {
                let of = |file: &Arc<ParquetFile>| {
                    let groups = (0..file.groups()).flat_map(|group| columns.iter().map(move |column| (group, column)));
                    // A row takes a byte at least, however small its pages.
                    let bytes = groups
                        .map(|(group, &column)| file.decoded_bytes(group, column).max(file.group_rows(group) as u64));
                    bytes.fold(0, u64::saturating_add)
                };
                files.iter().map(of).fold(0, u64::saturating_add)
            }
            FileSource::Csv(files) => files.identity().size,
            FileSource::Arrow(files) => files.identity().size,
        }
    }

    /// Returns what the files say of each column: range and nulls of integers, and an estimate of distinct values.
    ///
    /// For planning only: writers may be wrong, and files may change; what a load finds is in the table's statistics. A
    /// null count that is not known is given as all rows. Nothing is known of text and Arrow files.
    pub fn statistics(&self) -> Vec<ColumnStatistics> {
        // A file that is gone or damaged says so when it is loaded.
        let source = self.refresh().unwrap_or_else(|_| self.source.read().clone());
        let mut stated = self.stated.lock();
        stated.get_or_insert_with(|| self.stated_by(&source)).clone()
    }

    fn stated_by(&self, source: &FileSource) -> Vec<ColumnStatistics> {
        let FileSource::Parquet(files) = source else { return vec![ColumnStatistics::default(); self.schema.len()] };
        let rows = self.rows().unwrap_or_default();
        let column = |column| {
            let (range, nulls) = parquet::range_of(files, column);
            let present = rows.saturating_sub(nulls);
            let spanned = range.map(|(low, high)| high as f64 - low as f64 + 1.0);
            let listed = parquet::distinct_of(files, column, present);
            let distinct = [spanned, listed].into_iter().flatten().reduce(f64::min);
            let distinct = distinct.map(|distinct| distinct.min(present as f64));
            ColumnStatistics { range, nulls, distinct, ..ColumnStatistics::default() }
        };
        (0..self.schema.len()).map(column).collect()
    }

    /// Loads columns, in the order asked for. `predicates`, over positions in `columns` and joined by "and", are a hint:
    /// row groups in which no row matches may be left out. The hold lives as long as the table is used. Blocks; runs on the
    /// runtime's workers.
    ///
    /// # Errors
    /// If a file is missing, damaged or of another schema than before; if a column's type is not supported; if the memory
    /// budget is used up; if cancelled.
    pub fn load(&self, columns: &[usize], predicates: &[Expr], loading: &Loading<'_>) -> Result<(Table, Hold)> {
        self.find(columns, predicates, loading, false)
    }

    /// Returns what [`FileTable::load`] would, if all of it is in the cache; reads nothing.
    pub fn resident(&self, columns: &[usize], predicates: &[Expr], loading: &Loading<'_>) -> Option<(Table, Hold)> {
        // A file that is gone or damaged says so when it is loaded.
        self.find(columns, predicates, loading, true).ok()
    }

    fn find(
        &self,
        columns: &[usize],
        predicates: &[Expr],
        loading: &Loading<'_>,
        resident_only: bool,
    ) -> Result<(Table, Hold)> {
        for &column in columns {
            match self.unsupported.get(column) {
                Some(Some(reason)) => return Err(Error::unsupported(reason.clone())),
                Some(None) => {}
                None => return Err(Error::internal(format!("column {column} of {}", self.schema.len()))),
            }
        }
        let source = self.refresh()?;
        self.retired.lock().drain(..).for_each(|identity| loading.cache.remove_file(identity));
        let metrics = &LoadMetrics::default();
        let request = Request { schema: &self.schema, columns, predicates, loading: *loading, metrics, resident_only };
        let Loaded { rows, pieces, hold } = match source {
            FileSource::Parquet(files) => {
                let inputs: Vec<Input> = files.iter().map(|file| Input::whole(file, columns)).collect();
                load::parquet(&inputs, true, &request)?
            }
            FileSource::Csv(files) => files.load(&request)?,
            FileSource::Arrow(files) => files.load(&request)?,
        };
        let fields: Arc<[Field]> = columns.iter().map(|&column| self.schema[column].clone()).collect();
        let statistics =
            self.summaries.of(columns, &fields, &pieces, DETAILED_ROWS, loading.runtime, loading.cancel)?;
        Ok((assemble::table(fields, &rows, &pieces, statistics), hold))
    }

    /// Looks whether files changed; those that did are opened again.
    fn refresh(&self) -> Result<FileSource> {
        let source = self.source.read().clone();
        let stale = match &source {
            FileSource::Parquet(files) => load::stale(files)?,
            FileSource::Csv(files) => files.stale()?,
            FileSource::Arrow(files) => files.stale()?,
        };
        if stale.is_empty() {
            return Ok(source);
        }
        let opened = open(&self.paths, &self.format)?;
        if let Some(difference) = difference(&self.schema, &opened.schema) {
            let path = self.paths[0].display();
            return Err(Error::input(format!("{path} changed its schema ({difference}): register the table again")));
        }
        self.retired.lock().extend(stale);
        *self.stated.lock() = None;
        *self.source.write() = opened.source.clone();
        Ok(opened.source)
    }
}

fn open(paths: &[PathBuf], format: &Format) -> Result<Opened> {
    match format {
        Format::Parquet => {
            let files: Vec<Arc<ParquetFile>> = paths
                .iter()
                .map(|path| ParquetFile::open(path, Int96::Nanoseconds).map(Arc::new))
                .collect::<Result<_>>()?;
            let first = &files[0];
            for file in &files[1..] {
                check_same(&paths[0], &first.fields, &file.path, &file.fields)?;
            }
            let (arrow_schema, unsupported) = (first.arrow_schema(), first.unsupported.clone());
            let schema = nullable_anywhere(files.iter().map(|file| &file.fields));
            let arrow_schema = with_nullability(&arrow_schema, &schema);
            Ok(Opened { schema, arrow_schema, unsupported, source: FileSource::Parquet(files.into()) })
        }
        Format::Csv { delimiter, header, compression } => {
            let files = CsvFiles::open(paths, *delimiter, *header, *compression)?;
            let (schema, arrow_schema) = (files.fields().clone(), files.schema().clone());
            let unsupported = vec![None; schema.len()];
            Ok(Opened { schema, arrow_schema, unsupported, source: FileSource::Csv(Arc::new(files)) })
        }
        Format::Arrow => {
            let (files, unsupported) = IpcFiles::open(paths)?;
            let (schema, arrow_schema) = (files.fields().clone(), files.schema().clone());
            Ok(Opened { schema, arrow_schema, unsupported, source: FileSource::Arrow(Arc::new(files)) })
        }
    }
}

pub(crate) fn nullable_anywhere<'a>(schemas: impl Iterator<Item = &'a Arc<[Field]>> + Clone) -> Arc<[Field]> {
    let mut schemas = schemas;
    let Some(first) = schemas.next() else { return Arc::new([]) };
    let mut fields = first.to_vec();
    for schema in schemas {
        fields.iter_mut().zip(schema.iter()).for_each(|(field, other)| field.nullable |= other.nullable);
    }
    fields.into()
}

pub(crate) fn with_nullability(arrow: &SchemaRef, schema: &[Field]) -> SchemaRef {
    let fields = arrow.fields().iter().zip(schema);
    let fields: Vec<_> = fields.map(|(field, own)| field.as_ref().clone().with_nullable(own.nullable)).collect();
    Arc::new(arrow::datatypes::Schema::new(fields))
}

/// Describes the first difference of two schemas; whether null may occur does not count.
fn difference(left: &[Field], right: &[Field]) -> Option<String> {
    for (left, right) in left.iter().zip(right) {
        if left.name != right.name {
            return Some(format!("column {} is {} there", left.name, right.name));
        }
        if left.kind != right.kind {
            return Some(format!("column {} is {} and {}", left.name, left.kind, right.kind));
        }
    }
    let extra = left.get(right.len()).or_else(|| right.get(left.len()))?;
    Some(format!("column {} is only in one", extra.name))
}

/// Checks that two files have one schema.
pub(crate) fn check_same(
    path: &std::path::Path,
    fields: &[Field],
    other: &std::path::Path,
    others: &[Field],
) -> Result<()> {
    match difference(fields, others) {
        None => Ok(()),
        Some(difference) => Err(Error::input(format!(
            "{} and {} have different schemas ({difference}): make one table of files of one schema",
            path.display(),
            other.display()
        ))),
    }
}
