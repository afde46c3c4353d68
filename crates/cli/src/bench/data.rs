//! The data of a benchmark: Parquet files, generated once, and the columns of them that the queries read.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicUsize},
};

use arrow::datatypes::SchemaRef;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder},
    },
    basic::Type as Physical,
};
use tandem_column::{Field, LoadOptions, Loader, PartBuilder, Table};
use tandem_generator::GeneratorOptions;

use super::suite::{BenchQuery, Suite, mentioned};
use crate::{failure::Failure, generate::RowCounter};

/// A table's file and the columns of it that the queries read.
pub struct TableData {
    /// The table's name.
    pub name: &'static str,
    /// Its file, as an absolute path.
    pub path: PathBuf,
    /// The columns to hold.
    pub columns: Vec<String>,
    /// About how many bytes those columns take uncompressed.
    pub bytes: usize,
    metadata: ArrowReaderMetadata,
}

/// Generates the files that are missing and opens all.
///
/// # Errors
/// What the generator says, or a file that is not Parquet.
pub fn prepare(
    suite: Suite,
    options: &GeneratorOptions,
    dir: &Path,
    queries: &[BenchQuery],
) -> Result<Vec<TableData>, Failure> {
    let path = |name: &str| dir.join(format!("{name}.parquet"));
    if suite.tables().iter().any(|name| !path(name).is_file()) {
        eprintln!("generating {} {} in {}", suite.name(), suite.size(options), dir.display());
        let counter = RowCounter::new();
        let written = suite.write(options, dir, &|done, total| counter.set(done, total));
        written.map_err(|e| Failure::Statement(e.to_string()))?;
    }
    suite.tables().iter().map(|name| TableData::open(name, &path(name), queries)).collect()
}

impl TableData {
    fn open(name: &'static str, path: &Path, queries: &[BenchQuery]) -> Result<TableData, Failure> {
        let wrong = |error: &dyn std::fmt::Display| {
            let path = path.display();
            Failure::Statement(format!(
                "the data file cannot be read ({error}); remove it to generate it again: {path}"
            ))
        };
        let path = path.canonicalize().map_err(|e| wrong(&e))?;
        let file = File::open(&path).map_err(|e| wrong(&e))?;
        let metadata = ArrowReaderMetadata::load(&file, Default::default()).map_err(|e| wrong(&e))?;
        let names: Vec<String> = metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
        // Tables may have columns of the same name.
        let reading: Vec<BenchQuery> = queries.iter().filter(|query| query.mentions(name)).copied().collect();
        let columns = mentioned(&names, &reading);
        let rows = metadata.metadata().file_metadata().num_rows() as usize;
        let width = |name: &String| {
            let kind = metadata.parquet_schema().columns().iter().find(|c| c.name() == name).map(|c| c.physical_type());
            match kind {
                Some(Physical::INT32 | Physical::FLOAT) => 4,
                Some(Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY) => 24,
                _ => 8,
            }
        };
        let bytes = rows * columns.iter().map(width).sum::<usize>();
        Ok(TableData { name, path, columns, bytes, metadata })
    }

    fn projection(&self) -> Vec<usize> {
        let schema: &SchemaRef = self.metadata.schema();
        self.columns.iter().filter_map(|name| schema.index_of(name).ok()).collect()
    }

    /// Loads the columns into a resident table on `threads` threads, a row group to a part.
    ///
    /// # Errors
    /// Damaged data.
    pub fn load(&self, threads: usize) -> tandem_column::Result<Table> {
        let internal = |error: &dyn std::fmt::Display| {
            tandem_column::Error::input(format!("The file cannot be read ({error}): {}.", self.path.display()))
        };
        let schema = self.metadata.schema().project(&self.projection()).map_err(|e| internal(&e))?;
        let fields: tandem_column::Result<Vec<Field>> = schema.fields().iter().map(|f| Field::from_arrow(f)).collect();
        let fields: Arc<[Field]> = fields?.into();
        let loader =
            Loader::new(Arc::clone(&fields), LoadOptions { name: self.name.to_string(), ..LoadOptions::default() });
        let failure = std::sync::Mutex::new(None);
        let load = |group: usize| -> tandem_column::Result<()> {
            let file = File::open(&self.path).map_err(|e| internal(&e))?;
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
            let mask = ProjectionMask::roots(self.metadata.parquet_schema(), self.projection());
            let reader = builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(1 << 16);
            let mut part = PartBuilder::new(Arc::clone(&fields));
            for batch in reader.build().map_err(|e| internal(&e))? {
                part.push(batch.map_err(|e| internal(&e))?)?;
            }
            loader.append_part(group as u64, part.finish()?)
        };
        on_threads(threads, self.metadata.metadata().num_row_groups(), &|group| {
            if let Err(error) = load(group) {
                failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            }
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(error);
        }
        loader.finish_with(&|tasks, task| on_threads(threads, tasks, task))
    }
}

fn on_threads(threads: usize, tasks: usize, run: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let task = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if task >= tasks {
                return;
            }
            run(task);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(tasks) {
            scope.spawn(work);
        }
        work();
    });
}
