//! What the host's aggregate functions are here: their function of the language, and what they take besides an argument.

use datafusion::{
    logical_expr::{
        Expr, SortExpr,
        expr::{AggregateFunctionParams, NullTreatment, WindowFunctionParams},
    },
    scalar::ScalarValue,
};
use tandem_column::Type;
use tandem_pipeline::{AggregateFunction, Value};

use super::{literal::literal, plan::unalias};

/// What a call has besides its first argument.
pub(super) struct Shape<'c> {
    /// The other side of pairs.
    pub(super) second: Option<&'c Expr>,
    /// The constant of the function; null if it takes none.
    pub(super) parameter: Value,
}

/// Tells whether an order means something to a function.
pub(super) fn takes_order(function: &str) -> bool {
    matches!(
        function,
        "first_value"
            | "last_value"
            | "nth_value"
            | "string_agg"
            | "percentile_cont"
            | "approx_percentile_cont"
            | "quantile_disc"
    )
}

/// A call of an aggregate function, over groups or frames.
pub(super) struct AggregateArguments<'c> {
    pub(super) args: &'c [Expr],
    pub(super) order_by: &'c [SortExpr],
    pub(super) distinct: bool,
    pub(super) null_treatment: Option<NullTreatment>,
}

impl<'c> From<&'c AggregateFunctionParams> for AggregateArguments<'c> {
    fn from(params: &'c AggregateFunctionParams) -> AggregateArguments<'c> {
        let AggregateFunctionParams { args, order_by, distinct, null_treatment, .. } = params;
        AggregateArguments { args, order_by, distinct: *distinct, null_treatment: *null_treatment }
    }
}

impl<'c> From<&'c WindowFunctionParams> for AggregateArguments<'c> {
    fn from(params: &'c WindowFunctionParams) -> AggregateArguments<'c> {
        let WindowFunctionParams { args, distinct, null_treatment, .. } = params;
        AggregateArguments { args, order_by: &[], distinct: *distinct, null_treatment: *null_treatment }
    }
}

/// Reads what a call has besides its first argument.
pub(super) fn shape<'c>(function: &str, params: &AggregateArguments<'c>) -> Result<Shape<'c>, String> {
    let of_pairs = matches!(function, "corr" | "covar_samp" | "covar_pop") || function.starts_with("regr_");
    let ordered = !params.order_by.is_empty();
    if params.null_treatment == Some(NullTreatment::IgnoreNulls) && !matches!(function, "first_value" | "last_value") {
        return Err(format!("{function} with IGNORE NULLS runs on the host"));
    }
    if params.distinct && matches!(function, "approx_median" | "approx_percentile_cont") {
        return Err(format!("{function} of distinct values runs on the host, which refuses it"));
    }
    if let ("approx_percentile_cont", [_, _, centroids]) = (function, params.args)
        && !matches!(constant(centroids)?, Value::Integer(1..))
    {
        return Err(format!("{function} of such a precision runs on the host"));
    }
    let descending = params.order_by.first().is_some_and(|key| !key.asc);
    let (second, parameter) = match (function, params.args) {
        (_, [_, second]) if of_pairs => (Some(second), Value::Null),
        ("first_value", [_]) if ordered => (None, Value::Integer(1)),
        ("last_value", [_]) => (None, Value::Integer(-1)),
        ("nth_value", [_, place]) => match constant(place)? {
            Value::Integer(place) if place != 0 => (None, Value::Integer(place)),
            _ => return Err("nth_value at such a place runs on the host".to_string()),
        },
        ("string_agg", [_, between]) => match constant(between)? {
            Value::Null => (None, Value::string("")),
            Value::String(between) => (None, Value::String(between)),
            _ => return Err("string_agg with such a separator runs on the host".to_string()),
        },
        ("percentile_cont", [_, fraction]) | ("approx_percentile_cont", [_, fraction] | [_, fraction, _]) => {
            match constant(fraction)? {
                Value::Float(fraction) if (0.0..=1.0).contains(&fraction) => {
                    (None, Value::Float(if descending { 1.0 - fraction } else { fraction }))
                }
                _ => return Err(format!("{function} at such a fraction runs on the host")),
            }
        }
        ("quantile_disc", _) if descending => {
            return Err("quantile_disc in descending order runs on the host".to_string());
        }
        ("quantile_disc", [_, fraction]) => match constant(fraction)? {
            Value::Float(fraction) if (0.0..=1.0).contains(&fraction) => (None, Value::Float(fraction)),
            _ => return Err("quantile_disc at such a fraction runs on the host".to_string()),
        },
        ("approx_median", [_]) => (None, Value::Float(0.5)),
        (_, [_]) => (None, Value::Null),
        ("count", _) => return Err("count of several columns runs on the host".to_string()),
        (_, arguments) => return Err(format!("{function} of {} arguments runs on the host", arguments.len())),
    };
    Ok(Shape { second, parameter })
}

