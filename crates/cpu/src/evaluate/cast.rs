//! Casts: between numbers in loops, all others by Arrow's kernels over the whole vector.
//!
//! A loop that meets a value without counterpart (perhaps in a null row) is given up for the slow path, which knows
//! whether that is an error, a null or nothing.

use arrow_cast::{CastOptions, cast_with_options};
use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{Expr, Failure, Value, scalar};

use super::decimal::power_of_ten;
use super::kernels::{map, map_flagged};
use super::operand::Operand;
use super::{Evaluator, rowwise};
use crate::vector::{Values, Vector};

/// Computes a cast.
pub(super) fn cast(evaluator: &Evaluator<'_>, input: &Expr, to: &Type, failure: Failure) -> Result<Operand> {
    let operand = evaluator.operand(input)?;
    let from = evaluator.kind(input);
    if operand.is_null() || from == Type::Null {
        return Ok(Operand::Constant(Value::Null));
    }
    if from == *to {
        return Ok(operand);
    }
    let Operand::Vector(vector) = &operand else { return rowwise::cast(evaluator, operand, &from, to, failure) };
    if let Some(values) = fast(&vector.values, &from, to) {
        return Ok(Vector { values, valid: vector.valid.clone() }.into());
    }
    if from.is_numeric() && (to.is_numeric() || *to == Type::Boolean) {
        return rowwise::cast(evaluator, operand, &from, to, failure);
    }
    match through_arrow(vector, &from, to, failure)? {
        Some(vector) => Ok(vector.into()),
        None => rowwise::cast(evaluator, operand, &from, to, failure),
    }
}

fn fast(values: &Values, from: &Type, to: &Type) -> Option<Values> {
    match (values, from, to) {
        (Values::Boolean(values), _, _) if to.is_integer() => {
            whole(to, map(values, i64::from), |values| map(&values, i128::from))
        }
        (Values::Boolean(values), _, _) if to.is_float() => Some(Values::Float(map(values, f64::from))),
        (values, Type::String, Type::Binary) => Some(values.clone()),
        (Values::Int(values), Type::Decimal { scale, .. }, _) => from_decimal(values, *scale, to),
        (Values::Wide(values), Type::Decimal { scale, .. }, _) => from_decimal(values, *scale, to),
        (Values::Int(values), _, _) if from.is_integer() => from_integer(values, to),
        (Values::Wide(values), _, _) if from.is_integer() => from_integer(values, to),
        (Values::Float(values), _, Type::Float64) => Some(Values::Float(values.clone())),
        (Values::Float(values), _, Type::Float32) => Some(Values::Float(map(values, |value| f64::from(value as f32)))),
        (Values::Float(values), _, Type::Boolean) => Some(Values::Boolean(map(values, |value| u8::from(value != 0.0)))),
        (Values::Float(values), _, _) if to.is_integer() && to.repr() == Repr::Int => {
            let (low, high) = to.integer_range()?;
            // Both bounds are exact floats: powers of two, the upper one just outside the range. NaN fails both.
            let (low, past) = (low as f64, (high + 1) as f64);
            let (values, flags) = map_flagged(values, |value: f64| {
                let value = value.trunc();
                (value as i64, i64::from(!(value >= low && value < past)))
            });
            (flags == 0).then_some(Values::Int(values))
        }
        _ => None,
    }
}

/// Holds 64-bit integers as an integer type wants.
fn whole(to: &Type, values: Vec<i64>, widen: impl FnOnce(Vec<i64>) -> Vec<i128>) -> Option<Values> {
    match to.repr() {
        Repr::Int => Some(Values::Int(values)),
        Repr::Wide => Some(Values::Wide(widen(values))),
        _ => None,
    }
}

/// A 64- or 128-bit integer.
trait Whole: Copy + Into<i128> {
    fn single(self) -> f32;
    fn double(self) -> f64;
}

