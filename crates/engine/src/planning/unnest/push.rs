//! How a domain goes down a subquery: each operator computes for all values of the domain at once what it computed for one.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::logical_plan::{FetchType, SkipType};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, Filter, Join, Limit, LogicalPlan, Projection, Sort, SortExpr,
    SubqueryAlias, Union, Window, lit, when,
};

use super::Unnesting;
use super::domain::{Domain, Pushed, join, keep};

/// The error of a plan that is not unnested; the host's own follows.
fn refused<T>(what: &str) -> Result<T> {
    datafusion::common::not_impl_err!("{what} that refer to rows outside a subquery")
}

impl Unnesting {
    /// Returns the rows of a plan for each value of a domain, and that value.
    pub(super) fn push(&mut self, plan: LogicalPlan, domain: &Domain) -> Result<Pushed> {
        if !domain.is_read_by(&plan)? {
            let table = domain.table(self)?;
            let plan = join(table.plan, plan, JoinType::Inner, vec![], None, NullEquality::NullEqualsNothing)?;
            return Ok(Pushed { plan, columns: table.columns });
        }
        match plan {
            LogicalPlan::Projection(projection) => {
                let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(projection.input), domain)?;
                let mut exprs = domain.bind_named(projection.expr, &columns)?;
                exprs.extend(columns.iter().cloned().map(Expr::Column));
                let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
                Ok(Pushed { plan, columns })
            }
            LogicalPlan::Filter(filter) => {
                let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(filter.input), domain)?;
                let predicate = domain.bind(filter.predicate, &columns)?;
                Ok(Pushed { plan: LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?), columns })
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(alias.input), domain)?;
                let renamed = columns.into_iter().map(|column| Column::new(Some(alias.alias.clone()), column.name));
                let plan = LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?);
                Ok(Pushed { plan, columns: renamed.collect() })
            }
            LogicalPlan::Subquery(subquery) => self.push(Arc::unwrap_or_clone(subquery.subquery), domain),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(input), domain)?;
                Ok(Pushed { plan: LogicalPlan::Distinct(Distinct::All(Arc::new(plan))), columns })
            }
            LogicalPlan::Aggregate(aggregate) => self.push_aggregate(aggregate, domain),
            LogicalPlan::Window(window) => self.push_window(window, domain),
            // The order of a subquery's rows means something to a limit only.
            LogicalPlan::Sort(Sort { input, fetch: None, .. }) => self.push(Arc::unwrap_or_clone(input), domain),
            LogicalPlan::Sort(Sort { expr, input, fetch: Some(fetch) }) => {
                self.push_limit(Arc::unwrap_or_clone(input), expr, 0, Some(fetch), domain)
            }
            LogicalPlan::Limit(limit) => self.limit(limit, domain),
            LogicalPlan::Join(join) => self.push_join(join, domain),
            LogicalPlan::Union(union) => self.push_union(union, domain),
            other => refused(&format!("operators such as {}", other.display())),
        }
    }

    /// Groups by the domain, too. Without other keys there is a group for each of its values, even of no rows.
    fn push_aggregate(&mut self, aggregate: Aggregate, domain: &Domain) -> Result<Pushed> {
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        if group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
            return refused("grouping sets");
        }
        let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(input), domain)?;
        let whole = group_expr.is_empty();
        let mut keys = domain.bind_named(group_expr, &columns)?;
        keys.extend(columns.iter().cloned().map(Expr::Column));
        let aggregates = domain.bind_named(aggr_expr, &columns)?;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(plan), keys, aggregates)?);
        if !whole {
            return Ok(Pushed { plan, columns });
        }
        let table = domain.table(self)?;
        let on = domain.keys(&table.columns, &columns)?;
        let plan = join(table.plan, plan, JoinType::Left, on, None, NullEquality::NullEqualsNothing)?;
        // What counts is zero, everything else is null.
        let mut exprs = Vec::with_capacity(schema.fields().len() + table.columns.len());
        for (column, field) in schema.columns().into_iter().zip(schema.fields()) {
            let (relation, name, value) = (column.relation.clone(), column.name.clone(), Expr::Column(column));
            exprs.push(match field.is_nullable() {
                true => value,
                false => when(value.clone().is_null(), lit(ScalarValue::new_zero(field.data_type())?))
                    .otherwise(value)?
                    .alias_qualified(relation, name),
            });
        }
        exprs.extend(table.columns.iter().cloned().map(Expr::Column));
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
        Ok(Pushed { plan, columns: table.columns })
    }

    /// Parts windows by the domain, too.
    fn push_window(&mut self, window: Window, domain: &Domain) -> Result<Pushed> {
        let Window { input, window_expr, schema } = window;
        let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(input), domain)?;
        let mut functions = Vec::with_capacity(window_expr.len());
        for expr in window_expr {
            let name = expr.schema_name().to_string();
            match domain.bind(expr, &columns)?.unalias() {
                Expr::WindowFunction(mut function) => {
                    let by = columns.iter().cloned().map(Expr::Column);
                    function.params.partition_by.extend(by);
                    functions.push(Expr::WindowFunction(function).alias(name));
                }
                _ => return refused("such window functions"),
            }
        }
        let plan = LogicalPlan::Window(Window::try_new(functions, Arc::new(plan))?);
        Ok(Pushed { plan: keep(plan, &schema, &columns)?, columns })
    }

    fn limit(&mut self, limit: Limit, domain: &Domain) -> Result<Pushed> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) = (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return refused("limits");
        };
        let Limit { skip: skip_expr, fetch: fetch_expr, input } = limit;
        let limited = |input| Arc::new(LogicalPlan::Limit(Limit { skip: skip_expr, fetch: fetch_expr, input }));
        match Arc::unwrap_or_clone(input) {
            // What only computes and names columns may as well come later.
            LogicalPlan::Projection(mut projection) => {
                projection.input = limited(projection.input);
                self.push(LogicalPlan::Projection(projection), domain)
            }
            LogicalPlan::SubqueryAlias(mut alias) => {
                alias.input = limited(alias.input);
                self.push(LogicalPlan::SubqueryAlias(alias), domain)
            }
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => {
                self.push_limit(Arc::unwrap_or_clone(input), expr, skip, fetch, domain)
            }
            input => self.push_limit(input, vec![], skip, fetch, domain),
        }
    }

    /// Keeps some of the rows of each value of the domain, in an order.
    fn push_limit(
        &mut self,
        input: LogicalPlan,
        order: Vec<SortExpr>,
        skip: usize,
        fetch: Option<usize>,
        domain: &Domain,
    ) -> Result<Pushed> {
        let schema = input.schema().clone();
        let Pushed { plan, columns } = self.push(input, domain)?;
        let mut by = Vec::with_capacity(order.len());
        for SortExpr { expr, asc, nulls_first } in order {
            by.push(SortExpr { expr: domain.bind(expr, &columns)?, asc, nulls_first });
        }
        let parts = columns.iter().cloned().map(Expr::Column).collect();
        let name = self.name("row");
        let number = row_number().partition_by(parts).order_by(by).build()?.alias(&name);
        let plan = LogicalPlan::Window(Window::try_new(vec![number], Arc::new(plan))?);
        let number = Expr::Column(Column::from_name(name));
        let count = |rows: usize| lit(rows as u64);
        let last = fetch.map(|fetch| number.clone().lt_eq(count(skip.saturating_add(fetch))));
        let first = (skip > 0).then(|| number.gt(count(skip)));
        let plan = match conjunction(last.into_iter().chain(first)) {
            Some(kept) => LogicalPlan::Filter(Filter::try_new(kept, Arc::new(plan))?),
            None => plan,
        };
        Ok(Pushed { plan: keep(plan, &schema, &columns)?, columns })
    }

    /// Takes the domain down the sides that need it; two sides that both have it meet in it.
    fn push_join(&mut self, plan: Join, domain: &Domain) -> Result<Pushed> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let Join { left, right, mut on, filter, join_type, schema, null_equality, null_aware, .. } = plan;
        if null_aware {
            return refused("joins of NOT IN");
        }
        let (left, right) = (Arc::unwrap_or_clone(left), Arc::unwrap_or_clone(right));
        let (in_left, in_right) = (domain.is_read_by(&left)?, domain.is_read_by(&right)?);
        // The side whose rows are given needs the domain, and so does one that refers to it.
        let (to_left, to_right) = match join_type {
            Inner => (in_left || !in_right, in_right),
            Left | LeftSemi | LeftAnti | LeftMark => (true, in_right),
            Right | RightSemi | RightAnti | RightMark => (in_left, true),
            Full => (true, true),
        };
        let unread = |plan| Pushed { plan, columns: vec![] };
        let left = if to_left { self.push(left, domain)? } else { unread(left) };
        let right = if to_right { self.push(right, domain)? } else { unread(right) };
        if to_left && to_right {
            on.extend(match null_equality {
                NullEquality::NullEqualsNothing => domain.keys(&left.columns, &right.columns)?,
                NullEquality::NullEqualsNull => {
                    let columns = left.columns.iter().zip(&right.columns);
                    columns.map(|(left, right)| (Expr::Column(left.clone()), Expr::Column(right.clone()))).collect()
                }
            });
        }
        let columns = match join_type {
            Right | RightSemi | RightAnti | RightMark => &right.columns,
            _ if to_left => &left.columns,
            _ => &right.columns,
        };
        let bind = |expr: Expr| domain.bind(expr, columns);
        let on = on.into_iter().map(|(left, right)| Ok((bind(left)?, bind(right)?))).collect::<Result<Vec<_>>>()?;
        // A condition that was a key of one side is still one: the domain's columns are on both, or on that side.
        let (on, others): (Vec<_>, Vec<_>) = on.into_iter().partition(|(left_key, right_key)| {
            let of = |key: &Expr, side: &Pushed| {
                key.column_refs().iter().all(|column| side.plan.schema().has_column(column))
            };
            of(left_key, &left) && of(right_key, &right)
        });
        if !others.is_empty() && null_equality == NullEquality::NullEqualsNull {
            return refused("keys of joins in which nulls are equal");
        }
        let filter = filter.map(bind).transpose()?;
        let filter = conjunction(filter.into_iter().chain(others.into_iter().map(|(left, right)| left.eq(right))));
        let mut columns = columns.clone();
        let (left_columns, right_columns) = (left.columns, right.columns);
        let mut plan = join(left.plan, right.plan, join_type, on, filter, null_equality)?;
        if join_type == Full {
            let mut exprs: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
            for (column, (left, right)) in columns.iter_mut().zip(left_columns.into_iter().zip(right_columns)) {
                let left = Expr::Column(left);
                let either = when(left.clone().is_null(), Expr::Column(right)).otherwise(left)?;
                *column = Column::from_name(self.name("domain"));
                exprs.push(either.alias(&column.name));
            }
            plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(plan))?);
        }
        Ok(Pushed { plan, columns })
    }

    fn push_union(&mut self, union: Union, domain: &Domain) -> Result<Pushed> {
        let mut inputs = Vec::with_capacity(union.inputs.len());
        let mut names = Vec::new();
        for input in union.inputs {
            let schema = input.schema().clone();
            let Pushed { plan, columns } = self.push(Arc::unwrap_or_clone(input), domain)?;
            if names.is_empty() {
                names = columns.iter().map(|_| self.name("domain")).collect();
            }
            let own = schema.columns().into_iter().map(Expr::Column);
            let domain = columns.into_iter().zip(&names).map(|(column, name)| Expr::Column(column).alias(name));
            let projection = Projection::try_new(own.chain(domain).collect(), Arc::new(plan))?;
            inputs.push(Arc::new(LogicalPlan::Projection(projection)));
        }
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
        if !union.schema.columns().iter().all(|column| plan.schema().has_column(column)) {
            return refused("unions of such columns");
        }
        Ok(Pushed { plan, columns: names.into_iter().map(Column::from_name).collect() })
    }
}
