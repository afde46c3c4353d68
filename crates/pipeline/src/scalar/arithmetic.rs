//! Arithmetic on numbers, dates and intervals.

use arrow_array::{
    timezone::Tz,
    types::{
        Date32Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use arrow_buffer::IntervalMonthDayNano;
use tandem_column::{Error, Result, TimeUnit, Type};

use super::{cast::describe, decimal, fault};
use crate::{ArithmeticOperator, Failure, Overflow, Value};

/// Computes `left operator right` with a result of type `kind`; null if either side is.
///
/// # Errors
/// If the result does not fit and `overflow` says error; on division by zero where `zero` says error.
pub fn arithmetic(
    operator: ArithmeticOperator,
    left: &Value,
    left_type: &Type,
    right: &Value,
    right_type: &Type,
    kind: &Type,
    overflow: Overflow,
    zero: Failure,
) -> Result<Value> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    let divides = matches!(operator, ArithmeticOperator::Divide | ArithmeticOperator::Remainder);
    if divides && *right == Value::Integer(0) {
        return match zero {
            Failure::Null => Ok(Value::Null),
            Failure::Error => {
                let (left, right) = (describe(left, left_type), describe(right, right_type));
                Err(fault::division_by_zero(&format!("{left} {} {right}", operator.symbol()), &right))
            }
        };
    }
    let found = match (left, right, kind) {
        (Value::Float(left), Value::Float(right), Type::Float32 | Type::Float64) => {
            Some(Value::Float(float(operator, *left, *right, kind)))
        }
        (Value::Integer(left), Value::Integer(right), kind) if kind.is_integer() => {
            integer(operator, *left, *right, kind, overflow).map(Value::Integer)
        }
        (Value::Integer(a), Value::Integer(b), Type::Decimal { precision, scale }) => {
            let (a, b) = ((*a, scale_of(left_type)), (*b, scale_of(right_type)));
            match operator {
                ArithmeticOperator::Add => decimal::add(a, b, false, *scale, *precision),
                ArithmeticOperator::Subtract => decimal::add(a, b, true, *scale, *precision),
                ArithmeticOperator::Multiply => decimal::multiply(a, b, *scale, *precision),
                ArithmeticOperator::Divide => decimal::divide(a, b, *scale, *precision),
                ArithmeticOperator::Remainder => decimal::remainder(a, b, *scale, *precision),
            }
            .map(Value::Integer)
        }
        _ => temporal(operator, left, left_type, right, right_type)?,
    };
    match (found, overflow) {
        (Some(found), _) => Ok(found),
        (None, Overflow::Null) => Ok(Value::Null),
        (None, Overflow::Error | Overflow::Wrap) => {
            Err(fault::overflow(operator, &describe(left, left_type), &describe(right, right_type), kind))
        }
    }
}

/// Computes `−value` of a number or interval.
///
/// # Errors
/// If the result does not fit and `overflow` says error.
pub fn negate(value: &Value, kind: &Type, overflow: Overflow) -> Result<Value> {
    let found = match value {
        Value::Null => return Ok(Value::Null),
        Value::Float(value) => Some(Value::Float(-value)),
        Value::Integer(value) if kind.is_integer() => {
            integer(ArithmeticOperator::Subtract, 0, *value, kind, overflow).map(Value::Integer)
        }
        Value::Integer(value) => value.checked_neg().map(Value::Integer),
        Value::Interval { months, days, nanoseconds } => {
            match (months.checked_neg(), days.checked_neg(), nanoseconds.checked_neg()) {
                (Some(months), Some(days), Some(nanoseconds)) => Some(Value::Interval { months, days, nanoseconds }),
                _ => None,
            }
        }
        other => return Err(fault::misfit("a negation", other)),
    };
    match (found, overflow) {
        (Some(found), _) => Ok(found),
        (None, Overflow::Null) => Ok(Value::Null),
        (None, _) => Err(fault::overflow_of("negation", &describe(value, kind), kind)),
    }
}

/// Returns a type's scale; integers have none.
fn scale_of(kind: &Type) -> i8 {
    match kind {
        Type::Decimal { scale, .. } => *scale,
        _ => 0,
    }
}

/// Computes on floats, rounding to single precision where the type asks for it.
pub fn float(operator: ArithmeticOperator, left: f64, right: f64, kind: &Type) -> f64 {
    let result = match operator {
        ArithmeticOperator::Add => left + right,
        ArithmeticOperator::Subtract => left - right,
        ArithmeticOperator::Multiply => left * right,
        ArithmeticOperator::Divide => left / right,
        ArithmeticOperator::Remainder => left % right,
    };
    if *kind == Type::Float32 { f64::from(result as f32) } else { result }
}

/// Computes on integers of one type; the divisor is not zero. `None` if the result does not fit and does not wrap.
pub fn integer(operator: ArithmeticOperator, left: i128, right: i128, kind: &Type, overflow: Overflow) -> Option<i128> {
    // Operands have at most 64 bits, so that 128 hold every exact result but large products of UInt64.
    let exact = match operator {
        ArithmeticOperator::Add => left + right,
        ArithmeticOperator::Subtract => left - right,
        ArithmeticOperator::Multiply => match left.checked_mul(right) {
            Some(product) => product,
            None if overflow == Overflow::Wrap => return Some((left as u64).wrapping_mul(right as u64).into()),
            None => return None,
        },
        ArithmeticOperator::Divide => left / right,
        ArithmeticOperator::Remainder => left % right,
    };
    let (low, high) = kind.integer_range()?;
    if (low..=high).contains(&exact) {
        Some(exact)
    } else if overflow == Overflow::Wrap {
        Some((exact - low).rem_euclid(high - low + 1) + low)
    } else {
        None
    }
}

/// Reads the zone of a timestamp type; without one, UTC.
pub fn zone(kind: &Type) -> Result<Tz> {
    let name = match kind {
        Type::Timestamp(_, Some(name)) => name,
        _ => "+00:00",
    };
    name.parse().map_err(|_| Error::input(format!("unknown time zone: name one of the IANA database, not '{name}'")))
}

/// Computes on dates, timestamps and intervals; `None` if the result is out of range.
fn temporal(
    operator: ArithmeticOperator,
    left: &Value,
    left_type: &Type,
    right: &Value,
    right_type: &Type,
) -> Result<Option<Value>> {
    let subtract = match operator {
        ArithmeticOperator::Add => false,
        ArithmeticOperator::Subtract => true,
        _ => return Err(fault::unsupported(&format!("operator {}", operator.symbol()), left_type)),
    };
    Ok(match (left, left_type, right, right_type) {
        (Value::Interval { .. }, _, Value::Integer(_), Type::Date | Type::Timestamp(..)) if !subtract => {
            return temporal(operator, right, right_type, left, left_type);
        }
        (Value::Integer(left), Type::Date, Value::Integer(right), Type::Date) if subtract => {
            Some(Value::Integer(left - right))
        }
        (Value::Integer(left), Type::Timestamp(unit, _), Value::Integer(right), Type::Timestamp(..)) if subtract => {
            let nanoseconds = (left - right) * i128::from(1_000_000_000 / unit.per_second());
            i64::try_from(nanoseconds).ok().map(|nanoseconds| Value::Interval { months: 0, days: 0, nanoseconds })
        }
        (Value::Integer(value), _, Value::Interval { months, days, nanoseconds }, Type::Interval) => {
            // Arrow negates months, so the one number without a negative is out of range.
            if subtract && *months == i32::MIN {
                return Ok(None);
            }
            let interval = IntervalMonthDayNano::new(*months, *days, *nanoseconds);
            shift(*value, left_type, interval, subtract)?.map(Value::Integer)
        }
        (
            Value::Interval { months, days, nanoseconds },
            _,
            Value::Interval { months: months2, days: days2, nanoseconds: nanoseconds2 },
            _,
        ) => {
            let months = if subtract { months.checked_sub(*months2) } else { months.checked_add(*months2) };
            let days = if subtract { days.checked_sub(*days2) } else { days.checked_add(*days2) };
            let nanoseconds =
                if subtract { nanoseconds.checked_sub(*nanoseconds2) } else { nanoseconds.checked_add(*nanoseconds2) };
            match (months, days, nanoseconds) {
                (Some(months), Some(days), Some(nanoseconds)) => Some(Value::Interval { months, days, nanoseconds }),
                _ => None,
            }
        }
        _ => return Err(fault::unsupported(&format!("{left_type} {} {right_type}", operator.symbol()), left_type)),
    })
}

/// Moves a date or timestamp by an interval: months first, then days, then nanoseconds; days clamp to the month's end.
fn shift(value: i128, kind: &Type, by: IntervalMonthDayNano, subtract: bool) -> Result<Option<i128>> {
    let zone = zone(kind)?;
    let Ok(value) = i64::try_from(value) else { return Ok(None) };
    let moved = match (kind, subtract) {
        (Type::Date, _) => {
            let Ok(days) = i32::try_from(value) else { return Ok(None) };
            let moved = if subtract {
                Date32Type::subtract_month_day_nano_opt(days, by)
            } else {
                Date32Type::add_month_day_nano_opt(days, by)
            };
            return Ok(moved.map(i128::from));
        }
        (Type::Timestamp(TimeUnit::Second, _), false) => TimestampSecondType::add_month_day_nano(value, by, zone),
        (Type::Timestamp(TimeUnit::Second, _), true) => TimestampSecondType::subtract_month_day_nano(value, by, zone),
        (Type::Timestamp(TimeUnit::Millisecond, _), false) => {
            TimestampMillisecondType::add_month_day_nano(value, by, zone)
        }
        (Type::Timestamp(TimeUnit::Millisecond, _), true) => {
            TimestampMillisecondType::subtract_month_day_nano(value, by, zone)
        }
        (Type::Timestamp(TimeUnit::Microsecond, _), false) => {
            TimestampMicrosecondType::add_month_day_nano(value, by, zone)
        }
        (Type::Timestamp(TimeUnit::Microsecond, _), true) => {
            TimestampMicrosecondType::subtract_month_day_nano(value, by, zone)
        }
        (Type::Timestamp(TimeUnit::Nanosecond, _), false) => {
            TimestampNanosecondType::add_month_day_nano(value, by, zone)
        }
        (Type::Timestamp(TimeUnit::Nanosecond, _), true) => {
            TimestampNanosecondType::subtract_month_day_nano(value, by, zone)
        }
        _ => return Err(fault::unsupported("an interval added or subtracted", kind)),
    };
    Ok(moved.map(i128::from))
}
