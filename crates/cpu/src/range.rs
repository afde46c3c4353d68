//! What statistics tell of each slot, and the checks that need not be made because of it.

use std::sync::Arc;

use tandem_column::{Dictionary, Type};
use tandem_pipeline::{
    Expr, Overflow,
    range::{self, Range},
};

/// What is known of a slot's values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domain {
    /// The slot's type.
    pub(crate) kind: Option<Type>,
    /// Smallest and largest value (dictionary code for [`Domain::dictionary`]); `None` where not known.
    pub(crate) range: Option<(i64, i64)>,
    /// Whether null can occur.
    pub(crate) nullable: bool,
    /// The dictionary of a string slot whose vectors are always codes of it.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
}

/// Returns the range of an integer-represented expression.
pub(crate) fn range(expr: &Expr, domains: &[Domain]) -> Option<Range> {
    range::of(expr, &|slot| {
        let domain = &domains[slot];
        let known = domain.range.filter(|_| domain.dictionary.is_none());
        let kind = domain.kind.clone().unwrap_or(Type::Null);
        (kind, known.map(|(low, high)| Range::new(low.into(), high.into())))
    })
}

/// Rewrites integer arithmetic whose result always fits to wrap: the same value without a check.
pub(crate) fn drop_checks(expr: &Expr, domains: &[Domain]) -> Expr {
    let rewrite = |e: &Expr| drop_checks(e, domains);
    match expr {
        Expr::Arithmetic(a) => {
            let mut a = a.clone();
            if a.kind.is_integer() && a.overflow != Overflow::Wrap && range(expr, domains).is_some() {
                a.overflow = Overflow::Wrap;
            }
            a.left = rewrite(&a.left);
            a.right = rewrite(&a.right);
            Expr::Arithmetic(a)
        }
        Expr::Compare(op, left, right) => Expr::Compare(*op, Box::new(rewrite(left)), Box::new(rewrite(right))),
        Expr::And(list) => Expr::And(list.iter().map(rewrite).collect()),
        Expr::Or(list) => Expr::Or(list.iter().map(rewrite).collect()),
        Expr::Not(input) => Expr::Not(Box::new(rewrite(input))),
        Expr::Cast { input, kind, failure } => {
            Expr::Cast { input: Box::new(rewrite(input)), kind: kind.clone(), failure: *failure }
        }
        Expr::Case { branches, otherwise, kind } => Expr::Case {
            branches: branches.iter().map(|(when, then)| (rewrite(when), rewrite(then))).collect(),
            otherwise: otherwise.as_deref().map(|e| Box::new(rewrite(e))),
            kind: kind.clone(),
        },
        other => other.clone(),
    }
}
