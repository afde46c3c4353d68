//! One column of one row group, from file to resident column.

use std::{fs::File, sync::Arc};

use tandem_column::{AlignedVec, Code, Codes, Column, Error, MemoryBudget, Reservation, Result, Type};

use super::{
    Bounds, ParquetFile, Problem, bounds, fallback, fixed,
    footer::Storage,
    number::{Booleans, Doubles, Integers, Physical, Singles, Wide},
    page::{Extent, Pages, Scratch},
    text,
    validity::Validity,
};
use crate::{assemble::SPLIT_ROWS, file};

/// What one worker keeps from chunk to chunk: buffers and decompressors.
pub(crate) struct DecodeBuffers {
    scratch: Scratch,
}

impl DecodeBuffers {
    /// Makes one whose buffers count against `memory`.
    pub(crate) fn new(memory: &Arc<MemoryBudget>) -> DecodeBuffers {
        DecodeBuffers { scratch: Scratch::new(memory) }
    }
}

/// Decodes a column of a row group. `range` is where statistics say that its integers lie. Memory is taken from `held` before
/// it is allocated, by what the pages have, not by what the footer says.
pub(crate) fn decode(
    parquet: &ParquetFile,
    file: &File,
    group: usize,
    column: usize,
    range: Option<(i64, i64)>,
    worker: &mut DecodeBuffers,
    held: &mut Reservation,
) -> Result<Column> {
    let field = &parquet.fields[column];
    // Where not all row groups have statistics, this one may.
    let range = range.or_else(|| match bounds(parquet, group, column) {
        Bounds::Int(low, high) => Some((low, high)),
        _ => None,
    });
    let done = chunk(parquet, file, group, column, range, worker, held);
    let done = match (done, range) {
        (Err(Problem::Misfit), Some(_)) => chunk(parquet, file, group, column, None, worker, held),
        (done, _) => done,
    };
    let done = match done {
        Err(Problem::Unsupported | Problem::Misfit) => fallback::decode(parquet, group, column, held),
        done => done,
    };
    match done {
        Ok(column) if column.rows == parquet.group_rows(group) && column.blocks.is_empty() => Ok(column.with_blocks()),
        Ok(column) if column.rows == parquet.group_rows(group) => Ok(column),
        Ok(column) => Err(format!("{} of {} rows", column.rows, parquet.group_rows(group))),
        Err(Problem::Damaged(detail)) => Err(detail),
        Err(Problem::Io(error)) => return Err(file::unreadable(&parquet.path, &error)),
        Err(Problem::Exhausted(error)) => return Err(error),
        Err(Problem::Unsupported | Problem::Misfit) => {
            let (path, name) = (parquet.path.display(), &field.name);
            return Err(Error::unsupported(format!("cannot read column {name} of {path}: type {}", field.kind)));
        }
    }
    .map_err(|detail| file::damaged(&parquet.path, &format!("row group {group}, column {}: {detail}", field.name)))
}

fn chunk(
    parquet: &ParquetFile,
    file: &File,
    group: usize,
    column: usize,
    range: Option<(i64, i64)>,
    worker: &mut DecodeBuffers,
    held: &mut Reservation,
) -> Result<Column, Problem> {
    let leaf = &parquet.leaves[column];
    let kind = &parquet.fields[column].kind;
    let rows = parquet.group_rows(group);
    if leaf.storage == Storage::Arrow {
        return Err(Problem::Unsupported);
    }
    let chunk = parquet.metadata.row_group(group).column(leaf.index);
    let (start, length) = chunk.byte_range();
    let extent = Extent { start, length, compression: chunk.compression(), optional: leaf.optional };
    let pages = &mut Pages::new(file, extent, &mut worker.scratch);
    // Large row groups are cut into parts afterwards, which takes as much again.
    let copies = if rows > SPLIT_ROWS { 2 } else { 1 };
    let mut reserve = |width: usize| held.resize(rows.saturating_mul(width * copies).saturating_add(rows / 8));
    match leaf.storage {
        Storage::Arrow => Err(Problem::Unsupported),
        Storage::Boolean => {
            reserve(size_of::<u8>())?;
            let (values, validity) = fixed::decode(pages, &mut Booleans, rows)?;
            Ok(Column::from_offsets(Type::Boolean, 0, Codes::U8(values.into_buffer()), validity.finish()))
        }
        Storage::Integer(physical) => integers(pages, kind, physical, rows, range, &mut reserve),
        Storage::Wide(physical) => {
            reserve(size_of::<i128>())?;
            let (values, validity) = fixed::decode(pages, &mut Wide(physical), rows)?;
            Ok(Column::from_i128(kind.clone(), values, validity.finish()))
        }
        Storage::Float32 => {
            reserve(size_of::<f32>())?;
            let (values, validity) = fixed::decode(pages, &mut Singles, rows)?;
            Ok(Column::from_f32(values, validity.finish()))
        }
        Storage::Float64 => {
            reserve(size_of::<f64>())?;
            let (values, validity) = fixed::decode(pages, &mut Doubles, rows)?;
            Ok(Column::from_f64(values, validity.finish()))
        }
        Storage::Bytes(lengths) => text::decode(pages, kind, lengths, rows, copies, held),
    }
}

fn integers(
    pages: &mut Pages<'_>,
    kind: &Type,
    physical: Physical,
    rows: usize,
    range: Option<(i64, i64)>,
    reserve: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Column, Problem> {
    // Without a range the values are compacted when all are there: at worst both forms have eight bytes each.
    reserve(range.map_or(2 * size_of::<u64>(), |(low, high)| Codes::width_for(high.wrapping_sub(low) as u64)))?;
    let column = match range.map(|(low, high)| (low, high.wrapping_sub(low) as u64)) {
        Some((base, span)) => match Codes::width_for(span) {
            1 => offsets::<u8>(pages, kind, physical, rows, base, span),
            2 => offsets::<u16>(pages, kind, physical, rows, base, span),
            4 => offsets::<u32>(pages, kind, physical, rows, base, span),
            _ => offsets::<u64>(pages, kind, physical, rows, base, span),
        },
        None => offsets::<u64>(pages, kind, physical, rows, 0, u64::MAX).map(|column| column.compact().with_blocks()),
    }?;
    // Narrow integers are stored in 32 bits: what does not fit them is for the Arrow reader to judge.
    let within = |&(low, high): &(i64, i64)| {
        kind.integer_range().is_none_or(|(least, most)| least <= low.into() && most >= high.into())
    };
    match column.blocks.iter().filter_map(|block| block.range.as_ref()).all(within) {
        true => Ok(column),
        false => Err(Problem::Unsupported),
    }
}

fn offsets<C: Code>(
    pages: &mut Pages<'_>,
    kind: &Type,
    physical: Physical,
    rows: usize,
    base: i64,
    span: u64,
) -> Result<Column, Problem> {
    let (codes, validity): (AlignedVec<C>, Validity) =
        fixed::decode(pages, &mut Integers::<C>::new(physical, base, span), rows)?;
    Ok(Column::from_offsets(kind.clone(), base, C::codes(codes.into_buffer()), validity.finish()).with_blocks())
}
