//! Formats without row groups: columns are loaded and kept for all rows of all files at once.

use std::{path::Path, sync::Arc};

use tandem_column::{Column, Reservation, Result, Table};
use tandem_runtime::{Cancel, Runtime};

use crate::{
    cache::{Key, Pieces, byte_len},
    file::Identity,
    load::{Hold, Loaded, Request},
};

/// Loads columns: resident ones as they are, the others with `read`, which gets their positions in the file, ascending.
/// Without a column asked for, `counted` is read, which tells how many rows there are.
pub(crate) fn load(
    identity: Identity,
    request: &Request<'_>,
    counted: Option<usize>,
    read: impl Fn(&[usize]) -> Result<(Table, Reservation)>,
) -> Result<Loaded> {
    let key = |column: usize| Key { file: identity, group: 0, column: column as u32 };
    let mut wanted: Vec<usize> = request.columns.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() && !request.schema.is_empty() {
        wanted.push(counted.unwrap_or(0));
    }
    let mut found: Vec<(usize, Option<Pieces>)> =
        wanted.iter().map(|&column| (column, request.loading.cache.get(&key(column)))).collect();
    let mut hold = Hold::default();
    let missing: Vec<usize> = found.iter().filter(|(_, pieces)| pieces.is_none()).map(|(column, _)| *column).collect();
    if !missing.is_empty() {
        request.check_may_read()?;
        let (table, mut held) = read(&missing)?;
        for (position, &column) in missing.iter().enumerate() {
            let pieces: Pieces = table.parts.iter().map(|part| part.columns[position].clone()).collect();
            let own = held.split_off(byte_len(&pieces));
            hold.held.extend(request.loading.cache.put(key(column), pieces.clone(), own)?);
            if let Some((_, slot)) = found.iter_mut().find(|(known, _)| *known == column) {
                *slot = Some(pieces);
            }
        }
    }
    let pieces = |column: usize| -> Vec<Arc<Column>> {
        let found = found.iter().find(|(known, _)| *known == column).and_then(|(_, pieces)| pieces.as_ref());
        found.map(|pieces| pieces.to_vec()).unwrap_or_default()
    };
    let rows = wanted.first().map_or_else(Vec::new, |&column| pieces(column).iter().map(|piece| piece.rows).collect());
    let columns = request.columns.iter().map(|&column| pieces(column)).collect();
    hold.kept.extend(found.into_iter().filter_map(|(column, pieces)| Some((key(column), pieces?))));
    Ok(Loaded { rows, pieces: columns, hold })
}

/// Returns the identity that columns are kept under, if one of the files changed.
pub(crate) fn stale<'a>(
    files: impl Iterator<Item = (&'a Path, Identity)>,
    identity: Identity,
) -> Result<Vec<Identity>> {
    for (path, known) in files {
        if Identity::of_path(path)? != known {
            return Ok(vec![identity]);
        }
    }
    Ok(Vec::new())
}

/// Lends the runtime's workers to the column loader, whose tasks cannot fail or be cancelled.
///
/// # Panics
/// If one of them does: its part of the rows is missing.
pub(crate) fn on(runtime: &Runtime) -> impl Fn(usize, &(dyn Fn(usize) + Sync)) + Sync + '_ {
    let never = Cancel::new();
    move |tasks, run| {
        let ran = runtime.parallel(tasks, &never, |task| {
            run(task);
            Ok(())
        });
        ran.unwrap_or_else(|error| panic!("{error}"));
    }
}
