//! Subqueries become joins: those that DataFusion's own rules leave behind, or refuse.
//!
//! A correlated subquery is computed once for all values that its outer columns have, the *domain* ([`domain`]), which goes
//! down the subquery as a further table until it meets the outer references (`push`); the result joins the rows it was
//! written for by those values (`attach`): Neumann and Kemper, "Unnesting arbitrary queries", 2015. So no plan is left
//! that would have to run once for each row, whatever the subquery has in it: limits, windows, unions, other subqueries.
//!
//! What DataFusion decorrelates by itself stays as it is, for its plans need no domain. A subquery that stands for a value
//! and may give several rows counts them (`single`). The rule runs after types are resolved, before DataFusion checks what
//! it could run itself.

mod attach;
mod domain;
mod push;
mod single;

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, InvariantLevel, LogicalPlan};
use datafusion::optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::replace_distinct_aggregate::ReplaceDistinctWithAggregate;
use datafusion::optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{AnalyzerRule, Optimizer, OptimizerContext, OptimizerRule};

/// Makes joins of the subqueries that DataFusion does not.
#[derive(Debug)]
pub(crate) struct Unnest;

impl AnalyzerRule for Unnest {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let Found { scalar, predicate, outer } = Found::of(&plan)?;
        let plan = if scalar { single::count_rows(plan)? } else { plan };
        if !(predicate || outer) || host_unnests(&plan) {
            return Ok(plan);
        }
        // What cannot be unnested stays as it was: the host says what it thinks of it.
        match Unnesting::default().all(plan.clone()) {
            Ok(unnested) if !Found::of(&unnested)?.outer => Ok(unnested),
            _ => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "unnest"
    }
}

/// Which subqueries a plan has.
#[derive(Clone, Copy, Default)]
struct Found {
    /// One that stands for a value.
    scalar: bool,
    /// EXISTS, IN, ANY or ALL.
    predicate: bool,
    /// A reference to a row outside.
    outer: bool,
}

impl Found {
    fn of(plan: &LogicalPlan) -> Result<Found> {
        let mut found = Found::default();
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    match expr {
                        Expr::ScalarSubquery(_) => found.scalar = true,
                        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => found.predicate = true,
                        Expr::OuterReferenceColumn(..) => found.outer = true,
                        _ => {}
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(found)
    }
}

/// Tells whether DataFusion's own rules make joins of all subqueries of a plan that are not a single value, and joins that
/// pipelines know.
fn host_unnests(plan: &LogicalPlan) -> bool {
    if plan.check_invariants(InvariantLevel::Executable).is_err() || is_hard(plan) {
        return false;
    }
    let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(ReplaceDistinctWithAggregate::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
    ];
    let optimized = Optimizer::with_rules(rules).optimize(plan.clone(), &OptimizerContext::new(), |_, _| {});
    optimized.is_ok_and(|plan| {
        let found = Found::of(&plan);
        found.is_ok_and(|found| !found.predicate && !found.outer) && !has_conditional_not_in(&plan)
    })
}

/// Tells whether a plan has a subquery that DataFusion's rules may take for another: one that refers to rows further out than
/// those right around it, or from below an operator through which conditions do not simply move.
fn is_hard(plan: &LogicalPlan) -> bool {
    let mut hard = false;
    let visited = plan.apply(|node| {
        if let LogicalPlan::Subquery(lateral) = node {
            hard |= !moves_up(&lateral.subquery);
        }
        node.apply_subqueries(|subquery| {
            let known = |column| node.inputs().iter().any(|input| input.schema().has_column(column));
            // Those of subqueries within are not among them.
            let references = subquery.all_out_ref_exprs();
            hard |= references.iter().any(|expr| !matches!(expr, Expr::OuterReferenceColumn(_, of) if known(of)));
            hard |= subquery.inputs().into_iter().any(|inner| !moves_up(inner) || is_hard(inner));
            Ok(TreeNodeRecursion::Continue)
        })
    });
    hard || visited.is_err()
}

/// Tells whether all outer references of a subquery are in filters that could as well be its last step.
fn moves_up(plan: &LogicalPlan) -> bool {
    use LogicalPlan::{Aggregate, Distinct, Filter, Join, Projection, SubqueryAlias};
    let passes = match plan {
        Projection(_) | Filter(_) | SubqueryAlias(_) | Aggregate(_) | Distinct(_) => true,
        Join(join) => join.join_type == JoinType::Inner,
        _ => false,
    };
    plan.all_out_ref_exprs().is_empty() || passes && plan.inputs().into_iter().all(moves_up)
}

/// Tells whether a plan has a NOT IN of which more than the value decides: DataFusion's join takes a null for one of every row's.
fn has_conditional_not_in(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(join) = node {
            found |= join.null_aware && (join.on.len() != 1 || join.filter.is_some());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found || visited.is_err()
}

/// The state of unnesting one plan.
#[derive(Default)]
struct Unnesting {
    /// How many names were made.
    names: usize,
}

impl Unnesting {
    /// Makes a name that nothing in the plan has.
    fn name(&mut self, of: &str) -> String {
        self.names += 1;
        format!("__{of}_{}", self.names)
    }

    /// Unnests all subqueries of a plan, the innermost first.
    fn all(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        // ANY and ALL are EXISTS of rows that are, or may be, greater and so on.
        let plan = RewriteSetComparison::new().rewrite(plan, &OptimizerContext::new())?.data;
        self.nodes(plan)
    }

    fn nodes(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Ok(plan.transform_up(|node| self.node(node).map(Transformed::yes))?.data)
    }
}
