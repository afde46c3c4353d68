//! Columns of row groups to one table: shared dictionaries, pieces of bounded size, statistics.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use parking_lot::Mutex;
use tandem_column::{
    AlignedVec, Buffer, Code, Codes, Column, ColumnStatistics, Data, Dictionary, Field, PAGE, PART_ROWS, Part,
    Reservation, Result, Table, Type, value_set, with_codes,
};
use tandem_runtime::{Cancel, Runtime};

use crate::cache::Pieces;

/// Row groups of more rows than this are split: a part should give every worker many morsels, not all of them.
pub(crate) const SPLIT_ROWS: usize = 4 * PART_ROWS;

/// A dictionary of at most this many values pays whatever the number of rows.
const SMALL_DICTIONARY: usize = 1 << 12;

/// Cuts a decoded column of a row group into parts' sizes.
pub(crate) fn split(column: Column) -> Pieces {
    if column.rows <= SPLIT_ROWS {
        return Arc::new([Arc::new(column)]);
    }
    let starts = (0..column.rows).step_by(PART_ROWS);
    starts.map(|start| Arc::new(slice(&column, start..column.rows.min(start + PART_ROWS)).with_blocks())).collect()
}

fn slice(column: &Column, rows: Range<usize>) -> Column {
    let validity = column.validity.as_ref().map(|validity| validity.slice(rows.clone()));
    let validity = validity.filter(|validity| validity.count_ones() < validity.len());
    let kind = column.kind.clone();
    let cut = |codes: &Codes| with_codes!(codes, codes => Code::codes(Buffer::from_slice(&codes[rows.clone()])));
    match &column.data {
        Data::Int { base, codes } => Column::from_offsets(kind, *base, cut(codes), validity),
        Data::Dictionary { codes, dictionary } => Column::from_codes(kind, cut(codes), dictionary.clone(), validity),
        Data::Wide(values) => Column::from_i128(kind, AlignedVec::from(&values[rows]), validity),
        Data::Float32(values) => Column::from_f32(AlignedVec::from(&values[rows]), validity),
        Data::Float64(values) => Column::from_f64(AlignedVec::from(&values[rows]), validity),
        Data::Bytes { offsets, bytes } => {
            let offsets = &offsets[rows.start..=rows.end];
            let (from, to) = (offsets[0], offsets[offsets.len() - 1]);
            let shifted: AlignedVec<u64> = offsets.iter().map(|offset| offset - from).collect();
            let bytes = Buffer::from_slice(&bytes[from as usize..to as usize]);
            Column::from_bytes(kind, shifted.into_buffer(), bytes, validity)
        }
        Data::Remote(_) => unreachable!("files are decoded on the host"),
    }
}

/// Gives all pieces of a column one dictionary, or none: what a table requires. Pieces that fit already are shared; the
/// memory of the others is taken from `memory` first.
pub(crate) fn unify(
    pieces: &mut [Arc<Column>],
    runtime: &Runtime,
    cancel: &Cancel,
    memory: &mut Reservation,
) -> Result<()> {
    let mut distinct: Vec<&Arc<Dictionary>> = Vec::new();
    let mut seen = HashSet::new();
    let mut first = None;
    let (mut plain, mut rows) = (false, 0);
    let mut fits = true;
    for piece in pieces.iter() {
        rows += piece.rows;
        // Rows that are all null fit any dictionary; the one they have is a placeholder.
        let empty = piece.null_count() == piece.rows;
        match &piece.data {
            Data::Dictionary { dictionary, .. } => {
                fits &= Arc::ptr_eq(first.get_or_insert(dictionary), dictionary);
                if !empty && seen.insert(Arc::as_ptr(dictionary)) {
                    distinct.push(dictionary);
                }
            }
            Data::Bytes { .. } => {
                plain |= !empty;
                fits = false;
            }
            _ => return Ok(()),
        }
    }
    let Some(first) = first else { return Ok(()) };
    if fits {
        return Ok(());
    }
    if distinct.is_empty() {
        distinct.push(first);
    }
    // Merging writes each value once more, and a code for each.
    let values = distinct.iter().map(|dictionary| dictionary.byte_len() + dictionary.len() * size_of::<u64>());
    memory.add(values.sum())?;
    let target = if plain { None } else { merge(&distinct, rows)? };
    let bytes = |piece: &Arc<Column>| match &target {
        Some(merged) => piece.rows * Codes::width_for(merged.dictionary.len() as u64) + piece.rows / 8 + PAGE,
        None => piece.decoded_bytes() + PAGE,
    };
    memory.add(pieces.iter().map(bytes).sum())?;
    let changed: Vec<Mutex<Option<Arc<Column>>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    runtime.parallel(pieces.len(), cancel, |index| {
        *changed[index].lock() = match &target {
            Some(merged) => merged.adopt(&pieces[index]),
            None => pieces[index].dictionary().map(|_| Arc::new(pieces[index].decode())),
        };
        Ok(())
    })?;
    for (piece, changed) in pieces.iter_mut().zip(changed) {
        if let Some(changed) = changed.into_inner() {
            *piece = changed;
        }
    }
    Ok(())
}

/// The dictionary of a column, and the new code of each old one of each dictionary it replaces, by their addresses. The pieces
/// keep those alive.
struct Merged {
    dictionary: Arc<Dictionary>,
    old: HashMap<usize, Option<Vec<u32>>>,
}

