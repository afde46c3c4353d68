//! How a subquery joins the rows it was written for, and what its expression becomes.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, Sort, lit, when,
};

use super::Unnesting;
use super::domain::{Domain, Pushed, join, keep};
use super::single::{checked, counted, may_give_several};

impl Unnesting {
    /// Unnests the subqueries in the expressions of one operator, whose inputs have none left.
    pub(super) fn node(&mut self, node: LogicalPlan) -> Result<LogicalPlan> {
        match node {
            LogicalPlan::Join(join) => self.join_node(join),
            LogicalPlan::Filter(filter) => self.filter(filter),
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_) => {
                let schema = node.schema().clone();
                let input = match &node {
                    LogicalPlan::Sort(sort) => with_referred(sort)?,
                    _ => node.inputs()[0].clone(),
                };
                let mut rows = Rows { plan: input, known: Vec::new() };
                let names = NamePreserver::new(&node);
                let mut found = false;
                let mut exprs = Vec::new();
                for expr in node.expressions() {
                    let name = names.save(&expr);
                    let replaced = self.replace(expr, &mut rows, true)?;
                    found |= replaced.transformed;
                    exprs.push(if replaced.transformed { name.restore(replaced.data) } else { replaced.data });
                }
                if !found {
                    return Ok(node);
                }
                let node = node.with_new_exprs(exprs, vec![rows.plan])?;
                if node.schema().fields().len() == schema.fields().len() { Ok(node) } else { keep(node, &schema, &[]) }
            }
            other => Ok(other),
        }
    }

    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let schema = filter.input.schema().clone();
        let mut rows = Rows { plan: Arc::unwrap_or_clone(filter.input), known: Vec::new() };
        let mut left = Vec::new();
        for condition in split_conjunction_owned(filter.predicate) {
            if let Some(condition) = self.condition(condition, &mut rows)? {
                left.push(self.replace(condition, &mut rows, false)?.data);
            }
        }
        let plan = match conjunction(left) {
            Some(predicate) => LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(rows.plan))?),
            None => rows.plan,
        };
        if plan.schema().fields().len() == schema.fields().len() { Ok(plan) } else { keep(plan, &schema, &[]) }
    }

    /// Makes a semi or anti join of a condition that is a correlated subquery as a whole; gives back any other.
    fn condition(&mut self, condition: Expr, rows: &mut Rows) -> Result<Option<Expr>> {
        let (subquery, kind, value) = match &condition {
            Expr::Exists(Exists { subquery, negated }) => {
                (subquery, if *negated { JoinType::LeftAnti } else { JoinType::LeftSemi }, None)
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated: false }) => {
                (subquery, JoinType::LeftSemi, Some(expr.as_ref().clone()))
            }
            _ => return Ok(Some(condition)),
        };
        let inner = self.nodes(subquery.subquery.as_ref().clone())?;
        let domain = Domain::find(&rows.plan, &inner)?;
        if domain.is_empty() {
            return Ok(Some(condition));
        }
        let given = inner.schema().columns().into_iter().next();
        let Pushed { plan, columns } = self.push(inner, &domain)?;
        let mut on: Vec<(Expr, Expr)> = domain.outside().zip(columns.iter().cloned().map(Expr::Column)).collect();
        let (mut plan, equality) = (plan, domain.null_equality());
        if let (Some(value), Some(given)) = (value, given) {
            let value = self.replace(value, rows, false)?.data;
            let given = Expr::Column(given);
            // Null is equal to nothing here, though it may be in the domain.
            if equality == NullEquality::NullEqualsNull {
                plan = LogicalPlan::Filter(Filter::try_new(given.clone().is_not_null(), Arc::new(plan))?);
            }
            on.push((value, given));
        }
        rows.plan = join(rows.plan.clone(), plan, kind, on, None, equality)?;
        Ok(None)
    }

    /// Replaces the subqueries of an expression by columns that joins add to the rows it is computed of. `anywhere`: even
    /// EXISTS and IN that refer to no outer row, of which the host makes joins in filters only.
    fn replace(&mut self, expr: Expr, rows: &mut Rows, anywhere: bool) -> Result<Transformed<Expr>> {
        expr.transform_up(|expr| {
            let subquery = match &expr {
                Expr::ScalarSubquery(subquery) => subquery,
                Expr::Exists(exists) => &exists.subquery,
                Expr::InSubquery(within) => &within.subquery,
                _ => return Ok(Transformed::no(expr)),
            };
            if let Some((_, known)) = rows.known.iter().find(|(known, _)| *known == expr) {
                return Ok(Transformed::yes(known.clone()));
            }
            let inner = self.nodes(subquery.subquery.as_ref().clone())?;
            let correlated = inner_refers(&inner)?;
            let replaced = match &expr {
                // The host makes of it what it is.
                _ if !correlated && (matches!(expr, Expr::ScalarSubquery(_)) || !anywhere) => {
                    return Ok(Transformed::yes(with_plan(expr, inner)));
                }
                Expr::Exists(exists) => {
                    let found = self.exists(inner, rows)?;
                    if exists.negated { Expr::Not(Box::new(found)) } else { found }
                }
                Expr::InSubquery(within) => {
                    let found = self.is_in(within.expr.as_ref().clone(), inner, rows)?;
                    if within.negated { Expr::Not(Box::new(found)) } else { found }
                }
                _ => self.value(inner, rows)?,
            };
            rows.known.push((expr, replaced.clone()));
            Ok(Transformed::yes(replaced))
        })
    }

    /// Joins the value of a subquery.
    fn value(&mut self, inner: LogicalPlan, rows: &mut Rows) -> Result<Expr> {
        let several = may_give_several(&inner);
        let [value] = &inner.schema().columns()[..] else {
            return datafusion::common::plan_err!("a subquery that stands for a value has one column");
        };
        let value = value.clone();
        let (domain, pushed) = self.pushed(inner, rows)?;
        let (name, count) = (self.name("value"), self.name("rows"));
        let plan = match several {
            true => counted(pushed.plan, &pushed.columns, value, [&name, &count])?,
            false => {
                let value = Expr::Column(value).alias(&name);
                let exprs = std::iter::once(value).chain(pushed.columns.iter().cloned().map(Expr::Column)).collect();
                LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(pushed.plan))?)
            }
        };
        rows.add(plan, &domain, pushed.columns)?;
        if several { checked(&name, &count) } else { Ok(Expr::Column(Column::from_name(name))) }
    }

    /// Joins whether a subquery has rows.
    fn exists(&mut self, inner: LogicalPlan, rows: &mut Rows) -> Result<Expr> {
        let (domain, pushed) = self.pushed(inner, rows)?;
        let name = self.name("exists");
        let mark = lit(true).alias(&name);
        let columns = pushed.columns.iter().cloned().map(Expr::Column);
        let exprs = columns.chain([mark]).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(pushed.plan))?);
        let plan = match domain.is_empty() {
            true => LogicalPlanBuilder::from(plan).limit(0, Some(1))?.build()?,
            false => LogicalPlan::Distinct(Distinct::All(Arc::new(plan))),
        };
        rows.add(plan, &domain, pushed.columns)?;
        Ok(Expr::Column(Column::from_name(name)).is_not_null())
    }

    /// Joins whether a value is among those of a subquery: true, false, or null if it is not and a null is in the way.
    fn is_in(&mut self, value: Expr, inner: LogicalPlan, rows: &mut Rows) -> Result<Expr> {
        let Some(given) = inner.schema().columns().into_iter().next() else {
            return datafusion::common::plan_err!("a subquery after IN has one column");
        };
        let (domain, pushed) = self.pushed(inner, rows)?;
        let name = self.name("given");
        let columns = || pushed.columns.iter().cloned().map(Expr::Column);
        let exprs = columns().chain([Expr::Column(given).alias(&name)]).collect();
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(pushed.plan))?);
        let distinct = Arc::new(LogicalPlan::Distinct(Distinct::All(Arc::new(plan))));

        let (equal, all, known) = (self.name("equal"), self.name("all"), self.name("known"));
        let given = Expr::Column(Column::from_name(&name));
        let values = LogicalPlan::Filter(Filter::try_new(given.clone().is_not_null(), distinct.clone())?);
        let exprs = columns().chain([given.clone(), lit(true).alias(&equal)]).collect();
        let values = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(values))?);
        let mut on: Vec<(Expr, Expr)> = domain.outside().zip(columns()).collect();
        on.push((value.clone(), given.clone()));
        rows.plan = join(rows.plan.clone(), values, JoinType::Left, on, None, domain.null_equality())?;

        let counts = vec![count(lit(1_i64)).alias(&all), count(given).alias(&known)];
        let counts = LogicalPlan::Aggregate(Aggregate::try_new(distinct, columns().collect(), counts)?);
        // The values' join has columns of the same names.
        let renamed: Vec<String> = pushed.columns.iter().map(|_| self.name("domain")).collect();
        let own = columns().zip(&renamed).map(|(column, name)| column.alias(name));
        let [all, known] = [all, known].map(|name| Expr::Column(Column::from_name(name)));
        let exprs = own.chain([all.clone(), known.clone()]).collect();
        let counts = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(counts))?);
        rows.add(counts, &domain, renamed.into_iter().map(Column::from_name).collect())?;

        let null = lit(ScalarValue::Boolean(None));
        when(Expr::Column(Column::from_name(equal)).is_not_null(), lit(true))
            .when(all.clone().is_null().or(all.clone().eq(lit(0_i64))), lit(false))
            .when(value.is_null().or(known.lt(all)), null)
            .otherwise(lit(false))
    }

    /// Computes a subquery for all rows.
    fn pushed(&mut self, inner: LogicalPlan, rows: &Rows) -> Result<(Domain, Pushed)> {
        let domain = Domain::find(&rows.plan, &inner)?;
        let pushed = match domain.is_empty() {
            true => Pushed { plan: inner, columns: vec![] },
            false => self.push(inner, &domain)?,
        };
        Ok((domain, pushed))
    }

    /// Makes a join of LATERAL, whose right side refers to rows of the left one, and of subqueries in its condition.
    fn join_node(&mut self, plan: Join) -> Result<LogicalPlan> {
        let mut has_subquery = false;
        for expr in plan.filter.iter() {
            has_subquery |= expr
                .exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_))))?;
        }
        if has_subquery && plan.join_type == JoinType::Inner {
            let Join { left, right, on, filter, null_equality, .. } = plan;
            let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
            let joined = self.node(join(left, right, JoinType::Inner, on, None, null_equality)?)?;
            return match filter {
                Some(filter) => self.filter(Filter::try_new(filter, Arc::new(joined))?),
                None => Ok(joined),
            };
        }
        let domain = Domain::find(&plan.left, &plan.right)?;
        if domain.is_empty() || !matches!(plan.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(LogicalPlan::Join(plan));
        }
        let Join { left, right, on, filter, join_type, schema, .. } = plan;
        let Pushed { plan: right, columns } = self.push(Arc::unwrap_or_clone(right), &domain)?;
        let conditions = on.into_iter().map(|(left, right)| left.eq(right)).chain(filter);
        // The condition may refer to the left side as an outer row, too.
        let filter = conjunction(conditions).map(|filter| domain.bind(filter, &columns)).transpose()?;
        let on = domain.outside().zip(columns.into_iter().map(Expr::Column)).collect();
        let left = Arc::unwrap_or_clone(left);
        keep(join(left, right, join_type, on, filter, domain.null_equality())?, &schema, &[])
    }
}

