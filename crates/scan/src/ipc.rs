//! Arrow IPC files: batches in parallel through the column loader.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::datatypes::{Schema, SchemaRef};
use arrow_ipc::reader::FileReader;
use tandem_column::{Error, Field, LoadOptions, Loader, Repr, Result, Type};

use crate::{
    arrow_file,
    file::{self, Identity},
    load::{Loaded, Request},
    table::{check_same, nullable_anywhere, with_nullability},
    whole,
};

/// Arrow IPC files of one schema.
pub(crate) struct IpcFiles {
    files: Vec<(PathBuf, Identity, usize)>,
    identity: Identity,
    schema: SchemaRef,
    fields: Arc<[Field]>,
    /// The first column that can be loaded: it tells how many rows there are.
    counted: Option<usize>,
}

type Reader = FileReader<BufReader<File>>;

/// Opens a file; `projection` names the columns to read.
fn open(path: &Path, projection: Option<Vec<usize>>) -> Result<(Reader, Identity)> {
    let (file, identity) = file::open(path)?;
    Ok((guarded(path, || FileReader::try_new_buffered(file, projection))?, identity))
}

/// Checks the lengths that a file claims, before the Arrow crate reserves them.
fn check(path: &Path) -> Result<Identity> {
    let (file, identity) = file::open(path)?;
    match arrow_file::check(&file, identity.size).map_err(|wrong| unsound(path, wrong))? {
        true => Ok(identity),
        false => Err(Error::input(format!("not an Arrow IPC file: {}; check what wrote it", path.display()))),
    }
}

/// Checks the lengths that a file or a stream of messages claims.
pub(crate) fn check_any(path: &Path) -> Result<()> {
    let (file, identity) = file::open(path)?;
    let checked = match arrow_file::check(&file, identity.size) {
        Ok(false) => arrow_file::check_stream(&file, identity.size),
        checked => checked.map(drop),
    };
    checked.map_err(|wrong| unsound(path, wrong))
}

fn unsound(path: &Path, wrong: arrow_file::Wrong) -> Error {
    match wrong {
        arrow_file::Wrong::Damaged(what) => file::damaged(path, &what),
        arrow_file::Wrong::Io(error) => file::unreadable(path, &error),
    }
}

/// Runs code of the Arrow crate on untrusted bytes.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, arrow::error::ArrowError>) -> Result<T> {
    match tandem_column::guarded(read) {
        Ok(read) => read.map_err(|error| file::damaged(path, &error.to_string())),
        Err(_) => Err(file::damaged(path, "unreadable")),
    }
}

impl IpcFiles {
    /// Reads the footers; also tells why columns cannot be loaded.
    pub(crate) fn open(paths: &[PathBuf]) -> Result<(IpcFiles, Vec<Option<String>>)> {
        let (mut files, mut schemas) = (Vec::new(), Vec::<Arc<[Field]>>::new());
        let mut found: Option<(SchemaRef, Vec<Option<String>>)> = None;
        for path in paths {
            let checked = check(path)?;
            let (reader, identity) = open(path, None)?;
            if identity != checked {
                return Err(file::changed(path));
            }
            files.push((path.clone(), identity, reader.num_batches()));
            let own = reader.schema();
            let (fields, reasons): (Vec<Field>, Vec<Option<String>>) = own.fields().iter().map(describe).unzip();
            if let Some(first) = schemas.first() {
                check_same(&paths[0], first, path, &fields)?;
            }
            schemas.push(fields.into());
            found.get_or_insert((own, reasons));
        }
        let Some((schema, unsupported)) = found else {
            return Err(Error::input("no files to read: name at least one"));
        };
        let fields = nullable_anywhere(schemas.iter());
        let plain = schema.fields().iter().map(|field| field.as_ref().clone().with_metadata(Default::default()));
        let schema = with_nullability(&Arc::new(Schema::new(plain.collect::<Vec<_>>())), &fields);
        let identities: Vec<Identity> = files.iter().map(|(_, identity, _)| *identity).collect();
        let identity = Identity::combine(&identities, &"arrow");
        let counted = unsupported.iter().position(Option::is_none);
        Ok((IpcFiles { files, identity, schema, fields, counted }, unsupported))
    }

    pub(crate) fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the identity that columns are kept under, if a file changed.
    pub(crate) fn stale(&self) -> Result<Vec<Identity>> {
        whole::stale(self.files.iter().map(|(path, identity, _)| (path.as_path(), *identity)), self.identity)
    }

    /// Loads columns of all rows.
    pub(crate) fn load(&self, request: &Request<'_>) -> Result<Loaded> {
        whole::load(self.identity, request, self.counted, |columns| {
            let schema: Arc<[Field]> = columns.iter().map(|&column| self.fields[column].clone()).collect();
            let loader =
                Loader::new(schema, LoadOptions { memory: request.loading.memory.clone(), ..LoadOptions::default() });
            let mut tasks = Vec::new();
            for (file, (_, _, batches)) in self.files.iter().enumerate() {
                tasks.extend((0..*batches).map(|batch| (file, batch)));
            }
            // Each worker has its own reader: a reader has one position.
            let none = || None::<(usize, Reader)>;
            request.loading.runtime.parallel_with(tasks.len(), request.loading.cancel, none, |reader, task| {
                let (file, batch) = tasks[task];
                let (path, identity, _) = &self.files[file];
                if reader.as_ref().is_none_or(|(open, _)| *open != file) {
                    let (opened, now) = open(path, Some(columns.to_vec()))?;
                    if now != *identity {
                        return Err(file::changed(path));
                    }
                    *reader = Some((file, opened));
                }
                let Some((_, reader)) = reader else { return Err(Error::internal("a file that was just opened")) };
                let read = guarded(path, || {
                    reader.set_index(batch)?;
                    reader.next().transpose()
                })?;
                let Some(read) = read else { return Err(file::damaged(path, "a batch is missing")) };
                loader.append(task as u64, read)
            })?;
            loader.finish_held(&whole::on(request.loading.runtime))
        })
    }
}

fn describe(field: &Arc<arrow::datatypes::Field>) -> (Field, Option<String>) {
    let reason = || Some(format!("column {} is of type {}", field.name(), field.data_type()));
    let (kind, reason) = match Type::from_arrow(field.data_type()) {
        Ok(kind) if kind.repr() != Repr::Other => (kind, None),
        Ok(kind) => (kind, reason()),
        Err(_) => (Type::Null, reason()),
    };
    (Field::new(field.name(), kind, field.is_nullable()), reason)
}
