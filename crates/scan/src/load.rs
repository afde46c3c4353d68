//! Loading Parquet columns: prune row groups, decode predicate columns, then the rest for the row groups that remain.

use std::{
    fs::File,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tandem_column::{Column, Data, Error, Field, MemoryBudget, Reservation, Result, Scalar, Type};
use tandem_pipeline::{Expr, Value};
use tandem_runtime::{Cancel, RowProgress, Runtime};

use crate::{
    ColumnCache, assemble,
    cache::{Key, Pieces, byte_len},
    file::{self, Identity},
    parquet::{self, DecodeBuffers, ParquetFile},
    predicate::{self, Test},
};

/// What a load works with.
#[derive(Clone, Copy)]
pub struct Loading<'a> {
    /// Columns that are resident already, and where new ones stay.
    pub cache: &'a ColumnCache,
    /// The workers.
    pub runtime: &'a Runtime,
    /// What columns count against that the cache does not keep.
    pub memory: &'a Arc<MemoryBudget>,
    /// Stops the load.
    pub cancel: &'a Cancel,
    /// Counts rows times columns.
    pub progress: &'a RowProgress,
}

/// The memory of loaded columns, in the cache or beside it. Lives as long as they are in use.
#[derive(Debug, Default)]
pub struct Hold {
    /// Columns of the cache, which keeps those that somebody has.
    pub(crate) kept: Vec<(Key, Pieces)>,
    /// The others.
    pub(crate) held: Vec<Reservation>,
}

impl Hold {
    /// Lets go of the memory, also in the cache: the columns are somebody else's from now on, who has to count them.
    pub fn hand_over(self, cache: &ColumnCache) {
        cache.remove_columns(&self.kept.iter().map(|(key, _)| *key).collect());
    }
}

/// What a load asks for.
pub(crate) struct Request<'a> {
    pub(crate) schema: &'a Arc<[Field]>,
    pub(crate) columns: &'a [usize],
    pub(crate) predicates: &'a [Expr],
    pub(crate) loading: Loading<'a>,
    pub(crate) metrics: &'a LoadMetrics,
    /// Nothing may be read: what is not resident fails the load.
    pub(crate) resident_only: bool,
}

impl Request<'_> {
    /// Fails if nothing may be read.
    pub(crate) fn check_may_read(&self) -> Result<()> {
        match self.resident_only {
            true => Err(Error::unsupported("some of the columns are not resident")),
            false => Ok(()),
        }
    }
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
    pub(crate) origins: Arc<[ColumnOrigin]>,
}

/// Where a column of a request comes from.
pub(crate) enum ColumnOrigin {
    /// A column of the file, by position.
    Stored(usize),
    /// One value for all rows: a column that is not in the file.
    Constant(Value),
}

impl Input {
    /// Makes the input of a whole file whose columns are the request's.
    pub(crate) fn whole(file: &Arc<ParquetFile>, columns: &[usize]) -> Input {
        let origins = columns.iter().map(|column| ColumnOrigin::Stored(*column)).collect();
        Input { file: file.clone(), groups: (0..file.groups()).collect(), origins }
    }
}

/// What was loaded.
pub(crate) struct Loaded {
    /// Rows of each part.
    pub(crate) rows: Vec<usize>,
    /// Of each column its pieces, one per part.
    pub(crate) pieces: Vec<Vec<Arc<Column>>>,
    pub(crate) hold: Hold,
}

/// A row group that is not excluded yet, and its decoded columns in the request's order.
struct Group {
    input: usize,
    group: usize,
    rows: usize,
    columns: Vec<OnceLock<Decoded>>,
}

/// A column of a row group.
struct Decoded {
    pieces: Pieces,
    /// The same as the cache has them, with the file's type.
    kept: Pieces,
    /// Their memory, if the cache does not have them.
    held: Option<Reservation>,
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
    request.loading.progress.total.fetch_add((rows * request.columns.len()) as u64, Ordering::Relaxed);

