//! Types and constants of the host, in Tandem's terms.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use tandem_column::{TimeUnit, Type};
use tandem_pipeline::Value;

/// Returns Tandem's type for a host type, or why there is none.
pub(crate) fn kind_of(kind: &DataType) -> Result<Type, String> {
    match kind {
        // Held in another width or unit than Tandem computes with: results would differ from the host's.
        DataType::Date64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal256(..)
        | DataType::Float16
        | DataType::FixedSizeBinary(_)
        | DataType::Duration(_)
        | DataType::RunEndEncoded(..) => Err(format!("values of type {kind} run on the host")),
        DataType::Interval(_) => Ok(Type::Interval),
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => kind_of(values),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..) => Err("nested values run on the host".to_string()),
        other => Type::from_arrow(other).map_err(|_| format!("values of type {other} run on the host")),
    }
}

/// Returns a constant of the host as a value and its type.
pub(crate) fn literal(value: &ScalarValue) -> Result<(Value, Type), String> {
    if let ScalarValue::Dictionary(_, inner) = value {
        return literal(inner);
    }
    let kind = kind_of(&value.data_type())?;
    if value.is_null() {
        return Ok((Value::Null, kind));
    }
    let unsupported = || Err(format!("constants of type {} run on the host", value.data_type()));
    let value = match value {
        ScalarValue::Boolean(Some(v)) => Value::Boolean(*v),
        ScalarValue::Int8(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::Int16(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::Int32(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::Int64(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::UInt8(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::UInt16(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::UInt32(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::UInt64(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::Float32(Some(v)) => Value::Float((*v).into()),
        ScalarValue::Float64(Some(v)) => Value::Float(*v),
        ScalarValue::Decimal128(Some(v), ..) => Value::Integer(*v),
        ScalarValue::Date32(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::Time32Second(Some(v)) | ScalarValue::Time32Millisecond(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::Time64Microsecond(Some(v)) | ScalarValue::Time64Nanosecond(Some(v)) => Value::Integer((*v).into()),
        ScalarValue::TimestampSecond(Some(v), _)
        | ScalarValue::TimestampMillisecond(Some(v), _)
        | ScalarValue::TimestampMicrosecond(Some(v), _)
        | ScalarValue::TimestampNanosecond(Some(v), _) => Value::Integer((*v).into()),
        ScalarValue::IntervalYearMonth(Some(months)) => Value::Interval { months: *months, days: 0, nanoseconds: 0 },
        ScalarValue::IntervalDayTime(Some(v)) => Value::Interval {
            months: 0,
            days: v.days,
            nanoseconds: i64::from(v.milliseconds) * (TimeUnit::Nanosecond.per_second() / 1_000),
        },
        ScalarValue::IntervalMonthDayNano(Some(v)) => {
            Value::Interval { months: v.months, days: v.days, nanoseconds: v.nanoseconds }
        }
        ScalarValue::Utf8(Some(v)) | ScalarValue::LargeUtf8(Some(v)) | ScalarValue::Utf8View(Some(v)) => {
            Value::String(Arc::from(v.as_str()))
        }
        ScalarValue::Binary(Some(v)) | ScalarValue::LargeBinary(Some(v)) | ScalarValue::BinaryView(Some(v)) => {
            Value::Binary(Arc::from(v.as_slice()))
        }
        _ => return unsupported(),
    };
    Ok((value, kind))
}
