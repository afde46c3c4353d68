//! The slow paths: one value at a time through the reference interpreter's scalar functions.
//!
//! Whatever has no loop here still means exactly what the interpreter says, because the interpreter computes it. A
//! constant is computed once, and a function of one dictionary column once per distinct value that occurs.

use tandem_column::{Result, Type};
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Comparison, Expr, Failure, Function, Overflow, Slot, Value, interpret,
    scalar::{self, pattern::Patterns},
};

use super::Evaluator;
use super::meter::{Meter, most_bytes};
use super::operand::Operand;
use crate::vector::{Values, Vector, bytes, bytes_value};

/// Computes `f` of the operands' values for each row.
pub(super) fn compute(
    evaluator: &Evaluator<'_>,
    kind: &Type,
    operands: &[Operand],
    kinds: &[Type],
    mut f: impl FnMut(&[Value]) -> Result<Value>,
) -> Result<Operand> {
    let rows = evaluator.rows();
    let mut arguments: Vec<Value> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Constant(value) => value.clone(),
            Operand::Vector(_) => Value::Null,
        })
        .collect();
    let varying: Vec<usize> = (0..operands.len()).filter(|&at| matches!(operands[at], Operand::Vector(_))).collect();
    if varying.is_empty() {
        return f(&arguments).map(Operand::Constant);
    }
    let (mut out, mut meter) = (Vector::empty(kind), Meter::new(evaluator.slots));
    if let [at] = varying[..]
        && let Operand::Vector(vector) = &operands[at]
        && let Values::Code { codes, dictionary } = &vector.values
        && dictionary.len() <= 2 * rows
    {
        // One entry per code, and one for null behind them.
        let mut known: Vec<Option<Value>> = vec![None; dictionary.len() + 1];
        let mut kept = 0;
        for (row, &code) in codes.iter().enumerate() {
            let code = if vector.is_valid(row) { code as usize } else { dictionary.len() };
            if known[code].is_none() {
                arguments[at] = match code < dictionary.len() {
                    true => bytes_value(dictionary.get(code as u32), &kinds[at]),
                    false => Value::Null,
                };
                let value = f(&arguments)?;
                kept += bytes(&value).len();
                known[code] = Some(value);
            }
            let value = known[code].as_ref().expect("computed above");
            meter.reach(kept + out.byte_len() + bytes(value).len())?;
            out.push(value);
        }
        return Ok(out.into());
    }
    for row in 0..rows {
        for &at in &varying {
            arguments[at] = operands[at].value(row, &kinds[at]);
        }
        let value = f(&arguments)?;
        meter.reach(out.byte_len() + bytes(&value).len())?;
        out.push(&value);
    }
    Ok(out.into())
}

/// Computes an arithmetic operation.
pub(super) fn arithmetic(
    evaluator: &Evaluator<'_>,
    operation: &Arithmetic,
    operands: &[Operand; 2],
    kinds: &[Type; 2],
) -> Result<Operand> {
    let Arithmetic { operator, kind, overflow, zero, .. } = operation;
    let slots = evaluator.slots.named();
    let divides = matches!(operator, ArithmeticOperator::Divide | ArithmeticOperator::Remainder);
    let named = divides && *zero == Failure::Error && !slots.is_empty();
    compute(evaluator, kind, operands, kinds, |values| {
        if named && values[1] == Value::Integer(0) && !values[0].is_null() {
            let whole = Expr::Arithmetic(Box::new(operation.clone()));
            let (whole, divisor) = (whole.display(slots).to_string(), operation.right.display(slots).to_string());
            return Err(scalar::fault::division_by_zero(&whole, &divisor));
        }
        scalar::arithmetic(*operator, &values[0], &kinds[0], &values[1], &kinds[1], kind, *overflow, *zero)
    })
}

/// Computes `−x`.
pub(super) fn negate(evaluator: &Evaluator<'_>, operand: Operand, kind: &Type, overflow: Overflow) -> Result<Operand> {
    let kinds = std::slice::from_ref(kind);
    compute(evaluator, kind, &[operand], kinds, |values| scalar::negate(&values[0], kind, overflow))
}

/// Computes a comparison.
pub(super) fn compare(
    evaluator: &Evaluator<'_>,
    comparison: Comparison,
    operands: &[Operand; 2],
    kinds: &[Type; 2],
) -> Result<Operand> {
    compute(evaluator, &Type::Boolean, operands, kinds, |values| {
        Ok(match scalar::compare(&values[0], &values[1]) {
            Some(order) => Value::Boolean(scalar::holds(comparison, order)),
            None => Value::Null,
        })
    })
}

/// Computes IS DISTINCT FROM.
pub(super) fn distinct(evaluator: &Evaluator<'_>, operands: &[Operand; 2], kinds: &[Type; 2]) -> Result<Operand> {
    compute(evaluator, &Type::Boolean, operands, kinds, |values| {
        Ok(Value::Boolean(scalar::order(&values[0], &values[1]).is_ne()))
    })
}

/// Casts each value.
pub(super) fn cast(
    evaluator: &Evaluator<'_>,
    operand: Operand,
    from: &Type,
    to: &Type,
    failure: Failure,
) -> Result<Operand> {
    let kinds = std::slice::from_ref(from);
    compute(evaluator, to, &[operand], kinds, |values| scalar::cast(&values[0], from, to, failure))
}

/// Computes a built-in function of each row's arguments.
pub(super) fn function(
    evaluator: &Evaluator<'_>,
    function: Function,
    operands: &[Operand],
    kinds: &[Type],
    kind: &Type,
) -> Result<Operand> {
    let (mut meter, own) = (Meter::new(evaluator.slots), Patterns::default());
    let patterns = evaluator.slots.patterns().unwrap_or(&own);
    compute(evaluator, kind, operands, kinds, |values| {
        meter.reach(most_bytes(function, values))?;
        scalar::function_with(patterns, function, kind, kinds, values)
    })
}

/// Calls a user function with each row's arguments.
pub(super) fn call(evaluator: &Evaluator<'_>, function: usize, arguments: &[Expr], kind: &Type) -> Result<Operand> {
    let operands = arguments.iter().map(|argument| evaluator.operand(argument)).collect::<Result<Vec<_>>>()?;
    let kinds: Vec<Type> = arguments.iter().map(|argument| evaluator.kind(argument)).collect();
    let slot = |kind: &Type| Slot { name: String::new(), kind: kind.clone(), nullable: true };
    let slots: Vec<Slot> = kinds.iter().map(slot).collect();
    let call = Expr::Call { function, arguments: (0..slots.len()).map(Expr::Slot).collect(), kind: kind.clone() };
    let interpreter = interpret::Evaluator::new(evaluator.functions);
    compute(evaluator, kind, &operands, &kinds, |values| interpreter.evaluate(&call, values, &slots))
}
