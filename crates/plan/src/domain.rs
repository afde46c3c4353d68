//! What statistics tell of each slot, and the checks that need not be made because of it.

use std::sync::Arc;

use tandem_column::{Dictionary, Repr, Table, Type};
use tandem_pipeline::{
    Expr, Overflow, Slot,
    range::{self, Range},
};

/// What is known of a slot's values.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    /// The slot's type.
    pub kind: Option<Type>,
    /// Smallest and largest value (dictionary code for [`Domain::dictionary`]); `None` where not known.
    pub range: Option<(i64, i64)>,
    /// Whether null can occur.
    pub nullable: bool,
    /// The dictionary of a string slot whose vectors are always codes of it.
    pub dictionary: Option<Arc<Dictionary>>,
}

impl PartialEq for Domain {
    fn eq(&self, other: &Domain) -> bool {
        let dictionary = match (&self.dictionary, &other.dictionary) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        dictionary && (&self.kind, self.range, self.nullable) == (&other.kind, other.range, other.nullable)
    }
}

impl Domain {
    /// Reads what a table's statistics know of a column that is a slot.
    pub(crate) fn of_column(table: &Table, column: usize, slot: &Slot) -> Domain {
        let dictionary = table.parts.first().and_then(|part| part.columns[column].dictionary().cloned());
        let range = match &dictionary {
            Some(dictionary) => Some((0, dictionary.len() as i64 - 1)).filter(|range| range.1 >= 0),
            None => table.statistics[column].range,
        };
        // A float's range is in the order of its bits, not of its value.
        let range = range.filter(|_| dictionary.is_some() || slot.kind.repr() != Repr::Float);
        Domain { kind: Some(slot.kind.clone()), range, nullable: has_nulls(table, column), dictionary }
    }
}

/// Tells whether any part of a column has a null.
pub fn has_nulls(table: &Table, column: usize) -> bool {
    table.parts.iter().any(|part| part.columns[column].is_nullable())
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
