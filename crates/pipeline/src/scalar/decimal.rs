//! Exact decimal arithmetic on scaled integers, through 256 bits where 128 may not hold an intermediate result.
//!
//! A decimal is an integer and, from its type, the number of digits behind the point. `None` means the exact result
//! does not fit the precision asked for.

use std::cmp::Ordering;

use arrow_buffer::i256;

/// The most digits a decimal has.
pub const MAXIMUM_PRECISION: u8 = 38;

/// Returns 10^exponent, if it fits 128 bits (exponent ≤ 38).
pub fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// Returns 10^exponent, if it fits 256 bits (exponent ≤ 76).
fn wide_power_of_ten(exponent: u32) -> Option<i256> {
    i256::from_i128(10).checked_pow(exponent)
}

/// Tells whether the scaled integer has at most `precision` digits.
pub fn fits(value: i128, precision: u8) -> bool {
    power_of_ten(precision.into()).is_none_or(|limit| -limit < value && value < limit)
}

/// How digits that a scale cannot hold are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the nearest, ties away from zero: casts and round().
    HalfAway,
    /// Toward zero: division, averages and casts to integers.
    Truncate,
}

/// Divides, with the quotient brought to an integer by `rounding`; the divisor is not zero.
fn divide_wide(value: i256, divisor: i256, rounding: Rounding) -> Option<i256> {
    let quotient = value.checked_div(divisor)?;
    if rounding == Rounding::Truncate {
        return Some(quotient);
    }
    let remainder = value.checked_rem(divisor)?;
    // Compare |remainder| with |divisor| − |remainder|, which cannot overflow as 2 × |remainder| could.
    let remainder = remainder.wrapping_abs();
    if remainder < divisor.wrapping_abs().wrapping_sub(remainder) {
        return Some(quotient);
    }
    let away = if (value < i256::ZERO) == (divisor < i256::ZERO) { i256::ONE } else { i256::MINUS_ONE };
    quotient.checked_add(away)
}

/// Brings an exact integer from one scale to another.
fn rescale_wide(value: i256, from: i32, to: i32, rounding: Rounding) -> Option<i256> {
    match to.cmp(&from) {
        Ordering::Equal => Some(value),
        Ordering::Greater if value == i256::ZERO => Some(value),
        Ordering::Greater => value.checked_mul(wide_power_of_ten((to - from) as u32)?),
        Ordering::Less => match wide_power_of_ten((from - to) as u32) {
            Some(divisor) => divide_wide(value, divisor, rounding),
            None => Some(i256::ZERO),
        },
    }
}

/// Narrows to 128 bits and checks the precision.
fn narrow(value: i256, precision: u8) -> Option<i128> {
    value.to_i128().filter(|value| fits(*value, precision))
}

/// Brings a decimal to another scale and precision.
pub fn rescale(value: i128, from: i8, to: i8, precision: u8, rounding: Rounding) -> Option<i128> {
    narrow(rescale_wide(i256::from_i128(value), from.into(), to.into(), rounding)?, precision)
}

/// Adds (or, with `subtract`, subtracts) two decimals of any scales, rounding half away to the result's scale.
pub fn add(left: (i128, i8), right: (i128, i8), subtract: bool, scale: i8, precision: u8) -> Option<i128> {
    let common = i32::from(left.1.max(right.1));
    let a = rescale_wide(i256::from_i128(left.0), left.1.into(), common, Rounding::HalfAway)?;
    let b = rescale_wide(i256::from_i128(right.0), right.1.into(), common, Rounding::HalfAway)?;
    let sum = if subtract { a.checked_sub(b)? } else { a.checked_add(b)? };
    narrow(rescale_wide(sum, common, scale.into(), Rounding::HalfAway)?, precision)
}

/// Multiplies two decimals of any scales, rounding half away to the result's scale.
pub fn multiply(left: (i128, i8), right: (i128, i8), scale: i8, precision: u8) -> Option<i128> {
    let product = i256::from_i128(left.0).checked_mul(i256::from_i128(right.0))?;
    let exact = i32::from(left.1) + i32::from(right.1);
    narrow(rescale_wide(product, exact, scale.into(), Rounding::HalfAway)?, precision)
}

