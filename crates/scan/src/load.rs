//! Loading Parquet columns: prune row groups, decode predicate columns, then the rest for the row groups that remain.

use std::{
    fs::File,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tandem_column::{Column, Data, Error, Field, Result, Scalar, Type};
use tandem_pipeline::{Expr, Value};
use tandem_runtime::{Cancel, Progress, Runtime};

use crate::{
    Cache, assemble,
    cache::{Key, Pieces},
    file::{self, Identity},
    parquet::{self, ParquetFile, Worker},
    predicate::{self, Test},
};

/// What a load asks for.
pub(crate) struct Request<'a> {
    pub(crate) schema: &'a Arc<[Field]>,
    pub(crate) columns: &'a [usize],
    pub(crate) predicates: &'a [Expr],
    pub(crate) cache: &'a Cache,
    pub(crate) runtime: &'a Runtime,
    pub(crate) cancel: &'a Cancel,
    pub(crate) progress: &'a Progress,
    pub(crate) metrics: &'a LoadMetrics,
}

/// What a load did, counted as it goes on.
#[derive(Debug, Default)]
pub struct LoadMetrics {
    /// Row groups asked for.
    pub groups: AtomicU64,
    /// Row groups left out by statistics or by their decoded predicate columns.
    pub skipped: AtomicU64,
    /// Columns of row groups that were resident.
    pub cached: AtomicU64,
    /// Columns of row groups that were decoded, here or by another load that this one waited for.
    pub decoded: AtomicU64,
    /// Compressed bytes of the columns that were decoded.
    pub bytes: AtomicU64,
}

/// Row groups of a file, and where the request's columns are in it.
pub(crate) struct Input {
    pub(crate) file: Arc<ParquetFile>,
    pub(crate) groups: Vec<usize>,
    pub(crate) origins: Arc<[Origin]>,
}

/// Where a column of a request comes from.
pub(crate) enum Origin {
    /// A column of the file, by position.
    Stored(usize),
    /// One value for all rows: a column that is not in the file.
    Constant(Value),
}

impl Input {
    /// Makes the input of a whole file whose columns are the request's.
    pub(crate) fn whole(file: &Arc<ParquetFile>, columns: &[usize]) -> Input {
        let origins = columns.iter().map(|column| Origin::Stored(*column)).collect();
        Input { file: file.clone(), groups: (0..file.groups()).collect(), origins }
    }
}

/// Rows of each part, and of each column its pieces, one per part.
pub(crate) type Loaded = (Vec<usize>, Vec<Vec<Arc<Column>>>);

/// A row group that is not excluded yet, and its decoded columns in the request's order.
struct Group {
    input: usize,
    group: usize,
    rows: usize,
    columns: Vec<OnceLock<Pieces>>,
}

/// Returns the old identities of files that changed.
pub(crate) fn stale(files: &[Arc<ParquetFile>]) -> Result<Vec<Identity>> {
    let mut stale = Vec::new();
    for file in files {
        if Identity::of_path(&file.path)? != file.identity {
            stale.push(file.identity);
        }
    }
    Ok(stale)
}

/// Loads columns of Parquet files. `together`: their integers get one base and width over all files.
pub(crate) fn parquet(inputs: &[Input], together: bool, request: &Request<'_>) -> Result<Loaded> {
    let kinds: Vec<Type> = request.columns.iter().map(|&column| request.schema[column].kind.clone()).collect();
    let tests = predicate::tests(request.predicates, &kinds);
    let mut groups = candidates(inputs, request, &tests);
    let rows: usize = groups.iter().map(|group| group.rows).sum();
    request.progress.total.fetch_add((rows * request.columns.len()) as u64, Ordering::Relaxed);

    let tested = |position: &usize| tests.iter().any(|test| test.column == *position);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..request.columns.len()).partition(tested);
    // With nothing left to save, everything is decoded at once.
    if !first.is_empty() && !rest.is_empty() {
        decode(inputs, &groups, &first, together, request)?;
        let kept: Vec<OnceLock<bool>> = groups.iter().map(|_| OnceLock::new()).collect();
        request.runtime.parallel(groups.len(), request.cancel, |index| {
            let _ = kept[index].set(groups[index].may_match(&tests));
            Ok(())
        })?;
        let mut kept = kept.into_iter();
        groups.retain(|group| {
            let kept = kept.next().and_then(OnceLock::into_inner).unwrap_or(true);
            if !kept {
                request.metrics.skipped.fetch_add(1, Ordering::Relaxed);
                request.progress.done.fetch_add((group.rows * rest.len()) as u64, Ordering::Relaxed);
            }
            kept
        });
        decode(inputs, &groups, &rest, together, request)?;
    } else {
        let all: Vec<usize> = (0..request.columns.len()).collect();
        decode(inputs, &groups, &all, together, request)?;
    }
    let loaded = collect(&groups, request.columns.len())?;
    keep_unified(inputs, &groups, loaded, request)
}