    let tested = |position: &usize| tests.iter().any(|test| test.column == *position);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..request.columns.len()).partition(tested);
    // With nothing left to save, everything is decoded at once.
    if !first.is_empty() && !rest.is_empty() {
        decode(inputs, &groups, &first, together, request)?;
        let kept: Vec<OnceLock<bool>> = groups.iter().map(|_| OnceLock::new()).collect();
        request.loading.runtime.parallel(groups.len(), request.loading.cancel, |index| {
            let _ = kept[index].set(groups[index].may_match(&tests));
            Ok(())
        })?;
        let mut kept = kept.into_iter();
        groups.retain(|group| {
            let kept = kept.next().and_then(OnceLock::into_inner).unwrap_or(true);
            if !kept {
                request.metrics.skipped.fetch_add(1, Ordering::Relaxed);
                request.loading.progress.done.fetch_add((group.rows * rest.len()) as u64, Ordering::Relaxed);
            }
            kept
        });
        decode(inputs, &groups, &rest, together, request)?;
    } else {
        let all: Vec<usize> = (0..request.columns.len()).collect();
        decode(inputs, &groups, &all, together, request)?;
    }
    collect(inputs, groups, request)
}

/// Returns the row groups that statistics do not exclude.
fn candidates(inputs: &[Input], request: &Request<'_>, tests: &[Test]) -> Vec<Group> {
    let mut groups = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        for &group in &input.groups {
            let rows = input.file.group_rows(group);
            let excluded = |test: &Test| match &input.origins[test.column] {
                ColumnOrigin::Stored(column) => test.excludes(&parquet::bounds(&input.file, group, *column)),
                ColumnOrigin::Constant(value) => test.excludes(&parquet::bounds_of(value)),
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
        let decoded = |column: usize| self.columns[column].get().map(|decoded| &decoded.pieces);
        let pieces = (0..self.columns.len()).filter_map(decoded).map(|pieces| pieces.len()).max().unwrap_or(1);
        (0..pieces).any(|piece| {
            let column = |column: usize| decoded(column).and_then(|pieces| pieces.get(piece)).map(|piece| &**piece);
            let rows = tests.iter().find_map(|test| column(test.column)).map_or(self.rows, |column| column.rows);
            predicate::any_match(tests, column, rows)
        })
    }
}

/// Gives pieces the type asked for. Only types that the same bits hold differ from those of the file.
fn relabel(pieces: &Pieces, kind: &Type) -> Pieces {
    match pieces.first() {
        Some(first) if first.kind != *kind && matches!(first.data, Data::Int { .. } | Data::Wide(_)) => {
            pieces.iter().map(|piece| Arc::new(Column { kind: kind.clone(), ..Column::clone(piece) })).collect()
        }
        _ => pieces.clone(),
    }
}

/// Makes a column of one value.
fn constant(kind: &Type, value: &Value, rows: usize, memory: &Arc<MemoryBudget>) -> Result<Decoded> {
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
    let width = if wide { size_of::<i128>() } else { size_of::<f64>() };
    let held = Reservation::take(memory, "the values of a partition", rows.saturating_mul(width))?;
    let pieces = assemble::split(Column::constant(kind.clone(), scalar, rows).with_blocks());
    Ok(Decoded { kept: pieces.clone(), pieces, held: Some(held) })
}

/// A worker's buffers and the file it read last.
struct Reader {
    worker: DecodeBuffers,
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
                ColumnOrigin::Constant(value) => Some(constant(kind, value, group.rows, request.loading.memory)?),
                ColumnOrigin::Stored(column) => {
                    let found = request.loading.cache.get(&group.key(inputs, *column));
                    if found.is_none() {
                        tasks.push((index, position, *column));
                    } else {
                        request.metrics.cached.fetch_add(1, Ordering::Relaxed);
                    }
                    found.map(|kept| Decoded { pieces: relabel(&kept, kind), kept, held: None })
                }
            };
            if let Some(decoded) = found {
                request.loading.progress.done.fetch_add(group.rows as u64, Ordering::Relaxed);
                let _ = group.columns[position].set(decoded);
            }
        }
    }
    if tasks.is_empty() {
        return request.loading.cancel.check();
    }
    request.check_may_read()?;
    let files: Vec<Arc<ParquetFile>> = inputs.iter().map(|input| input.file.clone()).collect();
    let all: Vec<Option<(i64, i64)>> = match together {
        true => request.columns.iter().map(|column| parquet::range_of(&files, *column).0).collect(),
        false => Vec::new(),
    };
    // Asked for every task: a file has counted its own after the first.
    let range = |file: &Arc<ParquetFile>, position: usize, column: usize| match together {
        true => all[position],
        false => parquet::range_of(std::slice::from_ref(file), column).0,
    };
    let reader = || Reader { worker: DecodeBuffers::new(request.loading.memory), open: None };
    request.loading.runtime.parallel_with(tasks.len(), request.loading.cancel, reader, |reader, task| {
        let (index, position, column) = tasks[task];
        let group = &groups[index];
        let parquet = &files[group.input];
        let (kept, held) = request.loading.cache.get_or_decode(group.key(inputs, column), || {
            if reader.open.as_ref().is_none_or(|(open, _)| *open != group.input) {
                reader.open = Some((group.input, parquet.reopen()?));
            }
            let Some((_, file)) = &reader.open else { return Err(Error::internal("a file that was just opened")) };
            let range = range(parquet, position, column);
            let name = parquet.path.file_name().unwrap_or(parquet.path.as_os_str()).display();
            let what = format!("column {} of {name}", parquet.fields[column].name);
            let mut held = Reservation::new(request.loading.memory, what);
            let decoded = parquet::decode(parquet, file, group.group, column, range, &mut reader.worker, &mut held);
            // A file written to in place gives other bytes than its footer says: that is the better message.
            if Identity::of_file(&parquet.path, file)? != parquet.identity {
                return Err(file::changed(&parquet.path));
            }
            request.metrics.bytes.fetch_add(parquet.chunk_bytes(group.group, column), Ordering::Relaxed);
            let pieces = assemble::split(decoded?);
            held.resize(byte_len(&pieces))?;
            Ok((pieces, held))
        })?;
        request.metrics.decoded.fetch_add(1, Ordering::Relaxed);
        request.loading.progress.done.fetch_add(group.rows as u64, Ordering::Relaxed);
        let pieces = relabel(&kept, &request.schema[request.columns[position]].kind);
        let _ = group.columns[position].set(Decoded { pieces, kept, held });
        Ok(())
    })?;
    Ok(())
}

