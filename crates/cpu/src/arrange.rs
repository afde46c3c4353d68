//! Values in the order of a build's entries, as compact columns.

use tandem_column::{AlignedVec, Bitmap, BitmapBuilder, Buffer, Code, Codes, Column, Plain, Type};

use crate::{Values, Vector};

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
    fn arrange<T: Plain>(&self, value: impl Fn(usize) -> T) -> AlignedVec<T> {
        match self {
            EntryOrder::Each(rows) => rows.iter().map(|row| value(*row as usize)).collect(),
            EntryOrder::Some { rows, places, entries } => {
                // Fresh zeroed memory costs nothing for the places that stay empty.
                let mut out = AlignedVec::zeroed(*entries);
                let slots = out.as_mut_slice();
                rows.iter().zip(places).for_each(|(row, place)| slots[*place as usize] = value(*row as usize));
                out
            }
        }
    }

    /// Returns the row of each entry, `None` where it holds none.
    fn rows(&self) -> Vec<Option<u32>> {
        match self {
            EntryOrder::Each(rows) => rows.iter().copied().map(Some).collect(),
            EntryOrder::Some { rows, places, entries } => {
                let mut out = vec![None; *entries];
                rows.iter().zip(places).for_each(|(row, place)| out[*place as usize] = Some(*row));
                out
            }
        }
    }
}

/// Makes a compact column of a vector's values in entry order, with their range.
pub fn arrange(vector: &Vector, kind: &Type, order: &EntryOrder) -> (Column, Option<(i64, i64)>) {
    let validity = vector.valid.as_ref().map(|valid| {
        let mut bits = BitmapBuilder::with_capacity(order.entries());
        order.rows().iter().for_each(|row| bits.push(row.is_none_or(|row| valid[row as usize] != 0)));
        bits.finish()
    });
    match &vector.values {
        Values::Int(values) => {
            let range = range_of(values.iter().copied(), vector);
            let base = range.map_or(0, |r| r.0);
            let span = range.map_or(0, |r| r.1.wrapping_sub(r.0) as u64);
            let codes = place(order, Codes::width_for(span), |row| values[row].wrapping_sub(base) as u64);
            (Column::from_offsets(kind.clone(), base, codes, validity), range)
        }
        Values::Boolean(values) => {
            let codes = place(order, 1, |row| values[row].into());
            (Column::from_offsets(kind.clone(), 0, codes, validity), Some((0, 1)))
        }
        Values::Code { codes, dictionary } => {
            let range = range_of(codes.iter().map(|c| i64::from(*c)), vector);
            let width = Codes::width_for(range.map_or(0, |r| r.1 as u64)).min(4);
            let codes = place(order, width, |row| codes[row].into());
            (Column::from_codes(kind.clone(), codes, dictionary.clone(), validity), range)
        }
        Values::Wide(values) => (Column::from_i128(kind.clone(), order.arrange(|row| values[row]), validity), None),
        Values::Float(values) if *kind == Type::Float32 => {
            (Column::from_f32(order.arrange(|row| values[row] as f32), validity), None)
        }
        Values::Float(values) => (Column::from_f64(order.arrange(|row| values[row]), validity), None),
        Values::Bytes(values) => {
            let mut offsets = AlignedVec::<u64>::with_capacity(order.entries() + 1);
            let mut bytes = AlignedVec::<u8>::new();
            offsets.push(0);
            for row in order.rows() {
                if let Some(row) = row {
                    bytes.extend_from_slice(values.get(row as usize));
                }
                offsets.push(bytes.len() as u64);
            }
            (Column::from_bytes(kind.clone(), offsets.into(), bytes.into(), validity), None)
        }
    }
}

fn range_of(values: impl Iterator<Item = i64>, vector: &Vector) -> Option<(i64, i64)> {
    let fold = |range: Option<(i64, i64)>, v: i64| Some(range.map_or((v, v), |(l, h)| (l.min(v), h.max(v))));
    match &vector.valid {
        None => values.fold(None, fold),
        Some(valid) => values.zip(valid).filter(|(_, valid)| **valid != 0).map(|(v, _)| v).fold(None, fold),
    }
}

/// Writes codes of the given width in entry order; codes of null rows that do not fit are cut to the width.
fn place(order: &EntryOrder, width: usize, code: impl Fn(usize) -> u64) -> Codes {
    fn write<T: Code>(order: &EntryOrder, code: impl Fn(usize) -> u64) -> Codes {
        T::codes(Buffer::from(order.arrange(|row| T::truncate(code(row)))))
    }
    match width {
        1 => write::<u8>(order, code),
        2 => write::<u16>(order, code),
        4 => write::<u32>(order, code),
        _ => write::<u64>(order, code),
    }
}

/// Turns validity bytes into a bitmap; `None` if all are valid.
pub(crate) fn validity(valid: Option<&Vec<u8>>) -> Option<Bitmap> {
    let valid = valid.filter(|valid| valid.contains(&0))?;
    Some(valid.iter().map(|v| *v != 0).collect())
}
