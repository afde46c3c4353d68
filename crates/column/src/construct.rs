//! Columns from values at hand, kept as they are wherever possible.
//!
//! These columns have no block statistics; [`Column::with_blocks`] and [`Column::compact`] add them.

use std::sync::Arc;

use crate::{AlignedVec, Bitmap, Buffer, Codes, Column, Data, Dictionary, Repr, Scalar, Type};

impl Column {
    /// Puts a column together; validity without a null is left away.
    ///
    /// # Panics
    /// If validity is of another length.
    pub fn new(kind: Type, rows: usize, data: Data, validity: Option<Bitmap>) -> Column {
        assert!(validity.as_ref().is_none_or(|validity| validity.len() == rows), "validity has a bit for each row");
        let validity = validity.filter(|validity| validity.count_ones() < rows);
        Column { kind, rows, data, validity, blocks: Vec::new() }
    }

    /// Takes 64-bit values as they are, for types of [`Repr::Int`] (booleans are narrowed); null rows become 0.
    pub fn from_i64(kind: Type, values: impl Into<AlignedVec<i64>>, validity: Option<Bitmap>) -> Column {
        let mut values = values.into();
        zero_nulls(values.as_mut_slice(), validity.as_ref());
        let rows = values.len();
        let codes = match kind.repr() {
            Repr::Boolean => Codes::collect(1, rows, values.iter().map(|&value| u64::from(value != 0))),
            _ => Codes::U64(values.into_buffer().reinterpret()),
        };
        Column::new(kind, rows, Data::Int { base: 0, codes }, validity)
    }

    /// Takes values as a base and offsets from it; null rows must have code 0.
    pub fn from_offsets(kind: Type, base: i64, codes: Codes, validity: Option<Bitmap>) -> Column {
        Column::new(kind, codes.len(), Data::Int { base, codes }, validity)
    }

    /// Takes 128-bit values as they are, for types of [`Repr::Wide`]; null rows become 0.
    pub fn from_i128(kind: Type, values: impl Into<AlignedVec<i128>>, validity: Option<Bitmap>) -> Column {
        let mut values = values.into();
        zero_nulls(values.as_mut_slice(), validity.as_ref());
        Column::new(kind, values.len(), Data::Wide(values.into_buffer()), validity)
    }

    /// Takes doubles as they are; null rows become 0.
    pub fn from_f64(values: impl Into<AlignedVec<f64>>, validity: Option<Bitmap>) -> Column {
        let mut values = values.into();
        zero_nulls(values.as_mut_slice(), validity.as_ref());
        Column::new(Type::Float64, values.len(), Data::Float64(values.into_buffer()), validity)
    }

    /// Takes single-precision floats as they are; null rows become 0.
    pub fn from_f32(values: impl Into<AlignedVec<f32>>, validity: Option<Bitmap>) -> Column {
        let mut values = values.into();
        zero_nulls(values.as_mut_slice(), validity.as_ref());
        Column::new(Type::Float32, values.len(), Data::Float32(values.into_buffer()), validity)
    }

    /// Takes booleans; null rows become false.
    pub fn from_bools(values: impl IntoIterator<Item = bool>, validity: Option<Bitmap>) -> Column {
        let mut values: AlignedVec<u8> = values.into_iter().map(u8::from).collect();
        zero_nulls(values.as_mut_slice(), validity.as_ref());
        Column::from_offsets(Type::Boolean, 0, Codes::U8(values.into_buffer()), validity)
    }

    /// Takes dictionary codes as they are; null rows must have code 0.
    ///
    /// # Panics
    /// If the codes are 64 bits wide.
    pub fn from_codes(kind: Type, codes: Codes, dictionary: Arc<Dictionary>, validity: Option<Bitmap>) -> Column {
        assert!(codes.width() < 8, "dictionary codes fit 32 bits");
        Column::new(kind, codes.len(), Data::Dictionary { codes, dictionary }, validity)
    }

    /// Takes plain strings as they are; null rows must be empty. No offset stands for no row.
    ///
    /// # Panics
    /// If the last offset is not the number of bytes.
    pub fn from_bytes(kind: Type, offsets: Buffer<u64>, bytes: Buffer<u8>, validity: Option<Bitmap>) -> Column {
        let offsets = if offsets.is_empty() { Buffer::from_slice(&[0]) } else { offsets };
        assert!(offsets.last() == Some(&(bytes.len() as u64)), "offsets end where bytes do");
        Column::new(kind, offsets.len() - 1, Data::Bytes { offsets, bytes }, validity)
    }

