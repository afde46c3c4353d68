//! A query as a message.

use tandem_column::Type;

use super::{
    closed::{Closed, write_function},
    generated as wire,
};
use crate::{
    Aggregate, Expr, FrameBound, Pipeline, Probe, Query, Sink, Slot, SlotId, SortKey, Source, Statement, Step,
    UserFunction, Value, Window, WindowFrame, WindowFunction,
};

pub(super) fn query(query: &Query) -> wire::Query {
    wire::Query {
        version: super::VERSION,
        functions: query.functions.iter().map(|of| function(of)).collect(),
        pipelines: query.pipelines.iter().map(pipeline).collect(),
    }
}

/// An index as the wire has it. What does not fit 32 bits names nothing, here as there.
fn index(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}

fn indices(of: &[SlotId]) -> Vec<u32> {
    of.iter().map(|slot| index(*slot)).collect()
}

fn exprs(of: &[Expr]) -> Vec<wire::Expr> {
    of.iter().map(expr).collect()
}

fn pipeline(of: &Pipeline) -> wire::Pipeline {
    wire::Pipeline {
        source: Some(source(&of.source)),
        steps: of.steps.iter().map(step).collect(),
        sink: Some(sink(&of.sink)),
        slots: of.slots.iter().map(slot).collect(),
    }
}

fn slot(of: &Slot) -> wire::Slot {
    wire::Slot { name: of.name.clone(), kind: Some(kind(&of.kind)), nullable: of.nullable }
}

fn source(of: &Source) -> wire::Source {
    use wire::source::Source as W;
    let source = match of {
        Source::Table { table, columns } => {
            W::Table(wire::TableSource { table: table.clone(), columns: indices(columns) })
        }
        Source::Result { pipelines } => W::Result(wire::ResultSource { pipelines: indices(pipelines) }),
        Source::Block { name } => W::Block(wire::BlockSource { name: name.clone() }),
        Source::Values { rows } => {
            let row = |row: &Vec<Value>| wire::Row { values: row.iter().map(value).collect() };
            W::Values(wire::ValuesSource { rows: rows.iter().map(row).collect() })
        }
    };
    wire::Source { source: Some(source) }
}

fn step(of: &Step) -> wire::Step {
    use wire::step::Step as W;
    let step = match of {
        Step::Filter(condition) => W::Filter(expr(condition)),
        Step::Let(list) => W::Let(wire::Let { exprs: exprs(list) }),
        Step::Probe(of) => W::Probe(probe(of)),
    };
    wire::Step { step: Some(step) }
}

fn probe(of: &Probe) -> wire::Probe {
    wire::Probe {
        build: index(of.build),
        kind: of.kind.write(),
        keys: exprs(&of.keys),
        residual: of.residual.as_ref().map(expr),
        adds: indices(&of.adds),
        null_equals_null: of.null_equals_null,
        null_aware: of.null_aware,
    }
}

fn sink(of: &Sink) -> wire::Sink {
    use wire::sink::Sink as W;
    let sink = match of {
        Sink::Build { keys, payload } => W::Build(wire::Build { keys: exprs(keys), payload: indices(payload) }),
        Sink::Aggregate { keys, aggregates, phase } => W::Aggregate(wire::AggregateSink {
            keys: indices(keys),
            aggregates: aggregates.iter().map(aggregate).collect(),
            phase: phase.write(),
        }),
        Sink::Sort { keys, skip, fetch, output } => W::Sort(wire::Sort {
            keys: keys.iter().map(sort_key).collect(),
            skip: *skip as u64,
            fetch: fetch.map(|fetch| fetch as u64),
            output: indices(output),
        }),
        Sink::Window { partition, order, functions, fetch, output } => W::Window(wire::WindowSink {
            partition: indices(partition),
            order: order.iter().map(sort_key).collect(),
            functions: functions.iter().map(window).collect(),
            fetch: fetch.map(|fetch| fetch as u64),
            output: indices(output),
        }),
        Sink::Partition { keys, parts, output } => {
            W::Partition(wire::Partition { keys: exprs(keys), parts: *parts as u64, output: indices(output) })
        }
        Sink::Materialize { skip, fetch, output } => W::Materialize(wire::Materialize {
            skip: *skip as u64,
            fetch: fetch.map(|fetch| fetch as u64),
            output: indices(output),
        }),
    };
    wire::Sink { sink: Some(sink) }
}

fn sort_key(of: &SortKey) -> wire::SortKey {
    wire::SortKey { slot: index(of.slot), descending: of.descending, nulls_first: of.nulls_first }
}

fn aggregate(of: &Aggregate) -> wire::Aggregate {
    wire::Aggregate {
        function: of.function.write(),
        argument: of.argument.map(index),
        second: of.second.map(index),
        parameter: Some(&of.parameter).filter(|parameter| !parameter.is_null()).map(value),
        order: of.order.iter().map(sort_key).collect(),
        distinct: of.distinct,
        filter: of.filter.map(index),
        kind: Some(kind(&of.kind)),
        overflow: of.overflow.write(),
    }
}

