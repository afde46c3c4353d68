//! Values in the order of a build's entries, as compact columns.

use tandem_column::{AlignedVec, Bitmap, BitmapBuilder, Buffer, Code, Codes, Column, Plain, Result, Type};

use crate::{
    ParallelTasks, Values, Vector,
    parallel::{PIECE, cut, each, pieces, serially},
};

/// Which row each entry of a build holds.
#[derive(Debug)]
pub enum EntryOrder {
    /// One for each entry.
    Each(Vec<u32>),
    /// Row `rows[i]` goes to entry `places[i]`; the other entries hold none.
    Some {
        /// The rows.
        rows: Vec<u32>,
        /// The entry of each.
        places: Vec<u32>,
        /// How many entries there are.
        entries: usize,
        /// Where pieces end that share no entry, in rows and in entries; none if all is one piece.
        bounds: Vec<(usize, usize)>,
    },
}

impl EntryOrder {
    /// Returns how many entries there are.
    pub(crate) fn entries(&self) -> usize {
        match self {
            EntryOrder::Each(rows) => rows.len(),
            EntryOrder::Some { entries, .. } => *entries,
        }
    }

    /// Returns a value for each entry, the default where it holds no row.
    fn arrange<T: Plain>(
        &self,
        parallel: ParallelTasks<'_>,
        value: impl Fn(usize) -> T + Sync,
    ) -> Result<AlignedVec<T>> {
        let mut out = AlignedVec::zeroed(self.entries());
        match self {
            EntryOrder::Each(rows) => {
                let slices = out.as_mut_slice().chunks_mut(PIECE).zip(rows.chunks(PIECE)).collect();
                each(parallel, slices, |_, (out, rows): (&mut [T], &[u32])| {
                    out.iter_mut().zip(rows).for_each(|(out, row)| *out = value(*row as usize));
                })?;
            }
            EntryOrder::Some { rows, places, entries, bounds } => {
                let whole = [(rows.len(), *entries)];
                let bounds = if bounds.is_empty() { &whole } else { bounds.as_slice() };
                let begins = std::iter::once((0, 0)).chain(bounds.iter().copied());
                let pieces: Vec<_> = begins.zip(bounds).collect();
                let slices = cut(out.as_mut_slice(), pieces.iter().map(|(begin, end)| end.1 - begin.1));
                let work = slices.into_iter().zip(pieces).collect();
                each(parallel, work, |_, (out, (begin, end)): (&mut [T], ((usize, usize), &(usize, usize)))| {
                    for (row, place) in rows[begin.0..end.0].iter().zip(&places[begin.0..end.0]) {
                        out[*place as usize - begin.1] = value(*row as usize);
                    }
                })?;
            }
        }
        Ok(out)
    }

    /// Returns the row of each entry, `None` where it holds none.
    fn rows(&self) -> Vec<Option<u32>> {
        match self {
            EntryOrder::Each(rows) => rows.iter().copied().map(Some).collect(),
            EntryOrder::Some { rows, places, entries, .. } => {
                let mut out = vec![None; *entries];
                rows.iter().zip(places).for_each(|(row, place)| out[*place as usize] = Some(*row));
                out
            }
        }
    }
}

impl Vector {
    /// Makes a compact column of the values in the order of a build's entries, with their range.
    ///
    /// # Errors
    /// What stops the tasks that write it.
    pub fn arrange(&self, kind: &Type, order: &EntryOrder) -> Result<(Column, Option<(i64, i64)>)> {
        arrange_parallel(self, kind, order, &serially)
    }
}

