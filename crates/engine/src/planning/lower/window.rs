//! Lowers window functions: those of one partition and one order are computed together.
//!
//! What is left to the host, with a reason: ranges of floats and of months, distinct values in frames that slide, and functions that
//! Tandem has not.

use datafusion::{
    common::ScalarValue,
    logical_expr::{
        Expr, SortExpr, Window as PlanWindow, WindowFrame as PlanFrame, WindowFrameBound, WindowFrameUnits,
        WindowFunctionDefinition,
        expr::{NullTreatment, WindowFunction as Call, WindowFunctionParams},
    },
};
use tandem_column::Type;
use tandem_pipeline::{
    Aggregate, AggregateFunction, Expr as Lowered, Failure, FrameUnit, Window, WindowFrame, WindowFunction,
};

use super::{
    aggregate_function::made_of,
    context::LoweringContext,
    expression::Scope,
    literal::kind_of,
    plan::{Relation, unalias},
};
use crate::planning::tree::node::{ColumnId, Node, OrderBy, WindowCall, WindowNode};

const NANOSECONDS_OF_SECOND: i64 = 1_000_000_000;
const NANOSECONDS_OF_DAY: i128 = 86_400 * NANOSECONDS_OF_SECOND as i128;

/// Columns that are computed before a window.
type Before = Vec<(ColumnId, Lowered)>;

