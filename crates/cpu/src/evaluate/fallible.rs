//! Tells which expressions may raise an error: those are never computed for rows that do not need them.

use tandem_column::Repr;
use tandem_pipeline::{Arithmetic, ArithmeticOperator, Expr, Failure, Overflow};

/// Tells whether an expression may raise an error for some row; true where in doubt.
pub(super) fn may_fail(expr: &Expr) -> bool {
    let own = match expr {
        Expr::Arithmetic(operation) => arithmetic_may_fail(operation),
        Expr::Negate(_, overflow) => *overflow == Overflow::Error,
        Expr::Cast { failure, .. } => *failure == Failure::Error,
        Expr::Function { function, .. } => !function.is_total(),
        Expr::Call { .. } | Expr::Element(..) | Expr::ListLength(_) => true,
        _ => false,
    };
    own || expr.children().into_iter().any(may_fail)
}

fn arithmetic_may_fail(operation: &Arithmetic) -> bool {
    use ArithmeticOperator::*;
    match operation.kind.repr() {
        Repr::Float => false,
        Repr::Int | Repr::Wide if operation.kind.is_integer() => {
            let divides = matches!(operation.operator, Divide | Remainder);
            operation.overflow == Overflow::Error || divides && operation.zero == Failure::Error
        }
        _ => true,
    }
}
