//! DataFusion's logical optimiser, with the rules that have something to do.
//!
//! Each rule walks the whole plan, in each of several passes, and most of them look for one operator: where a plan has none of
//! it, they are left out. Of joins of many tables, each of which is rewritten with a schema of all columns so far, a second
//! pass changes nothing that the first has not: what DataFusion's order of joins would gain from it, Tandem's own order has.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::optimizer::{Optimizer, OptimizerConfig};

/// Joins of a plan from which on it is optimised in one pass.
const MANY_JOINS: usize = 16;

/// Analyses and optimises a plan.
///
/// # Errors
/// If the plan is not valid.
pub(crate) fn optimize(plan: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let plan = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {})?;
    let contents = Contents::of(&plan)?;
    let rules = state.optimizers().iter().filter(|rule| contents.concern(rule.name())).cloned().collect();
    let optimizer = Optimizer::with_rules(rules);
    if contents.joins < MANY_JOINS || contents.subqueries {
        return optimizer.optimize(plan, state, |_, _| {});
    }
    let mut options = state.config_options().as_ref().clone();
    options.optimizer.max_passes = 1;
    optimizer.optimize(plan, &OnePass { state, options: Arc::new(options) }, |_, _| {})
}

/// What a plan has that rules look for.
#[derive(Default)]
struct Contents {
    joins: usize,
    outer_joins: bool,
    unions: bool,
    distinct: bool,
    limits: bool,
    groups: bool,
    distinct_aggregates: bool,
    /// Subqueries of any kind.
    subqueries: bool,
    /// Something that is computed, rather than compared or counted.
    computed: bool,
}

impl Contents {
    fn of(plan: &LogicalPlan) -> Result<Contents> {
        let mut found = Contents::default();
        plan.apply_with_subqueries(|node| {
            match node {
                LogicalPlan::Join(join) => {
                    found.joins += 1;
                    found.outer_joins |= matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full);
                }
                LogicalPlan::Union(_) => found.unions = true,
                LogicalPlan::Distinct(_) => found.distinct = true,
                LogicalPlan::Limit(_) => found.limits = true,
                LogicalPlan::Sort(sort) => found.limits |= sort.fetch.is_some(),
                LogicalPlan::TableScan(scan) => found.limits |= scan.fetch.is_some(),
                LogicalPlan::Aggregate(aggregate) => found.groups |= !aggregate.group_expr.is_empty(),
                LogicalPlan::Subquery(_) => found.subqueries = true,
                _ => {}
            }
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    found.expression(expr);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(found)
    }

    fn expression(&mut self, expr: &Expr) {
        match expr {
            Expr::Column(_) | Expr::Literal(..) | Expr::Alias(_) | Expr::IsNull(_) | Expr::IsNotNull(_) => {}
            Expr::AggregateFunction(call) => self.distinct_aggregates |= call.params.distinct,
            Expr::BinaryExpr(binary) => {
                use Operator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
                self.computed |= !matches!(binary.op, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq);
            }
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => {
                (self.subqueries, self.computed) = (true, true);
            }
            _ => self.computed = true,
        }
    }

    /// Tells whether a rule of DataFusion may find something to change.
    fn concern(&self, rule: &str) -> bool {
        match rule {
            "rewrite_set_comparison"
            | "decorrelate_predicate_subquery"
            | "scalar_subquery_to_join"
            | "decorrelate_lateral_join" => self.subqueries,
            "optimize_unions" | "unions_to_filter" => self.unions,
            "replace_distinct_aggregate" => self.distinct || self.unions,
            "eliminate_limit" | "push_down_limit" => self.limits,
            "eliminate_outer_join" => self.outer_joins || self.subqueries,
            "single_distinct_aggregation_to_group_by" => self.distinct_aggregates,
            "eliminate_group_by_constant" => self.groups || self.distinct || self.subqueries,
            "common_sub_expression_eliminate" | "extract_leaf_expressions" | "push_down_leaf_projections" => {
                self.computed
            }
            _ => true,
        }
    }
}

/// The settings of a session, but for the passes.
struct OnePass<'s> {
    state: &'s SessionState,
    options: Arc<ConfigOptions>,
}

impl OptimizerConfig for OnePass<'_> {
    fn query_execution_start_time(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        self.state.query_execution_start_time()
    }

    fn alias_generator(&self) -> &Arc<datafusion::common::alias::AliasGenerator> {
        self.state.alias_generator()
    }

    fn options(&self) -> Arc<ConfigOptions> {
        self.options.clone()
    }

    fn function_registry(&self) -> Option<&dyn datafusion::execution::FunctionRegistry> {
        Some(self.state)
    }
}
