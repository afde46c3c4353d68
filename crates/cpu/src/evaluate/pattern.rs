//! Regular expressions: compiled once for a pipeline where the pattern is constant, and computed once for each word of a
//! dictionary where these are fewer than the rows.

use tandem_column::{Result, Type};
use tandem_pipeline::{
    Function, Value,
    scalar::pattern::{Patterns, Replacement},
};

use super::operand::Operand;
use super::text::{fits, measure, rewrite, text};
use super::{Evaluator, rowwise};
use crate::vector::{Values, Vector};

/// Computes a function of a text and a regular expression; `None` where the latter is not constant, or none at all, which is
/// an error only if there is a text.
pub(super) fn regexp(
    evaluator: &Evaluator<'_>,
    function: Function,
    operands: &[Operand],
    kinds: &[Type],
    kind: &Type,
) -> Result<Option<Operand>> {
    let ([Operand::Vector(vector), rest @ ..], Some(Type::String)) = (operands, kinds.first()) else {
        return Ok(None);
    };
    let mut constants = Vec::with_capacity(3);
    for operand in rest {
        match operand {
            Operand::Constant(value) => constants.push(value),
            Operand::Vector(_) => return Ok(None),
        }
    }
    let own = Patterns::default();
    let patterns = evaluator.slots.patterns().unwrap_or(&own);
    let flags_of = |given: &[&Value]| match given {
        [Value::String(flags)] => flags.to_string(),
        _ => String::new(),
    };
    let values = match (function, &constants[..]) {
        (Function::RegexpLike, [Value::String(pattern), flags @ ..]) => {
            let Ok(pattern) = patterns.compile(pattern, &flags_of(flags)) else { return Ok(None) };
            Values::Boolean(measure(&vector.values, |value| u8::from(pattern.is_match(text(value)))))
        }
        (Function::RegexpReplace, [Value::String(pattern), Value::String(by), flags @ ..]) => {
            let flags = flags_of(flags);
            let (flags, all) = Replacement::flags(&flags);
            let Ok(pattern) = patterns.compile(pattern, &flags) else { return Ok(None) };
            let replacement = Replacement::new(pattern, by, all);
            let most = |value: &str| replacement.most(value);
            if !fits(&vector.values, most) {
                return Ok(None);
            }
            rewrite(evaluator.slots, &vector.values, most, |value, out| {
                out.extend_from_slice(replacement.replace(value).as_bytes());
            })?
        }
        (Function::RegexpMatch, [Value::String(pattern), Value::Integer(number), flags @ ..]) => {
            let Ok(pattern) = patterns.compile(pattern, &flags_of(flags)) else { return Ok(None) };
            let number = i64::try_from(*number).unwrap_or(i64::MAX);
            let group = |values: &[Value]| match values.first() {
                Some(Value::String(text)) => Ok(pattern.group(text, number).map_or(Value::Null, Value::string)),
                _ => Ok(Value::Null),
            };
            return rowwise::compute(evaluator, kind, operands, kinds, group).map(Some);
        }
        _ => return Ok(None),
    };
    Ok(Some(Vector { values, valid: vector.valid.clone() }.into()))
}
