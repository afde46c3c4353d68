//! Walks over pipeline expressions whose slots are column ids.

use tandem_pipeline::{Expr, Failure, Function, Overflow};

/// Calls `f` on an expression and everything within it.
pub(crate) fn visit(expr: &Expr, f: &mut dyn FnMut(&Expr)) {
    f(expr);
    expr.children().into_iter().for_each(|child| visit(child, f));
}

/// Replaces each `Slot(id)` by what `f` gives for the id.
pub(crate) fn substitute(expr: &Expr, f: &dyn Fn(usize) -> Expr) -> Expr {
    match expr {
        Expr::Slot(id) => f(*id),
        other => other.map_children(&mut |child| substitute(child, f)),
    }
}

/// Tells whether evaluating an expression may fail on some row, so that it must not see rows it was not written for.
pub(crate) fn may_fail(expr: &Expr) -> bool {
    let mut fails = false;
    visit(expr, &mut |expr| {
        fails |= match expr {
            Expr::Arithmetic(operation) => {
                !operation.kind.is_float()
                    && (operation.overflow == Overflow::Error || operation.zero == Failure::Error)
            }
            Expr::Negate(_, overflow) => *overflow == Overflow::Error,
            Expr::Cast { failure, .. } => *failure == Failure::Error,
            Expr::Call { .. } => true,
            // The others fail of constants that are not lowered, or of results of gigabytes.
            Expr::Function { function, .. } => {
                matches!(function, Function::Power | Function::SplitPart | Function::ToDate | Function::SingleRow)
            }
            _ => false,
        }
    });
    fails
}