fn address(dictionary: &Arc<Dictionary>) -> usize {
    Arc::as_ptr(dictionary) as usize
}

/// Merges dictionaries; `None` if the result is too large to pay.
fn merge(distinct: &[&Arc<Dictionary>], rows: usize) -> Result<Option<Merged>> {
    // Row groups of one file mostly have the same values: then there is nothing to merge.
    let first = distinct[0];
    let largest = distinct.iter().copied().max_by_key(|dictionary| dictionary.len()).unwrap_or(first);
    let equal = distinct.iter().all(|dictionary| dictionary == &largest);
    if equal {
        let old = distinct.iter().map(|&dictionary| (address(dictionary), None)).collect();
        return Ok(Some(Merged { dictionary: largest.clone(), old }));
    }
    let borrowed: Vec<&Dictionary> = distinct.iter().map(|dictionary| &***dictionary).collect();
    let (merged, maps) = Dictionary::merge(&borrowed)?;
    if merged.len() > SMALL_DICTIONARY && merged.len() > rows / 4 {
        return Ok(None);
    }
    // Keeping an equal one keeps the columns that have it.
    let dictionary = match merged == **largest {
        true => largest.clone(),
        false => Arc::new(merged),
    };
    let old = distinct.iter().zip(maps).map(|(&old, map)| (address(old), Some(map))).collect();
    Ok(Some(Merged { dictionary, old }))
}

impl Merged {
    /// Returns the column with the merged dictionary; `None` if it has it.
    fn adopt(&self, column: &Column) -> Option<Arc<Column>> {
        let coded = match &column.data {
            Data::Dictionary { dictionary, .. } if Arc::ptr_eq(dictionary, &self.dictionary) => return None,
            Data::Dictionary { codes, dictionary } => self.old.get(&address(dictionary)).map(|map| (codes, map)),
            _ => None,
        };
        let column = match coded {
            // All rows are null.
            None => {
                let (codes, validity) = (Codes::zeroed(column.rows), column.validity.clone());
                Column::from_codes(column.kind.clone(), codes, self.dictionary.clone(), validity).with_blocks()
            }
            Some((codes, None)) => {
                let data = Data::Dictionary { codes: codes.clone(), dictionary: self.dictionary.clone() };
                Column { data, ..column.clone() }
            }
            Some((codes, Some(map))) => {
                let mut codes = codes.remap(map);
                if let Some(validity) = &column.validity {
                    let present = codes.iter().zip(validity.iter()).map(|(code, valid)| if valid { code } else { 0 });
                    codes = Codes::collect(codes.width(), codes.len(), present);
                }
                Column::from_codes(column.kind.clone(), codes, self.dictionary.clone(), column.validity.clone())
                    .with_blocks()
            }
        };
        Some(Arc::new(column))
    }
}

/// Makes a table of columns' pieces, one of each per part.
pub(crate) fn table(
    schema: Arc<[Field]>,
    rows: &[usize],
    pieces: &[Vec<Arc<Column>>],
    statistics: Arc<[ColumnStatistics]>,
) -> Table {
    let part = |(part, &rows): (usize, &usize)| {
        Arc::new(Part { rows, columns: pieces.iter().map(|column| column[part].clone()).collect() })
    };
    let parts = rows.iter().enumerate().map(part).collect();
    Table { schema, parts, statistics }
}

/// Says what is known of a column over all its pieces: everything for tables of up to `detailed` rows, else what blocks
/// tell.
pub(crate) fn summarise(field: &Field, pieces: &[Arc<Column>], detailed: usize) -> ColumnStatistics {
    let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
    if rows <= detailed {
        let parts =
            pieces.iter().map(|piece| Arc::new(Part { rows: piece.rows, columns: vec![piece.clone()] })).collect();
        let table = Table::with_statistics(Arc::new([field.clone()]), parts);
        return table.statistics.first().cloned().unwrap_or_default();
    }
    let blocks = || pieces.iter().flat_map(|piece| &piece.blocks);
    let ranges = blocks().filter_map(|block| block.range);
    let range = ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)));
    let nulls = pieces.iter().map(|piece| piece.null_count()).sum();
    let dictionary = pieces.first().and_then(|piece| match &piece.data {
        Data::Dictionary { dictionary, .. } => Some(dictionary.len() as f64),
        _ => None,
    });
    let spanned =
        range.filter(|_| field.kind.repr() == Type::Int64.repr()).map(|(low, high)| (high as f64 - low as f64) + 1.0);
    let known = [dictionary, spanned].into_iter().flatten().reduce(f64::min);
    let distinct = known.map(|known| known.min((rows - nulls) as f64));
    ColumnStatistics { range, nulls, distinct, ..ColumnStatistics::default() }
}

/// Adds the exact set of values, where they span little.
pub(crate) fn add_values(
    statistics: &mut ColumnStatistics,
    pieces: &[Arc<Column>],
    runtime: &Runtime,
    cancel: &Cancel,
) -> Result<()> {
    let Some(range) = statistics.range.filter(|_| statistics.values.is_none()) else { return Ok(()) };
    let failed = Mutex::new(Ok(()));
    statistics.values = value_set(pieces, range, &|tasks, task| {
        let ran = runtime.parallel(tasks, cancel, |at| {
            task(at);
            Ok(())
        });
        if ran.is_err() {
            *failed.lock() = ran;
        }
    });
    failed.into_inner()
}
