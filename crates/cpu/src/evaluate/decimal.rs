//! Arithmetic of decimals, and of unsigned 64-bit integers, which 128 bits hold too.
//!
//! One look at the operands' bits tells whether any row could leave 64 or 128 bits; where none can, the loops multiply
//! without checks, and where even the result's precision cannot be exceeded they check nothing at all.

use tandem_column::{Repr, Type};
use tandem_pipeline::{Arithmetic, ArithmeticOperator, Failure, Overflow};

use super::arithmetic::nonzero;
use super::kernels::{Side, bits, bits_wide, map2, map2_flagged};
use super::operand::Operand;
use crate::vector::{Values, Vector};

/// Returns `10^exponent` for exponents from 0 to 38.
pub(super) fn power_of_ten(exponent: i32) -> Option<i128> {
    (0..=38).contains(&exponent).then(|| 10i128.pow(exponent as u32))
}

/// Returns how many bits hold the values below `10^exponent`.
fn length(value: i128) -> u32 {
    128 - value.leading_zeros()
}

/// What the exact results are made of, and where they must lie.
struct DecimalPlan {
    operator: ArithmeticOperator,
    /// What the left and right values are multiplied by first.
    factors: [i128; 2],
    /// One more than the largest magnitude of a result.
    limit: i128,
    /// Results are 64-bit.
    narrow: bool,
    zero: Failure,
}

/// Computes a decimal operation; `None` where a row may need care or there is no loop.
pub(super) fn fast(
    operation: &Arithmetic,
    left: &Operand,
    right: &Operand,
    kinds: &[Type; 2],
    valid: Option<Vec<u8>>,
) -> Option<Vector> {
    use ArithmeticOperator::*;
    let [Type::Decimal { scale: s1, .. }, Type::Decimal { scale: s2, .. }] = kinds else { return None };
    let Type::Decimal { precision, scale } = operation.kind else { return None };
    let (s1, s2, scale) = (i32::from(*s1), i32::from(*s2), i32::from(scale));
    let factors = match operation.operator {
        Add | Subtract => [power_of_ten(scale - s1)?, power_of_ten(scale - s2)?],
        Remainder if scale == s1.max(s2) => [power_of_ten(scale - s1)?, power_of_ten(scale - s2)?],
        Multiply if scale == s1 + s2 => [1, 1],
        Divide => [power_of_ten(scale - s1 + s2)?, 1],
        Multiply | Remainder => return None,
    };
    let plan = DecimalPlan {
        operator: operation.operator,
        factors,
        limit: power_of_ten(precision.into())?,
        narrow: operation.kind.repr() == Repr::Int,
        zero: operation.zero,
    };
    match (left.ints(), right.ints()) {
        (Some(a), Some(b)) => plan.run(a, bits(a), b, bits(b), valid),
        (Some(a), None) => right.with_wide(|b| plan.run(a, bits(a), b, bits_wide(b), valid))?,
        (None, Some(b)) => left.with_wide(|a| plan.run(a, bits_wide(a), b, bits(b), valid))?,
        (None, None) => {
            left.with_wide(|a| right.with_wide(|b| plan.run(a, bits_wide(a), b, bits_wide(b), valid)))??
        }
    }
}

