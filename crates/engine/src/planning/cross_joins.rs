//! Equalities of a WHERE become keys of the joins below it, in time that grows with their number.
//!
//! DataFusion's rule for this takes a region of inner joins apart again at each of its joins, and tries each equality with
//! each pair of inputs: a clique of 64 tables takes seconds. It is kept for plans of few joins, which look as they always did.
//! Of larger plans, regions without a cross join stay as they are, and others are put together once: every equality knows the
//! two inputs that it connects.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::logical_plan::builder::build_join_schema;
use datafusion::logical_expr::utils::{can_hash, conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, JoinConstraint, JoinType, LogicalPlan, Operator, Projection,
};
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Joins of a plan up to which DataFusion's rule takes a few milliseconds.
const FEW: usize = 10;

/// Makes inner joins of cross joins with a filter above them.
#[derive(Debug, Default)]
pub(crate) struct CrossJoins(EliminateCrossJoin);

impl OptimizerRule for CrossJoins {
    fn name(&self) -> &str {
        "cross_joins"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if count_joins(&plan) <= FEW { self.0.rewrite(plan, config) } else { rewrite(plan) }
    }
}

/// Does so before a plan is analysed, if it has many joins: DataFusion's analyser looks up each column of a long condition by name
/// among all columns below, at each level of its ANDs, and those of a key only among those of its side.
///
/// # Errors
/// If the plan is not valid.
pub(crate) fn find_keys_early(plan: LogicalPlan) -> Result<LogicalPlan> {
    if count_joins(&plan) <= FEW { Ok(plan) } else { Ok(rewrite(plan)?.data) }
}

/// Counts the joins of a plan, without those of subqueries in expressions.
fn count_joins(plan: &LogicalPlan) -> usize {
    let (mut joins, mut left) = (0, vec![plan]);
    while let Some(plan) = left.pop() {
        joins += usize::from(matches!(plan, LogicalPlan::Join(_)));
        left.extend(plan.inputs());
    }
    joins
}

/// Rewrites the regions of a plan.
fn rewrite(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let top = match &plan {
        LogicalPlan::Filter(filter) => &filter.input,
        other => other,
    };
    if is_inner(top) && has_cross_join(top) {
        return put_together(plan).map(Transformed::yes);
    }
    let plan = plan.map_uncorrelated_subqueries(rewrite)?.transform_sibling(|plan| plan.map_children(rewrite_below))?;
    if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
}

/// Rewrites what is below a node; joins of the region that was looked at already only lead on.
fn rewrite_below(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !is_inner(&plan) {
        return rewrite(plan);
    }
    let plan = plan.map_children(rewrite_below)?;
    if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
}

fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if is_inner_join(join))
}

fn is_inner_join(join: &Join) -> bool {
    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNothing
}

/// Tells whether a join of a region has no keys.
fn has_cross_join(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Join(join) = plan else { return false };
    is_inner(plan) && (join.on.is_empty() || has_cross_join(&join.left) || has_cross_join(&join.right))
}

/// A region taken apart.
#[derive(Default)]
struct CrossJoinRegion {
    inputs: Vec<LogicalPlan>,
    /// Equalities, and the inputs of their sides.
    keys: Vec<[(usize, Expr); 2]>,
    conditions: Vec<Expr>,
}

