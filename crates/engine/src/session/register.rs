//! What a program gives a session: files, Arrow batches and Rust functions.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use tandem_column::Table;
use tandem_runtime::Cancel;

use super::query::wait;
use super::{Session, ready};
use crate::Error;
use crate::error::FromHost;
use crate::execution::host::Stop;
use crate::functions::{ScalarFunction, array_function};
use crate::sql::ddl;
use crate::tables::files::FileProvider;
use crate::tables::info;
use crate::tables::load::{fields, load};
use crate::tables::location::{FileKind, Location, list};
use crate::tables::resident::ResidentTable;

impl Session {
    /// Makes a table of every Parquet, CSV or Arrow file in a directory, and of every subdirectory that holds such
    /// files; returns the tables' names.
    ///
    /// # Errors
    /// If the directory or a file cannot be read, or two files would have the same name; no table is made then.
    pub fn register_directory(&self, directory: impl AsRef<Path>) -> Result<Vec<String>, Error> {
        let directory = directory.as_ref();
        let mut found: Vec<(String, Location)> = Vec::new();
        for path in list(directory)? {
            if FileKind::of(&path).is_some_and(|kind| kind != FileKind::Json) {
                found.push((info::table_name(&path), Location::new(path)));
            }
        }
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut directories: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        directories.sort();
        for path in directories {
            let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            if !hidden && list(&path)?.iter().any(|file| FileKind::of(file).is_some_and(|kind| kind != FileKind::Json))
            {
                found.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), Location::new(path)));
            }
        }
        for (position, (name, location)) in found.iter().enumerate() {
            if let Some((_, other)) = found[..position].iter().find(|(other, _)| other == name) {
                return Err(Error::input(format!(
                    "two files would be the table '{name}'; rename one: '{other}' and '{location}'"
                )));
            }
        }
        let names = found.iter().map(|(name, _)| name.clone()).collect();
        let mut providers: Vec<(String, Arc<dyn TableProvider>)> = Vec::new();
        for (name, location) in found {
            providers.push((name, self.open(location)?));
        }
        for (name, provider) in providers {
            ddl::put(&self.inner.context, TableReference::bare(name), provider).out_of_host()?;
        }
        Ok(names)
    }

    /// Makes a table of a file, of the files that match a pattern, or of a directory of files of one schema.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn register_file(&self, name: &str, path: impl AsRef<Path>) -> Result<(), Error> {
        let provider = self.open(Location::new(path.as_ref()))?;
        ddl::put(&self.inner.context, TableReference::bare(name), provider).out_of_host()
    }

    fn open(&self, location: Location) -> Result<Arc<dyn TableProvider>, Error> {
        let state = self.inner.context.state();
        let opening = async move { FileProvider::open(location, &state).await };
        let provider = wait(self.inner.host.run(&Cancel::new(), &Stop::default(), opening))?;
        Ok(Arc::new(provider))
    }

    /// Makes a table of Arrow batches, in place of any of that name. They become resident columns; types that these lack
    /// stay with the host engine, as they are.
    ///
    /// # Errors
    /// If there is no batch to tell the columns, batches differ in them, or they exceed the memory limit.
    pub fn register_batches(&self, name: &str, batches: impl IntoIterator<Item = RecordBatch>) -> Result<(), Error> {
        let mut batches: Vec<RecordBatch> = batches.into_iter().collect();
        let schema = common_schema(name, &batches)?;
        for batch in &mut batches {
            *batch = RecordBatch::try_new(schema.clone(), batch.columns().to_vec())?;
        }
        let provider: Arc<dyn TableProvider> = match fields(&schema) {
            // In one partition, as CREATE TABLE makes them.
            Err(_) => Arc::new(MemTable::try_new(schema, vec![batches]).out_of_host()?),
            Ok(fields) => {
                let (inner, table) = (self.inner.clone(), name.to_string());
                let rows = ready(schema.clone(), batches);
                let loading =
                    async move { load(rows, fields, &table, &inner.runtime, &inner.budget).await.out_of_host() };
                // Its memory counts as the table's from here on.
                let table = wait(self.inner.host.run(&Cancel::new(), &Stop::default(), loading))?.0;
                let (runtime, budget) = (&self.inner.runtime, &self.inner.budget);
                Arc::new(ResidentTable::new(name, schema, Arc::new(table), runtime, budget)?)
            }
        };
        ddl::put(&self.inner.context, TableReference::bare(name), provider).out_of_host()
    }

    /// Makes a Rust closure a function of SQL: `i64`, `f64`, `bool` and `&str` in, up to three of them; see
    /// [`ScalarFunction`]. It is taken to give the same result for the same arguments, and may be called from many threads
    /// at once.
    ///
    /// # Errors
    /// If there is a built-in function of that name.
    pub fn register_function<Signature, F>(&self, name: &str, function: F) -> Result<(), Error>
    where
        F: ScalarFunction<Signature>,
    {
        self.register_array_function(name, &F::arguments(), F::returns(), move |arrays| function.call(arrays))
    }

    /// Makes a Rust function of whole columns a function of SQL: called with arrays of the given types and one length, it
    /// returns one of that length. It is taken to give the same result for the same arguments, and may be called from many
    /// threads at once.
    ///
    /// # Errors
    /// If there is a built-in function of that name, or there are no arguments.
    pub fn register_array_function<F>(
        &self,
        name: &str,
        arguments: &[DataType],
        returns: DataType,
        function: F,
    ) -> Result<(), Error>
    where
        F: Fn(&[ArrayRef]) -> Result<ArrayRef, Error> + Send + Sync + 'static,
    {
        // As names without quotes are read.
        let name = name.to_lowercase();
        let mut own = self.inner.functions.lock();
        if !own.contains(&name) && self.inner.context.state().scalar_functions().contains_key(&name) {
            return Err(Error::input(format!("there is a built-in function of this name; choose another: {name}")));
        }
        let function = array_function(&name, arguments.to_vec(), returns, function)?;
        self.inner.context.register_udf(function);
        own.insert(name);
        Ok(())
    }

    /// Makes a table of resident columns, in place of any of that name. For benchmarks, whose sessions share tables.
    ///
    /// # Errors
    /// If the columns exceed the memory limit.
    #[doc(hidden)]
    pub fn register_table(&self, name: &str, table: Arc<Table>) -> Result<(), Error> {
        let (runtime, budget) = (&self.inner.runtime, &self.inner.budget);
        let resident = ResidentTable::new(name, table.arrow_schema(), table, runtime, budget)?;
        ddl::put(&self.inner.context, TableReference::bare(name), Arc::new(resident)).out_of_host()
    }
}

/// Returns the schema of a table's batches: columns of the same names and types, nullable where one of them may have nulls.
fn common_schema(name: &str, batches: &[RecordBatch]) -> Result<SchemaRef, Error> {
    let Some(first) = batches.first() else {
        let told = "a table takes its columns from its batches; give at least one batch, if need be without rows";
        return Err(Error::input(format!("{told}: {name}")));
    };
    let mut fields: Vec<Field> = first.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    for batch in &batches[1..] {
        let schema = batch.schema();
        let same =
            |(own, other): (&Field, &Arc<Field>)| own.name() == other.name() && own.data_type() == other.data_type();
        if fields.len() != schema.fields().len() || !fields.iter().zip(schema.fields()).all(same) {
            return Err(Error::input(format!("the batches of a table must have the same columns: {name}")));
        }
        for (own, other) in fields.iter_mut().zip(schema.fields()) {
            own.set_nullable(own.is_nullable() || other.is_nullable());
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}