/// Returns the row groups that statistics do not exclude.
fn candidates(inputs: &[Input], request: &Request<'_>, tests: &[Test]) -> Vec<Group> {
    let mut groups = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        for &group in &input.groups {
            let rows = input.file.group_rows(group);
            let excluded = |test: &Test| match &input.origins[test.column] {
                Origin::Stored(column) => test.excludes(&parquet::bounds(&input.file, group, *column)),
                Origin::Constant(value) => test.excludes(&parquet::bounds_of(value)),
            };
            request.metrics.groups.fetch_add(1, Ordering::Relaxed);
            if rows > 0 && !tests.iter().any(excluded) {
                let columns = request.columns.iter().map(|_| OnceLock::new()).collect();
                groups.push(Group { input: index, group, rows, columns });
            } else {
                request.metrics.skipped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    groups
}

impl Group {
    fn key(&self, inputs: &[Input], column: usize) -> Key {
        Key { file: inputs[self.input].file.identity, group: self.group as u32, column: column as u32 }
    }

    fn may_match(&self, tests: &[Test]) -> bool {
        let pieces = self.columns.iter().filter_map(OnceLock::get).map(|pieces| pieces.len()).max().unwrap_or(1);
        (0..pieces).any(|piece| {
            let column =
                |column: usize| self.columns[column].get().and_then(|pieces| pieces.get(piece)).map(|piece| &**piece);
            let rows = tests.iter().find_map(|test| column(test.column)).map_or(self.rows, |column| column.rows);
            predicate::any_match(tests, column, rows)
        })
    }
}

/// Gives pieces the type asked for. Only types that the same bits hold differ from those of the file.
fn relabel(pieces: Pieces, kind: &Type) -> Pieces {
    match pieces.first() {
        Some(first) if first.kind != *kind && matches!(first.data, Data::Int { .. } | Data::Wide(_)) => {
            pieces.iter().map(|piece| Arc::new(Column { kind: kind.clone(), ..Column::clone(piece) })).collect()
        }
        _ => pieces,
    }
}

/// Makes a column of one value.
fn constant(kind: &Type, value: &Value, rows: usize) -> Result<Pieces> {
    if !value.fits(kind) {
        return Err(Error::input(format!(
            "a value that is not in the files does not fit its column: {value} is no {kind}"
        )));
    }
    let wide = kind.repr() == tandem_column::Repr::Wide;
    let scalar = match value {
        Value::Null => Scalar::Null,
        Value::Boolean(value) => Scalar::Int(i64::from(*value)),
        Value::Integer(value) if wide => Scalar::Wide(*value),
        Value::Integer(value) => Scalar::Int(*value as i64),
        Value::Float(value) => Scalar::Float(*value),
        Value::String(text) => Scalar::Bytes(text.as_bytes()),
        Value::Binary(bytes) => Scalar::Bytes(bytes),
        Value::Interval { .. } | Value::List(_) => {
            return Err(Error::unsupported(format!("columns of type {kind} run on the host")));
        }
    };
    Ok(assemble::split(Column::constant(kind.clone(), scalar, rows).with_blocks()))
}

/// A worker's buffers and the file it read last.
#[derive(Default)]
struct Reader {
    worker: Worker,
    open: Option<(usize, File)>,
}

/// Decodes the given columns (positions in the request) of all row groups, as far as they are not resident.
fn decode(
    inputs: &[Input],
    groups: &[Group],
    positions: &[usize],
    together: bool,
    request: &Request<'_>,
) -> Result<()> {
    let mut tasks = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for &position in positions {
            let kind = &request.schema[request.columns[position]].kind;
            let found = match &inputs[group.input].origins[position] {
                Origin::Constant(value) => Some(constant(kind, value, group.rows)?),
                Origin::Stored(column) => {
                    let found = request.cache.get(&group.key(inputs, *column));
                    if found.is_none() {
                        tasks.push((index, position, *column));
                    } else {
                        request.metrics.cached.fetch_add(1, Ordering::Relaxed);
                    }
                    found.map(|pieces| relabel(pieces, kind))
                }
            };
            if let Some(pieces) = found {
                request.progress.done.fetch_add(group.rows as u64, Ordering::Relaxed);
                let _ = group.columns[position].set(pieces);
            }
        }
    }
    if tasks.is_empty() {
        return request.cancel.check();
    }
    let files: Vec<Arc<ParquetFile>> = inputs.iter().map(|input| input.file.clone()).collect();
    let all: Vec<Option<(i64, i64)>> = match together {
        true => request.columns.iter().map(|column| parquet::range_of(&files, *column).0).collect(),
        false => Vec::new(),
    };
    let range = |file: &Arc<ParquetFile>, position: usize, column: usize| match together {
        true => all[position],
        false => parquet::range_of(std::slice::from_ref(file), column).0,
    };
    request.runtime.parallel_with(tasks.len(), request.cancel, Reader::default, |reader, task| {
        let (index, position, column) = tasks[task];
        let group = &groups[index];
        let parquet = &files[group.input];
        let pieces = request.cache.get_or_decode(group.key(inputs, column), || {
            if reader.open.as_ref().is_none_or(|(open, _)| *open != group.input) {
                reader.open = Some((group.input, parquet.reopen()?));
            }
            let Some((_, file)) = &reader.open else { return Err(Error::internal("a file that was just opened")) };
            let range = range(parquet, position, column);
            let decoded = parquet::decode(parquet, file, group.group, column, range, &mut reader.worker);
            // A file written to in place gives other bytes than its footer says: that is the better message.
            if Identity::of_file(&parquet.path, file)? != parquet.identity {
                return Err(file::changed(&parquet.path));
            }
            request.metrics.bytes.fetch_add(parquet.chunk_bytes(group.group, column), Ordering::Relaxed);
            decoded.map(assemble::split)
        })?;
        request.metrics.decoded.fetch_add(1, Ordering::Relaxed);
        request.progress.done.fetch_add(group.rows as u64, Ordering::Relaxed);
        let _ = group.columns[position].set(relabel(pieces, &request.schema[request.columns[position]].kind));
        Ok(())
    })?;
    Ok(())
}

fn collect(groups: &[Group], columns: usize) -> Result<Loaded> {
    let mut rows = Vec::new();
    let mut pieces: Vec<Vec<Arc<Column>>> = vec![Vec::new(); columns];
    for group in groups {
        match group.columns.first().and_then(OnceLock::get) {
            Some(first) => rows.extend(first.iter().map(|piece| piece.rows)),
            None => rows.push(group.rows),
        }
        for (all, column) in pieces.iter_mut().zip(&group.columns) {
            let Some(column) = column.get() else { return Err(Error::internal("a column was not decoded")) };
            all.extend(column.iter().cloned());
        }
    }
    Ok((rows, pieces))
}

/// Gives text columns one dictionary and keeps them so, that the next load has nothing to do.
fn keep_unified(inputs: &[Input], groups: &[Group], loaded: Loaded, request: &Request<'_>) -> Result<Loaded> {
    let (rows, mut pieces) = loaded;
    for (position, column) in pieces.iter_mut().enumerate() {
        let before = column.clone();
        assemble::unify(column, request.runtime, request.cancel)?;
        let mut start = 0;
        for group in groups {
            let count = group.columns[position].get().map_or(0, |pieces| pieces.len());
            let range = start..start + count;
            start += count;
            let changed = |index: usize| !Arc::ptr_eq(&before[index], &column[index]);
            if let Origin::Stored(stored) = inputs[group.input].origins[position]
                && range.clone().any(changed)
            {
                request.cache.put(group.key(inputs, stored), column[range].into());
            }
        }
    }
    Ok((rows, pieces))
}