/// Reads a constant.
fn constant(expr: &Expr) -> Result<Value, String> {
    match unalias(expr) {
        Expr::Literal(ScalarValue::Null, _) => Ok(Value::Null),
        Expr::Literal(value, _) => literal(value).map(|(value, _)| value),
        other => Err(format!("an aggregate whose constant is computed runs on the host: {other}")),
    }
}

/// Returns the function of the language that computes one of the host's, and whether it takes the one type and gives the other.
pub(super) fn made_of(function: &str, from: &Type, kind: &Type) -> Result<(AggregateFunction, bool), String> {
    let float = *from == Type::Float64;
    let decimal = matches!(from, Type::Decimal { .. });
    Ok(match function {
        "count" => (AggregateFunction::Count, *kind == Type::Int64),
        "sum" => (AggregateFunction::Sum, sums(from, kind)),
        "avg" => (AggregateFunction::Average, decimal || float && *kind == Type::Float64),
        "min" => (AggregateFunction::Min, from == kind),
        "max" => (AggregateFunction::Max, from == kind),
        // The smallest is one of them, and the same one whenever the statement runs.
        "any_value" => (AggregateFunction::Min, from == kind),
        "var" => (AggregateFunction::VarianceSample, float),
        "var_pop" => (AggregateFunction::VariancePopulation, float),
        "stddev" => (AggregateFunction::DeviationSample, float),
        "stddev_pop" => (AggregateFunction::DeviationPopulation, float),
        "bool_and" => (AggregateFunction::BoolAnd, *from == Type::Boolean),
        "bool_or" => (AggregateFunction::BoolOr, *from == Type::Boolean),
        "bit_and" => (AggregateFunction::BitAnd, from.is_integer() && from == kind),
        "bit_or" => (AggregateFunction::BitOr, from.is_integer() && from == kind),
        "bit_xor" => (AggregateFunction::BitXor, from.is_integer() && from == kind),
        "first_value" => (AggregateFunction::First, from == kind),
        "last_value" | "nth_value" => (AggregateFunction::Nth, from == kind),
        "covar_samp" => (AggregateFunction::CovarianceSample, float),
        "covar_pop" => (AggregateFunction::CovariancePopulation, float),
        "corr" => (AggregateFunction::Correlation, float),
        "regr_slope" => (AggregateFunction::RegressionSlope, float),
        "regr_intercept" => (AggregateFunction::RegressionIntercept, float),
        "regr_count" => (AggregateFunction::Count, *kind == Type::UInt64),
        "regr_r2" => (AggregateFunction::RegressionR2, float),
        "regr_avgx" => (AggregateFunction::RegressionAverageX, float),
        "regr_avgy" => (AggregateFunction::RegressionAverageY, float),
        "regr_sxx" => (AggregateFunction::RegressionSquaresX, float),
        "regr_syy" => (AggregateFunction::RegressionSquaresY, float),
        "regr_sxy" => (AggregateFunction::RegressionProducts, float),
        "median" => (AggregateFunction::Median, (from.is_float() || decimal) && from == kind),
        "percentile_cont" | "approx_percentile_cont" | "approx_median" => {
            (AggregateFunction::Quantile, from.is_float() && from == kind)
        }
        "quantile_disc" => (AggregateFunction::QuantileDiscrete, from == kind),
        "approx_distinct" => (AggregateFunction::CountApproximate, *kind == Type::UInt64),
        "string_agg" => (AggregateFunction::JoinText, *from == Type::String && *kind == Type::String),
        _ => return Err(format!("the aggregate {function} runs on the host")),
    })
}

/// Tells whether a sum of one type gives the other without losing anything.
fn sums(from: &Type, kind: &Type) -> bool {
    match (from, kind) {
        (Type::Decimal { scale, .. }, Type::Decimal { scale: to, .. }) => scale == to,
        (from, Type::Int64 | Type::UInt64) => from.is_integer(),
        (from, Type::Float64) => from.is_float(),
        _ => false,
    }
}
