//! Columns into Arrow arrays, of exactly the type asked for.
//!
//! 64- and 128-bit integers, floats, plain text and the bytes of dictionaries are shared, not copied.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, TimeUnit as Unit};

use crate::{Code, Codes, Column, Data, Dictionary, Error, Plain, Repr, Result, Type, with_codes};

/// Milliseconds of a day, for Arrow's Date64.
const DAY_MILLISECONDS: i64 = 86_400_000;

impl Column {
    /// Gives `range` of the rows as an Arrow array of the column's own Arrow type.
    ///
    /// # Errors
    /// If the type has no Arrow form, or text is too long for 32-bit offsets.
    pub fn to_arrow(&self, range: Range<usize>) -> Result<ArrayRef> {
        self.to_arrow_as(range, &self.kind.to_arrow())
    }

    /// Gives `range` of the rows as an Arrow array of exactly the type asked for.
    ///
    /// # Errors
    /// If the column's type does not become that type, or text is too long for 32-bit offsets.
    ///
    /// # Panics
    /// If `range` is not within the rows.
    pub fn to_arrow_as(&self, range: Range<usize>, kind: &DataType) -> Result<ArrayRef> {
        assert!(range.start <= range.end && range.end <= self.rows, "the rows asked for are in the column");
        let nulls = self.validity.as_ref().and_then(|validity| validity.to_nulls(range.clone()));
        let array = match (self.kind.repr(), kind) {
            _ if self.kind == Type::Null => Some(new_null_array(kind, range.len())),
            (Repr::Boolean, DataType::Boolean) => Some(self.booleans(range.clone(), nulls)),
            (Repr::Int | Repr::Wide, _) if self.is_native(kind) => self.integers(range.clone(), nulls, kind),
            (Repr::Float, DataType::Float32 | DataType::Float64 | DataType::Float16) => {
                self.floats(range.clone(), nulls, kind)
            }
            (Repr::Bytes, _) => self.text(range.clone(), nulls, kind)?,
            _ => None,
        };
        if let Some(array) = array {
            return Ok(array);
        }
        let own = self.kind.to_arrow();
        if *kind == own || self.kind.repr() == Repr::Other {
            return Err(Error::unsupported(format!("a column of type {} has no Arrow form", self.kind)));
        }
        let array = self.to_arrow_as(range, &own)?;
        let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
        arrow_cast::cast_with_options(&array, kind, &options)
            .map_err(|_| Error::input(format!("a column of type {} does not become {kind}", self.kind)))
    }

    /// Tells whether an Arrow type holds the very integers that the column does.
    fn is_native(&self, kind: &DataType) -> bool {
        let plain = !matches!(kind, DataType::Dictionary(..) | DataType::RunEndEncoded(..));
        plain && Type::from_arrow(kind).is_ok_and(|kind| kind == self.kind)
    }

    fn booleans(&self, range: Range<usize>, nulls: Option<NullBuffer>) -> ArrayRef {
        let values = match &self.data {
            Data::Int { base: 0, codes: Codes::U8(codes) } => {
                let codes = &codes[range];
                BooleanBuffer::collect_bool(codes.len(), |i| codes[i] != 0)
            }
            _ => range.map(|i| self.int(i) != 0).collect(),
        };
        Arc::new(BooleanArray::new(values, nulls))
    }

