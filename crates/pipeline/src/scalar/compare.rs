//! The order of values: what comparison, sorting, grouping, minimum and maximum agree on.
//!
//! Floats are in total order (−NaN < −∞ < … < −0.0 < 0.0 < … < ∞ < NaN), text and bytes by bytes, false before true,
//! intervals field by field from months down, lists element by element.

use std::cmp::Ordering;

use crate::{Comparison, Value};

/// Compares two values of one type; `None` if either is null.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    (!left.is_null() && !right.is_null()).then(|| order(left, right))
}

/// Orders two values of one type, null after everything.
pub fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => left.total_cmp(right),
        (Value::String(left), Value::String(right)) => left.as_bytes().cmp(right.as_bytes()),
        (Value::Binary(left), Value::Binary(right)) => left.cmp(right),
        (
            Value::Interval { months, days, nanoseconds },
            Value::Interval { months: months2, days: days2, nanoseconds: nanoseconds2 },
        ) => (months, days, nanoseconds).cmp(&(months2, days2, nanoseconds2)),
        (Value::List(left), Value::List(right)) => {
            let unequal = left.iter().zip(right.iter()).map(|(left, right)| order(left, right)).find(|o| o.is_ne());
            unequal.unwrap_or(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Orders two values as a sort key does.
pub fn order_nulls(left: &Value, right: &Value, descending: bool, nulls_first: bool) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => {
            if nulls_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if nulls_first {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (false, false) if descending => order(right, left),
        (false, false) => order(left, right),
    }
}

/// Tells whether a comparison is true of two values in this order.
pub fn holds(comparison: Comparison, ordering: Ordering) -> bool {
    match comparison {
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    }
}

/// Orders values of different types, which a verified query never compares; null is last.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Boolean(_) => 0,
        Value::Integer(_) => 1,
        Value::Float(_) => 2,
        Value::String(_) => 3,
        Value::Binary(_) => 4,
        Value::Interval { .. } => 5,
        Value::List(_) => 6,
        Value::Null => 7,
    }
}
