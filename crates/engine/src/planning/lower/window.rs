//! Lowers window functions: those of one partition and one order are computed together.
//!
//! What is left to the host, with a reason: some ranges (`frame`), and functions that Tandem has not.

use datafusion::{
    common::ScalarValue,
    logical_expr::{
        Expr, SortExpr, Window as PlanWindow, WindowFunctionDefinition,
        expr::{NullTreatment, WindowFunction as Call, WindowFunctionParams},
    },
};
use tandem_column::Type;
use tandem_pipeline::{Aggregate, AggregateFunction, Expr as Lowered, Failure, Window, WindowFunction};

use super::{
    aggregate_function::{made_of, shape},
    context::LoweringContext,
    expression::Scope,
    frame::exclusion,
    literal::kind_of,
    plan::{Relation, unalias},
    typed::Typed,
};
use crate::planning::tree::node::{ColumnId, Node, OrderBy, WindowCall, WindowNode};

/// Columns that are computed before a window.
pub(super) type Before = Vec<(ColumnId, Lowered)>;

impl LoweringContext<'_> {
    /// Lowers window functions and what is below them.
    pub(crate) fn window(&mut self, plan: &PlanWindow) -> Result<Relation, String> {
        let input = self.child(&plan.input);
        let mut scope = Scope::new(plan.input.schema(), &input.columns);
        let (mut before, mut after) = (Before::new(), Before::new());
        let mut windows: Vec<WindowNode> = Vec::new();
        let mut columns = input.columns.clone();
        for (position, expr) in plan.window_expr.iter().enumerate() {
            let Expr::WindowFunction(call) = unalias(expr) else {
                return Err(format!("the window function {expr} runs on the host"));
            };
            let (exclusion, partition) = exclusion(&call.params.partition_by);
            let partition = partition.into_iter().map(|expr| self.window_key(&mut scope, expr, &mut before));
            let partition = partition.collect::<Result<Vec<_>, _>>()?;
            let order = self.window_order(&mut scope, &call.params.order_by, &mut before)?;
            let field = plan.schema.field(input.columns.len() + position);
            let kind = kind_of(field.data_type())?;
            let mut function = self.window_function(&mut scope, call, &kind, &mut before)?;
            if let WindowFunction::Nth { frame, .. } | WindowFunction::Aggregate { frame, .. } = &mut function {
                frame.exclusion = exclusion;
            }
            // The host's counts of pairs and of about how many values there are have no sign.
            let kind = match &function {
                WindowFunction::Aggregate { aggregate, .. } => aggregate.kind.clone(),
                _ => kind,
            };
            let nullable = match &function {
                WindowFunction::Lag { .. } | WindowFunction::Nth { .. } => true,
                WindowFunction::Aggregate { aggregate, .. } => !aggregate.function.is_count(),
                _ => false,
            };
            let output = self.column(field.name(), kind.clone(), nullable);
            let wanted = kind_of(field.data_type())?;
            if kind == wanted {
                columns.push(output);
            } else {
                let cast = Typed::new(Lowered::Slot(output), kind.clone(), nullable).cast(&wanted, Failure::Error);
                let column = self.column(field.name(), wanted, nullable);
                after.push((column, cast.expr));
                columns.push(column);
            }
            let call = WindowCall { output, window: Window { function, kind } };
            match windows.iter_mut().find(|window| window.partition == partition && window.order == order) {
                Some(window) => window.functions.push(call),
                None => windows.push(WindowNode { partition, order, functions: vec![call], fetch: None }),
            }
        }
        let mut node = self.attach(input.node, scope)?.extend(before);
        for window in windows {
            node = Node::Window { input: Box::new(node), window: Box::new(window) };
        }
        Ok(Relation { node: node.extend(after), columns })
    }

    /// Places a key of a partition or an order.
    pub(super) fn window_key(
        &mut self,
        scope: &mut Scope<'_>,
        expr: &Expr,
        before: &mut Before,
    ) -> Result<ColumnId, String> {
        let column = self.place(scope, expr, before)?;
        match self.kind(column)? {
            kind @ (Type::Interval | Type::Null) => Err(format!("windows by {kind} run on the host")),
            _ => Ok(column),
        }
    }

    fn window_order(
        &mut self,
        scope: &mut Scope<'_>,
        by: &[SortExpr],
        before: &mut Before,
    ) -> Result<Vec<OrderBy>, String> {
        let mut order = Vec::with_capacity(by.len());
        for key in by {
            let column = self.window_key(scope, &key.expr, before)?;
            order.push(OrderBy { column, descending: !key.asc, nulls_first: key.nulls_first });
        }
        Ok(order)
    }

    /// Lowers one function; its slots are columns.
    fn window_function(
        &mut self,
        scope: &mut Scope<'_>,
        call: &Call,
        kind: &Type,
        before: &mut Before,
    ) -> Result<WindowFunction, String> {
        let params = &call.params;
        let name = call.fun.name();
        let ignore_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
        let aggregates = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
        // Any value is the first that is one.
        let any = name == "any_value" && params.filter.is_none();
        let ignore_nulls = ignore_nulls || any;
        let nth = any || matches!(name, "first_value" | "last_value" | "nth_value");
        if ignore_nulls && !nth && !matches!(name, "lag" | "lead") {
            return Err(format!("{name} with IGNORE NULLS runs on the host"));
        }
        if aggregates && !nth {
            return self.window_aggregate(scope, name, params, kind, before);
        }
        if params.filter.is_some() || params.distinct && !any {
            return Err(format!("{name} of some rows runs on the host"));
        }
        let literal = |position: usize| params.args.get(position).map(|expr| integer(expr, name)).transpose();
        Ok(match name {
            "row_number" => WindowFunction::RowNumber,
            "rank" => WindowFunction::Rank,
            "dense_rank" => WindowFunction::DenseRank,
            "percent_rank" => WindowFunction::PercentRank,
            "cume_dist" => WindowFunction::CumeDist,
            "ntile" => match literal(0)? {
                Some(buckets) if buckets > 0 => WindowFunction::Ntile { buckets: buckets as u64 },
                _ => return Err("ntile of no buckets runs on the host".to_string()),
            },
            "lag" | "lead" => {
                let slot = self.window_argument(scope, name, params, kind, before)?;
                let offset = literal(1)?.unwrap_or(1);
                let offset = if name == "lag" { Some(offset) } else { offset.checked_neg() };
                let offset = offset.ok_or_else(|| format!("{name} of so many rows runs on the host"))?;
                let default = match params.args.get(2).map(unalias) {
                    None => None,
                    Some(Expr::Literal(value, _)) if value.is_null() => None,
                    Some(expr) => Some(self.window_default(scope, expr, kind, before)?),
                };
                if ignore_nulls && offset == 0 {
                    return Err(format!("{name} of the row itself with IGNORE NULLS runs on the host"));
                }
                WindowFunction::Lag { slot, offset, default, ignore_nulls }
            }
            "first_value" | "last_value" | "nth_value" | "any_value" => {
                let slot = self.window_argument(scope, name, params, kind, before)?;
                let place = match name {
                    "first_value" | "any_value" => 1,
                    "last_value" => -1,
                    _ => literal(1)?.unwrap_or(0),
                };
                if place == 0 || place == i64::MIN {
                    return Err("nth_value of row 0 runs on the host".to_string());
                }
                WindowFunction::Nth { slot, place, frame: self.frame(scope, params, before)?, ignore_nulls }
            }
            _ => return Err(format!("the window function {name} runs on the host")),
        })
    }

    /// Places the value that a function gives of another row.
    fn window_argument(
        &mut self,
        scope: &mut Scope<'_>,
        name: &str,
        params: &WindowFunctionParams,
        kind: &Type,
        before: &mut Before,
    ) -> Result<ColumnId, String> {
        let argument = params.args.first().ok_or_else(|| format!("{name} of nothing runs on the host"))?;
        let column = self.window_key(scope, argument, before)?;
        let from = self.kind(column)?;
        if from == *kind { Ok(column) } else { Err(format!("{name} of {from} giving {kind} runs on the host")) }
    }

    /// Places the value that a function gives where there is no row.
    fn window_default(
        &mut self,
        scope: &mut Scope<'_>,
        expr: &Expr,
        kind: &Type,
        before: &mut Before,
    ) -> Result<ColumnId, String> {
        let value = self.expression(scope, expr)?.cast(kind, Failure::Error);
        let column = self.column("default", kind.clone(), value.nullable);
        before.push((column, value.expr));
        Ok(column)
    }

    fn window_aggregate(
        &mut self,
        scope: &mut Scope<'_>,
        name: &str,
        params: &WindowFunctionParams,
        kind: &Type,
        before: &mut Before,
    ) -> Result<WindowFunction, String> {
        let frame = self.frame(scope, params, before)?;
        let shape = shape(name, &params.into())?;
        let Some(argument) = params.args.first() else {
            return Err(format!("{name} of no arguments runs on the host"));
        };
        let counts_pairs = name == "regr_count";
        let filter = match (params.filter.as_deref().cloned(), &shape.second) {
            (filter, Some(second)) if counts_pairs => {
                let not_null = (*second).clone().is_not_null();
                Some(filter.map_or(not_null.clone(), |filter| filter.and(not_null)))
            }
            (filter, _) => filter,
        };
        let filter = filter.map(|filter| self.place(scope, &filter, before)).transpose()?;
        if filter.is_some_and(|filter| self.kind(filter) != Ok(Type::Boolean)) {
            return Err("FILTER by something other than a condition runs on the host".to_string());
        }
        let constant = matches!(unalias(argument), Expr::Literal(value, _) if !value.is_null());
        if name == "count" && constant && !params.distinct {
            let rows = Aggregate::new(AggregateFunction::CountRows, None, kind.clone());
            return Ok(WindowFunction::Aggregate { aggregate: Aggregate { filter, ..rows }, frame });
        }
        let argument = self.window_key(scope, argument, before)?;
        let from = self.kind(argument)?;
        let (function, fits) = made_of(name, &from, kind)?;
        if !fits {
            return Err(format!("{name} of {from} giving {kind} over a window runs on the host"));
        }
        let unsigned = counts_pairs || function == AggregateFunction::CountApproximate;
        let kind = if unsigned { &Type::Int64 } else { kind };
        let distinct = params.distinct && !function.ignores_repetition();
        let second = match shape.second.filter(|_| !counts_pairs) {
            Some(second) => Some(self.place(scope, second, before)?),
            None => None,
        };
        if let Some(second) = second
            && (distinct || self.kind(second)? != Type::Float64)
        {
            return Err(format!("{name} of such pairs runs on the host"));
        }
        let of = Aggregate::new(function, Some(argument), kind.clone());
        let aggregate = Aggregate { second, parameter: shape.parameter, distinct, filter, ..of };
        Ok(WindowFunction::Aggregate { aggregate, frame })
    }
}

/// Returns the integer that an argument is.
fn integer(expr: &Expr, function: &str) -> Result<i64, String> {
    let found = match unalias(expr) {
        Expr::Literal(value, _) if !value.is_null() => match value.cast_to(&arrow::datatypes::DataType::Int64) {
            Ok(ScalarValue::Int64(found)) if value.data_type().is_integer() => found,
            _ => None,
        },
        _ => None,
    };
    found.ok_or_else(|| format!("{function} of something other than a whole number runs on the host"))
}