fn window(of: &Window) -> wire::Window {
    use wire::window::Function as W;
    let function = match &of.function {
        WindowFunction::RowNumber => W::Ranking(wire::Ranking::RowNumber as i32),
        WindowFunction::Rank => W::Ranking(wire::Ranking::Rank as i32),
        WindowFunction::DenseRank => W::Ranking(wire::Ranking::DenseRank as i32),
        WindowFunction::PercentRank => W::Ranking(wire::Ranking::PercentRank as i32),
        WindowFunction::CumeDist => W::Ranking(wire::Ranking::CumeDist as i32),
        WindowFunction::Ntile { buckets } => W::Ntile(*buckets),
        WindowFunction::Lag { slot, offset, default, ignore_nulls } => W::Lag(wire::Lag {
            slot: index(*slot),
            offset: *offset,
            default: default.map(index),
            ignore_nulls: *ignore_nulls,
        }),
        WindowFunction::Nth { slot, place, frame, ignore_nulls } => W::Nth(wire::WindowNth {
            slot: index(*slot),
            place: *place,
            frame: Some(window_frame(frame)),
            ignore_nulls: *ignore_nulls,
        }),
        WindowFunction::Aggregate { aggregate: of, frame } => {
            W::Aggregate(wire::WindowAggregate { aggregate: Some(aggregate(of)), frame: Some(window_frame(frame)) })
        }
    };
    wire::Window { function: Some(function), kind: Some(kind(&of.kind)) }
}

fn window_frame(of: &WindowFrame) -> wire::WindowFrame {
    use wire::frame_bound::Bound as W;
    let bound = |bound: FrameBound| {
        let bound = match bound {
            FrameBound::Unbounded => return None,
            FrameBound::At(distance) => W::At(distance),
            FrameBound::Value(slot) => W::Value(index(slot)),
        };
        Some(wire::FrameBound { bound: Some(bound) })
    };
    wire::WindowFrame {
        unit: of.unit.write(),
        start: bound(of.start),
        end: bound(of.end),
        exclusion: of.exclusion.write(),
    }
}

fn expr(of: &Expr) -> wire::Expr {
    use wire::expr::Expr as W;
    let one = |of: &Expr| Some(Box::new(expr(of)));
    let pair = |left: &Expr, right: &Expr| Box::new(wire::Pair { left: one(left), right: one(right) });
    let expr = match of {
        Expr::Slot(slot) => W::Slot(index(*slot)),
        Expr::Literal(of, of_kind) => W::Literal(wire::Literal { value: Some(value(of)), kind: Some(kind(of_kind)) }),
        Expr::Arithmetic(of) => W::Arithmetic(Box::new(wire::Arithmetic {
            operator: of.operator.write(),
            left: one(&of.left),
            right: one(&of.right),
            kind: Some(kind(&of.kind)),
            overflow: of.overflow.write(),
            zero: of.zero.write(),
        })),
        Expr::Negate(input, overflow) => {
            W::Negate(Box::new(wire::Negate { input: one(input), overflow: overflow.write() }))
        }
        Expr::Compare(comparison, left, right) => {
            W::Compare(Box::new(wire::Compare { comparison: comparison.write(), left: one(left), right: one(right) }))
        }
        Expr::Distinct(left, right) => W::Distinct(pair(left, right)),
        Expr::And(inputs) => W::And(wire::Exprs { inputs: exprs(inputs) }),
        Expr::Or(inputs) => W::Or(wire::Exprs { inputs: exprs(inputs) }),
        Expr::Not(input) => W::Not(Box::new(expr(input))),
        Expr::IsNull(input) => W::IsNull(Box::new(expr(input))),
        Expr::Case { branches, otherwise, kind: of } => {
            let branch = |(condition, value): &(Expr, Expr)| wire::Branch {
                condition: Some(expr(condition)),
                value: Some(expr(value)),
            };
            W::Case(Box::new(wire::Case {
                branches: branches.iter().map(branch).collect(),
                otherwise: otherwise.as_deref().and_then(one),
                kind: Some(kind(of)),
            }))
        }
        Expr::Cast { input, kind: of, failure } => {
            W::Cast(Box::new(wire::Cast { input: one(input), kind: Some(kind(of)), failure: failure.write() }))
        }
        Expr::In { input, list } => {
            W::In(Box::new(wire::In { input: one(input), list: list.iter().map(value).collect() }))
        }
        Expr::Like { input, pattern, escape, ignore_case } => W::Like(Box::new(wire::Like {
            input: one(input),
            pattern: pattern.to_string(),
            escape: escape.map(String::from),
            ignore_case: *ignore_case,
        })),
        Expr::Function { function, arguments, kind: of } => {
            let (function, field) = write_function(*function);
            W::Function(wire::FunctionCall { function, field, arguments: exprs(arguments), kind: Some(kind(of)) })
        }
        Expr::Call { function, arguments, kind: of } => {
            W::Call(wire::Call { function: index(*function), arguments: exprs(arguments), kind: Some(kind(of)) })
        }
        Expr::Element(list, index) => W::Element(pair(list, index)),
        Expr::ListLength(list) => W::ListLength(Box::new(expr(list))),
    };
    wire::Expr { expr: Some(expr) }
}

