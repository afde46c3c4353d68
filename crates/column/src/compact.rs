//! Narrowing and joining: the frame of reference of a column, or of several together.

use crate::{
    AlignedVec, Bitmap, BitmapBuilder, Buffer, Code, Codes, Column, Data, Dictionary, Error, Plain, Repr, Result,
    with_codes,
};
use std::sync::Arc;

/// What an integer column is stored as: offsets of `width` bytes from `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeFrame {
    pub base: i64,
    pub width: usize,
}

impl CodeFrame {
    /// Returns the narrowest frame of a range of values; 64-bit values stay as they are, from base 0.
    pub fn of(range: Option<(i64, i64)>) -> CodeFrame {
        let (low, high) = range.unwrap_or((0, 0));
        match Codes::width_for(high.wrapping_sub(low) as u64) {
            8 => CodeFrame { base: 0, width: 8 },
            width => CodeFrame { base: low, width },
        }
    }

    /// Returns the frame that a column is in, if it is of integers.
    pub fn current(column: &Column) -> Option<CodeFrame> {
        match &column.data {
            Data::Int { base, codes } => Some(CodeFrame { base: *base, width: codes.width() }),
            _ => None,
        }
    }
}

impl Column {
    /// Returns the column with integers in the narrowest frame of reference, and with block statistics.
    pub fn compact(&self) -> Column {
        let column = self.clone().with_blocks();
        match column.kind.repr() {
            Repr::Int => column.reframe(CodeFrame::of(column.range())),
            _ => column,
        }
    }

    /// Returns an integer column in another frame, which must hold every value.
    pub(crate) fn reframe(&self, frame: CodeFrame) -> Column {
        let Data::Int { base, codes } = &self.data else { return self.clone() };
        if (CodeFrame { base: *base, width: codes.width() }) == frame {
            return self.clone();
        }
        let shift = base.wrapping_sub(frame.base) as u64;
        let moved = with_codes!(codes, codes => {
            let values = codes.iter().map(|&code| code.widen().wrapping_add(shift));
            Codes::collect(frame.width, codes.len(), values)
        });
        let data = Data::Int { base: frame.base, codes: moved.masked(self.validity.as_ref()) };
        Column { data, ..self.clone() }
    }

    /// Returns a dictionary column with new codes into another dictionary; block ranges follow the codes.
    pub(crate) fn recode(&self, remap: &[u32], dictionary: &Arc<Dictionary>) -> Column {
        let Data::Dictionary { codes, .. } = &self.data else { return self.clone() };
        let width = Codes::width_for(dictionary.len().saturating_sub(1) as u64);
        let identity = remap.iter().enumerate().all(|(old, new)| old == *new as usize);
        let codes = match identity || self.null_count() == self.rows {
            true => codes.with_width(width),
            false => codes.remap(remap).masked(self.validity.as_ref()).with_width(width),
        };
        let map = |code: i64| i64::from(remap[code as usize]);
        let mut column = self.clone();
        column.blocks.iter_mut().for_each(|block| block.range = block.range.map(|(a, b)| (map(a), map(b))));
        column.data = Data::Dictionary { codes, dictionary: dictionary.clone() };
        column
    }

    /// Returns how many bytes a dictionary column takes as plain strings; 0 for other columns.
    pub fn decoded_bytes(&self) -> usize {
        let Data::Dictionary { codes, dictionary } = &self.data else { return 0 };
        let lengths: Vec<usize> = dictionary.iter().map(<[u8]>::len).collect();
        let length = |(row, code): (usize, u64)| if self.is_valid(row) { lengths[code as usize] } else { 0 };
        codes.iter().enumerate().map(length).sum::<usize>() + (self.rows + 1) * size_of::<u64>()
    }

    /// Returns a dictionary column as plain strings.
    pub fn decode(&self) -> Column {
        let Data::Dictionary { codes, dictionary } = &self.data else { return self.clone() };
        let mut offsets = AlignedVec::with_capacity(self.rows + 1);
        let mut end = 0;
        offsets.push(0);
        let lengths: Vec<u64> = dictionary.iter().map(|value| value.len() as u64).collect();
        for i in 0..self.rows {
            end += if self.is_valid(i) { lengths[codes.get(i) as usize] } else { 0 };
            offsets.push(end);
        }
        let mut bytes = AlignedVec::with_capacity(end as usize);
        for i in 0..self.rows {
            bytes.extend_from_slice(self.bytes_at(i));
        }
        let (offsets, bytes) = (offsets.into_buffer(), bytes.into_buffer());
        let mut column = Column::from_bytes(self.kind.clone(), offsets, bytes, self.validity.clone());
        column.blocks = self.blocks.clone();
        column.blocks.iter_mut().for_each(|block| block.range = None);
        column
    }

