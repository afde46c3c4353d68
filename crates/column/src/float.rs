//! Floats by total order: −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN.

/// Maps a float to an integer of the same order: `a` is before `b` by [`f64::total_cmp`] exactly if the result is less.
#[inline]
pub fn float_order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// Undoes [`float_order`], bit for bit.
#[inline]
pub fn from_float_order(order: i64) -> f64 {
    f64::from_bits((order ^ ((order >> 63) as u64 >> 1) as i64) as u64)
}
