//! Loading Parquet columns: prune row groups, decode predicate columns, then the rest for the row groups that remain.

use std::{
    fs::File,
    sync::{Arc, OnceLock, atomic::Ordering},
};

use tandem_column::{Column, Error, Field, Result, Type};
use tandem_pipeline::Expr;
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
}

/// Rows of each part, and of each column its pieces, one per part.
pub(crate) type Loaded = (Vec<usize>, Vec<Vec<Arc<Column>>>);

/// A row group that is not excluded yet, and its decoded columns in the request's order.
struct Group {
    file: usize,
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

/// Loads columns of Parquet files.
pub(crate) fn parquet(files: &Arc<[Arc<ParquetFile>]>, request: &Request<'_>) -> Result<Loaded> {
    let kinds: Vec<Type> = request.columns.iter().map(|&column| request.schema[column].kind.clone()).collect();
    let tests = predicate::tests(request.predicates, &kinds);
    let mut groups = candidates(files, request, &tests);
    let rows: usize = groups.iter().map(|group| group.rows).sum();
    request.progress.total.fetch_add((rows * request.columns.len()) as u64, Ordering::Relaxed);

    let tested = |position: &usize| tests.iter().any(|test| test.column == *position);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..request.columns.len()).partition(tested);
    // With nothing left to save, everything is decoded at once.
    if !first.is_empty() && !rest.is_empty() {
        decode(files, &groups, &first, request)?;
        let kept: Vec<OnceLock<bool>> = groups.iter().map(|_| OnceLock::new()).collect();
        request.runtime.parallel(groups.len(), request.cancel, |index| {
            let _ = kept[index].set(groups[index].may_match(&tests));
            Ok(())
        })?;
        let mut kept = kept.into_iter();
        groups.retain(|group| {
            let kept = kept.next().and_then(OnceLock::into_inner).unwrap_or(true);
            if !kept {
                request.progress.done.fetch_add((group.rows * rest.len()) as u64, Ordering::Relaxed);
            }
            kept
        });
        decode(files, &groups, &rest, request)?;
    } else {
        let all: Vec<usize> = (0..request.columns.len()).collect();
        decode(files, &groups, &all, request)?;
    }
    let loaded = collect(&groups, request.columns.len())?;
    keep_unified(files, &groups, loaded, request)
}

/// Returns the row groups that statistics do not exclude.
fn candidates(files: &[Arc<ParquetFile>], request: &Request<'_>, tests: &[Test]) -> Vec<Group> {
    let mut groups = Vec::new();
    for (index, file) in files.iter().enumerate() {
        for group in 0..file.groups() {
            let rows = file.group_rows(group);
            let excluded = |test: &Test| test.excludes(&parquet::bounds(file, group, request.columns[test.column]));
            if rows > 0 && !tests.iter().any(excluded) {
                let columns = request.columns.iter().map(|_| OnceLock::new()).collect();
                groups.push(Group { file: index, group, rows, columns });
            }
        }
    }
    groups
}

impl Group {
    fn key(&self, files: &[Arc<ParquetFile>], column: usize) -> Key {
        Key { file: files[self.file].identity, group: self.group as u32, column: column as u32 }
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

/// A worker's buffers and the file it read last.
#[derive(Default)]
struct Reader {
    worker: Worker,
    open: Option<(usize, File)>,
}

/// Decodes the given columns (positions in the request) of all row groups, as far as they are not resident.
fn decode(files: &[Arc<ParquetFile>], groups: &[Group], positions: &[usize], request: &Request<'_>) -> Result<()> {
    let mut tasks = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        for &position in positions {
            match request.cache.get(&group.key(files, request.columns[position])) {
                Some(pieces) => {
                    request.progress.done.fetch_add(group.rows as u64, Ordering::Relaxed);
                    let _ = group.columns[position].set(pieces);
                }
                None => tasks.push((index, position)),
            }
        }
    }
    if tasks.is_empty() {
        return request.cancel.check();
    }
    let ranges: Vec<Option<(i64, i64)>> =
        positions.iter().map(|&position| parquet::range_of(files, request.columns[position]).0).collect();
    let range = |position: usize| positions.iter().position(|&known| known == position).and_then(|index| ranges[index]);
    request.runtime.parallel_with(tasks.len(), request.cancel, Reader::default, |reader, task| {
        let (index, position) = tasks[task];
        let (group, column) = (&groups[index], request.columns[position]);
        let parquet = &files[group.file];
        let pieces = request.cache.get_or_decode(group.key(files, column), || {
            if reader.open.as_ref().is_none_or(|(open, _)| *open != group.file) {
                reader.open = Some((group.file, parquet.reopen()?));
            }
            let Some((_, file)) = &reader.open else { return Err(Error::internal("a file that was just opened")) };
            let decoded = parquet::decode(parquet, file, group.group, column, range(position), &mut reader.worker);
            // A file written to in place gives other bytes than its footer says: that is the better message.
            if Identity::of_file(&parquet.path, file)? != parquet.identity {
                return Err(file::changed(&parquet.path));
            }
            decoded.map(assemble::split)
        })?;
        request.progress.done.fetch_add(group.rows as u64, Ordering::Relaxed);
        let _ = group.columns[position].set(pieces);
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
fn keep_unified(files: &[Arc<ParquetFile>], groups: &[Group], loaded: Loaded, request: &Request<'_>) -> Result<Loaded> {
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
            if range.clone().any(changed) {
                request.cache.put(group.key(files, request.columns[position]), column[range].into());
            }
        }
    }
    Ok((rows, pieces))
}
