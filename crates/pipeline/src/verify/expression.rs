//! The types of expressions.

use std::sync::Arc;

use tandem_column::Type;

use super::{Check, DEPTH_LIMIT, check_type, same};
use crate::{Arithmetic, ArithmeticOperator, Expr, Slot, UserFunction, scalar};

/// Checks expressions over some slots.
pub(crate) struct Checker<'a> {
    /// The slots that exist.
    pub slots: &'a [Slot],
    /// The functions that may be called.
    pub functions: &'a [Arc<UserFunction>],
}

impl Checker<'_> {
    /// Checks an expression and returns its type.
    pub fn expr(&self, expr: &Expr) -> Check<Type> {
        self.at(expr, 0)
    }

    /// Checks that an expression is a condition.
    pub fn boolean(&self, expr: &Expr) -> Check {
        same(&self.expr(expr)?, &Type::Boolean, "a condition")
    }

    /// Returns the type of a slot.
    pub fn slot(&self, slot: usize) -> Check<&Type> {
        let found = self.slots.get(slot).map(|slot| &slot.kind);
        found.ok_or_else(|| format!("slot ${slot} does not exist here: there are {}", self.slots.len()))
    }

    /// Checks an expression at some depth.
    fn at(&self, expr: &Expr, depth: usize) -> Check<Type> {
        if depth >= DEPTH_LIMIT {
            return Err(format!("an expression is nested more than {DEPTH_LIMIT} deep"));
        }
        let child = |expr: &Expr| self.at(expr, depth + 1);
        let condition = |expr: &Expr| same(&self.at(expr, depth + 1)?, &Type::Boolean, "a condition");
        Ok(match expr {
            Expr::Slot(slot) => self.slot(*slot)?.clone(),
            Expr::Literal(value, kind) => {
                check_type(kind)?;
                if !value.fits(kind) {
                    return Err(format!("literal {value} does not fit {kind}"));
                }
                kind.clone()
            }
            Expr::Arithmetic(arithmetic) => {
                check_arithmetic(arithmetic, &child(&arithmetic.left)?, &child(&arithmetic.right)?)?;
                arithmetic.kind.clone()
            }
            Expr::Negate(input, _) => {
                let kind = child(input)?;
                if !kind.is_numeric() && !matches!(kind, Type::Interval | Type::Null) {
                    return Err(format!("{kind} has no negative"));
                }
                kind
            }
            Expr::Compare(_, left, right) | Expr::Distinct(left, right) => {
                let (left, right) = (child(left)?, child(right)?);
                if left != right && left != Type::Null && right != Type::Null {
                    return Err(format!("{left} cannot be compared with {right}"));
                }
                Type::Boolean
            }
            Expr::And(inputs) | Expr::Or(inputs) => {
                inputs.iter().try_for_each(condition)?;
                Type::Boolean
            }
            Expr::Not(input) => {
                condition(input)?;
                Type::Boolean
            }
            Expr::IsNull(input) => {
                child(input)?;
                Type::Boolean
            }
            Expr::Case { branches, otherwise, kind } => {
                branches.iter().try_for_each(|(when, _)| condition(when))?;
                let values = branches.iter().map(|(_, value)| value).chain(otherwise.as_deref());
                check_branches(branches.len(), values.map(child), kind)?;
                kind.clone()
            }
            Expr::Cast { input, kind, .. } => {
                let from = child(input)?;
                check_type(kind)?;
                if from != Type::Null && from != *kind && !scalar::cast::castable(&from, kind) {
                    return Err(format!("there is no cast from {from} to {kind}"));
                }
                kind.clone()
            }
            Expr::In { input, list } => {
                let kind = child(input)?;
                if let Some(value) = list.iter().find(|value| !value.fits(&kind)) {
                    return Err(format!("literal {value} of a list does not fit {kind}"));
                }
                Type::Boolean
            }
            Expr::Like { input, .. } => {
                same(&child(input)?, &Type::String, "the text of a pattern")?;
                Type::Boolean
            }
            Expr::Function { function, arguments, kind } => {
                let types = arguments.iter().map(child).collect::<Check<Vec<_>>>()?;
                check_type(kind)?;
                function.check(&types, kind).map_err(|reason| format!("function {}: {reason}", function.name()))?;
                kind.clone()
            }
            Expr::Call { function, arguments, kind } => {
                let types = arguments.iter().map(child).collect::<Check<Vec<_>>>()?;
                self.call(*function, &types, kind)?;
                kind.clone()
            }
            Expr::Element(list, index) => {
                let (list, index) = (child(list)?, child(index)?);
                if !index.is_integer() {
                    return Err(format!("a list index must be an integer, not {index}"));
                }
                element(&list)?
            }
            Expr::ListLength(list) => {
                element(&child(list)?)?;
                Type::Int64
            }
        })
    }

    /// Checks a call of a user function.
    fn call(&self, function: usize, arguments: &[Type], kind: &Type) -> Check {
        let called = self.functions.get(function);
        let called = called.ok_or_else(|| format!("there is no user function {function} before it"))?;
        if arguments.len() != called.parameters {
            return Err(format!("{} takes {} arguments", called.name, called.parameters));
        }
        for (argument, parameter) in arguments.iter().zip(&called.locals) {
            same(argument, &parameter.kind, &format!("argument {}", parameter.name))?;
        }
        same(&called.returns, kind, &format!("the result of {}", called.name))
    }
}

/// Returns the type of a list's elements.
pub(crate) fn element(list: &Type) -> Check<Type> {
    match list {
        Type::List(of) => Ok((**of).clone()),
        other => Err(format!("{other} is not a list")),
    }
}

/// Checks the values of a case's branches, and of what it is otherwise.
fn check_branches(branches: usize, mut values: impl Iterator<Item = Check<Type>>, kind: &Type) -> Check {
    check_type(kind)?;
    if branches == 0 {
        return Err("a case has no branch".to_owned());
    }
    values.try_for_each(|value| same(&value?, kind, "a branch"))
}

/// Checks the operands and result of arithmetic.
fn check_arithmetic(arithmetic: &Arithmetic, left: &Type, right: &Type) -> Check {
    use ArithmeticOperator::{Add, Subtract};
    let (operator, kind) = (arithmetic.operator, &arithmetic.kind);
    check_type(kind)?;
    if *left == Type::Null || *right == Type::Null {
        return Ok(());
    }
    let valid = match (left, right, kind) {
        (Type::Decimal { .. }, Type::Decimal { .. }, Type::Decimal { .. }) => true,
        (left, right, kind) if left == right && left == kind && (left.is_integer() || left.is_float()) => true,
        (Type::Date, Type::Date, Type::Int64) => operator == Subtract,
        (Type::Timestamp(..), Type::Timestamp(..), Type::Interval) => operator == Subtract && left == right,
        (Type::Date | Type::Timestamp(..), Type::Interval, kind) => kind == left && matches!(operator, Add | Subtract),
        (Type::Interval, Type::Date | Type::Timestamp(..), kind) => kind == right && operator == Add,
        (Type::Interval, Type::Interval, Type::Interval) => matches!(operator, Add | Subtract),
        _ => false,
    };
    valid.then_some(()).ok_or_else(|| format!("{left} {} {right} does not give {kind}", operator.symbol()))
}
