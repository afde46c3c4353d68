//! Medians and quantiles of sorted values: which values they lie between, and what is between two.

use tandem_column::Type;

use crate::Value;

/// Into how many steps the way from one value to the next is divided.
const STEPS: f64 = 1e6;

/// Returns the median of values in order.
pub fn median(values: &[Value], kind: &Type) -> Value {
    median_at(values.len(), kind, |place| values[place].clone())
}

/// Returns the median of so many values, of which `at` gives the one at a place of their order.
pub fn median_at(count: usize, kind: &Type, at: impl Fn(usize) -> Value) -> Value {
    let Some((low, high)) = middle(count) else { return Value::Null };
    match (at(low), at(high)) {
        (value, _) if low == high => value,
        (Value::Integer(low), Value::Integer(high)) => Value::Integer(half_of_integers(low, high)),
        (Value::Float(low), Value::Float(high)) => Value::Float(half_of_floats(low, high, kind)),
        _ => Value::Null,
    }
}

/// Returns the quantile of floats in order.
pub fn quantile(values: &[Value], fraction: f64, kind: &Type) -> Value {
    quantile_at(values.len(), fraction, kind, |place| values[place].clone())
}

/// Returns the quantile of so many floats, of which `at` gives the one at a place of their order.
pub fn quantile_at(count: usize, fraction: f64, kind: &Type, at: impl Fn(usize) -> Value) -> Value {
    let Some((low, high, weight)) = place(count, fraction) else { return Value::Null };
    match (at(low), at(high)) {
        (value, _) if low == high => value,
        (Value::Float(low), Value::Float(high)) => Value::Float(between(low, high, weight, kind)),
        _ => Value::Null,
    }
}

/// Returns the places of the two middle values, which are one where their number is odd.
pub fn middle(count: usize) -> Option<(usize, usize)> {
    (count > 0).then(|| ((count - 1) / 2, count / 2))
}

/// Returns the places of the values that a quantile lies between, and how far it is from the first to the second.
pub fn place(count: usize, fraction: f64) -> Option<(usize, usize, f64)> {
    let last = count.checked_sub(1)?;
    let at = fraction * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    Some((low, high.min(last), ((at - low as f64) * STEPS).trunc() / STEPS))
}

/// Returns the place of the first value that at least a share of all does not exceed.
pub fn discrete_place(count: usize, fraction: f64) -> Option<usize> {
    let last = count.checked_sub(1)?;
    let share = fraction * count as f64;
    // A share that is a whole number of values but for the rounding of its fraction is that number.
    let whole = share.round();
    let share = if (share - whole).abs() <= share * 1e-12 { whole } else { share.ceil() };
    Some((share as usize).saturating_sub(1).min(last))
}

/// Returns half the sum of two floats of a type.
pub fn half_of_floats(low: f64, high: f64, kind: &Type) -> f64 {
    if *kind == Type::Float32 { f64::from((low as f32 + high as f32) / 2.0) } else { (low + high) / 2.0 }
}

/// Returns half the sum of two integers, toward zero.
pub fn half_of_integers(low: i128, high: i128) -> i128 {
    match low.checked_add(high) {
        Some(sum) => sum / 2,
        // Both have one sign.
        None => low / 2 + high / 2 + (low % 2 + high % 2) / 2,
    }
}

/// Returns what lies between two floats of a type, which are at two places.
pub fn between(low: f64, high: f64, weight: f64, kind: &Type) -> f64 {
    let value = low + (high - low) * weight;
    if *kind == Type::Float32 { f64::from(value as f32) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_values_around_them() {
        let values: Vec<Value> = [1.0, 2.0, 4.0, 8.0].map(Value::Float).to_vec();
        let at = |fraction| quantile(&values, fraction, &Type::Float64);
        assert_eq!(at(0.0), Value::Float(1.0));
        assert_eq!(at(0.5), Value::Float(3.0));
        assert_eq!(at(1.0), Value::Float(8.0));
        assert_eq!(median(&values, &Type::Float64), Value::Float(3.0));
        assert_eq!(median(&values[..3], &Type::Float64), Value::Float(2.0));
        assert_eq!(median(&[], &Type::Float64), Value::Null);
    }

    #[test]
    fn discrete_quantiles_are_values() {
        let at = |count, fraction| discrete_place(count, fraction);
        assert_eq!([at(0, 0.5), at(1, 0.0), at(1, 1.0)], [None, Some(0), Some(0)]);
        assert_eq!([at(4, 0.0), at(4, 0.25), at(4, 0.26), at(4, 0.5), at(4, 1.0)].map(Option::unwrap), [0, 0, 1, 1, 3]);
        // 0.1 × 30, 0.7 × 10 and 0.07 × 100 are whole.
        assert_eq!([at(30, 0.1), at(10, 0.7), at(100, 0.07)].map(Option::unwrap), [2, 6, 6]);
    }

    #[test]
    fn half_of_the_largest_integers_does_not_overflow() {
        assert_eq!(half_of_integers(i128::MAX, i128::MAX), i128::MAX);
        assert_eq!(half_of_integers(i128::MIN, i128::MIN + 1), i128::MIN + 1);
        assert_eq!(half_of_integers(-3, 0), -1);
    }
}