/// Computes an operation of unsigned 64-bit integers; `None` where a row may need care.
pub(super) fn unsigned(
    operation: &Arithmetic,
    left: &Operand,
    right: &Operand,
    valid: Option<Vec<u8>>,
) -> Option<Vector> {
    use ArithmeticOperator::*;
    let largest = i128::from(u64::MAX);
    left.with_wide(|a| {
        right.with_wide(|b| {
            if operation.operator == Multiply && bits_wide(a) + bits_wide(b) > 126 {
                return None;
            }
            let check = |result: i128| (result & largest, i64::from(result & !largest != 0));
            let (values, flags) = match operation.operator {
                Add => map2_flagged(a, b, |a: i128, b: i128| check(a.wrapping_add(b))),
                Subtract => map2_flagged(a, b, |a: i128, b: i128| check(a.wrapping_sub(b))),
                Multiply => map2_flagged(a, b, |a: i128, b: i128| check(a.wrapping_mul(b))),
                Divide => map2_flagged(a, b, |a: i128, b: i128| a.checked_div(b).map_or((0, 2), |result| (result, 0))),
                Remainder => {
                    map2_flagged(a, b, |a: i128, b: i128| a.checked_rem(b).map_or((0, 2), |result| (result, 0)))
                }
            };
            if flags & 1 != 0 && operation.overflow != Overflow::Wrap
                || flags & 2 != 0 && operation.zero == Failure::Error
            {
                return None;
            }
            let valid = if flags & 2 != 0 { nonzero(b, values.len(), valid) } else { valid };
            Some(Vector { values: Values::Wide(values), valid })
        })
    })??
}

impl DecimalPlan {
    fn run<A, B>(
        &self,
        a: Side<'_, A>,
        a_bits: u32,
        b: Side<'_, B>,
        b_bits: u32,
        valid: Option<Vec<u8>>,
    ) -> Option<Vector>
    where
        A: Copy + Into<i128>,
        B: Copy + Into<i128> + Default + PartialEq,
    {
        use ArithmeticOperator::*;
        let [f, g] = self.factors;
        // Operands are below 2^a_bits and 2^b_bits in magnitude once multiplied by their factors.
        let grow = |bits: u32, factor: i128| bits + if factor == 1 { 0 } else { length(factor) };
        let (a_bits, b_bits) = (grow(a_bits, f), grow(b_bits, g));
        let result_bits = match self.operator {
            Add | Subtract => a_bits.max(b_bits) + 1,
            Multiply => a_bits + b_bits,
            Divide => a_bits,
            Remainder => a_bits.min(b_bits),
        };
        if a_bits.max(b_bits).max(result_bits) > 126 {
            return None;
        }
        // 2^result_bits below the limit: no result can exceed the precision.
        let safe = result_bits < length(self.limit) - 1;
        let small = a_bits.max(b_bits).max(result_bits) < 63 && self.limit < 1 << 62;
        match self.operator {
            Divide | Remainder => self.divide(a, b, valid),
            _ if small => {
                let (f, g, limit) = (f as i64, g as i64, self.limit as i64);
                let narrow = |a: A, b: B| (a.into() as i64, b.into() as i64);
                // Magnitudes are below 2^62, so the subtraction does not wrap.
                let over = move |result: i64| (limit - 1 - result.abs()) & i64::MIN;
                let values = match (self.operator, f == 1 && g == 1) {
                    (Multiply, _) => self.small(safe, a, b, |a, b| narrow(a, b).0.wrapping_mul(narrow(a, b).1), over),
                    (Add, true) => self.small(safe, a, b, |a, b| narrow(a, b).0.wrapping_add(narrow(a, b).1), over),
                    (_, true) => self.small(safe, a, b, |a, b| narrow(a, b).0.wrapping_sub(narrow(a, b).1), over),
                    (Add, false) => self.small(
                        safe,
                        a,
                        b,
                        |a, b| (narrow(a, b).0.wrapping_mul(f)).wrapping_add(narrow(a, b).1.wrapping_mul(g)),
                        over,
                    ),
                    (_, false) => self.small(
                        safe,
                        a,
                        b,
                        |a, b| (narrow(a, b).0.wrapping_mul(f)).wrapping_sub(narrow(a, b).1.wrapping_mul(g)),
                        over,
                    ),
                }?;
                Some(Vector { values, valid })
            }
            // Each factor of a product in 64 bits: one multiplication instead of three.
            Multiply if a_bits < 64 && b_bits < 64 => {
                self.large(safe, a, b, |a, b| i128::from(a as i64) * i128::from(b as i64), valid)
            }
            Multiply => self.large(safe, a, b, |a, b| a.wrapping_mul(b), valid),
            Add if f == 1 && g == 1 => self.large(safe, a, b, |a, b| a.wrapping_add(b), valid),
            Add => self.large(safe, a, b, |a, b| a.wrapping_mul(f).wrapping_add(b.wrapping_mul(g)), valid),
            Subtract if f == 1 && g == 1 => self.large(safe, a, b, |a, b| a.wrapping_sub(b), valid),
            Subtract => self.large(safe, a, b, |a, b| a.wrapping_mul(f).wrapping_sub(b.wrapping_mul(g)), valid),
        }
    }

