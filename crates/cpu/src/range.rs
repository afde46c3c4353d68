//! Which integers a slot or expression can hold, from statistics.
//!
//! Used to drop overflow checks that cannot fail, to sum in 64 bits where that is enough, and to make group keys array
//! indices. A range is only ever too wide, never too narrow.

use std::sync::Arc;

use tandem_column::{Dictionary, Repr, Type};
use tandem_pipeline::{ArithmeticOperator, Expr, Overflow, Value};

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

/// Returns the range of an integer-represented expression, as exact integers.
pub(crate) fn range(expr: &Expr, domains: &[Domain]) -> Option<(i128, i128)> {
    match expr {
        Expr::Slot(slot) => {
            let domain = &domains[*slot];
            if domain.dictionary.is_some() {
                return None;
            }
            domain.range.map(|(low, high)| (low.into(), high.into()))
        }
        Expr::Literal(Value::Integer(value), _) => Some((*value, *value)),
        Expr::Arithmetic(a) if a.kind.repr() == Repr::Int => {
            let (left, right) = (range(&a.left, domains)?, range(&a.right, domains)?);
            let bounds = match a.operator {
                // Decimal operands of unlike scales are rescaled first; leave those alone.
                _ if matches!(a.kind, Type::Decimal { .. }) => return decimal_range(a, left, right, domains),
                _ if !a.kind.is_integer() => return None,
                ArithmeticOperator::Add => (left.0 + right.0, left.1 + right.1),
                ArithmeticOperator::Subtract => (left.0 - right.1, left.1 - right.0),
                ArithmeticOperator::Multiply => product(left, right),
                _ => return None,
            };
            fits(bounds, &a.kind).then_some(bounds)
        }
        Expr::Cast { input, kind, .. } if kind.is_integer() => {
            let bounds = range(input, domains)?;
            // Only integer to integer keeps the value; decimals and dates change their scale.
            (kind_of(input, domains)?.is_integer() && fits(bounds, kind)).then_some(bounds)
        }
        Expr::Case { branches, otherwise, .. } => {
            let mut values = branches.iter().map(|(_, value)| value).chain(otherwise.as_deref());
            let first = range(values.next()?, domains)?;
            values.try_fold(first, |(low, high), value| {
                let (l, h) = range(value, domains)?;
                Some((low.min(l), high.max(h)))
            })
        }
        _ => None,
    }
}

fn kind_of<'a>(input: &'a Expr, domains: &'a [Domain]) -> Option<&'a Type> {
    match input {
        Expr::Slot(slot) => domains[*slot].kind.as_ref(),
        Expr::Literal(_, kind) | Expr::Cast { kind, .. } | Expr::Case { kind, .. } => Some(kind),
        Expr::Arithmetic(a) => Some(&a.kind),
        _ => None,
    }
}

/// The range of decimal arithmetic, where every operand has been brought to the result's scale exactly.
fn decimal_range(
    a: &tandem_pipeline::Arithmetic,
    left: (i128, i128),
    right: (i128, i128),
    domains: &[Domain],
) -> Option<(i128, i128)> {
    let scale = |e: &Expr| match kind_of(e, domains) {
        Some(Type::Decimal { scale, .. }) => Some(*scale),
        _ => None,
    };
    let Type::Decimal { precision, scale: result } = a.kind else { return None };
    let (left_scale, right_scale) = (scale(&a.left)?, scale(&a.right)?);
    let bounds = match a.operator {
        ArithmeticOperator::Multiply if left_scale + right_scale == result => product(left, right),
        ArithmeticOperator::Add | ArithmeticOperator::Subtract => {
            let align = |(low, high): (i128, i128), from: i8| {
                let factor = 10i128.checked_pow(u32::try_from(result - from).ok()?)?;
                Some((low.checked_mul(factor)?, high.checked_mul(factor)?))
            };
            let (left, right) = (align(left, left_scale)?, align(right, right_scale)?);
            match a.operator {
                ArithmeticOperator::Add => (left.0 + right.0, left.1 + right.1),
                _ => (left.0 - right.1, left.1 - right.0),
            }
        }
        _ => return None,
    };
    let limit = 10i128.pow(precision.into());
    (bounds.0 > -limit && bounds.1 < limit).then_some(bounds)
}

fn product(left: (i128, i128), right: (i128, i128)) -> (i128, i128) {
    let all = [left.0 * right.0, left.0 * right.1, left.1 * right.0, left.1 * right.1];
    (all.into_iter().min().unwrap_or(0), all.into_iter().max().unwrap_or(0))
}

fn fits((low, high): (i128, i128), kind: &Type) -> bool {
    kind.integer_range().is_some_and(|(min, max)| low >= min && high <= max)
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