    fn integers(&self, range: Range<usize>, nulls: Option<NullBuffer>, kind: &DataType) -> Option<ArrayRef> {
        macro_rules! narrow {
            ($arrow:ty, $native:ty) => {
                make::<$arrow>(self.converted(range, |value| value as $native), nulls, kind)
            };
        }
        macro_rules! long {
            ($arrow:ty) => {
                make::<$arrow>(self.longs(range), nulls, kind)
            };
        }
        Some(match kind {
            DataType::Int8 => narrow!(Int8Type, i8),
            DataType::Int16 => narrow!(Int16Type, i16),
            DataType::Int32 => narrow!(Int32Type, i32),
            DataType::Int64 => long!(Int64Type),
            DataType::UInt8 => narrow!(UInt8Type, u8),
            DataType::UInt16 => narrow!(UInt16Type, u16),
            DataType::UInt32 => narrow!(UInt32Type, u32),
            DataType::UInt64 => make::<UInt64Type>(self.wides(range, |value| value as u64), nulls, kind),
            DataType::Date32 => narrow!(Date32Type, i32),
            DataType::Date64 => {
                make::<Date64Type>(self.converted(range, |value| value * DAY_MILLISECONDS), nulls, kind)
            }
            DataType::Time32(Unit::Second) => narrow!(Time32SecondType, i32),
            DataType::Time32(_) => narrow!(Time32MillisecondType, i32),
            DataType::Time64(Unit::Microsecond) => long!(Time64MicrosecondType),
            DataType::Time64(_) => long!(Time64NanosecondType),
            DataType::Timestamp(Unit::Second, _) => long!(TimestampSecondType),
            DataType::Timestamp(Unit::Millisecond, _) => long!(TimestampMillisecondType),
            DataType::Timestamp(Unit::Microsecond, _) => long!(TimestampMicrosecondType),
            DataType::Timestamp(Unit::Nanosecond, _) => long!(TimestampNanosecondType),
            DataType::Decimal32(..) => narrow!(Decimal32Type, i32),
            DataType::Decimal64(..) => long!(Decimal64Type),
            DataType::Decimal128(..) => match &self.data {
                Data::Wide(values) => make::<Decimal128Type>(shared(values, range), nulls, kind),
                _ => make::<Decimal128Type>(self.converted(range, i128::from), nulls, kind),
            },
            DataType::Decimal256(..) => make::<Decimal256Type>(self.wides(range, i256::from_i128), nulls, kind),
            _ => return None,
        })
    }

    /// Returns 64-bit integers, shared where they are plain.
    fn longs(&self, range: Range<usize>) -> ScalarBuffer<i64> {
        match &self.data {
            Data::Int { base: 0, codes: Codes::U64(values) } => shared(&values.reinterpret::<i64>(), range),
            _ => self.converted(range, |value| value),
        }
    }

    /// Converts 64-bit integers.
    fn converted<T: Default + arrow_buffer::ArrowNativeType>(
        &self,
        range: Range<usize>,
        convert: impl Fn(i64) -> T,
    ) -> ScalarBuffer<T> {
        match &self.data {
            Data::Int { base, codes } => with_codes!(codes, codes => codes[range]
                .iter()
                .map(|&code| convert(base.wrapping_add(code.widen() as i64)))
                .collect::<Vec<T>>()
                .into()),
            _ => range.map(|i| convert(self.wide(i) as i64)).collect::<Vec<T>>().into(),
        }
    }

    /// Converts integers of up to 128 bits.
    fn wides<T: arrow_buffer::ArrowNativeType>(
        &self,
        range: Range<usize>,
        convert: impl Fn(i128) -> T,
    ) -> ScalarBuffer<T> {
        range.map(|i| convert(self.wide(i))).collect::<Vec<T>>().into()
    }

    fn floats(&self, range: Range<usize>, nulls: Option<NullBuffer>, kind: &DataType) -> Option<ArrayRef> {
        Some(match (&self.data, kind) {
            (Data::Float64(values), DataType::Float64) => make::<Float64Type>(shared(values, range), nulls, kind),
            (Data::Float32(values), DataType::Float32) => make::<Float32Type>(shared(values, range), nulls, kind),
            (Data::Float32(values), DataType::Float16) => {
                let values: Vec<half::f16> = values[range].iter().map(|&value| half::f16::from_f32(value)).collect();
                make::<Float16Type>(values.into(), nulls, kind)
            }
            _ => return None,
        })
    }