    /// Computes in 64 bits.
    fn small<A: Copy, B: Copy>(
        &self,
        safe: bool,
        a: Side<'_, A>,
        b: Side<'_, B>,
        f: impl Fn(A, B) -> i64,
        over: impl Fn(i64) -> i64,
    ) -> Option<Values> {
        match (self.narrow, safe) {
            (true, true) => Some(Values::Int(map2(a, b, f))),
            (false, true) => Some(Values::Wide(map2(a, b, |a, b| f(a, b).into()))),
            (true, false) => {
                let (values, flags) = map2_flagged(a, b, |a, b| (f(a, b), over(f(a, b))));
                (flags == 0).then_some(Values::Int(values))
            }
            (false, false) => {
                let (values, flags) = map2_flagged(a, b, |a, b| (f(a, b).into(), over(f(a, b))));
                (flags == 0).then_some(Values::Wide(values))
            }
        }
    }

    /// Computes in 128 bits.
    fn large<A: Copy + Into<i128>, B: Copy + Into<i128>>(
        &self,
        safe: bool,
        a: Side<'_, A>,
        b: Side<'_, B>,
        f: impl Fn(i128, i128) -> i128,
        valid: Option<Vec<u8>>,
    ) -> Option<Vector> {
        let limit = self.limit;
        let values = if safe && !self.narrow {
            Values::Wide(map2(a, b, |a, b| f(a.into(), b.into())))
        } else {
            let (values, flags) = map2_flagged(a, b, |a, b| {
                let result = f(a.into(), b.into());
                (result, i64::from(result >= limit) | i64::from(result <= -limit))
            });
            if flags != 0 {
                return None;
            }
            self.brought(values)
        };
        Some(Vector { values, valid })
    }

    fn divide<A, B>(&self, a: Side<'_, A>, b: Side<'_, B>, valid: Option<Vec<u8>>) -> Option<Vector>
    where
        A: Copy + Into<i128>,
        B: Copy + Into<i128> + Default + PartialEq,
    {
        let ([f, g], limit) = (self.factors, self.limit);
        let remainder = self.operator == ArithmeticOperator::Remainder;
        let (values, flags) = map2_flagged(a, b, |a, b| {
            let (a, b): (i128, i128) = (a.into() * f, b.into() * g);
            if b == 0 {
                return (0, 2);
            }
            let result = match (i64::try_from(a), i64::try_from(b)) {
                (Ok(a), Ok(b)) if remainder => a.wrapping_rem(b).into(),
                (Ok(a), Ok(b)) if a != i64::MIN => (a / b).into(),
                _ if remainder => a % b,
                _ => a / b,
            };
            (result, i64::from(result >= limit || result <= -limit))
        });
        if flags & 1 != 0 || flags & 2 != 0 && self.zero == Failure::Error {
            return None;
        }
        let valid = if flags & 2 != 0 { nonzero(b, values.len(), valid) } else { valid };
        Some(Vector { values: self.brought(values), valid })
    }

    /// Holds checked results as their type wants.
    fn brought(&self, values: Vec<i128>) -> Values {
        if self.narrow {
            Values::Int(values.into_iter().map(|value| value as i64).collect())
        } else {
            Values::Wide(values)
        }
    }
}
