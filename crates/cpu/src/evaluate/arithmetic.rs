//! `+ - * / %` and negation of integers and floats; decimals are in `decimal`.
//!
//! Every integer range is `2^bits` values from its smallest, so checking and wrapping are one subtraction and one mask.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{Arithmetic, ArithmeticOperator, Expr, Failure, Overflow};

use super::kernels::{self, Side, both_valid, map2, map2_flagged};
use super::operand::Operand;
use super::{Evaluator, decimal, rowwise};
use crate::vector::{Values, Vector};
use tandem_pipeline::Value;

/// Computes an arithmetic operation.
pub(super) fn arithmetic(evaluator: &Evaluator<'_>, operation: &Arithmetic) -> Result<Operand> {
    let left = evaluator.operand(&operation.left)?;
    let right = evaluator.operand(&operation.right)?;
    if left.is_null() || right.is_null() {
        return Ok(Operand::Constant(Value::Null));
    }
    let kinds = [evaluator.kind(&operation.left), evaluator.kind(&operation.right)];
    let constant = matches!((&left, &right), (Operand::Constant(_), Operand::Constant(_)));
    if !constant && let Some(vector) = fast(operation, &left, &right, &kinds) {
        return Ok(vector.into());
    }
    rowwise::arithmetic(evaluator, operation, &[left, right], &kinds)
}

/// Computes `−x`.
pub(super) fn negate(evaluator: &Evaluator<'_>, input: &Expr, overflow: Overflow) -> Result<Operand> {
    let operand = evaluator.operand(input)?;
    let kind = evaluator.kind(input);
    if let Operand::Vector(vector) = &operand {
        let valid = vector.valid.clone();
        let values = match &vector.values {
            Values::Float(values) => Some(Values::Float(kernels::map(values, |value| -value))),
            Values::Int(values) if matches!(kind, Type::Decimal { .. }) => {
                Some(Values::Int(kernels::map(values, i64::wrapping_neg)))
            }
            Values::Wide(values) if matches!(kind, Type::Decimal { .. }) => {
                Some(Values::Wide(kernels::map(values, i128::wrapping_neg)))
            }
            Values::Int(values) => {
                range(&kind).and_then(|range| integers::<Subtract>(Side::One(0), Side::Rows(values), range, overflow))
            }
            _ => None,
        };
        if let Some(values) = values {
            return Ok(Vector { values, valid }.into());
        }
    }
    rowwise::negate(evaluator, operand, &kind, overflow)
}

fn fast(operation: &Arithmetic, left: &Operand, right: &Operand, kinds: &[Type; 2]) -> Option<Vector> {
    use ArithmeticOperator::*;
    let Arithmetic { operator, kind, overflow, zero, .. } = operation;
    let valid = both_valid(left.valid(), right.valid());
    if let Type::Decimal { .. } = kind {
        return decimal::fast(operation, left, right, kinds, valid);
    }
    if kind.repr() == Repr::Float {
        let values = floats(*operator, left.floats()?, right.floats()?, *kind == Type::Float32);
        return Some(Vector { values: Values::Float(values), valid });
    }
    let dates = *operator == Subtract && *kind == Type::Int64 && kinds.iter().all(|side| *side == Type::Date);
    if !dates && kinds.iter().any(|side| side != kind) {
        return None;
    }
    if *kind == Type::UInt64 {
        return decimal::unsigned(operation, left, right, valid);
    }
    let range = range(kind)?;
    let (a, b) = (left.ints()?, right.ints()?);
    let values = match operator {
        Add => integers::<Plus>(a, b, range, *overflow)?,
        Subtract => integers::<self::Subtract>(a, b, range, *overflow)?,
        Multiply => integers::<Times>(a, b, range, *overflow)?,
        Divide | Remainder => return quotient(*operator, a, b, range, *overflow, *zero, valid),
    };
    Some(Vector { values, valid })
}

/// The smallest value of an integer type and the mask of its offsets from it.
#[derive(Clone, Copy)]
struct IntegerRange {
    low: i64,
    mask: i64,
}

impl IntegerRange {
    /// Brings a value into the range, modulo its size.
    #[inline(always)]
    fn wrap(self, value: i64) -> i64 {
        self.low.wrapping_add(value.wrapping_sub(self.low) & self.mask)
    }

    /// Returns non-zero bits if a value is outside.
    #[inline(always)]
    fn outside(self, value: i64) -> i64 {
        value.wrapping_sub(self.low) & !self.mask
    }
}

/// Returns the range of an integer type that 64 bits hold.
fn range(kind: &Type) -> Option<IntegerRange> {
    let (low, high) = kind.integer_range()?;
    if *kind == Type::Boolean {
        return None;
    }
    Some(IntegerRange { low: low.try_into().ok()?, mask: (high - low) as u64 as i64 }).filter(|_| *kind != Type::UInt64)
}

/// An operator whose result in 64 bits is right unless it tells otherwise.
trait Operator {
    /// Whether operands of 32 bits or fewer can make it leave 64 bits: never, for all of ours.
    fn apply(a: i64, b: i64) -> i64;
    /// Returns the sign bit if the exact result does not fit 64 bits.
    fn left_64_bits(a: i64, b: i64, result: i64) -> i64;
    /// Tells from the operands' bits that the result always fits.
    fn always_fits(a: u32, b: u32) -> bool;
}

