//! Arrow arrays into columns.
//!
//! One entry, [`encode`], takes the chunks of one column, of one or several batches, and writes them once into their
//! narrowest encoding: integers in two passes (range, then offsets), text by [`crate::text`].

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit as Unit};

use crate::blocks::{masked_span, span};
use crate::compact::CodeFrame;
use crate::construct::zero_nulls;
use crate::{
    AlignedVec, Bitmap, BitmapBuilder, Buffer, Code, Codes, Column, Data, Error, Plain, Repr, Result, Type, text,
};

/// Milliseconds of a day, for Arrow's Date64.
const DAY_MILLISECONDS: i64 = 86_400_000;

impl Column {
    /// Encodes an Arrow array of any type that becomes `kind`: integers narrowest, Arrow dictionaries as dictionaries,
    /// other text plain; with block statistics.
    ///
    /// # Errors
    /// If the array's type is not supported, or a value does not fit `kind`.
    pub fn from_arrow(array: &dyn Array, kind: &Type) -> Result<Column> {
        encode(kind, &[array], false)
    }
}

/// Encodes the chunks of one column, in order; with block statistics. `intern` tries a dictionary for plain text.
pub(crate) fn encode(kind: &Type, chunks: &[&dyn Array], intern: bool) -> Result<Column> {
    if matches!(kind.repr(), Repr::Other) {
        return Err(Error::unsupported(format!("no column holds the type {kind}")));
    }
    let rows = chunks.iter().map(|chunk| chunk.len()).sum();
    let casts = normalise(kind, chunks)?;
    let chunks: Vec<&dyn Array> =
        chunks.iter().zip(&casts).map(|(&chunk, cast)| cast.as_deref().unwrap_or(chunk)).collect();
    let validity = validity(&chunks, rows);
    if *kind == Type::Null || rows == 0 {
        return Ok(empty_or_null(kind, rows));
    }
    let column = match kind.repr() {
        Repr::Boolean => booleans(&chunks, rows, validity),
        Repr::Int => integers(kind, &chunks, rows, validity)?,
        Repr::Wide => wides(kind, &chunks, rows, validity)?,
        Repr::Float => floats(kind, &chunks, rows, validity),
        Repr::Bytes => text::encode(kind, &chunks, rows, validity, intern)?,
        Repr::Other => unreachable!("refused above"),
    };
    Ok(column.with_blocks())
}

/// A column of no rows, or of nulls only.
fn empty_or_null(kind: &Type, rows: usize) -> Column {
    match (rows, kind.repr()) {
        (0, Repr::Bytes) => Column::from_bytes(kind.clone(), Buffer::default(), Buffer::default(), None),
        _ => Column::nulls(kind.clone(), rows).with_blocks(),
    }
}

/// Casts the chunks that are not yet of one Arrow type that becomes `kind`; text may stay of different Arrow types.
fn normalise(kind: &Type, chunks: &[&dyn Array]) -> Result<Vec<Option<ArrayRef>>> {
    let first = chunks.first().map(|chunk| chunk.data_type());
    let is_text = |of: &DataType| match of {
        DataType::Dictionary(_, values) => text::is_text(values),
        other => text::is_text(other),
    };
    let fits = |of: &DataType| match kind.repr() {
        Repr::Bytes => is_text(of) && Type::from_arrow(of).is_ok_and(|found| found == *kind),
        _ if matches!(of, DataType::Dictionary(..) | DataType::RunEndEncoded(..)) => false,
        _ => Type::from_arrow(of).is_ok_and(|found| found == *kind),
    };
    let target = first.filter(|of| fits(of)).cloned().unwrap_or_else(|| kind.to_arrow());
    chunks
        .iter()
        .map(|&chunk| {
            let of = chunk.data_type();
            if *of == target || *of == DataType::Null && *kind == Type::Null || kind.repr() == Repr::Bytes && fits(of) {
                return Ok(None);
            }
            let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
            let cast = arrow_cast::cast_with_options(chunk, &target, &options)
                .map_err(|_| Error::input(format!("values of type {of} do not fit a column of type {kind}")))?;
            Ok(Some(cast))
        })
        .collect()
}

