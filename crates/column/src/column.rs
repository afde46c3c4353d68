//! One column of one part: encoded values, validity where nulls exist, and statistics per block.

use std::sync::Arc;

use crate::{Bitmap, Buffer, Codes, Dictionary, Type};

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
    /// Values that lie on a device and nowhere else. Whoever wants them here asks the device for them first.
    Remote(Remote),
}

/// How values that lie on a device are encoded: all that is known of them here.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The encoding of the values.
    pub form: RemoteForm,
    /// A validity bitmap lies beside them.
    pub nullable: bool,
}

/// The encodings of values on a device, each as the variant of [`Data`] with its name.
#[derive(Clone, Debug)]
pub enum RemoteForm {
    /// As [`Data::Int`].
    Int {
        /// What code 0 stands for.
        base: i64,
        /// Bytes of a code.
        width: usize,
    },
    /// As [`Data::Dictionary`].
    Dictionary {
        /// Bytes of a code.
        width: usize,
        /// The distinct values, ascending by bytes.
        dictionary: Arc<Dictionary>,
    },
    /// As [`Data::Wide`].
    Wide,
    /// As [`Data::Float64`], for floats of either precision.
    Float64,
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
    /// Statistics of each block, in order; empty where they are not known.
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
    /// Tells whether row `i` is not null.
    #[inline]
    pub fn is_valid(&self, i: usize) -> bool {
        self.validity.as_ref().is_none_or(|validity| validity.get(i))
    }

    /// Tells whether the values lie on a device.
    pub fn is_remote(&self) -> bool {
        matches!(self.data, Data::Remote(_))
    }

    /// Tells whether some row may be null.
    pub fn is_nullable(&self) -> bool {
        self.validity.is_some() || matches!(&self.data, Data::Remote(Remote { nullable: true, .. }))
    }

    /// Counts the null rows.
    pub fn null_count(&self) -> usize {
        self.validity.as_ref().map_or(0, |validity| self.rows - validity.count_ones())
    }

    /// Returns the integer, boolean (0 or 1) or dictionary code of row `i`, without looking at validity.
    ///
    /// # Panics
    /// If the column holds neither.
    #[inline]
    pub fn int(&self, i: usize) -> i64 {
        match &self.data {
            Data::Int { base, codes } => base.wrapping_add(codes.get(i) as i64),
            Data::Dictionary { codes, .. } => codes.get(i) as i64,
            _ => panic!("a column of {} holds no 64-bit integers", self.kind),
        }
    }

    /// Returns the integer of row `i` in 128 bits, without looking at validity.
    ///
    /// # Panics
    /// If the column holds no integers.
    #[inline]
    pub fn wide(&self, i: usize) -> i128 {
        match &self.data {
            Data::Wide(values) => values[i],
            _ => self.int(i).into(),
        }
    }

    /// Returns the float of row `i`, without looking at validity.
    ///
    /// # Panics
    /// If the column holds no floats.
    #[inline]
    pub fn float(&self, i: usize) -> f64 {
        match &self.data {
            Data::Float64(values) => values[i],
            Data::Float32(values) => values[i].into(),
            _ => panic!("a column of {} holds no floats", self.kind),
        }
    }

    /// Returns the bytes of row `i`, of a dictionary or plain; a null row has none.
    ///
    /// # Panics
    /// If the column holds no bytes.
    #[inline]
    pub fn bytes_at(&self, i: usize) -> &[u8] {
        match &self.data {
            Data::Bytes { offsets, bytes } => &bytes[offsets[i] as usize..offsets[i + 1] as usize],
            Data::Dictionary { codes, dictionary } if self.is_valid(i) => dictionary.get(codes.get(i) as u32),
            Data::Dictionary { .. } => &[],
            _ => panic!("a column of {} holds no bytes", self.kind),
        }
    }