/// Puts a region together so that each input is joined by all equalities with those before it, where there are any.
fn put_together(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = plan.schema().clone();
    let (mut region, mut equalities) = (CrossJoinRegion::default(), Vec::new());
    let joins = match plan {
        LogicalPlan::Filter(filter) => {
            region.conditions = split_conjunction_owned(filter.predicate);
            Arc::unwrap_or_clone(filter.input)
        }
        other => other,
    };
    region.take(joins, &mut equalities)?;
    region.find_keys(equalities);
    let CrossJoinRegion { inputs, keys, conditions } = region;

    let mut near = vec![Vec::new(); inputs.len()];
    for (at, key) in keys.iter().enumerate() {
        key.iter().for_each(|(input, _)| near[*input].push(at));
    }
    let mut waiting: Vec<Option<LogicalPlan>> = inputs.into_iter().map(Some).collect();
    let (mut joined, mut reached) = (vec![false; waiting.len()], vec![false; waiting.len()]);
    let mut whole: Option<LogicalPlan> = None;
    while let Some(next) = next(&joined, &reached) {
        let input = waiting[next].take().expect("an input is joined once");
        let on = near[next].iter().filter_map(|at| match &keys[*at] {
            [(a, left), (b, right)] if *b == next && joined[*a] => Some((left.clone(), right.clone())),
            [(a, left), (b, right)] if *a == next && joined[*b] => Some((right.clone(), left.clone())),
            _ => None,
        });
        whole = Some(match whole {
            None => input,
            Some(left) => inner_join(left, input, on.collect())?,
        });
        joined[next] = true;
        near[next].iter().flat_map(|at| &keys[*at]).for_each(|(input, _)| reached[*input] = true);
    }
    let mut plan = whole.expect("a region has inputs");
    if *plan.schema() != schema {
        plan = LogicalPlan::Projection(Projection::new_from_schema(Arc::new(plan), schema));
    }
    match conjunction(conditions) {
        Some(predicate) => Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?)),
        None => Ok(plan),
    }
}

/// Returns the input to join next: the first that an equality leads to, or the first of all.
fn next(joined: &[bool], reached: &[bool]) -> Option<usize> {
    let mut left = (0..joined.len()).filter(|input| !joined[*input]);
    left.clone().find(|input| reached[*input]).or_else(|| left.next())
}

fn inner_join(left: LogicalPlan, right: LogicalPlan, on: Vec<(Expr, Expr)>) -> Result<LogicalPlan> {
    let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &JoinType::Inner)?);
    Ok(LogicalPlan::Join(Join {
        left: Arc::new(left),
        right: Arc::new(right),
        on,
        filter: None,
        join_type: JoinType::Inner,
        join_constraint: JoinConstraint::On,
        schema,
        null_equality: NullEquality::NullEqualsNothing,
        null_aware: false,
    }))
}

impl CrossJoinRegion {
    /// Takes joins apart; what is below them is rewritten on its own.
    fn take(&mut self, plan: LogicalPlan, equalities: &mut Vec<(Expr, Expr)>) -> Result<()> {
        match plan {
            LogicalPlan::Join(join) if is_inner_join(&join) => {
                equalities.extend(join.on);
                self.conditions.extend(join.filter.into_iter().flat_map(split_conjunction_owned));
                self.take(Arc::unwrap_or_clone(join.left), equalities)?;
                self.take(Arc::unwrap_or_clone(join.right), equalities)
            }
            other => {
                self.inputs.push(rewrite(other)?.data);
                Ok(())
            }
        }
    }

    /// Finds the equalities that connect two inputs; what else must hold is a condition.
    fn find_keys(&mut self, equalities: Vec<(Expr, Expr)>) {
        let mut owners: HashMap<Column, usize> = HashMap::new();
        for (input, plan) in self.inputs.iter().enumerate() {
            owners.extend(plan.schema().columns().into_iter().map(|column| (column, input)));
        }
        let owner = |expr: &Expr| {
            let mut inputs = expr.column_refs().into_iter().map(|column| owners.get(column).copied());
            let first = inputs.next()??;
            inputs.all(|input| input == Some(first)).then_some(first)
        };
        let hashed = |expr: &Expr, schema: &DFSchema| expr.get_type(schema).is_ok_and(|kind| can_hash(&kind));
        let mut all = equalities;
        for condition in std::mem::take(&mut self.conditions) {
            match condition {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => all.push((*left, *right)),
                other => self.conditions.push(other),
            }
        }
        for (left, right) in all {
            match (owner(&left), owner(&right)) {
                (Some(a), Some(b)) if a != b && hashed(&left, self.inputs[a].schema()) => {
                    self.keys.push([(a, left), (b, right)]);
                }
                _ => self.conditions.push(left.eq(right)),
            }
        }
    }
}
