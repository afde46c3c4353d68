//! The bodies of user functions.

use std::sync::Arc;

use tandem_column::Type;

use super::{CALL_DEPTH_LIMIT, Check, Checker, DEPTH_LIMIT, check_type, expression::element, same};
use crate::{Expr, Statement, UserFunction};

/// Checks a function, which may call those before it, and returns how deeply it nests with all that it calls; `reaches` are
/// theirs.
pub(super) fn check(function: &UserFunction, before: &[Arc<UserFunction>], reaches: &[usize]) -> Check<usize> {
    if function.parameters > function.locals.len() {
        return Err(format!("it has {} parameters but {} locals", function.parameters, function.locals.len()));
    }
    function.locals.iter().try_for_each(|local| check_type(&local.kind))?;
    check_type(&function.returns)?;
    let slots = function.slots();
    let body = BodyChecker { checker: Checker { slots: &slots, functions: before }, returns: &function.returns };
    body.block(&function.body, 0, false)?;
    let reach = block_reach(&function.body, reaches);
    match reach > CALL_DEPTH_LIMIT {
        true => Err(format!("it nests more than {CALL_DEPTH_LIMIT} deep with the functions that it calls")),
        false => Ok(reach),
    }
}

/// Returns how deeply statements nest, with what they call.
fn block_reach(statements: &[Statement], reaches: &[usize]) -> usize {
    let reach = |expr: &Expr| expression_reach(expr, reaches);
    let statement = |statement: &Statement| match statement {
        Statement::Assign(_, value) | Statement::Return(value) => reach(value),
        Statement::Resize { length, fill, .. } => reach(length).max(reach(fill)),
        Statement::Store { index, value, .. } => reach(index).max(reach(value)),
        Statement::If { condition, then, otherwise } => {
            reach(condition).max(block_reach(then, reaches)).max(block_reach(otherwise, reaches))
        }
        Statement::While { condition, body } => reach(condition).max(block_reach(body, reaches)),
        Statement::For { from, to, body, .. } => reach(from).max(reach(to)).max(block_reach(body, reaches)),
        Statement::Break | Statement::Continue => 0,
    };
    1 + statements.iter().map(statement).max().unwrap_or(0)
}

/// Returns how deeply an expression nests, with what it calls.
fn expression_reach(expr: &Expr, reaches: &[usize]) -> usize {
    let called = match expr {
        Expr::Call { function, .. } => reaches.get(*function).copied().unwrap_or(0),
        _ => 0,
    };
    let operands = expr.children().into_iter().map(|child| expression_reach(child, reaches));
    1 + operands.max().unwrap_or(0).max(called)
}

/// A body being checked.
struct BodyChecker<'a> {
    checker: Checker<'a>,
    returns: &'a Type,
}

impl BodyChecker<'_> {
    /// Checks statements.
    fn block(&self, statements: &[Statement], depth: usize, in_loop: bool) -> Check {
        if depth >= DEPTH_LIMIT {
            return Err(format!("statements are nested more than {DEPTH_LIMIT} deep"));
        }
        statements.iter().try_for_each(|statement| self.statement(statement, depth, in_loop))
    }

    /// Checks that a local is a list, and returns the type of its elements.
    fn list(&self, local: usize) -> Check<Type> {
        element(self.checker.slot(local)?)
    }

    /// Checks that an expression is an integer.
    fn integer(&self, expr: &crate::Expr, what: &str) -> Check {
        let kind = self.checker.expr(expr)?;
        if kind.is_integer() { Ok(()) } else { Err(format!("{what} must be an integer, not {kind}")) }
    }

    /// Checks one statement.
    fn statement(&self, statement: &Statement, depth: usize, in_loop: bool) -> Check {
        match statement {
            Statement::Assign(local, value) => {
                let wanted = self.checker.slot(*local)?;
                same(&self.checker.expr(value)?, wanted, &format!("local ${local}"))
            }
            Statement::Resize { list, length, fill } => {
                self.integer(length, "a length")?;
                same(&self.checker.expr(fill)?, &self.list(*list)?, "an element")
            }
            Statement::Store { list, index, value } => {
                self.integer(index, "an index")?;
                same(&self.checker.expr(value)?, &self.list(*list)?, "an element")
            }
            Statement::If { condition, then, otherwise } => {
                self.checker.boolean(condition)?;
                self.block(then, depth + 1, in_loop)?;
                self.block(otherwise, depth + 1, in_loop)
            }
            Statement::While { condition, body } => {
                self.checker.boolean(condition)?;
                self.block(body, depth + 1, true)
            }
            Statement::For { variable, from, to, body } => {
                let kind = self.checker.slot(*variable)?;
                if *kind != Type::Int64 {
                    return Err(format!("the variable ${variable} of a loop must be of type int64, not {kind}"));
                }
                self.integer(from, "a bound")?;
                self.integer(to, "a bound")?;
                self.block(body, depth + 1, true)
            }
            Statement::Break | Statement::Continue if !in_loop => {
                Err("a break or continue is outside loops".to_owned())
            }
            Statement::Break | Statement::Continue => Ok(()),
            Statement::Return(value) => same(&self.checker.expr(value)?, self.returns, "the result"),
        }
    }
}