    /// Returns the value of row `i`.
    ///
    /// # Panics
    /// If the values lie on a device.
    pub fn value(&self, i: usize) -> Scalar<'_> {
        if !self.is_valid(i) {
            return Scalar::Null;
        }
        match &self.data {
            Data::Int { .. } => Scalar::Int(self.int(i)),
            Data::Wide(values) => Scalar::Wide(values[i]),
            Data::Float32(_) | Data::Float64(_) => Scalar::Float(self.float(i)),
            Data::Dictionary { .. } | Data::Bytes { .. } => Scalar::Bytes(self.bytes_at(i)),
            Data::Remote(_) => panic!("the values of a column of {} lie on a device", self.kind),
        }
    }

    /// Returns the codes and what code 0 stands for, of integers, booleans and dictionaries (0).
    pub fn codes(&self) -> Option<(i64, &Codes)> {
        match &self.data {
            Data::Int { base, codes } => Some((*base, codes)),
            Data::Dictionary { codes, .. } => Some((0, codes)),
            _ => None,
        }
    }

    /// Returns what code 0 stands for and the bytes of a code, wherever they lie, of what [`Column::codes`] has.
    pub fn code_form(&self) -> Option<(i64, usize)> {
        match &self.data {
            Data::Int { base, codes } => Some((*base, codes.width())),
            Data::Dictionary { codes, .. } => Some((0, codes.width())),
            Data::Remote(Remote { form: RemoteForm::Int { base, width }, .. }) => Some((*base, *width)),
            Data::Remote(Remote { form: RemoteForm::Dictionary { width, .. }, .. }) => Some((0, *width)),
            _ => None,
        }
    }

    /// Returns the dictionary, if there is one.
    pub fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match &self.data {
            Data::Dictionary { dictionary, .. }
            | Data::Remote(Remote { form: RemoteForm::Dictionary { dictionary, .. }, .. }) => Some(dictionary),
            _ => None,
        }
    }

    /// Returns the smallest and largest value over all blocks, as in [`BlockStatistics::range`].
    pub fn range(&self) -> Option<(i64, i64)> {
        self.blocks.iter().filter_map(|block| block.range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns the memory that is held, in bytes, without the dictionary, which other parts share.
    pub fn byte_len(&self) -> usize {
        let data = match &self.data {
            Data::Int { codes, .. } | Data::Dictionary { codes, .. } => codes.byte_len(),
            Data::Wide(values) => values.byte_len(),
            Data::Float32(values) => values.byte_len(),
            Data::Float64(values) => values.byte_len(),
            Data::Bytes { offsets, bytes } => offsets.byte_len() + bytes.byte_len(),
            Data::Remote(_) => 0,
        };
        data + self.validity.as_ref().map_or(0, Bitmap::byte_len) + size_of_val(self.blocks.as_slice())
    }

    /// Returns the bytes of a value in memory; 0 where they vary.
    pub fn width(&self) -> usize {
        match &self.data {
            Data::Int { codes, .. } | Data::Dictionary { codes, .. } => codes.width(),
            Data::Wide(_) => 16,
            Data::Float32(_) => 4,
            Data::Float64(_) => 8,
            Data::Bytes { .. } => 0,
            Data::Remote(Remote { form, .. }) => match form {
                RemoteForm::Int { width, .. } | RemoteForm::Dictionary { width, .. } => *width,
                RemoteForm::Wide => 16,
                RemoteForm::Float64 => 8,
            },
        }
    }

    /// Describes the encoding for people, as "u16 offsets from 19920101" or "dictionary of 25, u8".
    pub fn encoding(&self) -> String {
        match &self.data {
            Data::Int { codes, .. } if self.kind == Type::Boolean => format!("{} flags", codes.width_name()),
            Data::Int { base: 0, codes: Codes::U64(_) } => "int64".into(),
            Data::Int { base, codes } => format!("{} offsets from {base}", codes.width_name()),
            Data::Wide(_) => "int128".into(),
            Data::Float32(_) => "float32".into(),
            Data::Float64(_) => "float64".into(),
            Data::Dictionary { codes, dictionary } => {
                format!("dictionary of {}, {}", dictionary.len(), codes.width_name())
            }
            Data::Bytes { .. } if self.kind == Type::Binary => "plain bytes".into(),
            Data::Bytes { .. } => "plain strings".into(),
            Data::Remote(_) => "on a device".into(),
        }
    }
}
