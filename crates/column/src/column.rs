//! One column of one part: encoded values, validity where nulls exist, and statistics per block.

use std::sync::Arc;

use crate::{Bitmap, Buffer, Dictionary, Type};

/// Rows described by one [`BlockStatistics`]: 64 Ki, so that row numbers within a block fit 16 bits.
pub const BLOCK_ROWS: usize = 1 << 16;

/// Unsigned integers of one physical width, without sign or meaning of their own.
#[derive(Clone, Debug)]
pub enum Codes {
    /// One byte each.
    U8(Buffer<u8>),
    /// Two bytes each.
    U16(Buffer<u16>),
    /// Four bytes each.
    U32(Buffer<u32>),
    /// Eight bytes each.
    U64(Buffer<u64>),
}

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