struct Plus;
struct Subtract;
struct Times;

impl Operator for Plus {
    #[inline(always)]
    fn apply(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn left_64_bits(a: i64, b: i64, result: i64) -> i64 {
        (a ^ result) & (b ^ result) & i64::MIN
    }
    fn always_fits(_: u32, _: u32) -> bool {
        false // the check is as cheap as finding out
    }
}

impl Operator for Subtract {
    #[inline(always)]
    fn apply(a: i64, b: i64) -> i64 {
        a.wrapping_sub(b)
    }
    #[inline(always)]
    fn left_64_bits(a: i64, b: i64, result: i64) -> i64 {
        (a ^ b) & (a ^ result) & i64::MIN
    }
    fn always_fits(_: u32, _: u32) -> bool {
        false
    }
}

impl Operator for Times {
    #[inline(always)]
    fn apply(a: i64, b: i64) -> i64 {
        a.wrapping_mul(b)
    }
    #[inline(always)]
    fn left_64_bits(a: i64, b: i64, _: i64) -> i64 {
        i64::from(a.overflowing_mul(b).1)
    }
    fn always_fits(a: u32, b: u32) -> bool {
        a + b < 63
    }
}

/// Computes with integers; `None` if a row (maybe a null one) leaves the range and that is not to wrap.
fn integers<O: Operator>(
    a: Side<'_, i64>,
    b: Side<'_, i64>,
    range: IntegerRange,
    overflow: Overflow,
) -> Option<Values> {
    if overflow == Overflow::Wrap {
        return Some(Values::Int(map2(a, b, |a, b| range.wrap(O::apply(a, b)))));
    }
    let full = range.mask == -1;
    let (values, flags) = if full && O::always_fits(kernels::bits(a), kernels::bits(b)) {
        (map2(a, b, O::apply), 0)
    } else if full {
        map2_flagged(a, b, |a, b| {
            let result = O::apply(a, b);
            (result, O::left_64_bits(a, b, result))
        })
    } else {
        // Operands of at most 32 bits: the result is exact in 64.
        map2_flagged(a, b, |a, b| {
            let result = O::apply(a, b);
            (result, range.outside(result))
        })
    };
    (flags == 0).then_some(Values::Int(values))
}

/// Divides integers; `None` if a row has no result and that is not just null.
fn quotient(
    operator: ArithmeticOperator,
    a: Side<'_, i64>,
    b: Side<'_, i64>,
    range: IntegerRange,
    overflow: Overflow,
    zero: Failure,
    valid: Option<Vec<u8>>,
) -> Option<Vector> {
    const OVERFLOW: i64 = 1;
    const ZERO: i64 = 2;
    let (values, flags) = if operator == ArithmeticOperator::Divide {
        map2_flagged(a, b, |a: i64, b: i64| {
            if b == 0 {
                return (0, ZERO);
            }
            let result = a.wrapping_div(b);
            let outside = range.outside(result) != 0 || (a == i64::MIN && b == -1);
            (range.wrap(result), i64::from(outside) * OVERFLOW)
        })
    } else {
        map2_flagged(a, b, |a: i64, b: i64| if b == 0 { (0, ZERO) } else { (a.wrapping_rem(b), 0) })
    };
    if flags & OVERFLOW != 0 && overflow != Overflow::Wrap || flags & ZERO != 0 && zero == Failure::Error {
        return None;
    }
    let valid = if flags & ZERO != 0 { nonzero(b, values.len(), valid) } else { valid };
    Some(Vector { values: Values::Int(values), valid })
}

/// Makes the rows with a divisor of zero null.
pub(super) fn nonzero<T: Copy + Default + PartialEq>(
    divisor: Side<'_, T>,
    rows: usize,
    valid: Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let divisible = match divisor {
        Side::Rows(values) => values.iter().map(|value| u8::from(*value != T::default())).collect(),
        Side::One(value) => vec![u8::from(value != T::default()); rows],
    };
    both_valid(valid.as_deref(), Some(&divisible))
}

fn floats(operator: ArithmeticOperator, a: Side<'_, f64>, b: Side<'_, f64>, single: bool) -> Vec<f64> {
    use ArithmeticOperator::*;
    // Rounding a double-precision result of single-precision operands gives the single-precision result.
    let round = |value: f64| f64::from(value as f32);
    match (operator, single) {
        (Add, false) => map2(a, b, |a, b| a + b),
        (Subtract, false) => map2(a, b, |a, b| a - b),
        (Multiply, false) => map2(a, b, |a, b| a * b),
        (Divide, false) => map2(a, b, |a, b| a / b),
        (Remainder, false) => map2(a, b, |a, b| a % b),
        (Add, true) => map2(a, b, |a, b| round(a + b)),
        (Subtract, true) => map2(a, b, |a, b| round(a - b)),
        (Multiply, true) => map2(a, b, |a, b| round(a * b)),
        (Divide, true) => map2(a, b, |a, b| round(a / b)),
        (Remainder, true) => map2(a, b, |a, b| round(a % b)),
    }
}
