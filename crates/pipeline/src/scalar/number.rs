//! Functions of one or two numbers.

use tandem_column::{Error, Result, Type};

use super::{cast::describe, decimal, decimal::Rounding, fault};
use crate::{Function, Value};

/// Returns a number as a float.
pub fn to_float(value: &Value, kind: &Type) -> Result<f64> {
    match (value, kind) {
        (Value::Float(value), _) => Ok(*value),
        (Value::Integer(value), Type::Decimal { scale, .. }) => Ok(decimal::to_float(*value, *scale)),
        (Value::Integer(value), _) => Ok(*value as f64),
        (other, _) => Err(fault::misfit("a function of numbers", other)),
    }
}

/// Brings a float result to its type.
pub fn from_float(value: f64, kind: &Type) -> Value {
    Value::Float(if *kind == Type::Float32 { f64::from(value as f32) } else { value })
}

/// Brings an exact result of the scale of `from` to the type `kind`, or says that it does not fit.
fn exact(found: Option<i128>, what: &str, value: &Value, from: &Type, kind: &Type) -> Result<Value> {
    let scale = if let Type::Decimal { scale, .. } = from { *scale } else { 0 };
    let found = found.and_then(|found| match kind {
        Type::Decimal { precision, scale: to } => decimal::rescale(found, scale, *to, *precision, Rounding::HalfAway),
        _ => Some(found).filter(|found| Value::Integer(*found).fits(kind)),
    });
    found.map(Value::Integer).ok_or_else(|| fault::overflow_of(what, &describe(value, from), kind))
}

/// Returns the magnitude of a number.
pub fn abs(value: &Value, from: &Type, kind: &Type) -> Result<Value> {
    match value {
        Value::Float(value) => Ok(Value::Float(value.abs())),
        Value::Integer(integer) => exact(integer.checked_abs(), "magnitude", value, from, kind),
        other => Err(fault::misfit("a magnitude", other)),
    }
}

/// Returns −1, 0 or 1; NaN of NaN.
pub fn sign(value: &Value, from: &Type, kind: &Type) -> Result<Value> {
    match value {
        Value::Float(value) => Ok(Value::Float(if *value == 0.0 { 0.0 } else { value.signum() })),
        Value::Integer(integer) if kind.is_float() => Ok(Value::Float(integer.signum() as f64)),
        Value::Integer(integer) => exact(Some(integer.signum()), "sign", value, &Type::Int64, kind)
            .map_err(|_| fault::overflow_of("sign", &describe(value, from), kind)),
        other => Err(fault::misfit("a sign", other)),
    }
}

/// Rounds half away from zero at `digits` behind the point (before it, if negative).
pub fn round(value: &Value, from: &Type, digits: i64, kind: &Type) -> Result<Value> {
    match value {
        Value::Float(value) if *from == Type::Float32 => {
            let factor = 10_f64.powi(clamp(digits)) as f32;
            Ok(Value::Float(((*value as f32 * factor).round() / factor).into()))
        }
        Value::Float(value) => {
            let factor = 10_f64.powi(clamp(digits));
            Ok(Value::Float((value * factor).round() / factor))
        }
        Value::Integer(integer) => match from {
            Type::Decimal { scale, .. } => {
                exact(decimal::round(*integer, *scale, digits), "rounding", value, from, kind)
            }
            _ => {
                // A unit that the type itself cannot hold rounds everything to zero, as DataFusion does.
                let high = from.integer_range().map_or(i128::MAX, |(_, high)| high);
                let unit = u32::try_from(digits.saturating_neg()).ok().map(decimal::power_of_ten);
                let found = match unit {
                    Some(unit) if unit.is_none_or(|unit| unit > high) => Some(0),
                    _ => decimal::round(*integer, 0, digits),
                };
                exact(found, "rounding", value, from, kind)
            }
        },
        other => Err(fault::misfit("a rounding", other)),
    }
}

/// Brings a number of digits to the exponents that floats have.
fn clamp(digits: i64) -> i32 {
    digits.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// Returns the largest whole number not above the value (or, with `up`, the smallest not below).
pub fn floor(value: &Value, from: &Type, up: bool, kind: &Type) -> Result<Value> {
    match (value, from) {
        (Value::Float(value), _) => Ok(Value::Float(if up { value.ceil() } else { value.floor() })),
        (Value::Integer(integer), Type::Decimal { scale, .. }) => {
            let found = if up { decimal::ceil(*integer, *scale) } else { decimal::floor(*integer, *scale) };
            exact(found, if up { "ceiling" } else { "floor" }, value, from, kind)
        }
        (Value::Integer(_), _) => Ok(value.clone()),
        (other, _) => Err(fault::misfit("a floor or ceiling", other)),
    }
}

/// Returns the value of a function of one float; `None` for functions of another kind.
pub fn unary(function: Function, value: f64) -> Option<f64> {
    Some(match function {
        Function::SquareRoot => value.sqrt(),
        Function::CubeRoot => value.cbrt(),
        Function::Exp => value.exp(),
        Function::Ln => value.ln(),
        Function::Log10 => value.log10(),
        Function::Log2 => value.log2(),
        Function::Sin => value.sin(),
        Function::Cos => value.cos(),
        Function::Tan => value.tan(),
        Function::ArcTan => value.atan(),
        _ => return None,
    })
}

/// Raises `base` to a power.
///
/// # Errors
/// If zero is raised to a negative power.
pub fn power(base: f64, exponent: f64) -> Result<f64> {
    if base == 0.0 && exponent < 0.0 {
        return Err(Error::input(format!(
            "zero raised to a negative power: guard the base with NULLIF(base, 0), exponent {exponent}"
        )));
    }
    Ok(base.powf(exponent))
}
