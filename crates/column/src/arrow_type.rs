//! The correspondence of types to Arrow's.

use std::sync::Arc;

use arrow_schema::DataType;

use crate::{Error, Result, TimeUnit, Type};

impl Type {
    /// Returns the type that an Arrow type becomes.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_arrow(kind: &DataType) -> Result<Type> {
        Ok(match kind {
            DataType::Null => Type::Null,
            DataType::Boolean => Type::Boolean,
            DataType::Int8 => Type::Int8,
            DataType::Int16 => Type::Int16,
            DataType::Int32 => Type::Int32,
            DataType::Int64 => Type::Int64,
            DataType::UInt8 => Type::UInt8,
            DataType::UInt16 => Type::UInt16,
            DataType::UInt32 => Type::UInt32,
            DataType::UInt64 => Type::UInt64,
            DataType::Float16 | DataType::Float32 => Type::Float32,
            DataType::Float64 => Type::Float64,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale) => Type::Decimal { precision: *precision, scale: *scale },
            DataType::Decimal256(precision, scale) if *precision <= 38 => {
                Type::Decimal { precision: *precision, scale: *scale }
            }
            DataType::Date32 | DataType::Date64 => Type::Date,
            DataType::Time32(unit) | DataType::Time64(unit) => Type::Time((*unit).into()),
            DataType::Timestamp(unit, zone) => Type::Timestamp((*unit).into(), zone.clone()),
            DataType::Interval(_) => Type::Interval,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::String,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Binary,
            DataType::FixedSizeBinary(_) => Type::Binary,
            DataType::Dictionary(_, values) if !values.is_nested() && !matches!(**values, DataType::Dictionary(..)) => {
                return Type::from_arrow(values);
            }
            DataType::RunEndEncoded(_, values) => return Type::from_arrow(values.data_type()),
            other => return Err(Error::unsupported(format!("no column holds the type {other}"))),
        })
    }

    /// Returns the Arrow type that values of this type are given as, unless another is asked for.
    pub fn to_arrow(&self) -> DataType {
        match self {
            Type::Null => DataType::Null,
            Type::Boolean => DataType::Boolean,
            Type::Int8 => DataType::Int8,
            Type::Int16 => DataType::Int16,
            Type::Int32 => DataType::Int32,
            Type::Int64 => DataType::Int64,
            Type::UInt8 => DataType::UInt8,
            Type::UInt16 => DataType::UInt16,
            Type::UInt32 => DataType::UInt32,
            Type::UInt64 => DataType::UInt64,
            Type::Float32 => DataType::Float32,
            Type::Float64 => DataType::Float64,
            Type::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
            Type::Date => DataType::Date32,
            Type::Time(unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => DataType::Time32((*unit).into()),
            Type::Time(unit) => DataType::Time64((*unit).into()),
            Type::Timestamp(unit, zone) => DataType::Timestamp((*unit).into(), zone.clone()),
            Type::Interval => DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano),
            Type::String => DataType::Utf8,
            Type::Binary => DataType::Binary,
            Type::List(of) => DataType::List(Arc::new(arrow_schema::Field::new("item", of.to_arrow(), true))),
        }
    }
}

impl From<arrow_schema::TimeUnit> for TimeUnit {
    fn from(unit: arrow_schema::TimeUnit) -> TimeUnit {
        match unit {
            arrow_schema::TimeUnit::Second => TimeUnit::Second,
            arrow_schema::TimeUnit::Millisecond => TimeUnit::Millisecond,
            arrow_schema::TimeUnit::Microsecond => TimeUnit::Microsecond,
            arrow_schema::TimeUnit::Nanosecond => TimeUnit::Nanosecond,
        }
    }
}

impl From<TimeUnit> for arrow_schema::TimeUnit {
    fn from(unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::Second => Self::Second,
            TimeUnit::Millisecond => Self::Millisecond,
            TimeUnit::Microsecond => Self::Microsecond,
            TimeUnit::Nanosecond => Self::Nanosecond,
        }
    }
}