/// Collects validity over all chunks, including nulls that stand in a dictionary's values.
fn validity(chunks: &[&dyn Array], rows: usize) -> Option<Bitmap> {
    let nulls: Vec<_> = chunks.iter().map(|chunk| chunk.logical_nulls()).collect();
    if nulls.iter().all(|nulls| nulls.as_ref().is_none_or(|nulls| nulls.null_count() == 0)) {
        return None;
    }
    let mut builder = BitmapBuilder::with_capacity(rows);
    for (chunk, nulls) in chunks.iter().zip(&nulls) {
        match nulls {
            Some(nulls) => builder.extend(&Bitmap::from_arrow(nulls.inner()), 0..chunk.len()),
            None => builder.push_many(true, chunk.len()),
        }
    }
    Some(builder.finish())
}

fn booleans(chunks: &[&dyn Array], rows: usize, validity: Option<Bitmap>) -> Column {
    let mut values = AlignedVec::<u8>::with_capacity(rows);
    for chunk in chunks {
        values.extend(chunk.as_boolean().values().iter().map(u8::from));
    }
    zero_nulls(values.as_mut_slice(), validity.as_ref());
    Column::from_offsets(Type::Boolean, 0, Codes::U8(values.into_buffer()), validity)
}

fn integers(kind: &Type, chunks: &[&dyn Array], rows: usize, validity: Option<Bitmap>) -> Result<Column> {
    macro_rules! plain {
        ($($arrow:ty),*) => { ints::<$($arrow)*>(kind, chunks, rows, validity, |value| value.into()) };
    }
    let of = chunks[0].data_type();
    Ok(match of {
        DataType::Int8 => plain!(Int8Type),
        DataType::Int16 => plain!(Int16Type),
        DataType::Int32 => plain!(Int32Type),
        DataType::Int64 => plain!(Int64Type),
        DataType::UInt8 => plain!(UInt8Type),
        DataType::UInt16 => plain!(UInt16Type),
        DataType::UInt32 => plain!(UInt32Type),
        DataType::Date32 => plain!(Date32Type),
        DataType::Date64 => {
            ints::<Date64Type>(kind, chunks, rows, validity, |value| value.div_euclid(DAY_MILLISECONDS))
        }
        DataType::Time32(Unit::Second) => plain!(Time32SecondType),
        DataType::Time32(_) => plain!(Time32MillisecondType),
        DataType::Time64(Unit::Microsecond) => plain!(Time64MicrosecondType),
        DataType::Time64(_) => plain!(Time64NanosecondType),
        DataType::Timestamp(Unit::Second, _) => plain!(TimestampSecondType),
        DataType::Timestamp(Unit::Millisecond, _) => plain!(TimestampMillisecondType),
        DataType::Timestamp(Unit::Microsecond, _) => plain!(TimestampMicrosecondType),
        DataType::Timestamp(Unit::Nanosecond, _) => plain!(TimestampNanosecondType),
        DataType::Decimal32(..) => plain!(Decimal32Type),
        DataType::Decimal64(..) => plain!(Decimal64Type),
        DataType::Decimal128(..) => {
            fit::<Decimal128Type>(kind, chunks, |value| i64::try_from(value).is_ok())?;
            ints::<Decimal128Type>(kind, chunks, rows, validity, |value| value as i64)
        }
        DataType::Decimal256(..) => {
            fit::<Decimal256Type>(kind, chunks, |value| value.to_i128().is_some_and(|v| i64::try_from(v).is_ok()))?;
            ints::<Decimal256Type>(kind, chunks, rows, validity, |value| value.as_i128() as i64)
        }
        other => return Err(Error::internal(format!("no integers in an array of type {other}"))),
    })
}

/// Checks that every non-null value fits.
fn fit<P: ArrowPrimitiveType>(kind: &Type, chunks: &[&dyn Array], fits: impl Fn(P::Native) -> bool) -> Result<()> {
    for chunk in chunks {
        if let Some(value) = chunk.as_primitive::<P>().iter().flatten().find(|value| !fits(*value)) {
            return Err(Error::input(format!("a value does not fit a column of type {kind}: {value:?}")));
        }
    }
    Ok(())
}