/// Divides two decimals of any scales, truncating at the result's scale; the divisor is not zero.
pub fn divide(left: (i128, i8), right: (i128, i8), scale: i8, precision: u8) -> Option<i128> {
    let shift = i32::from(scale) - i32::from(left.1) + i32::from(right.1);
    let (mut dividend, mut divisor) = (i256::from_i128(left.0), i256::from_i128(right.0));
    if dividend == i256::ZERO {
        return Some(0);
    }
    if shift >= 0 {
        dividend = dividend.checked_mul(wide_power_of_ten(shift as u32)?)?;
    } else {
        match wide_power_of_ten(shift.unsigned_abs()).and_then(|power| divisor.checked_mul(power)) {
            Some(scaled) => divisor = scaled,
            None => return Some(0),
        }
    }
    narrow(divide_wide(dividend, divisor, Rounding::Truncate)?, precision)
}

/// Returns the remainder of two decimals of any scales, with the sign of the left; the divisor is not zero.
pub fn remainder(left: (i128, i8), right: (i128, i8), scale: i8, precision: u8) -> Option<i128> {
    let common = i32::from(left.1.max(right.1));
    let a = rescale_wide(i256::from_i128(left.0), left.1.into(), common, Rounding::HalfAway)?;
    let b = rescale_wide(i256::from_i128(right.0), right.1.into(), common, Rounding::HalfAway)?;
    narrow(rescale_wide(a.checked_rem(b)?, common, scale.into(), Rounding::HalfAway)?, precision)
}

/// Returns the average of a sum of `scale` over `count` > 0 rows, truncated at the result's scale as DataFusion does.
pub fn average(sum: i128, scale: i8, count: i64, to: i8, precision: u8) -> Option<i128> {
    let sum = rescale_wide(i256::from_i128(sum), scale.into(), to.into(), Rounding::Truncate)?;
    narrow(divide_wide(sum, i256::from_i128(count.into()), Rounding::Truncate)?, precision)
}

/// Rounds half away from zero at `digits` behind the point (before it, if negative), keeping the scale.
pub fn round(value: i128, scale: i8, digits: i64) -> Option<i128> {
    let drop = i64::from(scale).saturating_sub(digits);
    if drop <= 0 {
        return Some(value);
    }
    let Some(unit) = u32::try_from(drop).ok().and_then(wide_power_of_ten) else { return Some(0) };
    divide_wide(i256::from_i128(value), unit, Rounding::HalfAway)?.checked_mul(unit)?.to_i128()
}

/// Returns the largest whole number not above the decimal, in its own scale.
pub fn floor(value: i128, scale: i8) -> Option<i128> {
    match u32::try_from(scale).ok().filter(|scale| *scale > 0) {
        None => Some(value),
        Some(scale) => {
            let unit = power_of_ten(scale)?;
            value.checked_sub(value.rem_euclid(unit))
        }
    }
}

/// Returns the smallest whole number not below the decimal, in its own scale.
pub fn ceil(value: i128, scale: i8) -> Option<i128> {
    floor(value.checked_neg()?, scale)?.checked_neg()
}

/// Returns the nearest float, by way of one float division as Arrow does.
pub fn to_float(value: i128, scale: i8) -> f64 {
    value as f64 / 10_f64.powi(scale.into())
}

/// Returns the decimal nearest to a float, ties away from zero.
pub fn from_float(value: f64, scale: i8, precision: u8) -> Option<i128> {
    let scaled = (10_f64.powi(scale.into()) * value).round();
    // 2^127 is the first float that 128 bits do not hold; NaN fails both comparisons.
    let limit = 2_f64.powi(127);
    (scaled >= -limit && scaled < limit).then_some(scaled as i128).filter(|value| fits(*value, precision))
}

/// Writes a decimal as people do: sign, digits, point, `scale` digits.
pub fn format(value: i128, scale: i8) -> String {
    if scale <= 0 {
        let zeros = if value == 0 { 0 } else { usize::from(scale.unsigned_abs()) };
        return format!("{value}{}", "0".repeat(zeros));
    }
    let scale = usize::from(scale.unsigned_abs());
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" })
}

/// Reads what [`format()`] wrote: exactly `scale` digits behind the point.
pub fn parse(text: &str, scale: i8) -> Option<i128> {
    if scale <= 0 {
        let unit = power_of_ten(scale.unsigned_abs().into())?;
        let value: i128 = text.parse().ok()?;
        return (value % unit == 0).then_some(value / unit);
    }
    let (whole, fraction) = text.split_once('.')?;
    (fraction.len() == usize::from(scale.unsigned_abs()) && fraction.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| format!("{whole}{fraction}").parse().ok())?
}
