//! Long chains of ANDs as balanced trees: the same conditions in the same order, a few levels deep.
//!
//! A parser makes of `a AND b AND c …` a tree as deep as the chain is long, and DataFusion's analyser asks for the type of all
//! that is below at each of its levels: 2,000 conditions take seconds, most of them to learn that they are booleans.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// ANDs of one expression from which on it is worth another walk over the plan.
pub(crate) const LONG: usize = 16;

/// Balances the conditions of filters and joins.
pub(crate) fn balance(plan: LogicalPlan) -> Result<LogicalPlan> {
    let balanced = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Filter(_) | LogicalPlan::Join(_) => node.map_expressions(|expr| Ok(balanced(expr))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(balanced.data)
}

/// Joins the conditions of a chain pair by pair.
fn balanced(expr: Expr) -> Transformed<Expr> {
    let mut parts = split_conjunction_owned(expr);
    let changed = parts.len() > LONG;
    while parts.len() > 1 {
        let mut rest = parts.into_iter();
        parts = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(left) = rest.next() {
            parts.push(match rest.next() {
                Some(right) => left.and(right),
                None => left,
            });
        }
    }
    let expr = parts.pop().expect("a condition has a part");
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn the_conditions_of_a_chain_keep_their_order() {
        for length in [1, 2, 3, 17, 1000] {
            let parts: Vec<Expr> = (0..length).map(|part| col("a").not_eq(lit(part))).collect();
            let chain = parts.iter().cloned().reduce(Expr::and).expect("a part");
            assert_eq!(split_conjunction_owned(balanced(chain).data), parts);
        }
    }
}
