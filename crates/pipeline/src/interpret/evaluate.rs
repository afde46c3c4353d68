//! The value of an expression for one row.

use std::{cell::Cell, sync::Arc};

use tandem_column::{Error, Result};

use super::call;
use crate::{
    Arithmetic, Expr, Failure, Slot, UserFunction, Value,
    scalar::{self, pattern::Patterns},
};

/// Statements that one query may execute in user functions before it is stopped.
pub const STEP_LIMIT: u64 = 10_000_000;

/// Evaluates an expression for one row, whose values are in the order of `slots`.
///
/// Operands are evaluated from left to right; AND stops at the first false operand, OR at the first true one, and CASE
/// evaluates no value but the one it chooses.
///
/// # Errors
/// If an operation without a value is told to fail; if user functions run too long.
pub fn evaluate(expr: &Expr, row: &[Value], slots: &[Slot], functions: &[Arc<UserFunction>]) -> Result<Value> {
    Evaluator::new(functions).evaluate(expr, row, slots)
}

/// Evaluates expressions of one query, counting the steps of user functions.
pub struct Evaluator<'a> {
    /// The query's functions.
    pub(super) functions: &'a [Arc<UserFunction>],
    /// Statements that may still be executed.
    pub(super) steps: Cell<u64>,
    /// User functions that are active.
    pub(super) depth: Cell<usize>,
    /// The regular expressions that were compiled.
    patterns: Patterns,
    /// Elements that lists got since the outermost of them began.
    pub(super) elements: Cell<usize>,
}

impl<'a> Evaluator<'a> {
    /// Makes an evaluator with all steps left.
    pub fn new(functions: &'a [Arc<UserFunction>]) -> Evaluator<'a> {
        Evaluator {
            functions,
            steps: Cell::new(STEP_LIMIT),
            depth: Cell::new(0),
            patterns: Patterns::default(),
            elements: Cell::new(0),
        }
    }

    /// Evaluates an expression for one row.
    ///
    /// # Errors
    /// As [`evaluate`].
    pub fn evaluate(&self, expr: &Expr, row: &[Value], slots: &[Slot]) -> Result<Value> {
        let value = |expr: &Expr| self.evaluate(expr, row, slots);
        let truth = |known: Option<bool>| known.map_or(Value::Null, Value::Boolean);
        match expr {
            Expr::Slot(slot) => {
                row.get(*slot).cloned().ok_or_else(|| Error::internal(format!("slot ${slot} has no value")))
            }
            Expr::Literal(literal, _) => Ok(literal.clone()),
            Expr::Arithmetic(arithmetic) => self.arithmetic(expr, arithmetic, row, slots),
            Expr::Negate(input, overflow) => scalar::negate(&value(input)?, &input.kind(slots), *overflow),
            Expr::Compare(comparison, left, right) => {
                let ordering = scalar::compare(&value(left)?, &value(right)?);
                Ok(truth(ordering.map(|ordering| scalar::holds(*comparison, ordering))))
            }
            Expr::Distinct(left, right) => {
                let (left, right) = (value(left)?, value(right)?);
                Ok(Value::Boolean(left.is_null() != right.is_null() || scalar::order(&left, &right).is_ne()))
            }
            Expr::And(inputs) => self.connect(inputs, true, row, slots),
            Expr::Or(inputs) => self.connect(inputs, false, row, slots),
            Expr::Not(input) => Ok(match value(input)? {
                Value::Boolean(input) => Value::Boolean(!input),
                _ => Value::Null,
            }),
            Expr::IsNull(input) => Ok(Value::Boolean(value(input)?.is_null())),
            Expr::Case { branches, otherwise, .. } => {
                for (condition, chosen) in branches {
                    if value(condition)?.is_true() {
                        return value(chosen);
                    }
                }
                otherwise.as_deref().map_or(Ok(Value::Null), value)
            }
            Expr::Cast { input, kind, failure } => scalar::cast(&value(input)?, &input.kind(slots), kind, *failure),
            Expr::In { input, list } => {
                let input = value(input)?;
                let matches = |item: &Value| scalar::compare(&input, item).is_some_and(|order| order.is_eq());
                let unknown = input.is_null() && !list.is_empty() || list.iter().any(Value::is_null);
                Ok(truth(if list.iter().any(matches) { Some(true) } else { (!unknown).then_some(false) }))
            }
            Expr::Like { input, pattern, escape, ignore_case } => Ok(match value(input)? {
                Value::String(text) => {
                    Value::Boolean(scalar::like::Matcher::new(pattern, *escape, *ignore_case).matches(&text))
                }
                _ => Value::Null,
            }),
            Expr::Function { function, arguments, kind } => {
                let types: Vec<_> = arguments.iter().map(|argument| argument.kind(slots)).collect();
                let values = arguments.iter().map(value).collect::<Result<Vec<_>>>()?;
                scalar::function_with(&self.patterns, *function, kind, &types, &values)
            }
            Expr::Call { function, arguments, .. } => {
                let values = arguments.iter().map(value).collect::<Result<Vec<_>>>()?;
                call::call(self, *function, values)
            }
            Expr::Element(list, index) => match (value(list)?, value(index)?) {
                (Value::List(list), Value::Integer(index)) => {
                    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                    found.cloned().ok_or_else(|| call::out_of_range(index, list.len()))
                }
                _ => Ok(Value::Null),
            },
            Expr::ListLength(list) => Ok(match value(list)? {
                Value::List(list) => Value::Integer(list.len() as i128),
                _ => Value::Null,
            }),
        }
    }

    /// Evaluates a conjunction (`unit` is true) or disjunction.
    fn connect(&self, inputs: &[Expr], unit: bool, row: &[Value], slots: &[Slot]) -> Result<Value> {
        let mut result = Value::Boolean(unit);
        for input in inputs {
            match self.evaluate(input, row, slots)? {
                Value::Boolean(input) if input != unit => return Ok(Value::Boolean(input)),
                Value::Boolean(_) => {}
                _ => result = Value::Null,
            }
        }
        Ok(result)
    }

    /// Evaluates arithmetic; a division by zero names the expression.
    fn arithmetic(&self, expr: &Expr, arithmetic: &Arithmetic, row: &[Value], slots: &[Slot]) -> Result<Value> {
        let Arithmetic { operator, left, right, kind, overflow, zero } = arithmetic;
        let (left_value, right_value) = (self.evaluate(left, row, slots)?, self.evaluate(right, row, slots)?);
        let divides = matches!(operator, crate::ArithmeticOperator::Divide | crate::ArithmeticOperator::Remainder);
        if divides && *zero == Failure::Error && right_value == Value::Integer(0) && !left_value.is_null() {
            let (whole, divisor) = (expr.display(slots).to_string(), right.display(slots).to_string());
            return Err(scalar::fault::division_by_zero(&whole, &divisor));
        }
        let (left_kind, right_kind) = (left.kind(slots), right.kind(slots));
        scalar::arithmetic(*operator, &left_value, &left_kind, &right_value, &right_kind, kind, *overflow, *zero)
    }
}
