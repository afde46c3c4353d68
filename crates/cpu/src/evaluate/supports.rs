//! Tells which expressions can be evaluated here, and of the others why not.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{Expr, Slot};

/// Tells whether an expression can be evaluated.
///
/// # Errors
/// If it cannot: unsupported, with the reason.
pub fn supports(expr: &Expr, slots: &[Slot]) -> Result<()> {
    if matches!(expr, Expr::Element(..) | Expr::ListLength(_)) {
        return Err(Error::unsupported("lists exist only inside user functions"));
    }
    let kind = expr.kind(slots);
    if kind.repr() == Repr::Other {
        return Err(Error::unsupported(format!("the CPU executor holds no values of type {kind}")));
    }
    // Intervals are not held in vectors, but a literal one may be added or subtracted.
    let held = |child: &&Expr| !matches!((expr, child), (Expr::Arithmetic(_), Expr::Literal(_, Type::Interval)));
    expr.children().into_iter().filter(held).try_for_each(|child| supports(child, slots))
}
