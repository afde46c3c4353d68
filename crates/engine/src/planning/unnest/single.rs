//! A subquery that stands for a value gives one row at most: where the plan does not show it, its rows are counted.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Sort, lit, when};

use crate::functions::single_row;

/// Tells whether a subquery may give several rows.
pub(super) fn may_give_several(plan: &LogicalPlan) -> bool {
    plan.max_rows().is_none_or(|rows| rows > 1)
}

/// Tells whether a subquery may give no row, which stands for null, though its column has none: the host would take the value for one that
/// cannot be null.
fn hides_null(plan: &LogicalPlan) -> bool {
    fn gives_a_row(plan: &LogicalPlan) -> bool {
        match plan {
            LogicalPlan::Projection(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Sort(Sort { fetch: None, .. }) => plan.inputs().into_iter().all(gives_a_row),
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
            LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
            _ => false,
        }
    }
    plan.schema().fields().iter().all(|field| !field.is_nullable()) && !gives_a_row(plan)
}

/// Returns the first value and the number of rows of each group of a plan, named.
pub(super) fn counted(plan: LogicalPlan, keys: &[Column], value: Column, names: [&str; 2]) -> Result<LogicalPlan> {
    let keys = keys.iter().cloned().map(Expr::Column).collect();
    let aggregates = vec![first_value(Expr::Column(value), vec![]).alias(names[0]), count(lit(1_i64)).alias(names[1])];
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), keys, aggregates)?))
}

/// Returns a value, or fails if it is the first of several.
pub(super) fn checked(value: &str, rows: &str) -> Result<Expr> {
    let (value, rows) = (Column::from_name(value), Column::from_name(rows));
    when(single_row().call(vec![Expr::Column(rows)]), Expr::Column(value)).end()
}

/// Makes the subqueries of a plan that stand for a value and refer to no other row fail if they give several.
pub(super) fn count_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let counted = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarSubquery(mut subquery)
                    if subquery.outer_ref_columns.is_empty()
                        && (may_give_several(&subquery.subquery) || hides_null(&subquery.subquery)) =>
                {
                    subquery.subquery = Arc::new(at_most_one(&subquery.subquery)?);
                    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
                }
                other => Ok(Transformed::no(other)),
            })
        })?
        .map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(counted.data)
}

fn at_most_one(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let [value] = &plan.schema().columns()[..] else { return Ok(plan.clone()) };
    // Two are enough to be too many.
    let two = LogicalPlanBuilder::from(plan.clone()).limit(0, Some(2))?.build()?;
    let names = ["__first", "__rows"];
    let plan = counted(two, &[], value.clone(), names)?;
    let only = checked(names[0], names[1])?.alias_qualified(value.relation.clone(), value.name.clone());
    Ok(LogicalPlan::Projection(Projection::try_new(vec![only], Arc::new(plan))?))
}
