//! Lowers aggregation.
//!
//! Arguments and filters become columns of the input. The host truncates an average of decimals where the IR rounds, so
//! that one is a sum, a count and a division above them.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{
    Aggregate as PlanAggregate, Expr, ExprSchemable, GroupingSet,
    expr::{AggregateFunction as Call, NullTreatment},
};
use tandem_column::Type;
use tandem_pipeline::{AggregateFunction, Arithmetic, ArithmeticOperator, Expr as Lowered, Failure, Overflow, Value};

use super::{
    aggregate_function::{made_of, shape, takes_order},
    context::LoweringContext,
    expression::Scope,
    literal::kind_of,
    plan::{Relation, unalias},
    typed::Typed,
};
use crate::planning::tree::node::{AggregateCall, ColumnId, GroupingSets, Node, OrderBy};

/// The most grouping sets that are computed here: each is two pipelines.
const MOST_SETS: usize = 64;

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
        let sets = match &plan.group_expr[..] {
            [Expr::GroupingSet(sets)] => Some(sets),
            _ => None,
        };
        let exprs: Vec<&Expr> = match sets {
            Some(sets) => sets.distinct_expr(),
            None => plan.group_expr.iter().collect(),
        };
        let input = self.child(&plan.input);
        let mut scope = Scope::new(plan.input.schema(), &input.columns);
        let mut around = Around::default();
        let mut columns = Vec::new();
        for expr in &exprs {
            let column = self.place(&mut scope, expr, &mut around.before)?;
            columns.push(self.group_key(column, &mut around.before)?);
        }
        let keys = columns.clone();
        let sets = match sets {
            Some(sets) => {
                let listed = listed(sets)?;
                columns =
                    (0..exprs.len()).map(|key| self.group_output(plan, key, keys[key])).collect::<Result<_, _>>()?;
                let number = plan.schema.field(exprs.len());
                columns.push(self.column(number.name(), kind_of(number.data_type())?, false));
                Some(listed)
            }
            None => None,
        };
        let made = columns.len();
        for (position, expr) in plan.aggr_expr.iter().enumerate() {
            let Expr::AggregateFunction(call) = unalias(expr) else {
                return Err(format!("the aggregate {expr} runs on the host"));
            };
            let field = plan.schema.field(made + position);
            let kind = kind_of(field.data_type())?;
            columns.push(self.aggregate_call(&mut scope, call, field.name(), kind, &mut around)?);
        }
        let input = Box::new(self.attach(input.node, scope)?.extend(around.before));
        let mut aggregates = around.aggregates;
        let node = match sets {
            Some(sets) => {
                if aggregates.is_empty() {
                    aggregates.push(self.make(AggregateFunction::CountRows, None, Type::Int64, "count"));
                }
                let (outputs, number) = (columns[..keys.len()].to_vec(), columns[keys.len()]);
                Node::GroupingSets { input, sets: Box::new(GroupingSets { keys, outputs, sets, number, aggregates }) }
            }
            None => {
                let mut unique = Vec::new();
                for key in keys {
                    if !unique.contains(&key) {
                        unique.push(key);
                    }
                }
                Node::Aggregate { input, keys: unique, aggregates }
            }
        };
        Ok(Relation { node: node.extend(around.after), columns })
    }

    /// Makes the column of a key that some sets lack.
    fn group_output(&mut self, plan: &PlanAggregate, key: usize, column: ColumnId) -> Result<ColumnId, String> {
        let kind = self.kind(column)?;
        Ok(self.column(plan.schema.field(key).name(), kind, true))
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
        if !params.order_by.is_empty() && !takes_order(function) {
            return Err(format!("{function} with ORDER BY runs on the host"));
        }
        let shape = shape(function, &params.into())?;
        let Some(argument) = params.args.first() else {
            return Err(format!("{function} of no arguments runs on the host"));
        };
        // Where only some rows contribute for another reason, that is one more condition.
        let counts_pairs = function == "regr_count";
        let not_null = match &shape.second {
            Some(second) if counts_pairs => Some(*second),
            _ => (params.null_treatment == Some(NullTreatment::IgnoreNulls)).then_some(argument),
        };
        let not_null = not_null.map(|expr| expr.clone().is_not_null());
        let filter = match (params.filter.as_deref().cloned(), not_null) {
            (Some(filter), Some(not_null)) => Some(filter.and(not_null)),
            (filter, not_null) => filter.or(not_null),
        };
        let filter = filter.map(|filter| self.place(scope, &filter, &mut around.before)).transpose()?;
        if filter.map(|column| self.kind(column)).transpose()?.is_some_and(|kind| kind != Type::Boolean) {
            return Err("FILTER by something other than a condition runs on the host".to_string());
        }
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
        let (made, fits) = made_of(function, &from, &kind)?;
        if !fits {
            return Err(format!("{function} of {from} giving {kind} runs on the host"));
        }
        let by_place = made == AggregateFunction::First && !shape.parameter.is_null();
        let made = if by_place { AggregateFunction::Nth } else { made };
        let distinct = params.distinct && !made.ignores_repetition() && made != AggregateFunction::First;
        if made == AggregateFunction::Average && matches!(from, Type::Decimal { .. }) {
            return self.decimal_average(argument, &from, kind, distinct, filter, name, around);
        }
        // The host's counts of pairs and of about how many values there are have no sign.
        let unsigned = counts_pairs || made == AggregateFunction::CountApproximate;
        let counted = if unsigned { Type::Int64 } else { kind.clone() };
        let mut aggregate = self.make(made, Some(argument), counted, name);
        (aggregate.distinct, aggregate.filter, aggregate.parameter) = (distinct, filter, shape.parameter);
        if let Some(second) = shape.second.filter(|_| !counts_pairs) {
            let second = self.place(scope, second, &mut around.before)?;
            if distinct || self.kind(second)? != Type::Float64 {
                return Err(format!("{function} of such pairs runs on the host"));
            }
            aggregate.second = Some(second);
        }
        if made.is_ordered() {
            for key in &params.order_by {
                let column = self.place(scope, &key.expr, &mut around.before)?;
                if self.kind(column)? == Type::Interval || distinct && column != argument {
                    return Err(format!("{function} in such an order runs on the host"));
                }
                aggregate.order.push(OrderBy { column, descending: !key.asc, nulls_first: key.nulls_first });
            }
        }
        let column = self.push(around, aggregate);
        if !unsigned {
            return Ok(column);
        }
        let count = Typed::new(Lowered::Slot(column), Type::Int64, false).cast(&kind, Failure::Error);
        let output = self.column(name, kind, false);
        around.after.push((output, count.expr));
        Ok(output)
    }

    /// Makes an aggregate with a column of its own.
    fn make(
        &mut self,
        function: AggregateFunction,
        argument: Option<ColumnId>,
        kind: Type,
        name: &str,
    ) -> AggregateCall {
        let output = self.column(name, kind.clone(), !function.is_count());
        let overflow = Overflow::Error;
        let (second, parameter, order) = (None, Value::Null, Vec::new());
        AggregateCall {
            output,
            function,
            argument,
            second,
            parameter,
            order,
            distinct: false,
            filter: None,
            kind,
            overflow,
        }
    }

    /// Adds an aggregate unless the same one is there, and returns its column.
    fn push(&mut self, around: &mut Around, aggregate: AggregateCall) -> ColumnId {
        let same = around.aggregates.iter().find(|known| {
            known.function == aggregate.function
                && known.argument == aggregate.argument
                && known.second == aggregate.second
                && known.parameter == aggregate.parameter
                && known.order == aggregate.order
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

/// Lists grouping sets: the positions of each one's keys, and its number. In that a bit is set for each key that the set lacks, the
/// lowest for the last one; above these, sets of the same keys are counted.
fn listed(sets: &GroupingSet) -> Result<Vec<(Vec<usize>, i128)>, String> {
    let exprs = sets.distinct_expr();
    let count = exprs.len();
    let all: Vec<Vec<usize>> = match sets {
        GroupingSet::Cube(_) if 1 << count.min(20) > MOST_SETS => Vec::new(),
        GroupingSet::Rollup(_) => (0..=count).rev().map(|keys| (0..keys).collect()).collect(),
        GroupingSet::Cube(_) => {
            let within = |set: usize| (0..count).filter(|key| set >> key & 1 == 1).collect();
            (0..1usize << count).rev().map(within).collect()
        }
        GroupingSet::GroupingSets(sets) => {
            let place = |expr: &Expr| exprs.iter().position(|known| *known == expr);
            sets.iter().map(|set| set.iter().filter_map(place).collect()).collect()
        }
    };
    if all.is_empty() || all.len() > MOST_SETS || count > 32 {
        return Err(format!("more than {MOST_SETS} grouping sets run on the host"));
    }
    let mut listed: Vec<(Vec<usize>, i128)> = Vec::with_capacity(all.len());
    for set in all {
        let lacks = (0..count).filter(|key| !set.contains(key)).map(|key| 1i128 << (count - 1 - key)).sum::<i128>();
        let before = listed.iter().filter(|(_, number)| number & ((1 << count) - 1) == lacks).count();
        listed.push((set, lacks | (before as i128) << count));
    }
    Ok(listed)
}
