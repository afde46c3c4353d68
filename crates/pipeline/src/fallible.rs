//! Tells which expressions may raise an error: those are never computed for rows that do not need them.

use tandem_column::Repr;

use crate::{Arithmetic, ArithmeticOperator, Expr, Failure, Overflow};

impl Expr {
    /// Tells whether it may raise an error for some row; true where in doubt.
    pub fn may_fail(&self) -> bool {
        let own = match self {
            Expr::Arithmetic(operation) => arithmetic_may_fail(operation),
            Expr::Negate(_, overflow) => *overflow == Overflow::Error,
            Expr::Cast { failure, .. } => *failure == Failure::Error,
            Expr::Function { function, .. } => !function.is_total(),
            Expr::Call { .. } | Expr::Element(..) | Expr::ListLength(_) => true,
            _ => false,
        };
        own || self.children().into_iter().any(Expr::may_fail)
    }
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