    fn text(&self, range: Range<usize>, nulls: Option<NullBuffer>, kind: &DataType) -> Result<Option<ArrayRef>> {
        let own = Type::from_arrow(kind).is_ok_and(|kind| kind == self.kind);
        Ok(Some(match kind {
            DataType::Utf8 if own => Arc::new(checked(GenericStringArray::<i32>::try_new(
                self.offsets32(&range)?,
                self.bytes_of(&range),
                nulls,
            ))?),
            DataType::LargeUtf8 if own => Arc::new(checked(GenericStringArray::<i64>::try_new(
                self.offsets64(&range),
                self.all_bytes(&range),
                nulls,
            ))?),
            DataType::Binary if own => Arc::new(checked(GenericBinaryArray::<i32>::try_new(
                self.offsets32(&range)?,
                self.bytes_of(&range),
                nulls,
            ))?),
            DataType::LargeBinary if own => Arc::new(checked(GenericBinaryArray::<i64>::try_new(
                self.offsets64(&range),
                self.all_bytes(&range),
                nulls,
            ))?),
            DataType::Utf8View if own => {
                let (views, buffers) = self.views(range)?;
                let trusted = matches!(&self.data, Data::Dictionary { dictionary, .. } if dictionary.is_text());
                if trusted {
                    // SAFETY: each view is of a value of the dictionary, which is UTF-8, or empty.
                    Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) })
                } else {
                    Arc::new(checked(StringViewArray::try_new(views, buffers, nulls))?)
                }
            }
            DataType::BinaryView if own => {
                let (views, buffers) = self.views(range)?;
                Arc::new(checked(BinaryViewArray::try_new(views, buffers, nulls))?)
            }
            DataType::Dictionary(key, values) if own => match &self.data {
                Data::Dictionary { codes, dictionary } => {
                    return self.arrow_dictionary(codes, dictionary, range, nulls, key, values);
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Returns where each value of `range` begins in [`Self::bytes_of`].
    fn offsets32(&self, range: &Range<usize>) -> Result<OffsetBuffer<i32>> {
        let mut offsets = Vec::with_capacity(range.len() + 1);
        let mut end = 0;
        offsets.push(0);
        let too_long =
            || Error::exhausted("text of one Arrow batch exceeds 2 GiB; ask for fewer rows or for the type LargeUtf8");
        for i in range.clone() {
            end += self.bytes_at(i).len();
            offsets.push(i32::try_from(end).map_err(|_| too_long())?);
        }
        Ok(OffsetBuffer::new(offsets.into()))
    }

    /// Returns the values of `range` one after the other, shared where they are plain.
    fn bytes_of(&self, range: &Range<usize>) -> arrow_buffer::Buffer {
        match &self.data {
            Data::Bytes { offsets, bytes } => {
                let (start, end) = (offsets[range.start] as usize, offsets[range.end] as usize);
                bytes.to_arrow().slice_with_length(start, end - start)
            }
            _ => {
                let mut all = Vec::with_capacity(range.clone().map(|i| self.bytes_at(i).len()).sum());
                range.clone().for_each(|i| all.extend_from_slice(self.bytes_at(i)));
                all.into()
            }
        }
    }

    /// Returns where each value of `range` begins in [`Self::all_bytes`].
    fn offsets64(&self, range: &Range<usize>) -> OffsetBuffer<i64> {
        match &self.data {
            Data::Bytes { offsets, .. } => {
                OffsetBuffer::new(shared(&offsets.reinterpret::<i64>(), range.start..range.end + 1))
            }
            _ => OffsetBuffer::from_lengths(range.clone().map(|i| self.bytes_at(i).len())),
        }
    }

    /// Returns the bytes that [`Self::offsets64`] points into: all of a plain column, or those of `range`.
    fn all_bytes(&self, range: &Range<usize>) -> arrow_buffer::Buffer {
        match &self.data {
            Data::Bytes { bytes, .. } => bytes.to_arrow(),
            _ => self.bytes_of(range),
        }
    }

    /// Returns a view of each value of `range`, and the buffers that long ones point into.
    fn views(&self, range: Range<usize>) -> Result<(ScalarBuffer<u128>, Vec<arrow_buffer::Buffer>)> {
        match &self.data {
            Data::Dictionary { codes, dictionary } => {
                let view = |code: usize| {
                    let offset = dictionary.offsets()[code];
                    make_view(dictionary.get(code as u32), 0, offset)
                };
                let rows = range.clone();
                let views: Vec<u128> = if rows.len() > dictionary.len() {
                    let known: Vec<u128> = (0..dictionary.len()).map(view).collect();
                    with_codes!(codes, codes => codes[range].iter().map(|&code| known[code.widen() as usize]).collect())
                } else {
                    range.map(|i| view(codes.get(i) as usize)).collect()
                };
                Ok((views.into(), vec![dictionary.bytes().to_arrow()]))
            }
            Data::Bytes { offsets, bytes } => {
                // A view's offset is a signed 32-bit number: a new buffer begins where it would overflow.
                let all = bytes.to_arrow();
                let mut starts: Vec<u64> = Vec::new();
                let mut ends: Vec<u64> = Vec::new();
                let mut views = Vec::with_capacity(range.len());
                for i in range {
                    let (start, end) = (offsets[i], offsets[i + 1]);
                    if starts.last().is_none_or(|first| end - first > i32::MAX as u64) {
                        if end - start > i32::MAX as u64 {
                            return Err(Error::exhausted("a single text exceeds 2 GiB, which Arrow views do not hold"));
                        }
                        starts.push(start);
                        ends.push(end);
                    }
                    let block = starts.len() - 1;
                    ends[block] = end;
                    views.push(make_view(self.bytes_at(i), block as u32, (start - starts[block]) as u32));
                }
                let buffers = starts.iter().zip(&ends);
                let buffers = buffers.map(|(&s, &e)| all.slice_with_length(s as usize, (e - s) as usize)).collect();
                Ok((views.into(), buffers))
            }
            _ => Err(Error::internal(format!("a column of type {} holds no text", self.kind))),
        }
    }

    /// Gives codes as keys of an Arrow dictionary, if they fit; shares the values.
    fn arrow_dictionary(
        &self,
        codes: &Codes,
        dictionary: &Arc<Dictionary>,
        range: Range<usize>,
        nulls: Option<NullBuffer>,
        key: &DataType,
        values: &DataType,
    ) -> Result<Option<ArrayRef>> {
        fn keys<K: ArrowDictionaryKeyType>(
            codes: &Codes,
            range: Range<usize>,
            nulls: Option<NullBuffer>,
            values: ArrayRef,
        ) -> Result<Option<ArrayRef>> {
            let convert = <K::Native as arrow_buffer::ArrowNativeType>::from_usize;
            if convert(values.len().saturating_sub(1)).is_none() {
                return Ok(None);
            }
            let keys: Vec<K::Native> = range.map(|i| convert(codes.get(i) as usize).unwrap_or_default()).collect();
            let keys = PrimitiveArray::<K>::new(keys.into(), nulls);
            Ok(Some(Arc::new(checked(DictionaryArray::try_new(keys, values))?)))
        }
        let all = Codes::collect(4, dictionary.len(), 0..dictionary.len() as u64);
        let values = Column::from_codes(self.kind.clone(), all, dictionary.clone(), None)
            .to_arrow_as(0..dictionary.len(), values)?;
        match key {
            DataType::Int8 => keys::<Int8Type>(codes, range, nulls, values),
            DataType::Int16 => keys::<Int16Type>(codes, range, nulls, values),
            DataType::Int32 => keys::<Int32Type>(codes, range, nulls, values),
            DataType::Int64 => keys::<Int64Type>(codes, range, nulls, values),
            DataType::UInt8 => keys::<UInt8Type>(codes, range, nulls, values),
            DataType::UInt16 => keys::<UInt16Type>(codes, range, nulls, values),
            DataType::UInt32 => keys::<UInt32Type>(codes, range, nulls, values),
            DataType::UInt64 => keys::<UInt64Type>(codes, range, nulls, values),
            _ => Ok(None),
        }
    }
}

/// Shares `range` of the values.
fn shared<T: Plain + arrow_buffer::ArrowNativeType>(values: &crate::Buffer<T>, range: Range<usize>) -> ScalarBuffer<T> {
    ScalarBuffer::new(values.to_arrow(), range.start, range.len())
}

/// Makes a primitive array of the type asked for: the same numbers, with its zone, precision and scale.
fn make<P: ArrowPrimitiveType>(
    values: ScalarBuffer<P::Native>,
    nulls: Option<NullBuffer>,
    kind: &DataType,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<P>::new(values, nulls).with_data_type(kind.clone()))
}

/// Reports text that is not UTF-8, or offsets that do not ascend: a bug of whoever made the column.
fn checked<T>(array: Result<T, arrow_schema::ArrowError>) -> Result<T> {
    array.map_err(|error| Error::internal(format!("a text column is malformed: {error}")))
}
