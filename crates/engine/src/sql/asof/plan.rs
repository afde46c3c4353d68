//! Planned ASOF joins as joins by inequality.
//!
//! Each row of the right side gets the value of the one that follows it among those of its keys, in the order of the inequality: of
//! `l >= r` the next larger. It is the nearest of a left row if it matches and the one that follows does not, so that the join
//! has a second inequality, and one match for each row of the left side: `l >= r AND (l < next OR next IS NULL)`. Of
//! rows that are equal in keys and value, all but one are followed by such a one, and match nothing.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::functions_window::lead_lag::lead_udwf;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprFunctionExt, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr,
};

use super::MARK;
use crate::Error;
use crate::error::IntoHost;

/// Puts ASOF joins together of other operators.
pub(crate) fn expand(plan: LogicalPlan) -> Result<LogicalPlan> {
    let expanded = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) => match condition(&join) {
            Some(condition) => nearest(&join, condition).map(Transformed::yes),
            None => Ok(Transformed::no(LogicalPlan::Join(join))),
        },
        other => Ok(Transformed::no(other)),
    })?;
    Ok(expanded.data)
}

/// Returns the condition of an ASOF join.
fn condition(join: &Join) -> Option<Expr> {
    match &join.filter {
        Some(Expr::ScalarFunction(function)) if function.func.name() == MARK => function.args.first().cloned(),
        _ => None,
    }
}

/// The inequality of an ASOF join, and its keys.
struct Nearest {
    left: Expr,
    operator: Operator,
    right: Expr,
    /// Of the right side.
    keys: Vec<Expr>,
}

impl Nearest {
    fn new(join: &Join, conditions: &[Expr]) -> Result<Nearest> {
        let (mut keys, mut inequalities) = (Vec::new(), Vec::new());
        for condition in conditions {
            let sides = match condition {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) => sides(join, left, *op, right),
                _ => None,
            };
            match sides {
                Some((_, Operator::Eq, right)) => keys.push(right),
                Some(inequality) => inequalities.push(inequality),
                None => return Err(refused(&format!("not {condition}"))),
            }
        }
        match <[_; 1]>::try_from(inequalities) {
            Ok([(left, operator, right)]) => Ok(Nearest { left, operator, right, keys }),
            Err(several) => Err(refused(&format!("this has {} inequalities", several.len()))),
        }
    }

    /// Tells whether the nearest is the first that is not before, rather than the last that is not behind.
    fn follows(&self) -> bool {
        matches!(self.operator, Operator::Lt | Operator::LtEq)
    }

    /// Returns the condition that a row is not nearer to the one that follows.
    fn not_next(&self, next: Expr) -> Option<Expr> {
        Some(next.clone().is_null().or(binary_expr(self.left.clone(), self.operator.negate()?, next)))
    }
}

fn refused(what: &str) -> DataFusionError {
    let message = "an ASOF JOIN has equal keys and one of >=, >, <= and < between its sides, joined by AND";
    Error::unsupported(format!("{message}; {what}")).into_host()
}

/// Returns a comparison with what is of the left side on the left; `None` if it is none between the sides.
fn sides(join: &Join, one: &Expr, operator: Operator, other: &Expr) -> Option<(Expr, Operator, Expr)> {
    let known = [Operator::Eq, Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq].contains(&operator);
    let of = |expr: &Expr, schema: &DFSchema| {
        let columns = expr.column_refs();
        !columns.is_empty() && columns.iter().all(|column| schema.has_column(column))
    };
    let (left, right) = (join.left.schema(), join.right.schema());
    match known && !one.is_volatile() && !other.is_volatile() {
        true if of(one, left) && of(other, right) => Some((one.clone(), operator, other.clone())),
        true if of(other, left) && of(one, right) => Some((other.clone(), operator.swap()?, one.clone())),
        _ => None,
    }
}

/// Makes the join of one that is ASOF.
fn nearest(join: &Join, condition: Expr) -> Result<LogicalPlan> {
    let mut conditions = split_conjunction_owned(condition);
    let found = Nearest::new(join, &conditions)?;
    let text = |kind: &DataType| matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let (left, right) = (found.left.get_type(join.left.schema())?, found.right.get_type(join.right.schema())?);
    if text(&left) != text(&right) {
        // Compared as something else, the right side would have another order than its own.
        return Err(refused(&format!("cast one of {left} and {right} to the type of the other")));
    }
    let order = found.right.clone().sort(!found.follows(), false);
    let next = lead_udwf().call(vec![found.right.clone()]);
    let next = next.partition_by(found.keys.clone()).order_by(vec![order]).build()?;
    let right = LogicalPlanBuilder::from(Arc::unwrap_or_clone(join.right.clone()))
        .filter(found.right.clone().is_not_null())?
        .window([next])?
        .build()?;
    let (qualifier, field) = right.schema().qualified_field(right.schema().fields().len() - 1);
    let next = Expr::Column(Column::from((qualifier, field)));
    conditions.extend(found.not_next(next));
    let columns = join.schema.columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(Arc::unwrap_or_clone(join.left.clone()))
        .join_on(right, join.join_type, conditions)?
        .project(columns)?
        .build()
}