    /// Copies values, `None` for null, as plain strings.
    pub fn from_values<V: AsRef<[u8]>>(kind: Type, values: impl IntoIterator<Item = Option<V>>) -> Column {
        let values = values.into_iter();
        let mut builder = BytesBuilder::with_capacity(values.size_hint().0, 0);
        values.for_each(|value| builder.push(value.as_ref().map(AsRef::as_ref)));
        builder.finish(kind)
    }

    /// Makes a column of one value.
    ///
    /// # Panics
    /// If the value is not of the representation of `kind`.
    pub fn constant(kind: Type, value: Scalar<'_>, rows: usize) -> Column {
        let mut column = match (kind.repr(), value) {
            (_, Scalar::Null) => return Column::nulls(kind, rows),
            (Repr::Int | Repr::Boolean, Scalar::Int(value)) => {
                Column::from_offsets(kind, value, Codes::zeroed(rows), None)
            }
            (Repr::Wide, Scalar::Int(value)) => Column::from_i128(kind, filled(rows, value.into()), None),
            (Repr::Wide, Scalar::Wide(value)) => Column::from_i128(kind, filled(rows, value), None),
            (Repr::Float, Scalar::Float(value)) if kind == Type::Float32 => {
                Column::from_f32(filled(rows, value as f32), None)
            }
            (Repr::Float, Scalar::Float(value)) => Column::from_f64(filled(rows, value), None),
            (Repr::Bytes, Scalar::Bytes(value)) => {
                let dictionary = Dictionary::from_unsorted(&kind, &[value]).expect("one text is a dictionary").0;
                Column::from_codes(kind, Codes::zeroed(rows), Arc::new(dictionary), None)
            }
            (_, value) => panic!("{value:?} is not a value of {kind}"),
        };
        // A boolean is its code: the base stays 0.
        if let (Type::Boolean, Data::Int { base, codes }) = (&column.kind, &mut column.data) {
            *codes = Codes::collect(1, rows, std::iter::repeat_n(*base as u64, rows));
            *base = 0;
        }
        column
    }

    /// Makes a column of nulls.
    pub fn nulls(kind: Type, rows: usize) -> Column {
        let data = match kind.repr() {
            Repr::Wide => Data::Wide(AlignedVec::zeroed(rows).into_buffer()),
            Repr::Float if kind == Type::Float32 => Data::Float32(AlignedVec::zeroed(rows).into_buffer()),
            Repr::Float => Data::Float64(AlignedVec::zeroed(rows).into_buffer()),
            Repr::Bytes => {
                let dictionary = Arc::new(Dictionary::placeholder(&kind));
                Data::Dictionary { codes: Codes::zeroed(rows), dictionary }
            }
            Repr::Int | Repr::Boolean | Repr::Other => Data::Int { base: 0, codes: Codes::zeroed(rows) },
        };
        Column::new(kind, rows, data, Some(Bitmap::filled(rows, false)))
    }
}

/// Collects plain strings.
#[derive(Clone, Debug)]
pub struct BytesBuilder {
    offsets: AlignedVec<u64>,
    bytes: AlignedVec<u8>,
    validity: crate::BitmapBuilder,
    nulls: usize,
}

impl BytesBuilder {
    /// Makes an empty one with room for `rows` values of `bytes` bytes in all.
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        let mut offsets = AlignedVec::with_capacity(rows + 1);
        offsets.push(0);
        let validity = crate::BitmapBuilder::with_capacity(rows);
        BytesBuilder { offsets, bytes: AlignedVec::with_capacity(bytes), validity, nulls: 0 }
    }

    /// Adds a value, `None` for null.
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.offsets.push(self.bytes.len() as u64);
        self.validity.push(value.is_some());
        self.nulls += usize::from(value.is_none());
    }

    /// Returns how many values there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Seals the values as a plain column.
    pub fn finish(self, kind: Type) -> Column {
        let validity = (self.nulls > 0).then(|| self.validity.finish());
        Column::from_bytes(kind, self.offsets.into_buffer(), self.bytes.into_buffer(), validity)
    }
}

/// Makes `rows` copies of a value.
fn filled<T: crate::Plain>(rows: usize, value: T) -> AlignedVec<T> {
    let mut values = AlignedVec::with_capacity(rows);
    values.resize(rows, value);
    values
}

/// Zeroes the values of null rows.
pub(crate) fn zero_nulls<T: crate::Plain>(values: &mut [T], validity: Option<&Bitmap>) {
    if let Some(validity) = validity {
        validity.zero_unset(values);
    }
}
