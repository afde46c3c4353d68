//! Values into Arrow arrays and back, for the operations whose one true definition is an Arrow kernel.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, NullArray, PrimitiveArray, StringArray,
    cast::AsArray,
    types::{
        ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, IntervalMonthDayNanoType, Time32MillisecondType, Time32SecondType, Time64MicrosecondType,
        Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::DataType;
use tandem_column::{Error, Result, TimeUnit, Type};

use super::fault;
use crate::Value;

/// Returns the Arrow type of a type; lists have none here.
pub fn data_type(kind: &Type) -> Option<DataType> {
    (!matches!(kind, Type::List(_))).then(|| kind.to_arrow())
}

/// Makes an array of an integer-like type.
fn integers<T: ArrowPrimitiveType>(values: &[Value], data_type: DataType) -> Result<ArrayRef>
where
    T::Native: TryFrom<i128>,
{
    let native = |value: &Value| match value {
        Value::Null => Ok(None),
        Value::Integer(integer) => match T::Native::try_from(*integer) {
            Ok(native) => Ok(Some(native)),
            Err(_) => Err(fault::misfit("an Arrow conversion", value)),
        },
        other => Err(fault::misfit("an Arrow conversion", other)),
    };
    let natives = values.iter().map(native).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(PrimitiveArray::<T>::from_iter(natives).with_data_type(data_type)))
}

/// Makes an array by a function from non-null values.
fn collect<'a, N, A: FromIterator<Option<N>> + Array + 'static>(
    values: &'a [Value],
    native: impl Fn(&'a Value) -> Option<N>,
) -> Result<ArrayRef> {
    let convert = |value: &'a Value| match (value, native(value)) {
        (Value::Null, _) => Ok(None),
        (_, Some(native)) => Ok(Some(native)),
        (other, None) => Err(fault::misfit("an Arrow conversion", other)),
    };
    Ok(Arc::new(values.iter().map(convert).collect::<Result<A>>()?))
}

/// Makes an Arrow array of values of one type.
///
/// # Errors
/// If a value does not fit the type, or the type is a list.
pub fn array(values: &[Value], kind: &Type) -> Result<ArrayRef> {
    let data_type = data_type(kind).ok_or_else(|| fault::unsupported("an Arrow array", kind))?;
    match kind {
        Type::Null => Ok(Arc::new(NullArray::new(values.len()))),
        Type::Boolean => collect::<_, BooleanArray>(values, |value| match value {
            Value::Boolean(value) => Some(*value),
            _ => None,
        }),
        Type::Int8 => integers::<Int8Type>(values, data_type),
        Type::Int16 => integers::<Int16Type>(values, data_type),
        Type::Int32 => integers::<Int32Type>(values, data_type),
        Type::Int64 => integers::<Int64Type>(values, data_type),
        Type::UInt8 => integers::<UInt8Type>(values, data_type),
        Type::UInt16 => integers::<UInt16Type>(values, data_type),
        Type::UInt32 => integers::<UInt32Type>(values, data_type),
        Type::UInt64 => integers::<UInt64Type>(values, data_type),
        Type::Decimal { .. } => integers::<Decimal128Type>(values, data_type),
        Type::Date => integers::<Date32Type>(values, data_type),
        Type::Time(TimeUnit::Second) => integers::<Time32SecondType>(values, data_type),
        Type::Time(TimeUnit::Millisecond) => integers::<Time32MillisecondType>(values, data_type),
        Type::Time(TimeUnit::Microsecond) => integers::<Time64MicrosecondType>(values, data_type),
        Type::Time(TimeUnit::Nanosecond) => integers::<Time64NanosecondType>(values, data_type),
        Type::Timestamp(TimeUnit::Second, _) => integers::<TimestampSecondType>(values, data_type),
        Type::Timestamp(TimeUnit::Millisecond, _) => integers::<TimestampMillisecondType>(values, data_type),
        Type::Timestamp(TimeUnit::Microsecond, _) => integers::<TimestampMicrosecondType>(values, data_type),
        Type::Timestamp(TimeUnit::Nanosecond, _) => integers::<TimestampNanosecondType>(values, data_type),
        Type::Float32 => {
            collect::<_, PrimitiveArray<Float32Type>>(values, |value| value.as_float().map(|value| value as f32))
        }
        Type::Float64 => collect::<_, PrimitiveArray<Float64Type>>(values, Value::as_float),
        Type::String => collect::<_, StringArray>(values, Value::as_text),
        Type::Binary => collect::<_, BinaryArray>(values, |value| match value {
            Value::Binary(value) => Some(&value[..]),
            _ => None,
        }),
        Type::Interval => collect::<_, PrimitiveArray<IntervalMonthDayNanoType>>(values, |value| match value {
            Value::Interval { months, days, nanoseconds } => {
                Some(IntervalMonthDayNano::new(*months, *days, *nanoseconds))
            }
            _ => None,
        }),
        Type::List(_) => Err(fault::unsupported("an Arrow array", kind)),
    }
}

