//! The values that a subquery is computed for: what its outer columns have in the rows around it, each once.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, JoinConstraint, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::builder::build_join_schema;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, Projection, SubqueryAlias, lit};

use super::Unnesting;

/// The outer columns of a subquery, and the rows they come from.
pub(super) struct Domain {
    outer: LogicalPlan,
    columns: Vec<(Column, FieldRef)>,
}

/// A plan that has the columns of a domain beside its own.
pub(super) struct Pushed {
    pub(super) plan: LogicalPlan,
    /// In the order of the domain's columns.
    pub(super) columns: Vec<Column>,
}

impl Domain {
    /// Finds the columns of `outer` that a subquery reads; references further out stay what they are.
    pub(super) fn find(outer: &LogicalPlan, subquery: &LogicalPlan) -> Result<Domain> {
        let mut columns: Vec<(Column, FieldRef)> = Vec::new();
        visit_outer(subquery, &mut |field, column| {
            if outer.schema().has_column(column) && !columns.iter().any(|(known, _)| known == column) {
                columns.push((column.clone(), field.clone()));
            }
        })?;
        Ok(Domain { outer: outer.clone(), columns })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Returns the columns in the rows around the subquery.
    pub(super) fn outside(&self) -> impl Iterator<Item = Expr> {
        self.columns.iter().map(|(column, _)| Expr::Column(column.clone()))
    }

    /// Returns how a join whose keys are the domain's columns, with nothing else that may be null, treats nulls.
    pub(super) fn null_equality(&self) -> NullEquality {
        let schema = self.outer.schema();
        let nullable = |column: &Column| schema.nullable(column).unwrap_or(true);
        match self.columns.iter().any(|(column, _)| nullable(column)) {
            true => NullEquality::NullEqualsNull,
            false => NullEquality::NullEqualsNothing,
        }
    }

    /// Tells whether a plan refers to the domain.
    pub(super) fn is_read_by(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut read = false;
        visit_outer(plan, &mut |_, column| read |= self.columns.iter().any(|(known, _)| known == column))?;
        Ok(read)
    }

    fn position(&self, column: &Column) -> Option<usize> {
        self.columns.iter().position(|(known, _)| known == column)
    }

    /// Makes a table of the domain, under names of its own.
    pub(super) fn table(&self, unnesting: &mut Unnesting) -> Result<Pushed> {
        let name = unnesting.name("domain");
        let named = |position: usize| format!("{name}_{position}");
        let values = self.outside().enumerate().map(|(position, expr)| expr.alias(named(position))).collect();
        let values = Projection::try_new(values, Arc::new(self.outer.clone()))?;
        let distinct = LogicalPlan::Distinct(Distinct::All(Arc::new(LogicalPlan::Projection(values))));
        let plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(distinct), name.as_str())?);
        let column = |position: usize| Column::new(Some(name.as_str()), named(position));
        Ok(Pushed { plan, columns: (0..self.columns.len()).map(column).collect() })
    }

    /// Puts a domain's columns into an expression in place of the outer references.
    pub(super) fn bind(&self, expr: Expr, columns: &[Column]) -> Result<Expr> {
        let bound = expr.transform(|expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => Ok(match self.position(column) {
                Some(position) => Transformed::yes(Expr::Column(columns[position].clone())),
                None => Transformed::no(expr),
            }),
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(bound.data)
    }

    /// Does so for expressions whose names are those of columns.
    pub(super) fn bind_named(&self, exprs: Vec<Expr>, columns: &[Column]) -> Result<Vec<Expr>> {
        let names = NamePreserver::new_for_projection();
        let bound = exprs.into_iter().map(|expr| {
            let name = names.save(&expr);
            Ok(name.restore(self.bind(expr, columns)?))
        });
        bound.collect()
    }

    /// Returns keys by which rows of two plans meet that have the domain's columns, beside other keys: a null meets a null.
    pub(super) fn keys(&self, left: &[Column], right: &[Column]) -> Result<Vec<(Expr, Expr)>> {
        let schema = self.outer.schema();
        let mut keys = Vec::new();
        for ((left, right), (column, field)) in left.iter().zip(right).zip(&self.columns) {
            let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
            if !schema.nullable(column)? {
                keys.push((left, right));
                continue;
            }
            let zero = lit(ScalarValue::new_default(field.data_type())?);
            let coalesced = |side: &Expr| -> Result<Expr> {
                datafusion::logical_expr::when(side.clone().is_null(), zero.clone()).otherwise(side.clone())
            };
            keys.push((coalesced(&left)?, coalesced(&right)?));
            keys.push((left.is_null(), right.is_null()));
        }
        Ok(keys)
    }
}

/// Calls `f` for each outer reference of a plan, those of its subqueries included.
fn visit_outer(plan: &LogicalPlan, f: &mut dyn FnMut(&FieldRef, &Column)) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(field, column) = expr {
                    f(field, column);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Joins two plans.
pub(super) fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    on: Vec<(Expr, Expr)>,
    filter: Option<Expr>,
    null_equality: NullEquality,
) -> Result<LogicalPlan> {
    let schema = Arc::new(build_join_schema(left.schema(), right.schema(), &join_type)?);
    Ok(LogicalPlan::Join(Join {
        left: Arc::new(left),
        right: Arc::new(right),
        on,
        filter,
        join_type,
        join_constraint: JoinConstraint::On,
        schema,
        null_equality,
        null_aware: false,
    }))
}

/// Keeps the columns of a schema, and some more.
pub(super) fn keep(plan: LogicalPlan, schema: &DFSchema, more: &[Column]) -> Result<LogicalPlan> {
    let columns = schema.columns().into_iter().chain(more.iter().cloned()).map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
