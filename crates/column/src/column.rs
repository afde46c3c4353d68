//! One column of one part: encoded values, validity where nulls exist, and statistics per block.

use std::ops::Range;
use std::sync::Arc;

use crate::{AlignedVec, Bitmap, Buffer, Codes, Dictionary, Result, Type};

/// Rows described by one [`BlockStatistics`]: 64 Ki, so that row numbers within a block fit 16 bits.
pub const BLOCK_ROWS: usize = 1 << 16;

/// The encoded values of a column. Null rows hold code 0, zero or the empty string.
#[derive(Clone, Debug)]
pub enum Data {
    /// Frame of reference: `value = base + code` (wrapping in 64 bits), for every type of
    /// [`crate::Repr::Int`] and, with base 0 and one byte, booleans.
    Int {
        /// What code 0 stands for; the column's smallest value.
        base: i64,
        /// Offsets from `base`.
        codes: Codes,
    },
    /// 128-bit integers, for types of [`crate::Repr::Wide`].
    Wide(Buffer<i128>),
    /// Single-precision floats.
    Float32(Buffer<f32>),
    /// Double-precision floats.
    Float64(Buffer<f64>),
    /// Codes into a sorted dictionary that all parts of the table share: code order is value order.
    Dictionary {
        /// Positions in `dictionary`; never `U64`.
        codes: Codes,
        /// The distinct values, ascending by bytes.
        dictionary: Arc<Dictionary>,
    },
    /// Variable-length values: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    Bytes {
        /// One more than there are rows.
        offsets: Buffer<u64>,
        /// All values one after the other.
        bytes: Buffer<u8>,
    },
}

/// What is known of one block of [`BLOCK_ROWS`] rows (the last may be shorter).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockStatistics {
    /// Smallest and largest non-null value, as stored: integers as themselves, dictionary codes as integers, floats by
    /// total order through their bits (see [`crate::float_order`]). `None` for plain strings, 128-bit and all-null.
    pub range: Option<(i64, i64)>,
    /// How many rows are null.
    pub nulls: u32,
}

/// One column of one part.
#[derive(Clone, Debug)]
pub struct Column {
    /// What the values mean.
    pub kind: Type,
    /// How many rows there are.
    pub rows: usize,
    /// The encoded values.
    pub data: Data,
    /// A set bit for each row that is not null; absent where no row is null.
    pub validity: Option<Bitmap>,
    /// Statistics of each block, in order.
    pub blocks: Vec<BlockStatistics>,
}

/// One value of a column, for people and tests.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    /// No value.
    Null,
    /// A value of [`crate::Repr::Int`] or, as 0 or 1, [`crate::Repr::Boolean`].
    Int(i64),
    /// A value of [`crate::Repr::Wide`].
    Wide(i128),
    /// A value of [`crate::Repr::Float`].
    Float(f64),
    /// A value of [`crate::Repr::Bytes`].
    Bytes(&'a [u8]),
}

