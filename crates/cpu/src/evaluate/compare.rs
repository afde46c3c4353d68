//! Comparisons: masks of 0 and 1 from equality and less-than, turned and negated as needed.

use std::{cmp::Ordering, sync::Arc};

use tandem_column::{Result, Type};
use tandem_pipeline::{Comparison, Expr, Value};

use super::kernels::{Side, both_valid, map, map2};
use super::operand::Operand;
use super::{Evaluator, rowwise};
use crate::vector::{Values, Vector, bytes};

/// A comparison as equality or less-than, perhaps of the sides exchanged, perhaps negated.
#[derive(Clone, Copy)]
struct OrderTest {
    equal: bool,
    negate: bool,
}

/// Computes a comparison.
pub(super) fn compare(evaluator: &Evaluator<'_>, comparison: Comparison, left: &Expr, right: &Expr) -> Result<Operand> {
    let sides = [evaluator.operand(left)?, evaluator.operand(right)?];
    if sides.iter().any(Operand::is_null) {
        return Ok(Operand::Constant(Value::Null));
    }
    let kinds = [evaluator.kind(left), evaluator.kind(right)];
    if comparable(&sides, &kinds)
        && let Some(mask) = mask(comparison, &sides[0], &sides[1])
    {
        let valid = both_valid(sides[0].valid(), sides[1].valid());
        return Ok(Vector { values: Values::Boolean(mask), valid }.into());
    }
    rowwise::compare(evaluator, comparison, &sides, &kinds)
}

/// Computes IS DISTINCT FROM.
pub(super) fn distinct(evaluator: &Evaluator<'_>, left: &Expr, right: &Expr) -> Result<Operand> {
    let sides = [evaluator.operand(left)?, evaluator.operand(right)?];
    let kinds = [evaluator.kind(left), evaluator.kind(right)];
    // Distinct from null: not null.
    let other = match &sides {
        [Operand::Constant(Value::Null), Operand::Vector(other)] => Some(other),
        [Operand::Vector(other), Operand::Constant(Value::Null)] => Some(other),
        _ => None,
    };
    if let Some(other) = other {
        return Ok(Vector::boolean(other.valid.clone().unwrap_or_else(|| vec![1; other.len()])).into());
    }
    if comparable(&sides, &kinds)
        && let Some(mut mask) = mask(Comparison::NotEqual, &sides[0], &sides[1])
    {
        let valid = [sides[0].valid(), sides[1].valid()];
        if valid.iter().any(Option::is_some) {
            for (row, unequal) in mask.iter_mut().enumerate() {
                let [a, b] = valid.map(|valid| valid.map_or(1, |valid| valid[row]));
                *unequal = (a & b & *unequal) | (a ^ b);
            }
        }
        return Ok(Vector::boolean(mask).into());
    }
    rowwise::distinct(evaluator, &sides, &kinds)
}

/// Tells whether two sides compare by their representation alone: at most one is constant, and scales agree.
fn comparable(sides: &[Operand; 2], kinds: &[Type; 2]) -> bool {
    let unit = |kind: &Type| match kind {
        Type::Decimal { scale, .. } => Some(i32::from(*scale)),
        Type::Time(unit) | Type::Timestamp(unit, _) => Some(1000 + *unit as i32),
        Type::Date => Some(2000),
        _ => None,
    };
    sides.iter().any(|side| matches!(side, Operand::Vector(_))) && unit(&kinds[0]) == unit(&kinds[1])
}

