//! Casts: between numbers in loops, all others by Arrow's kernels over the whole vector.
//!
//! A loop that meets a value without counterpart (perhaps in a null row) is given up for the slow path, which knows
//! whether that is an error, a null or nothing.

use arrow_cast::{CastOptions, cast_with_options};
use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{Expr, Failure, Value, scalar};

use super::decimal::power_of_ten;
use super::kernels::{Side, bits, bits_wide, map, map_flagged};
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
    if from == *to || contained(&from, to) {
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

/// Tells whether every value of a type is one of another as it is held.
fn contained(from: &Type, to: &Type) -> bool {
    if from.repr() != to.repr() {
        return false;
    }
    match (from, to) {
        (Type::Decimal { precision, scale }, Type::Decimal { precision: wider, scale: same }) => {
            scale == same && precision <= wider
        }
        (Type::Float32, Type::Float64) | (Type::String, Type::Binary) => true,
        _ if from.is_integer() && to.is_integer() => match (from.integer_range(), to.integer_range()) {
            (Some((low, high)), Some((lowest, highest))) => lowest <= low && high <= highest,
            _ => false,
        },
        _ => false,
    }
}

fn fast(values: &Values, from: &Type, to: &Type) -> Option<Values> {
    match (values, from, to) {
        (Values::Boolean(values), _, _) if to.is_integer() => Some(match to.repr() {
            Repr::Wide => Values::Wide(map(values, i128::from)),
            _ => Values::Int(map(values, i64::from)),
        }),
        (Values::Boolean(values), _, _) if to.is_float() => Some(Values::Float(map(values, f64::from))),
        (Values::Int(values), Type::Decimal { scale, .. }, _) => from_decimal(values, *scale, to),
        (Values::Wide(values), Type::Decimal { scale, .. }, _) => from_decimal(values, *scale, to),
        (Values::Int(values), _, _) if from.is_integer() => from_integer(values, to),
        (Values::Wide(values), _, _) if from.is_integer() => from_integer(values, to),
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

/// A 64- or 128-bit integer.
trait Whole: Copy + Into<i128> {
    fn single(self) -> f32;
    fn double(self) -> f64;
    /// Returns how many bits hold the magnitude of every value.
    fn bits(values: &[Self]) -> u32;
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
    fn bits(values: &[i64]) -> u32 {
        bits(Side::Rows(values))
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
    fn bits(values: &[i128]) -> u32 {
        bits_wide(Side::Rows(values))
    }
}

fn from_integer<T: Whole>(values: &[T], to: &Type) -> Option<Values> {
    match to {
        Type::Boolean => Some(Values::Boolean(map(values, |value| u8::from(value.into() != 0)))),
        Type::Float32 => Some(Values::Float(map(values, |value| f64::from(value.single())))),
        Type::Float64 => Some(Values::Float(map(values, T::double))),
        Type::Decimal { precision, scale } => {
            multiplied(values, to, power_of_ten((*scale).into())?, power_of_ten((*precision).into())?)
        }
        _ if to.is_integer() => {
            let (low, high) = to.integer_range()?;
            rescaled(values, to, low, high, |value| value)
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
            let limit = power_of_ten((*precision).into())?;
            let shift = i32::from(*target) - i32::from(scale);
            if shift >= 0 {
                return multiplied(values, to, power_of_ten(shift)?, limit);
            }
            let divisor = power_of_ten(-shift)?;
            rescaled(values, to, 1 - limit, limit - 1, move |value| half_away(value, divisor))
        }
        _ if to.is_integer() && scale >= 0 => {
            let divisor = power_of_ten(scale.into())?;
            let (low, high) = to.integer_range()?;
            rescaled(values, to, low, high, move |value| divide(value, divisor))
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

/// Multiplies each by a power of ten; `None` if a result reaches the limit.
fn multiplied<T: Whole>(values: &[T], to: &Type, factor: i128, limit: i128) -> Option<Values> {
    let length = |value: i128| 128 - value.leading_zeros();
    let bits = T::bits(values) + if factor == 1 { 0 } else { length(factor) };
    if bits > 126 {
        return None;
    }
    // 2^bits below the limit: no result can reach it.
    let safe = bits < length(limit) - 1;
    match to.repr() {
        Repr::Int if safe && bits < 63 => {
            let factor = factor as i64;
            Some(Values::Int(map(values, |value| (value.into() as i64).wrapping_mul(factor))))
        }
        Repr::Wide if safe && bits < 63 => {
            let factor = factor as i64;
            Some(Values::Wide(map(values, |value| (value.into() as i64).wrapping_mul(factor).into())))
        }
        _ => rescaled(values, to, 1 - limit, limit - 1, move |value| value.wrapping_mul(factor)),
    }
}

/// Computes a new integer of each; `None` if one leaves the range.
fn rescaled<T: Whole>(values: &[T], to: &Type, low: i128, high: i128, f: impl Fn(i128) -> i128) -> Option<Values> {
    let outside = |value: i128| i64::from(value < low) | i64::from(value > high);
    match to.repr() {
        Repr::Int => {
            let (values, flags) = map_flagged(values, |value| {
                let value = f(value.into());
                (value as i64, outside(value))
            });
            (flags == 0).then_some(Values::Int(values))
        }
        Repr::Wide => {
            let (values, flags) = map_flagged(values, |value| {
                let value = f(value.into());
                (value, outside(value))
            });
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
