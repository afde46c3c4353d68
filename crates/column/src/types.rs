//! The SQL scalar types Tandem computes with, and how each is held in memory.
//!
//! A type says what a value means; its [`Repr`] says what bits hold it. All integer-like types (integers, dates, times,
//! timestamps, decimals of up to 18 digits) share one representation, a 64-bit integer, so that every kernel
//! is written once for all of them.

use std::{fmt, sync::Arc};

/// A unit of time for [`Type::Time`] and [`Type::Timestamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TimeUnit {
    /// Seconds.
    Second,
    /// Thousandths of a second.
    Millisecond,
    /// Millionths of a second.
    Microsecond,
    /// Billionths of a second.
    Nanosecond,
}

impl TimeUnit {
    /// Returns how many units make a second.
    pub fn per_second(self) -> i64 {
        match self {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        }
    }
}

/// The logical type of a column, slot or expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// The type of an untyped NULL literal.
    Null,
    /// True or false.
    Boolean,
    /// Signed integers.
    Int8,
    /// 16-bit signed integer.
    Int16,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// Unsigned integers.
    UInt8,
    /// 16-bit unsigned integer.
    UInt16,
    /// 32-bit unsigned integer.
    UInt32,
    /// 64-bit unsigned integer.
    UInt64,
    /// IEEE single precision.
    Float32,
    /// IEEE double precision.
    Float64,
    /// `value × 10^-scale`, of at most `precision` ≤ 38 digits.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point; may be negative.
        scale: i8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Time of day since midnight.
    Time(TimeUnit),
    /// Instant since 1970-01-01T00:00:00; with a zone, UTC instants shown in that zone.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// Calendar interval of months, days and nanoseconds.
    Interval,
    /// UTF-8 text.
    String,
    /// Bytes.
    Binary,
    /// Values of one type in order: parameters and locals of user functions only.
    List(Arc<Type>),
}

/// How the values of a type are held while computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repr {
    /// One byte, 0 or 1.
    Boolean,
    /// Signed 64-bit: integers up to 64 bits signed and 32 bits unsigned, dates, times, timestamps,
    /// decimals of precision ≤ 18.
    Int,
    /// Signed 128-bit: UInt64 and decimals of precision > 18.
    Wide,
    /// 64-bit float; Float32 is computed here and rounded after each operation.
    Float,
    /// UTF-8 text or bytes.
    Bytes,
    /// Anything else (intervals, lists): only the interpreter computes with it.
    Other,
}

impl Type {
    /// Returns the representation that executors compute with.
    pub fn repr(&self) -> Repr {
        match self {
            Type::Boolean => Repr::Boolean,
            Type::Null | Type::Date | Type::Time(_) | Type::Timestamp(..) => Repr::Int,
            Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => Repr::Int,
            Type::UInt8 | Type::UInt16 | Type::UInt32 => Repr::Int,
            Type::UInt64 => Repr::Wide,
            Type::Decimal { precision, .. } if *precision <= 18 => Repr::Int,
            Type::Decimal { .. } => Repr::Wide,
            Type::Float32 | Type::Float64 => Repr::Float,
            Type::String | Type::Binary => Repr::Bytes,
            Type::Interval | Type::List(_) => Repr::Other,
        }
    }

    /// Tells whether this is a signed or unsigned integer type.
    pub fn is_integer(&self) -> bool {
        self.integer_range().is_some() && !matches!(self, Type::Boolean)
    }

    /// Tells whether this is a floating-point type.
    pub fn is_float(&self) -> bool {
        matches!(self, Type::Float32 | Type::Float64)
    }

    /// Tells whether this is an integer, float or decimal.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_float() || matches!(self, Type::Decimal { .. })
    }

    /// Returns the smallest and largest value of an integer type.
    pub fn integer_range(&self) -> Option<(i128, i128)> {
        Some(match self {
            Type::Boolean => (0, 1),
            Type::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Type::Int16 => (i16::MIN.into(), i16::MAX.into()),
            Type::Int32 => (i32::MIN.into(), i32::MAX.into()),
            Type::Int64 => (i64::MIN.into(), i64::MAX.into()),
            Type::UInt8 => (0, u8::MAX.into()),
            Type::UInt16 => (0, u16::MAX.into()),
            Type::UInt32 => (0, u32::MAX.into()),
            Type::UInt64 => (0, u64::MAX.into()),
            _ => return None,
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = |u: &TimeUnit| match u {
            TimeUnit::Second => "s",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Microsecond => "us",
            TimeUnit::Nanosecond => "ns",
        };
        match self {
            Type::Null => write!(f, "null"),
            Type::Boolean => write!(f, "boolean"),
            Type::Int8 => write!(f, "int8"),
            Type::Int16 => write!(f, "int16"),
            Type::Int32 => write!(f, "int32"),
            Type::Int64 => write!(f, "int64"),
            Type::UInt8 => write!(f, "uint8"),
            Type::UInt16 => write!(f, "uint16"),
            Type::UInt32 => write!(f, "uint32"),
            Type::UInt64 => write!(f, "uint64"),
            Type::Float32 => write!(f, "float32"),
            Type::Float64 => write!(f, "float64"),
            Type::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Type::Date => write!(f, "date"),
            Type::Time(u) => write!(f, "time({})", unit(u)),
            Type::Timestamp(u, None) => write!(f, "timestamp({})", unit(u)),
            Type::Timestamp(u, Some(zone)) => write!(f, "timestamp({},{zone})", unit(u)),
            Type::Interval => write!(f, "interval"),
            Type::String => write!(f, "string"),
            Type::Binary => write!(f, "binary"),
            Type::List(of) => write!(f, "list({of})"),
        }
    }
}