/// Writes integers as offsets from their smallest.
fn ints<P: ArrowPrimitiveType>(
    kind: &Type,
    chunks: &[&dyn Array],
    rows: usize,
    validity: Option<Bitmap>,
    convert: impl Fn(P::Native) -> i64 + Copy,
) -> Column {
    let range = chunks.iter().filter_map(|chunk| match chunk.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => span(chunk.as_primitive::<P>().values(), convert),
        Some(nulls) => {
            let valid = Bitmap::from_arrow(nulls.inner());
            masked_span(chunk.as_primitive::<P>().values(), valid.words(), convert)
        }
    });
    let frame = CodeFrame::of(range.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
    fn write<P: ArrowPrimitiveType, T: Code>(
        chunks: &[&dyn Array],
        rows: usize,
        base: i64,
        validity: Option<&Bitmap>,
        convert: impl Fn(P::Native) -> i64,
    ) -> Codes {
        let mut codes = AlignedVec::<T>::zeroed(rows);
        let mut rest = codes.as_mut_slice();
        for chunk in chunks {
            let (here, behind) = rest.split_at_mut(chunk.len());
            for (code, &value) in here.iter_mut().zip(chunk.as_primitive::<P>().values().iter()) {
                *code = T::truncate(convert(value).wrapping_sub(base) as u64);
            }
            rest = behind;
        }
        zero_nulls(codes.as_mut_slice(), validity);
        T::codes(codes.into_buffer())
    }
    let valid = validity.as_ref();
    let codes = match frame.width {
        1 => write::<P, u8>(chunks, rows, frame.base, valid, convert),
        2 => write::<P, u16>(chunks, rows, frame.base, valid, convert),
        4 => write::<P, u32>(chunks, rows, frame.base, valid, convert),
        _ => write::<P, u64>(chunks, rows, frame.base, valid, convert),
    };
    Column::from_offsets(kind.clone(), frame.base, codes, validity)
}

fn wides(kind: &Type, chunks: &[&dyn Array], rows: usize, validity: Option<Bitmap>) -> Result<Column> {
    let mut values = AlignedVec::<i128>::with_capacity(rows);
    for chunk in chunks {
        match chunk.data_type() {
            DataType::UInt64 => values.extend(chunk.as_primitive::<UInt64Type>().values().iter().map(|&v| v.into())),
            DataType::Decimal128(..) => values.extend_from_slice(chunk.as_primitive::<Decimal128Type>().values()),
            DataType::Decimal256(..) => {
                fit::<Decimal256Type>(kind, &[*chunk], |value| value.to_i128().is_some())?;
                values.extend(chunk.as_primitive::<Decimal256Type>().values().iter().map(|value| value.as_i128()));
            }
            other => return Err(Error::internal(format!("no 128-bit integers in an array of type {other}"))),
        }
    }
    Ok(Column::from_i128(kind.clone(), values, validity))
}

fn floats(kind: &Type, chunks: &[&dyn Array], rows: usize, validity: Option<Bitmap>) -> Column {
    fn collect<P: ArrowPrimitiveType, T: Plain>(
        chunks: &[&dyn Array],
        rows: usize,
        validity: Option<&Bitmap>,
        convert: impl Fn(P::Native) -> T,
    ) -> Buffer<T> {
        let mut values = AlignedVec::<T>::zeroed(rows);
        let mut rest = values.as_mut_slice();
        for chunk in chunks {
            let (here, behind) = rest.split_at_mut(chunk.len());
            for (slot, &value) in here.iter_mut().zip(chunk.as_primitive::<P>().values().iter()) {
                *slot = convert(value);
            }
            rest = behind;
        }
        zero_nulls(values.as_mut_slice(), validity);
        values.into_buffer()
    }
    let valid = validity.as_ref();
    let data = match chunks[0].data_type() {
        DataType::Float64 => Data::Float64(collect::<Float64Type, _>(chunks, rows, valid, |value| value)),
        DataType::Float32 => Data::Float32(collect::<Float32Type, _>(chunks, rows, valid, |value| value)),
        _ => Data::Float32(collect::<Float16Type, _>(chunks, rows, valid, |value| value.to_f32())),
    };
    Column::new(kind.clone(), rows, data, validity)
}