    /// Joins columns of one type into one, in order; with block statistics if all have them.
    ///
    /// # Errors
    /// If there is no column, if their types differ, or if a merged dictionary exceeds 2 GiB.
    pub fn concat(columns: &[&Column]) -> Result<Column> {
        let [first, rest @ ..] = columns else { return Err(Error::internal("no column to join")) };
        if rest.is_empty() {
            return Ok((*first).clone());
        }
        if let Some(other) = rest.iter().find(|column| column.kind != first.kind) {
            return Err(Error::internal(format!("columns to join are of {} and {}", first.kind, other.kind)));
        }
        let rows = columns.iter().map(|column| column.rows).sum();
        let data = match &first.data {
            Data::Int { .. } => join_ints(columns)?,
            Data::Wide(_) => Data::Wide(join(columns, |data| match data {
                Data::Wide(values) => Some(values),
                _ => None,
            })?),
            Data::Float32(_) => Data::Float32(join(columns, |data| match data {
                Data::Float32(values) => Some(values),
                _ => None,
            })?),
            Data::Float64(_) => Data::Float64(join(columns, |data| match data {
                Data::Float64(values) => Some(values),
                _ => None,
            })?),
            Data::Dictionary { .. } | Data::Bytes { .. } => join_bytes(columns)?,
            Data::Remote(_) => return Err(Error::internal("columns on a device are joined there")),
        };
        let column = Column::new(first.kind.clone(), rows, data, join_validity(columns));
        let known = columns.iter().all(|column| !column.blocks.is_empty());
        Ok(if known { column.with_blocks() } else { column })
    }
}

fn join_validity(columns: &[&Column]) -> Option<Bitmap> {
    columns.iter().any(|column| column.validity.is_some()).then(|| {
        let mut builder = BitmapBuilder::new();
        for column in columns {
            match &column.validity {
                Some(validity) => builder.extend(validity, 0..column.rows),
                None => builder.push_many(true, column.rows),
            }
        }
        builder.finish()
    })
}

fn join<'a, T: Plain>(columns: &[&'a Column], values: impl Fn(&'a Data) -> Option<&'a Buffer<T>>) -> Result<Buffer<T>> {
    let mut joined = AlignedVec::with_capacity(columns.iter().map(|column| column.rows).sum());
    for column in columns {
        let mismatch = || Error::internal(format!("columns of {} are encoded differently", column.kind));
        joined.extend_from_slice(values(&column.data).ok_or_else(mismatch)?);
    }
    Ok(joined.into_buffer())
}

/// Joins the codes of several columns, all in one width that holds them.
fn join_codes(width: usize, rows: usize, columns: &[Column]) -> Codes {
    fn fill<T: Code>(rows: usize, columns: &[Column]) -> Codes {
        let mut joined = AlignedVec::<T>::zeroed(rows);
        let mut rest = joined.as_mut_slice();
        for (_, codes) in columns.iter().filter_map(Column::codes) {
            let (here, behind) = rest.split_at_mut(codes.len());
            with_codes!(codes, codes => here.iter_mut().zip(codes).for_each(|(slot, code)| *slot = T::truncate(code.widen())));
            rest = behind;
        }
        T::codes(joined.into_buffer())
    }
    match width {
        1 => fill::<u8>(rows, columns),
        2 => fill::<u16>(rows, columns),
        4 => fill::<u32>(rows, columns),
        _ => fill::<u64>(rows, columns),
    }
}

fn join_ints(columns: &[&Column]) -> Result<Data> {
    let rows = columns.iter().map(|column| column.rows).sum();
    let frames: Vec<CodeFrame> = columns.iter().filter_map(|column| CodeFrame::current(column)).collect();
    if frames.len() < columns.len() {
        return Err(Error::internal("integer columns to join are encoded differently"));
    }
    let frame = match frames.iter().all(|frame| *frame == frames[0]) {
        true => frames[0],
        false => {
            let ranges = columns.iter().filter_map(|column| (*column).clone().with_blocks().range());
            CodeFrame::of(ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))))
        }
    };
    let parts: Vec<Column> = columns.iter().map(|column| column.reframe(frame)).collect();
    let codes = join_codes(frame.width, rows, &parts);
    Ok(Data::Int { base: frame.base, codes })
}

fn join_bytes(columns: &[&Column]) -> Result<Data> {
    let rows: usize = columns.iter().map(|column| column.rows).sum();
    let dictionaries: Vec<&Arc<Dictionary>> = columns.iter().filter_map(|column| column.dictionary()).collect();
    if dictionaries.len() == columns.len() {
        let (dictionary, parts) = if dictionaries.iter().all(|other| Arc::ptr_eq(other, dictionaries[0])) {
            (dictionaries[0].clone(), columns.iter().map(|column| (*column).clone()).collect::<Vec<_>>())
        } else {
            let plain: Vec<&Dictionary> = dictionaries.iter().map(|dictionary| dictionary.as_ref()).collect();
            let (merged, remaps) = Dictionary::merge(&plain)?;
            let merged = Arc::new(merged);
            let parts = columns.iter().zip(&remaps).map(|(column, remap)| column.recode(remap, &merged)).collect();
            (merged, parts)
        };
        let width = parts.iter().map(Column::width).max().unwrap_or(1);
        let codes = join_codes(width, rows, &parts);
        return Ok(Data::Dictionary { codes, dictionary });
    }
    let mut builder = crate::BytesBuilder::with_capacity(rows, 0);
    for column in columns {
        (0..column.rows).for_each(|i| builder.push(Some(column.bytes_at(i))));
    }
    Ok(builder.finish(columns[0].kind.clone()).data)
}