/// Makes a compact column of a vector's values in entry order, with their range, on all workers.
pub(crate) fn arrange_parallel(
    vector: &Vector,
    kind: &Type,
    order: &EntryOrder,
    parallel: ParallelTasks<'_>,
) -> Result<(Column, Option<(i64, i64)>)> {
    let validity = vector.valid.as_ref().map(|valid| {
        let mut bits = BitmapBuilder::with_capacity(order.entries());
        order.rows().iter().for_each(|row| bits.push(row.is_none_or(|row| valid[row as usize] != 0)));
        bits.finish()
    });
    Ok(match &vector.values {
        Values::Int(values) => {
            let range = range_of(values.iter().copied(), vector);
            let base = range.map_or(0, |r| r.0);
            let span = range.map_or(0, |r| r.1.wrapping_sub(r.0) as u64);
            let codes = place(order, Codes::width_for(span), parallel, |row| values[row].wrapping_sub(base) as u64)?;
            (Column::from_offsets(kind.clone(), base, codes, validity), range)
        }
        Values::Boolean(values) => {
            let codes = place(order, 1, parallel, |row| values[row].into())?;
            (Column::from_offsets(kind.clone(), 0, codes, validity), Some((0, 1)))
        }
        Values::Code { codes, dictionary } => {
            let range = range_of(codes.iter().map(|c| i64::from(*c)), vector);
            let width = Codes::width_for(range.map_or(0, |r| r.1 as u64)).min(4);
            let codes = place(order, width, parallel, |row| codes[row].into())?;
            (Column::from_codes(kind.clone(), codes, dictionary.clone(), validity), range)
        }
        Values::Wide(values) => {
            (Column::from_i128(kind.clone(), order.arrange(parallel, |row| values[row])?, validity), None)
        }
        Values::Float(values) if *kind == Type::Float32 => {
            (Column::from_f32(order.arrange(parallel, |row| values[row] as f32)?, validity), None)
        }
        Values::Float(values) => (Column::from_f64(order.arrange(parallel, |row| values[row])?, validity), None),
        Values::Bytes(values) => {
            let mut offsets = AlignedVec::<u64>::with_capacity(order.entries() + 1);
            let rows = order.rows();
            let text = |row: Option<u32>| row.map_or(&[][..], |row| values.get(row as usize));
            let mut end = 0;
            offsets.push(0);
            for row in &rows {
                end += text(*row).len() as u64;
                offsets.push(end);
            }
            let mut bytes = AlignedVec::<u8>::zeroed(end as usize);
            let lengths = pieces(rows.len()).map(|piece| (offsets[piece.end] - offsets[piece.start]) as usize);
            let slices = cut(bytes.as_mut_slice(), lengths).into_iter().zip(rows.chunks(PIECE)).collect();
            each(parallel, slices, |_, (out, rows): (&mut [u8], &[Option<u32>])| {
                let mut at = 0;
                for text in rows.iter().map(|row| text(*row)) {
                    out[at..at + text.len()].copy_from_slice(text);
                    at += text.len();
                }
            })?;
            (Column::from_bytes(kind.clone(), offsets.into(), bytes.into(), validity), None)
        }
    })
}

fn range_of(values: impl Iterator<Item = i64>, vector: &Vector) -> Option<(i64, i64)> {
    let fold = |range: Option<(i64, i64)>, v: i64| Some(range.map_or((v, v), |(l, h)| (l.min(v), h.max(v))));
    match &vector.valid {
        None => values.fold(None, fold),
        Some(valid) => values.zip(valid).filter(|(_, valid)| **valid != 0).map(|(v, _)| v).fold(None, fold),
    }
}

/// Writes codes of the given width in entry order; codes of null rows that do not fit are cut to the width.
fn place(
    order: &EntryOrder,
    width: usize,
    parallel: ParallelTasks<'_>,
    code: impl Fn(usize) -> u64 + Sync,
) -> Result<Codes> {
    fn write<T: Code>(
        order: &EntryOrder,
        parallel: ParallelTasks<'_>,
        code: impl Fn(usize) -> u64 + Sync,
    ) -> Result<Codes> {
        Ok(T::codes(Buffer::from(order.arrange(parallel, |row| T::truncate(code(row)))?)))
    }
    match width {
        1 => write::<u8>(order, parallel, code),
        2 => write::<u16>(order, parallel, code),
        4 => write::<u32>(order, parallel, code),
        _ => write::<u64>(order, parallel, code),
    }
}

/// Turns validity bytes into a bitmap; `None` if all are valid.
pub(crate) fn validity(valid: Option<&Vec<u8>>) -> Option<Bitmap> {
    let valid = valid.filter(|valid| valid.contains(&0))?;
    Some(valid.iter().map(|v| *v != 0).collect())
}
