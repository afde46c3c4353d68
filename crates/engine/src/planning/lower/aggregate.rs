//! Lowers aggregation.
//!
//! Arguments and filters become columns of the input. The host truncates an average of decimals where the IR rounds, so
//! that one is a sum, a count and a division above them.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{
    Aggregate as PlanAggregate, Expr, ExprSchemable,
    expr::{AggregateFunction as Call, NullTreatment},
};
use tandem_column::Type;
use tandem_pipeline::{AggregateFunction, Arithmetic, ArithmeticOperator, Expr as Lowered, Failure, Overflow};

use super::{
    context::LoweringContext,
    expression::Scope,
    literal::kind_of,
    plan::{Relation, unalias},
    typed::Typed,
};
use crate::planning::tree::node::{AggregateCall, ColumnId, Node};

/// The digits a decimal holds at most.
const DECIMAL_DIGITS: u8 = 38;

/// Columns computed before and after an aggregation.
#[derive(Default)]
struct Around {
    before: Vec<(ColumnId, Lowered)>,
    after: Vec<(ColumnId, Lowered)>,
    aggregates: Vec<AggregateCall>,
}

impl LoweringContext<'_> {
    /// Lowers an aggregation and what is below it.
    pub(crate) fn aggregate(&mut self, plan: &PlanAggregate) -> Result<Relation, String> {
        if plan.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return Err("grouping sets run on the host".to_string());
        }
        let input = self.child(&plan.input);
        let mut scope = Scope::new(plan.input.schema(), &input.columns);
        let mut around = Around::default();
        let mut columns = Vec::new();
        for expr in &plan.group_expr {
            let column = self.place(&mut scope, expr, &mut around.before)?;
            columns.push(self.group_key(column, &mut around.before)?);
        }
        let mut keys = Vec::new();
        for column in &columns {
            if !keys.contains(column) {
                keys.push(*column);
            }
        }
        for (position, expr) in plan.aggr_expr.iter().enumerate() {
            let Expr::AggregateFunction(call) = unalias(expr) else {
                return Err(format!("the aggregate {expr} runs on the host"));
            };
            let field = plan.schema.field(plan.group_expr.len() + position);
            let kind = kind_of(field.data_type())?;
            columns.push(self.aggregate_call(&mut scope, call, field.name(), kind, &mut around)?);
        }
        let input = self.attach(input.node, scope)?.extend(around.before);
        let node = Node::Aggregate { input: Box::new(input), keys, aggregates: around.aggregates };
        Ok(Relation { node: node.extend(around.after), columns })
    }

    fn aggregate_call(
        &mut self,
        scope: &mut Scope<'_>,
        call: &Call,
        name: &str,
        kind: Type,
        around: &mut Around,
    ) -> Result<ColumnId, String> {
        let function = call.func.name();
        let params = &call.params;
        if !params.order_by.is_empty() {
            return Err(format!("{function} with ORDER BY runs on the host"));
        }
        if params.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return Err(format!("{function} with IGNORE NULLS runs on the host"));
        }
        let filter = match &params.filter {
            Some(filter) => {
                let column = self.place(scope, filter, &mut around.before)?;
                (self.kind(column)? == Type::Boolean).then_some(column)
            }
            None => None,
        };
        if params.filter.is_some() && filter.is_none() {
            return Err("FILTER by something other than a condition runs on the host".to_string());
        }
        if function == "count" && params.args.len() != 1 {
            return Err("count of several columns runs on the host".to_string());
        }
        let [argument] = &params.args[..] else {
            return Err(format!("{function} of {} arguments runs on the host", params.args.len()));
        };
        let constant = matches!(unalias(argument), Expr::Literal(value, _) if !value.is_null());
        if function == "count" && constant && !params.distinct {
            let mut rows = self.make(AggregateFunction::CountRows, None, Type::Int64, name);
            rows.filter = filter;
            return Ok(self.push(around, rows));
        }
        let argument = if function == "sum" { narrow(scope, argument) } else { argument };
        let argument = self.place(scope, argument, &mut around.before)?;
        let from = self.kind(argument)?;
        if matches!(from, Type::Interval | Type::Null) {
            return Err(format!("{function} of {from} runs on the host"));
        }
        let average = function == "avg" && matches!(from, Type::Decimal { .. });
        let (made, fits) = match function {
            "count" => (AggregateFunction::Count, kind == Type::Int64),
            "sum" => (AggregateFunction::Sum, sums(&from, &kind)),
            "avg" => (AggregateFunction::Average, average || (from == Type::Float64 && kind == Type::Float64)),
            "min" => (AggregateFunction::Min, from == kind),
            "max" => (AggregateFunction::Max, from == kind),
            "var" => (AggregateFunction::VarianceSample, from == Type::Float64),
            "var_pop" => (AggregateFunction::VariancePopulation, from == Type::Float64),
            "stddev" => (AggregateFunction::DeviationSample, from == Type::Float64),
            "stddev_pop" => (AggregateFunction::DeviationPopulation, from == Type::Float64),
            "bool_and" => (AggregateFunction::BoolAnd, from == Type::Boolean),
            "bool_or" => (AggregateFunction::BoolOr, from == Type::Boolean),
            "first_value" => (AggregateFunction::First, from == kind && !params.distinct),
            _ => return Err(format!("the aggregate {function} runs on the host")),
        };
        if !fits {
            return Err(format!("{function} of {from} giving {kind} runs on the host"));
        }
        let idempotent = matches!(
            made,
            AggregateFunction::Min | AggregateFunction::Max | AggregateFunction::BoolAnd | AggregateFunction::BoolOr
        );
        let distinct = params.distinct && !idempotent;
        if average {
            return self.decimal_average(argument, &from, kind, distinct, filter, name, around);
        }
        let mut aggregate = self.make(made, Some(argument), kind, name);
        (aggregate.distinct, aggregate.filter) = (distinct, filter);
        Ok(self.push(around, aggregate))
    }

    /// Makes an aggregate with a column of its own.
    fn make(
        &mut self,
        function: AggregateFunction,
        argument: Option<ColumnId>,
        kind: Type,
        name: &str,
    ) -> AggregateCall {
        let counts = matches!(function, AggregateFunction::Count | AggregateFunction::CountRows);
        let output = self.column(name, kind.clone(), !counts);
        let overflow = Overflow::Error;
        AggregateCall { output, function, argument, distinct: false, filter: None, kind, overflow }
    }

    /// Adds an aggregate unless the same one is there, and returns its column.
    fn push(&mut self, around: &mut Around, aggregate: AggregateCall) -> ColumnId {
        let same = around.aggregates.iter().find(|known| {
            known.function == aggregate.function
                && known.argument == aggregate.argument
                && known.distinct == aggregate.distinct
                && known.filter == aggregate.filter
                && known.kind == aggregate.kind
        });
        if let Some(known) = same {
            return known.output;
        }
        let output = aggregate.output;
        around.aggregates.push(aggregate);
        output
    }

    fn decimal_average(
        &mut self,
        argument: ColumnId,
        from: &Type,
        kind: Type,
        distinct: bool,
        filter: Option<ColumnId>,
        name: &str,
        around: &mut Around,
    ) -> Result<ColumnId, String> {
        let Type::Decimal { scale, precision } = *from else {
            return Err(format!("avg of {from} runs on the host"));
        };
        // The host sums these in more than 38 digits where it must; 18 digits leave room for 10²⁰ rows.
        if precision > 18 {
            return Err(format!("avg of {from} runs on the host"));
        }
        let wide = Type::Decimal { precision: DECIMAL_DIGITS, scale };
        let mut sum = self.make(AggregateFunction::Sum, Some(argument), wide.clone(), &format!("sum of {name}"));
        (sum.distinct, sum.filter) = (distinct, filter);
        let mut count = self.make(AggregateFunction::Count, Some(argument), Type::Int64, &format!("count of {name}"));
        (count.distinct, count.filter) = (distinct, filter);
        let sum = self.push(around, sum);
        let count = self.push(around, count);

        // The count as a decimal of the digits an Int64 has. Over no row the sum is null, and so is the quotient.
        let digits = Type::Decimal { precision: 19, scale: 0 };
        let divisor = Typed::new(Lowered::Slot(count), Type::Int64, false).cast(&digits, Failure::Error);
        let expr = Lowered::Arithmetic(Box::new(Arithmetic {
            operator: ArithmeticOperator::Divide,
            left: Lowered::Slot(sum),
            right: divisor.expr,
            kind: kind.clone(),
            overflow: Overflow::Error,
            zero: Failure::Null,
        }));
        let output = self.column(name, kind, true);
        around.after.push((output, expr));
        Ok(output)
    }
}

/// Looks through the host's widening of an integer to the type of its sum: sums are exact from any integer type.
fn narrow<'e>(scope: &Scope<'_>, argument: &'e Expr) -> &'e Expr {
    match unalias(argument) {
        Expr::Cast(cast) if *cast.field.data_type() == DataType::Int64 => match cast.expr.get_type(scope.schema) {
            Ok(DataType::Int8 | DataType::Int16 | DataType::Int32) => &cast.expr,
            Ok(DataType::UInt8 | DataType::UInt16 | DataType::UInt32) => &cast.expr,
            _ => argument,
        },
        _ => argument,
    }
}

/// Tells whether a sum of one type gives the other without losing anything.
pub(super) fn sums(from: &Type, kind: &Type) -> bool {
    match (from, kind) {
        (Type::Decimal { scale, .. }, Type::Decimal { scale: to, .. }) => scale == to,
        (from, Type::Int64 | Type::UInt64) => from.is_integer(),
        (from, Type::Float64) => from.is_float(),
        _ => false,
    }
}
