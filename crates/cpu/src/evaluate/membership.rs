//! IN with a list of literals: a few are compared in turn, many looked up in a table or a hash set.

use hashbrown::HashSet;
use tandem_column::{Result, Type};
use tandem_pipeline::{Expr, Value, scalar};

use super::compare::float_order;
use super::kernels::map;
use super::operand::Operand;
use super::{Evaluator, text};
use crate::vector::{Values, Vector, bytes, float, integer};

/// How many values are compared one after the other: about what one hash lookup costs when vectorised.
const FEW: usize = 8;

/// How wide the range of many integers may be to look them up in a table, which then fits the first-level cache.
const TABLE: i128 = 1 << 14;

/// Computes `input IN list`: true if equal to a value, else null if the list has a null, else false.
pub(super) fn is_in(evaluator: &Evaluator<'_>, input: &Expr, list: &[Value]) -> Result<Operand> {
    let operand = evaluator.operand(input)?;
    let values: Vec<&Value> = list.iter().filter(|value| !matches!(value, Value::Null)).collect();
    let null = values.len() < list.len();
    let vector = match &operand {
        // Of an empty list nothing is a member, not even null.
        _ if list.is_empty() => return Ok(Operand::Constant(Value::Boolean(false))),
        Operand::Constant(Value::Null) => return Ok(Operand::Constant(Value::Null)),
        Operand::Constant(value) => {
            let member = values.iter().any(|other| scalar::compare(value, other).is_some_and(|order| order.is_eq()));
            return Ok(Operand::Constant(if member || !null { Value::Boolean(member) } else { Value::Null }));
        }
        Operand::Vector(vector) => vector,
    };
    let mask = members(&vector.values, &values, &evaluator.kind(input));
    let valid = match (&vector.valid, null) {
        (valid, false) => valid.clone(),
        (None, true) => Some(mask.clone()),
        (Some(valid), true) => Some(super::kernels::both(valid, &mask)),
    };
    Ok(Vector { values: Values::Boolean(mask), valid }.into())
}

fn members(input: &Values, list: &[&Value], kind: &Type) -> Vec<u8> {
    match input {
        Values::Boolean(values) => {
            let has = |wanted| list.iter().any(|value| matches!(value, Value::Boolean(value) if *value == wanted));
            let table = [u8::from(has(false)), u8::from(has(true))];
            map(values, |value: u8| table[usize::from(value & 1)])
        }
        Values::Int(_) if *kind == Type::Null => vec![0; input.len()],
        Values::Int(values) => {
            let list: Vec<i64> = list.iter().filter_map(|value| i64::try_from(integer(value)).ok()).collect();
            integers(values, list)
        }
        Values::Float(values) => {
            let list = list.iter().map(|value| float_order(float(value))).collect();
            integers(&map(values, float_order), list)
        }
        Values::Wide(values) => {
            let list: HashSet<i128> = list.iter().map(|value| integer(value)).collect();
            values.iter().map(|value| list.contains(value).into()).collect()
        }
        Values::Code { codes, dictionary } => {
            let found: Vec<u32> = list.iter().filter_map(|value| dictionary.find(bytes(value)).ok()).collect();
            if found.len() <= FEW {
                return few(codes, &found);
            }
            if dictionary.len() <= 4 * codes.len() {
                let mut table = vec![0u8; dictionary.len()];
                found.iter().for_each(|&code| table[code as usize] = 1);
                return codes.iter().map(|&code| table[code as usize]).collect();
            }
            let found: HashSet<u32> = found.into_iter().collect();
            codes.iter().map(|code| found.contains(code).into()).collect()
        }
        Values::Bytes(_) => {
            let list: Vec<&[u8]> = list.iter().map(|value| bytes(value)).collect();
            if list.len() <= FEW {
                return text::measure(input, |value| u8::from(list.contains(&value)));
            }
            let list: HashSet<&[u8]> = list.into_iter().collect();
            text::measure(input, |value| u8::from(list.contains(value)))
        }
    }
}

/// Compares with each of a few values in turn.
fn few<T: Copy + PartialEq>(values: &[T], list: &[T]) -> Vec<u8> {
    match *list {
        [] => vec![0; values.len()],
        [a] => map(values, |value| u8::from(value == a)),
        [a, b] => map(values, |value| u8::from(value == a) | u8::from(value == b)),
        _ => {
            let mut mask = vec![0; values.len()];
            for &wanted in list {
                mask.iter_mut().zip(values).for_each(|(mask, value)| *mask |= u8::from(*value == wanted));
            }
            mask
        }
    }
}

fn integers(values: &[i64], list: Vec<i64>) -> Vec<u8> {
    if list.len() <= FEW {
        return few(values, &list);
    }
    let (low, high) = list.iter().fold((i64::MAX, i64::MIN), |(low, high), &value| (low.min(value), high.max(value)));
    let span = i128::from(high) - i128::from(low) + 1;
    if span <= TABLE {
        // The last entry stands for all values outside.
        let mut table = vec![0u8; span as usize + 1];
        list.iter().for_each(|value| table[(value - low) as usize] = 1);
        let last = span as u64;
        return values.iter().map(|value| table[(value.wrapping_sub(low) as u64).min(last) as usize]).collect();
    }
    let list: HashSet<i64> = list.into_iter().collect();
    values.iter().map(|value| list.contains(value).into()).collect()
}
