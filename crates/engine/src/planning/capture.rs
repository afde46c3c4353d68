//! Capture: replaces the largest supported sub-plans of an optimised logical plan by [`Captured`] nodes.
//!
//! Going down from the root, each operator is lowered together with everything below it (`crate::planning::lower`); an
//! operator that cannot be is left to the host, with a [`Reason`], and its children are tried in its place. Within a
//! captured sub-plan a child that cannot be lowered becomes an input: the host runs it and hands its rows in as a block;
//! lowering names these inputs, and what is below each is captured here. So every operator is either in a captured query or
//! has a reason. A plan that reads no table has nothing to gain and stays where it is.

use std::sync::Arc;

use datafusion::{
    common::{
        Column, Result,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Expr, Extension, LogicalPlan, Projection},
};

use crate::planning::{
    captured::Captured,
    lower::{self, Lowered},
    options::CaptureOptions,
    reason::Reason,
    table_stats::TableResolver,
};

/// How deeply operators may be nested: lowering descends by recursion, on a thread's usual stack.
const DEPTH_LIMIT: usize = 200;

/// Returns how deeply a plan is nested, without recursion.
fn depth(plan: &LogicalPlan) -> usize {
    let mut deepest = 0;
    let mut left = vec![(plan, 1)];
    while let Some((plan, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(plan.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    deepest
}

/// Replaces the largest supported sub-plans of an optimised logical plan by [`Captured`] nodes; everything not taken has
/// a reason.
///
/// # Errors
/// Only if the host's plan cannot be rebuilt around the captured parts.
pub fn capture(
    plan: LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
) -> Result<(LogicalPlan, Vec<Reason>)> {
    let mut reasons = Vec::new();
    if depth(&plan) > DEPTH_LIMIT {
        reasons.push(Reason::new("Plan", format!("plans nested more than {DEPTH_LIMIT} deep run on the host")));
        return Ok((plan, reasons));
    }
    let plan = capture_into(plan, resolver, options, &mut reasons)?;
    let mut seen = std::collections::HashSet::new();
    reasons.retain(|reason| seen.insert(reason.clone()));
    Ok((plan, reasons))
}

/// Captures what it can of `plan` and adds reasons for the rest.
fn capture_into(
    plan: LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
    reasons: &mut Vec<Reason>,
) -> Result<LogicalPlan> {
    if is_statement(&plan) {
        return capture_children(plan, resolver, options, reasons);
    }
    if !options.tableless && !reads_table(&plan) {
        return Ok(plan);
    }
    match lower::lower(&plan, resolver, options) {
        Ok(lowered) => {
            let captured = capture_inputs(&plan, lowered, resolver, options, reasons)?;
            Ok(LogicalPlan::Extension(Extension { node: Arc::new(captured) }))
        }
        Err(reason) => {
            reasons.push(reason);
            capture_children(plan, resolver, options, reasons)
        }
    }
}

/// Makes the node of a plan that was lowered, capturing within the inputs that the host runs for it.
fn capture_inputs(
    plan: &LogicalPlan,
    lowered: Lowered,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
    reasons: &mut Vec<Reason>,
) -> Result<Captured> {
    let mut hosts = Vec::with_capacity(lowered.inputs.len());
    for input in lowered.inputs {
        reasons.push(input.reason);
        hosts.push(capture_children(input.plan, resolver, options, reasons)?);
    }
    let blocks = lowered.blocks.iter().map(|block| project(&hosts[block.input], &block.columns));
    Ok(Captured {
        inputs: blocks.collect::<Result<_>>()?,
        query: Arc::new(lowered.query),
        scans: lowered.scans,
        schema: plan.schema().clone(),
        estimates: lowered.estimates,
        #[cfg(test)]
        looked: lowered.looked,
    })
}

/// Keeps the given columns of a plan.
fn project(plan: &LogicalPlan, columns: &[usize]) -> Result<LogicalPlan> {
    let schema = plan.schema();
    if columns.len() == schema.fields().len() {
        return Ok(plan.clone());
    }
    let column = |position: &usize| {
        let (qualifier, field) = schema.qualified_field(*position);
        Expr::Column(Column::new(qualifier.cloned(), field.name().clone()))
    };
    let projection = Projection::try_new(columns.iter().map(column).collect(), Arc::new(plan.clone()))?;
    Ok(LogicalPlan::Projection(projection))
}

/// Captures within the children of a node that stays on the host, and within its subqueries.
fn capture_children(
    plan: LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
    reasons: &mut Vec<Reason>,
) -> Result<LogicalPlan> {
    let plan = plan.map_children(|child| capture_into(child, resolver, options, reasons).map(Transformed::yes))?.data;
    let plan = plan.map_subqueries(|subquery| match subquery {
        LogicalPlan::Subquery(mut subquery) if subquery.outer_ref_columns.is_empty() => {
            let inner = Arc::unwrap_or_clone(subquery.subquery);
            subquery.subquery = Arc::new(capture_into(inner, resolver, options, reasons)?);
            Ok(Transformed::yes(LogicalPlan::Subquery(subquery)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

/// Tells whether a node is a statement around a query rather than part of one: it runs on the host, and that needs no
/// reason.
fn is_statement(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_)
    )
}

/// Tells whether any table is read below, in subqueries too.
fn reads_table(plan: &LogicalPlan) -> bool {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::TableScan(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .is_ok_and(|_| found)
}