/// Makes the message of a type.
pub fn kind(of: &Type) -> wire::Type {
    use wire::{Simple, r#type::Type as W};
    let simple = |simple: Simple| W::Simple(simple as i32);
    let of = match of {
        Type::Null => simple(Simple::Null),
        Type::Boolean => simple(Simple::Boolean),
        Type::Int8 => simple(Simple::Int8),
        Type::Int16 => simple(Simple::Int16),
        Type::Int32 => simple(Simple::Int32),
        Type::Int64 => simple(Simple::Int64),
        Type::UInt8 => simple(Simple::Uint8),
        Type::UInt16 => simple(Simple::Uint16),
        Type::UInt32 => simple(Simple::Uint32),
        Type::UInt64 => simple(Simple::Uint64),
        Type::Float32 => simple(Simple::Float32),
        Type::Float64 => simple(Simple::Float64),
        Type::Date => simple(Simple::Date),
        Type::Interval => simple(Simple::Interval),
        Type::String => simple(Simple::String),
        Type::Binary => simple(Simple::Binary),
        Type::Decimal { precision, scale } => {
            W::Decimal(wire::Decimal { precision: u32::from(*precision), scale: i32::from(*scale) })
        }
        Type::Time(unit) => W::Time(unit.write()),
        Type::Timestamp(unit, zone) => {
            W::Timestamp(wire::Timestamp { unit: unit.write(), zone: zone.as_deref().map(str::to_owned) })
        }
        Type::List(of) => W::List(Box::new(kind(of))),
    };
    wire::Type { r#type: Some(of) }
}

/// Makes the message of a value.
pub fn value(of: &Value) -> wire::Value {
    use wire::value::Value as W;
    let of = match of {
        Value::Null => W::Null(wire::Null::Value as i32),
        Value::Boolean(value) => W::Boolean(*value),
        Value::Integer(value) => match i64::try_from(*value) {
            Ok(value) => W::Integer(value),
            Err(_) => W::Wide(value.to_be_bytes().to_vec()),
        },
        Value::Float(value) => W::Float(*value),
        Value::String(text) => W::String(text.to_string()),
        Value::Binary(bytes) => W::Binary(bytes.to_vec()),
        Value::Interval { months, days, nanoseconds } => {
            W::Interval(wire::Interval { months: *months, days: *days, nanoseconds: *nanoseconds })
        }
        Value::List(values) => W::List(wire::Values { values: values.iter().map(value).collect() }),
    };
    wire::Value { value: Some(of) }
}

fn function(of: &UserFunction) -> wire::UserFunction {
    let local = |local: &crate::Local| wire::Local { name: local.name.clone(), kind: Some(kind(&local.kind)) };
    wire::UserFunction {
        name: of.name.clone(),
        parameters: index(of.parameters),
        locals: of.locals.iter().map(local).collect(),
        returns: Some(kind(&of.returns)),
        body: statements(&of.body),
    }
}

fn statements(of: &[Statement]) -> Vec<wire::Statement> {
    of.iter().map(statement).collect()
}

fn statement(of: &Statement) -> wire::Statement {
    use wire::statement::Statement as W;
    let one = |of: &Expr| Some(expr(of));
    let statement = match of {
        Statement::Assign(local, value) => W::Assign(wire::Assign { local: index(*local), value: one(value) }),
        Statement::Resize { list, length, fill } => {
            W::Resize(wire::Resize { list: index(*list), length: one(length), fill: one(fill) })
        }
        Statement::Store { list, index: at, value } => {
            W::Store(wire::Store { list: index(*list), index: one(at), value: one(value) })
        }
        Statement::If { condition, then, otherwise } => {
            W::If(wire::If { condition: one(condition), then: statements(then), otherwise: statements(otherwise) })
        }
        Statement::While { condition, body } => {
            W::While(wire::While { condition: one(condition), body: statements(body) })
        }
        Statement::For { variable, from, to, body } => {
            W::For(wire::For { variable: index(*variable), from: one(from), to: one(to), body: statements(body) })
        }
        Statement::Break => W::Jump(wire::Jump::Break as i32),
        Statement::Continue => W::Jump(wire::Jump::Continue as i32),
        Statement::Return(value) => W::Return(expr(value)),
    };
    wire::Statement { statement: Some(statement) }
}
