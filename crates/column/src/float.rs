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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_total_and_reversible() {
        let mut values =
            [f64::NAN, -f64::NAN, 0.0, -0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
        values.sort_by(f64::total_cmp);
        assert!(values.windows(2).all(|pair| float_order(pair[0]) < float_order(pair[1])));
        assert!(values.iter().all(|value| from_float_order(float_order(*value)).to_bits() == value.to_bits()));
    }
}