/// Puts the columns of row groups together. Text gets one dictionary and is kept so, that the next load has nothing to do.
fn collect(inputs: &[Input], groups: Vec<Group>, request: &Request<'_>) -> Result<Loaded> {
    let mut rows = Vec::new();
    for group in &groups {
        match group.columns.first().and_then(OnceLock::get) {
            Some(first) => rows.extend(first.pieces.iter().map(|piece| piece.rows)),
            None => rows.push(group.rows),
        }
    }
    let missing = || Error::internal("a column was not decoded");
    let keys: Vec<Vec<Option<Key>>> = groups
        .iter()
        .map(|group| {
            let key = |origin: &ColumnOrigin| match origin {
                ColumnOrigin::Stored(column) => Some(group.key(inputs, *column)),
                ColumnOrigin::Constant(_) => None,
            };
            inputs[group.input].origins.iter().map(key).collect()
        })
        .collect();
    let mut groups: Vec<_> = groups.into_iter().map(|group| group.columns.into_iter()).collect();
    let (mut pieces, mut hold) = (Vec::with_capacity(request.columns.len()), Hold::default());
    for position in 0..request.columns.len() {
        let column = groups.iter_mut().map(|columns| columns.next().and_then(OnceLock::into_inner).ok_or_else(missing));
        let column: Vec<Decoded> = column.collect::<Result<_>>()?;
        let before: Vec<Arc<Column>> = column.iter().flat_map(|decoded| decoded.pieces.iter().cloned()).collect();
        let mut after = before.clone();
        let mut changed = Reservation::new(request.loading.memory, "the dictionary of a column");
        assemble::unify(&mut after, request.loading.runtime, request.loading.cancel, &mut changed)?;
        // A dictionary that all share counts with the first.
        let mut dictionary = after.first().and_then(|piece| piece.dictionary()).map_or(0, |shared| shared.byte_len());
        let mut start = 0;
        for (decoded, keys) in column.into_iter().zip(&keys) {
            let range = start..start + decoded.pieces.len();
            start = range.end;
            if range.clone().all(|at| Arc::ptr_eq(&before[at], &after[at])) {
                hold.kept.extend(keys[position].map(|key| (key, decoded.kept)));
                hold.held.extend(decoded.held);
                continue;
            }
            drop(decoded);
            let new: Pieces = after[range].into();
            let codes: usize = new.iter().map(|piece| piece.byte_len()).sum();
            let own = changed.split_off(codes + std::mem::take(&mut dictionary));
            hold.kept.extend(keys[position].map(|key| (key, new.clone())));
            hold.held.extend(match keys[position] {
                Some(key) => request.loading.cache.put(key, new, own)?,
                None => Some(own),
            });
        }
        pieces.push(after);
    }
    Ok(Loaded { rows, pieces, hold })
}