impl Column {
    /// Takes 64-bit values as they are, for types of [`crate::Repr::Int`]; values of null rows become 0.
    pub fn from_i64(_kind: Type, _values: impl Into<AlignedVec<i64>>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Takes values as base and offsets; codes of null rows must be 0.
    pub fn from_offsets(_kind: Type, _base: i64, _codes: Codes, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Takes doubles as they are; values of null rows become 0.
    pub fn from_f64(_values: impl Into<AlignedVec<f64>>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Takes single-precision floats as they are; values of null rows become 0.
    pub fn from_f32(_values: impl Into<AlignedVec<f32>>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Takes 128-bit values as they are, for types of [`crate::Repr::Wide`]; values of null rows become 0.
    pub fn from_i128(_kind: Type, _values: impl Into<AlignedVec<i128>>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Takes dictionary codes as they are; codes of null rows must be 0.
    pub fn from_codes(_kind: Type, _codes: Codes, _dictionary: Arc<Dictionary>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Takes plain strings as they are; null rows must be empty.
    pub fn from_bytes(_kind: Type, _offsets: Buffer<u64>, _bytes: Buffer<u8>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Copies values, `None` for null, into plain strings.
    pub fn from_values<V: AsRef<[u8]>>(_kind: Type, _values: impl IntoIterator<Item = Option<V>>) -> Column {
        todo!()
    }
    /// Copies booleans; values of null rows become false.
    pub fn from_bools(_values: impl IntoIterator<Item = bool>, _validity: Option<Bitmap>) -> Column {
        todo!()
    }
    /// Makes a column of one value.
    pub fn constant(_kind: Type, _value: Scalar<'_>, _rows: usize) -> Column {
        todo!()
    }
    /// Makes a column of nulls.
    pub fn nulls(_kind: Type, _rows: usize) -> Column {
        todo!()
    }
    /// Tells whether row `i` is not null.
    #[inline]
    pub fn is_valid(&self, i: usize) -> bool {
        self.validity.as_ref().is_none_or(|validity| validity.get(i))
    }
    /// Counts the null rows.
    pub fn null_count(&self) -> usize {
        self.validity.as_ref().map_or(0, |validity| self.rows - validity.count_ones())
    }
    /// Returns the integer (or boolean, or dictionary code) of row `i`; what a null row gives is not specified.
    pub fn int(&self, _i: usize) -> i64 {
        todo!()
    }
    /// Returns the 128-bit integer of row `i`, of any integer encoding.
    pub fn wide(&self, _i: usize) -> i128 {
        todo!()
    }
    /// Returns the float of row `i`.
    pub fn float(&self, _i: usize) -> f64 {
        todo!()
    }
    /// Returns the bytes of row `i`, of a dictionary or plain; null rows give none.
    pub fn bytes_at(&self, _i: usize) -> &[u8] {
        todo!()
    }
    /// Returns the value of row `i`.
    pub fn value(&self, _i: usize) -> Scalar<'_> {
        todo!()
    }
    /// Returns the memory that is held, in bytes; a dictionary counts in every column that shares it.
    pub fn byte_len(&self) -> usize {
        todo!()
    }
    /// Describes the encoding for people, as "u16 offsets from 19920101" or "dictionary of 25, u8".
    pub fn encoding(&self) -> String {
        todo!()
    }
    /// Returns the column in the narrowest frame of reference (integers), or as it is; with block statistics.
    pub fn compact(&self) -> Column {
        todo!()
    }
    /// Computes the statistics of each block.
    pub fn compute_blocks(&self) -> Vec<BlockStatistics> {
        todo!()
    }
    /// Returns the column with block statistics.
    pub fn with_blocks(self) -> Column {
        todo!()
    }
    /// Joins columns of one type into one, in order.
    ///
    /// # Errors
    /// If a merged dictionary would exceed 4 GiB.
    pub fn concat(_kind: &Type, _columns: &[&Column]) -> Result<Column> {
        todo!()
    }
    /// Encodes an Arrow array of any type that becomes `kind`.
    ///
    /// # Errors
    /// If the array's type is not supported, or a value does not fit `kind`.
    pub fn from_arrow(_array: &dyn arrow_array::Array, _kind: &Type) -> Result<Column> {
        todo!()
    }
    /// Gives `range` of the rows as an Arrow array of exactly the type asked for.
    ///
    /// # Errors
    /// If the column's type does not become that type.
    pub fn to_arrow_as(
        &self, _range: Range<usize>, _kind: &arrow_schema::DataType,
    ) -> Result<arrow_array::ArrayRef> {
        todo!()
    }
    /// Gives `range` of the rows as an Arrow array of the column's own Arrow type.
    ///
    /// # Errors
    /// If the type has no Arrow form.
    pub fn to_arrow(&self, range: Range<usize>) -> Result<arrow_array::ArrayRef> {
        self.to_arrow_as(range, &self.kind.to_arrow())
    }
}