/// Reads one value of an array that has the Arrow type of `kind`.
///
/// # Errors
/// If the array has another type.
pub fn value(array: &dyn Array, index: usize, kind: &Type) -> Result<Value> {
    if data_type(kind).as_ref() != Some(array.data_type()) {
        return Err(Error::internal(format!("an array of {} was read as {kind}", array.data_type())));
    }
    if array.is_null(index) || *kind == Type::Null {
        return Ok(Value::Null);
    }
    fn integer<T: ArrowPrimitiveType>(array: &dyn Array, index: usize) -> Value
    where
        T::Native: Into<i128>,
    {
        Value::Integer(array.as_primitive::<T>().value(index).into())
    }
    Ok(match kind {
        Type::Null | Type::List(_) => Value::Null,
        Type::Boolean => Value::Boolean(array.as_boolean().value(index)),
        Type::Int8 => integer::<Int8Type>(array, index),
        Type::Int16 => integer::<Int16Type>(array, index),
        Type::Int32 => integer::<Int32Type>(array, index),
        Type::Int64 => integer::<Int64Type>(array, index),
        Type::UInt8 => integer::<UInt8Type>(array, index),
        Type::UInt16 => integer::<UInt16Type>(array, index),
        Type::UInt32 => integer::<UInt32Type>(array, index),
        Type::UInt64 => integer::<UInt64Type>(array, index),
        Type::Decimal { .. } => integer::<Decimal128Type>(array, index),
        Type::Date => integer::<Date32Type>(array, index),
        Type::Time(TimeUnit::Second) => integer::<Time32SecondType>(array, index),
        Type::Time(TimeUnit::Millisecond) => integer::<Time32MillisecondType>(array, index),
        Type::Time(TimeUnit::Microsecond) => integer::<Time64MicrosecondType>(array, index),
        Type::Time(TimeUnit::Nanosecond) => integer::<Time64NanosecondType>(array, index),
        Type::Timestamp(TimeUnit::Second, _) => integer::<TimestampSecondType>(array, index),
        Type::Timestamp(TimeUnit::Millisecond, _) => integer::<TimestampMillisecondType>(array, index),
        Type::Timestamp(TimeUnit::Microsecond, _) => integer::<TimestampMicrosecondType>(array, index),
        Type::Timestamp(TimeUnit::Nanosecond, _) => integer::<TimestampNanosecondType>(array, index),
        Type::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(index).into()),
        Type::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(index)),
        Type::String => Value::String(array.as_string::<i32>().value(index).into()),
        Type::Binary => Value::Binary(array.as_binary::<i32>().value(index).into()),
        Type::Interval => {
            let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(index);
            Value::Interval { months: interval.months, days: interval.days, nanoseconds: interval.nanoseconds }
        }
    })
}