/// Compares all rows; `None` where the sides are of different representations.
pub(super) fn mask(comparison: Comparison, left: &Operand, right: &Operand) -> Option<Vec<u8>> {
    let (equal, exchange, negate) = match comparison {
        Comparison::Equal => (true, false, false),
        Comparison::NotEqual => (true, false, true),
        Comparison::Less => (false, false, false),
        Comparison::GreaterOrEqual => (false, false, true),
        Comparison::Greater => (false, true, false),
        Comparison::LessOrEqual => (false, true, true),
    };
    let test = OrderTest { equal, negate };
    let (a, b) = if exchange { (right, left) } else { (left, right) };
    if let (Some(a), Some(b)) = (a.ints(), b.ints()) {
        return Some(test.run(a, b, |value| value));
    }
    if let (Some(a), Some(b)) = (a.floats(), b.floats()) {
        return Some(test.run(a, b, float_order));
    }
    if let (Some(a), Some(b)) = (a.booleans(), b.booleans()) {
        return Some(test.run(a, b, |value| value));
    }
    if let Some(mask) = text(test, a, b) {
        return Some(mask);
    }
    a.with_wide(|a| b.with_wide(|b| test.run(a, b, |value| value)))?
}

/// Maps a float to an integer of the same order: total order, as IEEE 754 defines it.
#[inline(always)]
pub(super) fn float_order(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

impl OrderTest {
    /// Compares the keys of all rows.
    fn run<T: Copy, K: PartialOrd>(self, a: Side<'_, T>, b: Side<'_, T>, key: impl Fn(T) -> K) -> Vec<u8> {
        match (self.equal, self.negate) {
            (true, false) => map2(a, b, |a, b| u8::from(key(a) == key(b))),
            (true, true) => map2(a, b, |a, b| u8::from(key(a) != key(b))),
            (false, false) => map2(a, b, |a, b| u8::from(key(a) < key(b))),
            (false, true) => map2(a, b, |a, b| u8::from(key(a) >= key(b))),
        }
    }

    fn holds(self, order: Ordering) -> u8 {
        let wanted = if self.equal { Ordering::Equal } else { Ordering::Less };
        u8::from((order == wanted) != self.negate)
    }
}

fn is_text(vector: &Vector) -> bool {
    matches!(vector.values, Values::Code { .. } | Values::Bytes(_))
}

fn text(test: OrderTest, a: &Operand, b: &Operand) -> Option<Vec<u8>> {
    match (a, b) {
        (Operand::Vector(a), Operand::Vector(b)) if is_text(a) && is_text(b) => Some(match (&a.values, &b.values) {
            (Values::Code { codes: a, dictionary }, Values::Code { codes: b, dictionary: other })
                if Arc::ptr_eq(dictionary, other) =>
            {
                test.run(Side::Rows(a), Side::Rows(b), |code| code)
            }
            (a, b) => (0..a.len()).map(|row| test.holds(a.bytes(row).cmp(b.bytes(row)))).collect(),
        }),
        (Operand::Vector(vector), Operand::Constant(value)) if is_text(vector) => {
            Some(with_constant(test, &vector.values, bytes(value), false))
        }
        (Operand::Constant(value), Operand::Vector(vector)) if is_text(vector) => {
            Some(with_constant(test, &vector.values, bytes(value), true))
        }
        _ => None,
    }
}

/// Compares text with one value, which stands on the left if `exchanged`.
fn with_constant(test: OrderTest, values: &Values, constant: &[u8], exchanged: bool) -> Vec<u8> {
    match values {
        Values::Code { codes, dictionary } => {
            let (low, high) = match dictionary.find(constant) {
                Ok(code) => (code, code + 1),
                Err(insert) => (insert, insert),
            };
            let within = match (test.equal, exchanged) {
                (true, _) => low..high,
                (false, false) => 0..low,
                (false, true) => high..dictionary.len() as u32,
            };
            code_range(codes, within, test.negate)
        }
        Values::Bytes(values) if test.equal => {
            values.iter().map(|value| u8::from((value == constant) != test.negate)).collect()
        }
        Values::Bytes(values) => values
            .iter()
            .map(|value| {
                let order = value.cmp(constant);
                test.holds(if exchanged { order.reverse() } else { order })
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Tells which codes are in a range, or outside it if `negate`.
pub(super) fn code_range(codes: &[u32], within: std::ops::Range<u32>, negate: bool) -> Vec<u8> {
    let (low, length) = (within.start, within.end - within.start);
    let negate = u8::from(negate);
    map(codes, move |code: u32| u8::from(code.wrapping_sub(low) < length) ^ negate)
}
