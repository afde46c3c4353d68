//! Built-in functions: which file computes which, and what nulls do.

use tandem_column::{Result, Type};
use tandem_pipeline::{Expr, Function, Value};

use super::operand::Operand;
use super::{Evaluator, bits, conditional, date, number, pattern, rowwise, text};

/// Computes a built-in function.
pub(super) fn function(
    evaluator: &Evaluator<'_>,
    function: Function,
    arguments: &[Expr],
    kind: &Type,
) -> Result<Operand> {
    match (function, arguments) {
        (Function::Coalesce, _) => return conditional::coalesce(evaluator, arguments, kind),
        (Function::NullIf, [first, second]) => return conditional::null_if(evaluator, first, second, kind),
        _ => {}
    }
    let operands = arguments.iter().map(|argument| evaluator.operand(argument)).collect::<Result<Vec<_>>>()?;
    let kinds: Vec<Type> = arguments.iter().map(|argument| evaluator.kind(argument)).collect();
    let varies = operands.iter().any(|operand| matches!(operand, Operand::Vector(_)));
    match function {
        Function::Concat if varies && kinds.iter().all(|kind| matches!(kind, Type::String | Type::Null)) => {
            return Ok(text::concat(evaluator.slots, &operands)?.into());
        }
        _ if !function.is_strict() => {}
        _ if operands.iter().any(Operand::is_null) => return Ok(Operand::Constant(Value::Null)),
        Function::RegexpLike | Function::RegexpReplace | Function::RegexpMatch => {
            if let Some(found) = pattern::regexp(evaluator, function, &operands, &kinds, kind)? {
                return Ok(found);
            }
        }
        _ => {
            let fast = match (function, operands.as_slice()) {
                (Function::Extract(field), [Operand::Vector(vector)]) => date::extract(field, vector, &kinds[0], kind),
                (Function::Truncate(field), [Operand::Vector(vector)]) => {
                    date::truncate(field, vector, &kinds[0], kind)
                }
                (Function::DateDiff(field), [start, end]) if varies => {
                    date::difference(field, [start, end], &kinds[0], evaluator.rows())
                }
                _ => text::fast(evaluator.slots, function, &operands, &kinds, kind)?
                    .or_else(|| number::fast(function, &operands, &kinds, kind))
                    .or_else(|| bits::fast(function, &operands, kind)),
            };
            if let Some(vector) = fast {
                return Ok(vector.into());
            }
        }
    }
    rowwise::function(evaluator, function, &operands, &kinds, kind)
}