/// The rows that subqueries join, and what their expressions became.
struct Rows {
    plan: LogicalPlan,
    known: Vec<(Expr, Expr)>,
}

impl Rows {
    /// Joins a plan of at most one row for each value of a domain.
    fn add(&mut self, plan: LogicalPlan, domain: &Domain, columns: Vec<Column>) -> Result<()> {
        let on = domain.outside().zip(columns.into_iter().map(Expr::Column)).collect();
        self.plan = join(self.plan.clone(), plan, JoinType::Left, on, None, domain.null_equality())?;
        Ok(())
    }
}

/// Returns what a sort orders, with the columns that its subqueries refer to: the host keeps for ORDER BY only columns that it sees.
fn with_referred(sort: &Sort) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = sort.input.as_ref() else { return Ok(sort.input.as_ref().clone()) };
    let mut exprs = projection.expr.clone();
    let plan = LogicalPlan::Sort(sort.clone());
    plan.apply_subqueries(|subquery| {
        let domain = Domain::find(&projection.input, subquery)?;
        let missing = domain.outside().filter(|expr| !exprs.contains(expr));
        let missing: Vec<Expr> = missing.collect();
        exprs.extend(missing);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, projection.input.clone())?))
}

/// Puts the plan of a subquery, with none within that needs rows outside, in place of what it was.
fn with_plan(mut expr: Expr, inner: LogicalPlan) -> Expr {
    match &mut expr {
        Expr::ScalarSubquery(subquery) => subquery.subquery = Arc::new(inner),
        Expr::Exists(exists) => exists.subquery.subquery = Arc::new(inner),
        Expr::InSubquery(within) => within.subquery.subquery = Arc::new(inner),
        _ => {}
    }
    expr
}

/// Tells whether a plan refers to rows outside.
fn inner_refers(plan: &LogicalPlan) -> Result<bool> {
    Ok(super::Found::of(plan)?.outer)
}
