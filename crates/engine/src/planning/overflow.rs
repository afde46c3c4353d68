//! Integer overflow is an error on the host engine, too.
//!
//! DataFusion wraps silently. [`CheckedArithmetic`] turns integer `+ - *` of the plan's projections, filters and
//! aggregates into their checked forms; it runs before the other physical rules, so that what these push elsewhere is
//! checked already. Constants are folded before any physical plan exists: [`CheckedConstants`] looks at them first.
//! Sums of integers and negation still wrap on the host.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeVisitor};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::Error;
use crate::error::IntoHost;

/// Makes integer arithmetic of a physical plan fail on overflow.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl PhysicalOptimizerRule for CheckedArithmetic {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up(check_node)?.data)
    }

    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn check_node(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let schema = projection.input().schema();
        let mut changed = false;
        let expressions = projection.expr().iter().map(|expression| {
            let checked = check(expression.expr.clone(), &schema)?;
            changed |= checked.transformed;
            Ok(ProjectionExpr { expr: checked.data, alias: expression.alias.clone() })
        });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        if changed {
            let projection = ProjectionExec::try_new(expressions, projection.input().clone())?;
            return Ok(Transformed::yes(Arc::new(projection)));
        }
    } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let checked = check(filter.predicate().clone(), &filter.input().schema())?;
        if checked.transformed {
            let filter = FilterExecBuilder::from(filter).with_predicate(checked.data).build()?;
            return Ok(Transformed::yes(Arc::new(filter)));
        }
    } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        // In later phases the arguments name columns of the rows, not of the states they read: all phases change alike.
        let schema = aggregate.input_schema();
        let mut changed = false;
        let mut functions = Vec::with_capacity(aggregate.aggr_expr().len());
        for function in aggregate.aggr_expr() {
            let mut check_all = |expressions: Vec<Arc<dyn PhysicalExpr>>| {
                let expressions = expressions.into_iter().map(|expression| {
                    let checked = check(expression, &schema)?;
                    changed |= checked.transformed;
                    Ok(checked.data)
                });
                expressions.collect::<Result<Vec<_>>>()
            };
            let all = function.all_expressions();
            let (arguments, order) = (check_all(all.args)?, check_all(all.order_by_exprs)?);
            functions.push(match function.with_new_expressions(arguments, order) {
                Some(function) => Arc::new(function),
                None => function.clone(),
            });
        }
        if changed {
            return Ok(Transformed::yes(Arc::new(aggregate.with_new_aggr_exprs(functions))));
        }
    }
    Ok(Transformed::no(node))
}

fn check(expression: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expression.transform_up(|node| {
        let Some(binary) = node.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(node)) };
        let arithmetic = matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply);
        let integer = |side: &Arc<dyn PhysicalExpr>| side.data_type(schema).is_ok_and(|kind| kind.is_integer());
        if !arithmetic || !integer(binary.left()) || !integer(binary.right()) {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(Arc::new(binary.clone().with_fail_on_overflow(true))))
    })
}

/// Fails on constant integer arithmetic that overflows.
#[derive(Debug)]
pub(crate) struct CheckedConstants;

impl AnalyzerRule for CheckedConstants {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expression| {
                expression.visit(&mut Constants::default())?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "checked_constants"
    }
}

/// The values of constant integer arithmetic, computed once from the leaves up.
#[derive(Default)]
struct Constants {
    /// Of each part that was visited and whose parent was not: its value and type, where it is a constant integer.
    values: Vec<Option<(i128, DataType)>>,
}

impl<'n> TreeNodeVisitor<'n> for Constants {
    type Node = Expr;

    fn f_down(&mut self, expression: &'n Expr) -> Result<TreeNodeRecursion> {
        Ok(match expression {
            // A branch that is never taken may hold anything.
            Expr::Case(_) => TreeNodeRecursion::Jump,
            _ => TreeNodeRecursion::Continue,
        })
    }

    fn f_up(&mut self, expression: &'n Expr) -> Result<TreeNodeRecursion> {
        let mut children = 0;
        if !matches!(expression, Expr::Case(_)) {
            expression.apply_children(|_| {
                children += 1;
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        let below = self.values.split_off(self.values.len() - children);
        self.values.push(constant(expression, &below)?);
        Ok(TreeNodeRecursion::Continue)
    }
}

/// Returns the value of an expression with the given values below it, if it is constant integer arithmetic.
fn constant(expression: &Expr, below: &[Option<(i128, DataType)>]) -> Result<Option<(i128, DataType)>> {
    Ok(match (expression, below) {
        (Expr::Literal(value, _), _) => integer(value).map(|number| (number, value.data_type())),
        (Expr::Alias(_), [inner]) => inner.clone(),
        (Expr::Cast(cast), [Some((value, _))]) if cast.field.data_type().is_integer() => {
            Some((*value, cast.field.data_type().clone()))
        }
        (Expr::Negative(_), [Some((value, kind))]) => value.checked_neg().map(|value| (value, kind.clone())),
        (Expr::BinaryExpr(binary), [Some((left, left_kind)), Some((right, right_kind))]) => {
            let value = match binary.op {
                Operator::Plus => left.checked_add(*right),
                Operator::Minus => left.checked_sub(*right),
                Operator::Multiply => left.checked_mul(*right),
                _ => return Ok(None),
            };
            let kind = BinaryTypeCoercer::new(left_kind, &binary.op, right_kind).get_result_type()?;
            match (value, range(&kind)) {
                (_, None) => None,
                (Some(value), Some((low, high))) if (low..=high).contains(&value) => Some((value, kind)),
                _ => {
                    return Err(Error::input(format!(
                        "integer overflow; cast an operand to a wider type such as DECIMAL(38,0) or DOUBLE: \
                         {left} {} {right} does not fit {kind}",
                        binary.op
                    ))
                    .into_host());
                }
            }
        }
        _ => None,
    })
}

fn integer(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(value) => (*value)?.into(),
        ScalarValue::Int16(value) => (*value)?.into(),
        ScalarValue::Int32(value) => (*value)?.into(),
        ScalarValue::Int64(value) => (*value)?.into(),
        ScalarValue::UInt8(value) => (*value)?.into(),
        ScalarValue::UInt16(value) => (*value)?.into(),
        ScalarValue::UInt32(value) => (*value)?.into(),
        ScalarValue::UInt64(value) => (*value)?.into(),
        _ => return None,
    })
}

fn range(kind: &DataType) -> Option<(i128, i128)> {
    tandem_column::Type::from_arrow(kind).ok()?.integer_range().filter(|_| kind.is_integer())
}