impl Whole for i64 {
    #[inline(always)]
    fn single(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn double(self) -> f64 {
        self as f64
    }
}

impl Whole for i128 {
    #[inline(always)]
    fn single(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn double(self) -> f64 {
        self as f64
    }
}

fn from_integer<T: Whole>(values: &[T], to: &Type) -> Option<Values> {
    match to {
        Type::Boolean => Some(Values::Boolean(map(values, |value| u8::from(value.into() != 0)))),
        Type::Float32 => Some(Values::Float(map(values, |value| f64::from(value.single())))),
        Type::Float64 => Some(Values::Float(map(values, T::double))),
        Type::Decimal { precision, scale } => {
            let (factor, limit) = (power_of_ten((*scale).into())?, power_of_ten((*precision).into())?);
            // The limit is inclusive here, the precision's is not.
            rescaled(values, to, -(limit - 1), limit - 1, move |value| value.checked_mul(factor))
        }
        _ if to.is_integer() => {
            let (low, high) = to.integer_range()?;
            rescaled(values, to, low, high, Some)
        }
        _ => None,
    }
}

fn from_decimal<T: Whole>(values: &[T], scale: i8, to: &Type) -> Option<Values> {
    let scale_power = 10_f64.powi(scale.into());
    match to {
        Type::Float32 => {
            Some(Values::Float(map(values, move |value: T| f64::from((value.double() / scale_power) as f32))))
        }
        Type::Float64 => Some(Values::Float(map(values, move |value: T| value.double() / scale_power))),
        Type::Decimal { precision, scale: target } => {
            let limit = power_of_ten((*precision).into())? - 1;
            let shift = i32::from(*target) - i32::from(scale);
            if shift >= 0 {
                let factor = power_of_ten(shift)?;
                return rescaled(values, to, -limit, limit, move |value| value.checked_mul(factor));
            }
            let divisor = power_of_ten(-shift)?;
            rescaled(values, to, -limit, limit, move |value| Some(half_away(value, divisor)))
        }
        _ if to.is_integer() && scale >= 0 => {
            let divisor = power_of_ten(scale.into())?;
            let (low, high) = to.integer_range()?;
            rescaled(values, to, low, high, move |value| Some(divide(value, divisor)))
        }
        _ => None,
    }
}

/// Divides toward zero, in 64 bits where both sides fit.
#[inline(always)]
fn divide(value: i128, divisor: i128) -> i128 {
    match (i64::try_from(value), i64::try_from(divisor)) {
        (Ok(value), Ok(divisor)) => (value / divisor).into(),
        _ => value / divisor,
    }
}

/// Divides by a positive number, to the nearest integer, ties away from zero.
#[inline(always)]
fn half_away(value: i128, divisor: i128) -> i128 {
    let quotient = divide(value, divisor);
    let remainder = (value - quotient * divisor).abs();
    quotient + if remainder >= divisor - remainder { value.signum() } else { 0 }
}

/// Computes a new integer of each; `None` if one does not exist or leaves the range.
fn rescaled<T: Whole>(
    values: &[T],
    to: &Type,
    low: i128,
    high: i128,
    f: impl Fn(i128) -> Option<i128>,
) -> Option<Values> {
    let check = |value: T| match f(value.into()) {
        Some(value) => (value, i64::from(value < low) | i64::from(value > high)),
        None => (0, 1),
    };
    match to.repr() {
        Repr::Int => {
            let (values, flags) = map_flagged(values, |value| {
                let (value, flag) = check(value);
                (value as i64, flag)
            });
            (flags == 0).then_some(Values::Int(values))
        }
        Repr::Wide => {
            let (values, flags) = map_flagged(values, check);
            (flags == 0).then_some(Values::Wide(values))
        }
        _ => None,
    }
}

/// Casts the whole vector by Arrow; `None` where it refuses all because of one.
fn through_arrow(vector: &Vector, from: &Type, to: &Type, failure: Failure) -> Result<Option<Vector>> {
    let Some(target) = scalar::arrow::data_type(to) else { return Ok(None) };
    let values: Vec<Value> = (0..vector.len()).map(|row| vector.value(row, from)).collect();
    let array = scalar::arrow::array(&values, from)?;
    let Ok(array) = cast_with_options(&array, &target, &CastOptions { safe: true, ..CastOptions::default() }) else {
        return Ok(None);
    };
    let mut out = Vector::empty(to);
    for (row, value) in values.iter().enumerate() {
        let mut found = scalar::arrow::value(&array, row, to)?;
        if found.is_null() && !value.is_null() && failure == Failure::Error {
            found = scalar::cast(value, from, to, failure)?;
        }
        out.push(&found);
    }
    Ok(Some(out))
}
