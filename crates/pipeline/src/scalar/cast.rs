//! Casts: from any type to any other that SQL allows, as Arrow casts.
//!
//! Between numbers the rules are written out here. Everything that reads or writes text, or knows time zones, is one
//! row through Arrow's own cast, so that formats are the same. A value without counterpart fails or becomes null.

use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use tandem_column::{Result, Type};

use super::{arrow, decimal, decimal::Rounding, fault};
use crate::{Failure, Value};

/// Tells whether a cast between two types exists.
pub fn castable(from: &Type, to: &Type) -> bool {
    match (arrow::data_type(from), arrow::data_type(to)) {
        (Some(from), Some(to)) => from == to || can_cast_types(&from, &to),
        _ => false,
    }
}

/// Casts a value.
///
/// # Errors
/// If the value has no counterpart in `to` and `failure` is an error; if there is no such cast.
pub fn cast(value: &Value, from: &Type, to: &Type, failure: Failure) -> Result<Value> {
    if value.is_null() || from == to {
        return Ok(value.clone());
    }
    if *from == Type::Null {
        return Err(fault::misfit("a cast of null", value));
    }
    let found = match direct(value, from, to) {
        Some(found) => found,
        None => through_arrow(value, from, to)?,
    };
    match (found, failure) {
        (Some(found), _) => Ok(found),
        (None, Failure::Null) => Ok(Value::Null),
        (None, Failure::Error) => Err(fault::cast(&describe(value, from), to)),
    }
}

/// Writes a value for an error message: text in quotes, all else as its cast to text.
pub fn describe(value: &Value, kind: &Type) -> String {
    match (value, kind) {
        (Value::Integer(value), Type::Decimal { scale, .. }) => decimal::format(*value, *scale),
        (Value::Integer(_), kind) if !kind.is_integer() => match through_arrow(value, kind, &Type::String) {
            Ok(Some(Value::String(text))) => format!("'{text}'"),
            _ => value.to_string(),
        },
        _ => value.to_string(),
    }
}

/// Casts by the rules for numbers; the outer `None` is for pairs that these do not cover.
fn direct(value: &Value, from: &Type, to: &Type) -> Option<Option<Value>> {
    let found = match (value, from, to) {
        (Value::Boolean(value), _, to) if to.is_integer() => Some(Value::Integer((*value).into())),
        (Value::Boolean(value), _, to) if to.is_float() => Some(Value::Float(u8::from(*value).into())),
        (Value::Boolean(value), _, Type::String) => Some(Value::string(if *value { "true" } else { "false" })),
        (Value::Integer(value), from, to) if from.is_integer() => match to {
            Type::Boolean => Some(Value::Boolean(*value != 0)),
            Type::Float32 => Some(Value::Float((*value as f32).into())),
            Type::Float64 => Some(Value::Float(*value as f64)),
            Type::Decimal { precision, scale } => {
                decimal::rescale(*value, 0, *scale, *precision, Rounding::Truncate).map(Value::Integer)
            }
            Type::String => Some(Value::string(value.to_string())),
            to if to.is_integer() => Some(Value::Integer(*value)).filter(|value| value.fits(to)),
            _ => return None,
        },
        (Value::Integer(value), Type::Decimal { scale, .. }, to) => match to {
            Type::Float32 => Some(Value::Float((decimal::to_float(*value, *scale) as f32).into())),
            Type::Float64 => Some(Value::Float(decimal::to_float(*value, *scale))),
            Type::Decimal { precision, scale: to } => {
                decimal::rescale(*value, *scale, *to, *precision, Rounding::HalfAway).map(Value::Integer)
            }
            to if to.is_integer() => decimal::rescale(*value, *scale, 0, u8::MAX, Rounding::Truncate)
                .map(Value::Integer)
                .filter(|value| value.fits(to)),
            _ => return None,
        },
        (Value::Float(value), _, to) => match to {
            Type::Boolean => Some(Value::Boolean(*value != 0.0)),
            Type::Float32 => Some(Value::Float((*value as f32).into())),
            Type::Float64 => Some(Value::Float(*value)),
            Type::Decimal { precision, scale } => decimal::from_float(*value, *scale, *precision).map(Value::Integer),
            to if to.is_integer() => integer(*value).map(Value::Integer).filter(|value| value.fits(to)),
            _ => return None,
        },
        (Value::String(value), _, Type::Binary) => Some(Value::Binary(value.as_bytes().into())),
        (Value::Binary(value), _, Type::String) => std::str::from_utf8(value).ok().map(Value::string),
        _ => return None,
    };
    Some(found)
}

/// Returns a float's whole part, if it is finite. What exceeds 128 bits saturates, which no integer type holds.
fn integer(value: f64) -> Option<i128> {
    value.is_finite().then_some(value as i128)
}

/// Casts one row by Arrow; `None` if the value has no counterpart.
fn through_arrow(value: &Value, from: &Type, to: &Type) -> Result<Option<Value>> {
    let target = arrow::data_type(to).ok_or_else(|| fault::unsupported(&format!("a cast to {to}"), from))?;
    if !castable(from, to) {
        return Err(fault::unsupported(&format!("a cast to {to}"), from));
    }
    let array = arrow::array(std::slice::from_ref(value), from)?;
    let options = CastOptions { safe: true, ..CastOptions::default() };
    // Some casts of Arrow fail even when asked for null instead: these are values without counterpart too.
    match cast_with_options(&array, &target, &options) {
        Ok(array) => Ok(Some(arrow::value(&array, 0, to)?).filter(|value| !value.is_null())),
        Err(_) => Ok(None),
    }
}