impl LoweringContext<'_> {
    /// Lowers window functions and what is below them.
    pub(crate) fn window(&mut self, plan: &PlanWindow) -> Result<Relation, String> {
        let input = self.child(&plan.input);
        let mut scope = Scope::new(plan.input.schema(), &input.columns);
        let mut before = Before::new();
        let mut windows: Vec<WindowNode> = Vec::new();
        let mut columns = input.columns.clone();
        for (position, expr) in plan.window_expr.iter().enumerate() {
            let Expr::WindowFunction(call) = unalias(expr) else {
                return Err(format!("the window function {expr} runs on the host"));
            };
            let partition = call.params.partition_by.iter().map(|expr| self.window_key(&mut scope, expr, &mut before));
            let partition = partition.collect::<Result<Vec<_>, _>>()?;
            let order = self.window_order(&mut scope, &call.params.order_by, &mut before)?;
            let field = plan.schema.field(input.columns.len() + position);
            let kind = kind_of(field.data_type())?;
            let function = self.window_function(&mut scope, call, &kind, &order, &mut before)?;
            let nullable = match &function {
                WindowFunction::Lag { .. } | WindowFunction::Nth { .. } => true,
                WindowFunction::Aggregate { aggregate, .. } => !aggregate.function.is_count(),
                _ => false,
            };
            let output = self.column(field.name(), kind.clone(), nullable);
            columns.push(output);
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
        Ok(Relation { node, columns })
    }

    /// Places a key of a partition or an order.
    fn window_key(&mut self, scope: &mut Scope<'_>, expr: &Expr, before: &mut Before) -> Result<ColumnId, String> {
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
        order: &[OrderBy],
        before: &mut Before,
    ) -> Result<WindowFunction, String> {
        let params = &call.params;
        let name = call.fun.name();
        let ignore_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
        let aggregates = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
        let nth = matches!(name, "first_value" | "last_value" | "nth_value");
        if ignore_nulls && !nth && !matches!(name, "lag" | "lead") {
            return Err(format!("{name} with IGNORE NULLS runs on the host"));
        }
        if aggregates && !nth {
            return self.window_aggregate(scope, name, params, kind, order, before);
        }
        if params.filter.is_some() || params.distinct {
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
            "first_value" | "last_value" | "nth_value" => {
                let slot = self.window_argument(scope, name, params, kind, before)?;
                let place = match name {
                    "first_value" => 1,
                    "last_value" => -1,
                    _ => literal(1)?.unwrap_or(0),
                };
                if place == 0 || place == i64::MIN {
                    return Err("nth_value of row 0 runs on the host".to_string());
                }
                WindowFunction::Nth { slot, place, frame: self.frame(&params.window_frame, order)?, ignore_nulls }
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
        order: &[OrderBy],
        before: &mut Before,
    ) -> Result<WindowFunction, String> {
        let frame = self.frame(&params.window_frame, order)?;
        let [argument] = &params.args[..] else {
            return Err(format!("{name} of {} arguments runs on the host", params.args.len()));
        };
        let filter = match &params.filter {
            Some(filter) => Some(self.place(scope, filter, before)?),
            None => None,
        };
        if filter.is_some_and(|filter| self.kind(filter) != Ok(Type::Boolean)) {
            return Err("FILTER by something other than a condition runs on the host".to_string());
        }
        let counts_rows = matches!(unalias(argument), Expr::Literal(value, _) if !value.is_null())
            && name == "count"
            && !params.distinct;
        let (function, argument) = if counts_rows {
            (AggregateFunction::CountRows, None)
        } else {
            let argument = self.window_key(scope, argument, before)?;
            (aggregate_function(name, &self.kind(argument)?, kind)?, Some(argument))
        };
        let indifferent = matches!(
            function,
            AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::BoolAnd | AggregateFunction::BoolOr
        );
        let distinct = params.distinct && !indifferent;
        if distinct && frame.start.is_some() {
            return Err(format!("{name} of distinct values in a frame that slides runs on the host"));
        }
        let aggregate = Aggregate { distinct, filter, ..Aggregate::new(function, argument, kind.clone()) };
        Ok(WindowFunction::Aggregate { aggregate, frame })
    }

    fn frame(&self, frame: &PlanFrame, order: &[OrderBy]) -> Result<WindowFrame, String> {
        let unit = match frame.units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Range => FrameUnit::Range,
            WindowFrameUnits::Groups => FrameUnit::Groups,
        };
        let key = match order {
            [key] => Some(self.kind(key.column)?),
            _ => None,
        };
        let bound = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::CurrentRow => Ok(Some(0)),
            WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) if value.is_null() => Ok(None),
            WindowFrameBound::Preceding(value) => {
                let distance = distance(value, unit, key.as_ref())?;
                distance.checked_neg().map(Some).ok_or_else(|| "such a frame runs on the host".to_string())
            }
            WindowFrameBound::Following(value) => distance(value, unit, key.as_ref()).map(Some),
        };
        let (start, end) = (bound(&frame.start_bound)?, bound(&frame.end_bound)?);
        if unit == FrameUnit::Range && matches!((start, end), (Some(start), Some(end)) if start > end) {
            return Err("a range that ends before it begins runs on the host, which refuses it".to_string());
        }
        Ok(WindowFrame { unit, start, end })
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

/// Returns how far the end of a frame is, in what its unit counts.
fn distance(value: &ScalarValue, unit: FrameUnit, key: Option<&Type>) -> Result<i64, String> {
    let found = match (value, unit, key) {
        (ScalarValue::Decimal128(Some(value), _, scale), FrameUnit::Range, Some(Type::Decimal { scale: of, .. }))
            if i32::from(*scale) == i32::from(*of) =>
        {
            i64::try_from(*value).ok()
        }
        (ScalarValue::IntervalMonthDayNano(Some(value)), FrameUnit::Range, Some(Type::Date)) => {
            (value.months == 0 && value.nanoseconds == 0).then(|| value.days.into())
        }
        // Without a zone, every day has as many hours.
        (ScalarValue::IntervalMonthDayNano(Some(value)), FrameUnit::Range, Some(Type::Timestamp(unit, None))) => {
            let nanoseconds = i128::from(value.days) * NANOSECONDS_OF_DAY + i128::from(value.nanoseconds);
            let of_unit = i128::from(NANOSECONDS_OF_SECOND / unit.per_second());
            let whole = value.months == 0 && nanoseconds % of_unit == 0;
            whole.then(|| i64::try_from(nanoseconds / of_unit).ok()).flatten()
        }
        (value, FrameUnit::Range, Some(key)) if !key.is_integer() && value.data_type().is_integer() => None,
        (value, ..) if value.data_type().is_integer() => match value.cast_to(&arrow::datatypes::DataType::Int64) {
            Ok(ScalarValue::Int64(found)) => found,
            _ => None,
        },
        _ => None,
    };
    found.filter(|distance| *distance >= 0).ok_or_else(|| "a frame of such a distance runs on the host".to_string())
}

/// Finds the aggregate of a name, if a frame's slides with it and it gives the same as the host's.
fn aggregate_function(name: &str, from: &Type, kind: &Type) -> Result<AggregateFunction, String> {
    use AggregateFunction::*;
    let slides = |function| {
        matches!(function, Count | Sum | Average | Min | Max | BoolAnd | BoolOr)
            || matches!(function, VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation)
    };
    match made_of(name, from, kind) {
        // Any value of a frame is not the smallest to the host, and regr_count has two arguments.
        Ok((function, fits)) if slides(function) && !matches!(name, "any_value" | "regr_count") => match fits {
            true => Ok(function),
            false => Err(format!("{name} of {from} giving {kind} over a window runs on the host")),
        },
        _ => Err(format!("the aggregate {name} over a window runs on the host")),
    }
}
