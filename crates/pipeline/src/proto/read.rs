//! A message as a query, not yet verified. Every part that the language needs must be set.

use std::sync::Arc;

use tandem_column::{Error, Result, TimeUnit, Type};

use super::{
    closed::{Closed, read_function, unknown},
    generated as wire,
};
use crate::{
    Aggregate, Arithmetic, ArithmeticOperator, Comparison, Expr, Failure, FrameBound, JoinKind, Local, Overflow, Phase,
    Pipeline, Probe, Query, Sink, Slot, SortKey, Source, Statement, Step, UserFunction, Value, Window, WindowFrame,
    WindowFunction,
};

pub(super) fn query(of: &wire::Query) -> Result<Query> {
    let function = |of: &wire::UserFunction| function(of).map(Arc::new);
    Ok(Query { functions: all(&of.functions, function)?, pipelines: all(&of.pipelines, pipeline)? })
}

/// Reads every element of a list.
fn all<T, U>(list: &[T], read: impl Fn(&T) -> Result<U>) -> Result<Vec<U>> {
    list.iter().map(read).collect()
}

/// Returns what must be set.
fn set<'a, T>(of: &'a Option<T>, what: &str) -> Result<&'a T> {
    of.as_ref().ok_or_else(|| Error::input(format!("{what} is not set: the sender must give it")))
}

fn indices(of: &[u32]) -> Vec<usize> {
    of.iter().map(|index| *index as usize).collect()
}

/// Returns a number of rows; what no machine has is as many as there are.
fn count(of: u64) -> usize {
    usize::try_from(of).unwrap_or(usize::MAX)
}

fn pipeline(of: &wire::Pipeline) -> Result<Pipeline> {
    Ok(Pipeline {
        source: source(set(&of.source, "a pipeline's source")?)?,
        steps: all(&of.steps, step)?,
        sink: sink(set(&of.sink, "a pipeline's sink")?)?,
        slots: all(&of.slots, slot)?,
    })
}

fn slot(of: &wire::Slot) -> Result<Slot> {
    Ok(Slot { name: of.name.clone(), kind: kind_of(&of.kind)?, nullable: of.nullable })
}

fn source(of: &wire::Source) -> Result<Source> {
    use wire::source::Source as W;
    Ok(match set(&of.source, "a pipeline's source")? {
        W::Table(of) => Source::Table { table: of.table.clone(), columns: indices(&of.columns) },
        W::Result(of) => Source::Result { pipelines: indices(&of.pipelines) },
        W::Block(of) => Source::Block { name: of.name.clone() },
        W::Values(of) => Source::Values { rows: all(&of.rows, |row| all(&row.values, value))? },
    })
}

fn step(of: &wire::Step) -> Result<Step> {
    use wire::step::Step as W;
    Ok(match set(&of.step, "a step")? {
        W::Filter(condition) => Step::Filter(expr(condition)?),
        W::Let(of) => Step::Let(all(&of.exprs, expr)?),
        W::Probe(of) => Step::Probe(Probe {
            build: of.build as usize,
            kind: JoinKind::read(of.kind)?,
            keys: all(&of.keys, expr)?,
            residual: of.residual.as_ref().map(expr).transpose()?,
            adds: indices(&of.adds),
            null_equals_null: of.null_equals_null,
            null_aware: of.null_aware,
        }),
    })
}

fn sink(of: &wire::Sink) -> Result<Sink> {
    use wire::sink::Sink as W;
    Ok(match set(&of.sink, "a pipeline's sink")? {
        W::Build(of) => Sink::Build { keys: all(&of.keys, expr)?, payload: indices(&of.payload) },
        W::Aggregate(of) => Sink::Aggregate {
            keys: indices(&of.keys),
            aggregates: all(&of.aggregates, aggregate)?,
            phase: Phase::read(of.phase)?,
        },
        W::Sort(of) => Sink::Sort {
            keys: of.keys.iter().map(sort_key).collect(),
            skip: count(of.skip),
            fetch: of.fetch.map(count),
            output: indices(&of.output),
        },
        W::Window(of) => Sink::Window {
            partition: indices(&of.partition),
            order: of.order.iter().map(sort_key).collect(),
            functions: all(&of.functions, window)?,
            fetch: of.fetch.map(count),
            output: indices(&of.output),
        },
        W::Partition(of) => {
            Sink::Partition { keys: all(&of.keys, expr)?, parts: count(of.parts), output: indices(&of.output) }
        }
        W::Materialize(of) => {
            Sink::Materialize { skip: count(of.skip), fetch: of.fetch.map(count), output: indices(&of.output) }
        }
    })
}

fn sort_key(of: &wire::SortKey) -> SortKey {
    SortKey { slot: of.slot as usize, descending: of.descending, nulls_first: of.nulls_first }
}

fn aggregate(of: &wire::Aggregate) -> Result<Aggregate> {
    Ok(Aggregate {
        function: Closed::read(of.function)?,
        argument: of.argument.map(|slot| slot as usize),
        second: of.second.map(|slot| slot as usize),
        parameter: of.parameter.as_ref().map_or(Ok(Value::Null), value)?,
        order: of.order.iter().map(sort_key).collect(),
        distinct: of.distinct,
        filter: of.filter.map(|slot| slot as usize),
        kind: kind_of(&of.kind)?,
        overflow: Overflow::read(of.overflow)?,
    })
}

fn window(of: &wire::Window) -> Result<Window> {
    use wire::window::Function as W;
    let function = match set(&of.function, "a window function")? {
        W::Ranking(number) => match wire::Ranking::try_from(*number) {
            Ok(wire::Ranking::RowNumber) => WindowFunction::RowNumber,
            Ok(wire::Ranking::Rank) => WindowFunction::Rank,
            Ok(wire::Ranking::DenseRank) => WindowFunction::DenseRank,
            Ok(wire::Ranking::PercentRank) => WindowFunction::PercentRank,
            Ok(wire::Ranking::CumeDist) => WindowFunction::CumeDist,
            _ => return Err(unknown("a ranking", *number)),
        },
        W::Lag(of) => WindowFunction::Lag {
            slot: of.slot as usize,
            offset: of.offset,
            default: of.default.map(|slot| slot as usize),
            ignore_nulls: of.ignore_nulls,
        },
        W::Ntile(buckets) => WindowFunction::Ntile { buckets: *buckets },
        W::Nth(of) => WindowFunction::Nth {
            slot: of.slot as usize,
            place: of.place,
            frame: window_frame(set(&of.frame, "a window's frame")?)?,
            ignore_nulls: of.ignore_nulls,
        },
        W::Aggregate(of) => WindowFunction::Aggregate {
            aggregate: aggregate(set(&of.aggregate, "a window's aggregate")?)?,
            frame: window_frame(set(&of.frame, "a window's frame")?)?,
        },
    };
    Ok(Window { function, kind: kind_of(&of.kind)? })
}

fn window_frame(of: &wire::WindowFrame) -> Result<WindowFrame> {
    use wire::frame_bound::Bound as W;
    let bound = |of: &Option<wire::FrameBound>| match of.as_ref().and_then(|bound| bound.bound.as_ref()) {
        None => FrameBound::Unbounded,
        Some(W::At(distance)) => FrameBound::At(*distance),
        Some(W::Value(slot)) => FrameBound::Value(*slot as usize),
    };
    Ok(WindowFrame {
        unit: Closed::read(of.unit)?,
        start: bound(&of.start),
        end: bound(&of.end),
        exclusion: Closed::read(of.exclusion)?,
    })
}

fn expr(of: &wire::Expr) -> Result<Expr> {
    use wire::expr::Expr as W;
    let one = |of: &Option<Box<wire::Expr>>| expr(set(of, "an operand")?);
    let boxed = |of: &Option<Box<wire::Expr>>| one(of).map(Box::new);
    Ok(match set(&of.expr, "an expression")? {
        W::Slot(slot) => Expr::Slot(*slot as usize),
        W::Literal(of) => Expr::Literal(value(set(&of.value, "a literal's value")?)?, kind_of(&of.kind)?),
        W::Arithmetic(of) => Expr::Arithmetic(Box::new(Arithmetic {
            operator: ArithmeticOperator::read(of.operator)?,
            left: one(&of.left)?,
            right: one(&of.right)?,
            kind: kind_of(&of.kind)?,
            overflow: Overflow::read(of.overflow)?,
            zero: Failure::read(of.zero)?,
        })),
        W::Negate(of) => Expr::Negate(boxed(&of.input)?, Overflow::read(of.overflow)?),
        W::Compare(of) => Expr::Compare(Comparison::read(of.comparison)?, boxed(&of.left)?, boxed(&of.right)?),
        W::Distinct(of) => Expr::Distinct(boxed(&of.left)?, boxed(&of.right)?),
        W::And(of) => Expr::And(all(&of.inputs, expr)?),
        W::Or(of) => Expr::Or(all(&of.inputs, expr)?),
        W::Not(input) => Expr::Not(Box::new(expr(input)?)),
        W::IsNull(input) => Expr::IsNull(Box::new(expr(input)?)),
        W::Case(of) => {
            let part = |of: &Option<wire::Expr>| expr(set(of, "a part of CASE")?);
            let branch = |of: &wire::Branch| Ok((part(&of.condition)?, part(&of.value)?));
            Expr::Case {
                branches: all(&of.branches, branch)?,
                otherwise: of.otherwise.is_some().then(|| boxed(&of.otherwise)).transpose()?,
                kind: kind_of(&of.kind)?,
            }
        }
        W::Cast(of) => {
            Expr::Cast { input: boxed(&of.input)?, kind: kind_of(&of.kind)?, failure: Failure::read(of.failure)? }
        }
        W::In(of) => Expr::In { input: boxed(&of.input)?, list: all(&of.list, value)? },
        W::Like(of) => Expr::Like {
            input: boxed(&of.input)?,
            pattern: of.pattern.as_str().into(),
            escape: of.escape.as_deref().map(character).transpose()?,
            ignore_case: of.ignore_case,
        },
        W::Function(of) => Expr::Function {
            function: read_function(of.function, of.field)?,
            arguments: all(&of.arguments, expr)?,
            kind: kind_of(&of.kind)?,
        },
        W::Call(of) => Expr::Call {
            function: of.function as usize,
            arguments: all(&of.arguments, expr)?,
            kind: kind_of(&of.kind)?,
        },
        W::Element(of) => Expr::Element(boxed(&of.left)?, boxed(&of.right)?),
        W::ListLength(list) => Expr::ListLength(Box::new(expr(list)?)),
    })
}

fn character(text: &str) -> Result<char> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(Error::input("the escape of LIKE must be one character")),
    }
}

fn kind_of(of: &Option<wire::Type>) -> Result<Type> {
    kind(set(of, "a type")?)
}

/// Reads a type.
///
/// # Errors
/// Input, if nothing is set or it is not known. Whether precision and scale are possible is for the verifier.
pub fn kind(of: &wire::Type) -> Result<Type> {
    use wire::{Simple, r#type::Type as W};
    Ok(match set(&of.r#type, "a type")? {
        W::Simple(number) => match Simple::try_from(*number) {
            Ok(Simple::Null) => Type::Null,
            Ok(Simple::Boolean) => Type::Boolean,
            Ok(Simple::Int8) => Type::Int8,
            Ok(Simple::Int16) => Type::Int16,
            Ok(Simple::Int32) => Type::Int32,
            Ok(Simple::Int64) => Type::Int64,
            Ok(Simple::Uint8) => Type::UInt8,
            Ok(Simple::Uint16) => Type::UInt16,
            Ok(Simple::Uint32) => Type::UInt32,
            Ok(Simple::Uint64) => Type::UInt64,
            Ok(Simple::Float32) => Type::Float32,
            Ok(Simple::Float64) => Type::Float64,
            Ok(Simple::Date) => Type::Date,
            Ok(Simple::Interval) => Type::Interval,
            Ok(Simple::String) => Type::String,
            Ok(Simple::Binary) => Type::Binary,
            Ok(Simple::Unspecified) | Err(_) => return Err(unknown("a type", *number)),
        },
        W::Decimal(of) => match (u8::try_from(of.precision), i8::try_from(of.scale)) {
            (Ok(precision), Ok(scale)) => Type::Decimal { precision, scale },
            _ => return Err(Error::input(format!("a decimal has 1 to 38 digits, not {}", of.precision))),
        },
        W::Time(unit) => Type::Time(TimeUnit::read(*unit)?),
        W::Timestamp(of) => Type::Timestamp(TimeUnit::read(of.unit)?, of.zone.as_deref().map(Arc::from)),
        W::List(of) => Type::List(Arc::new(kind(of)?)),
    })
}

/// Reads a value.
///
/// # Errors
/// Input, if nothing is set, or an integer is longer than 128 bits.
pub fn value(of: &wire::Value) -> Result<Value> {
    use wire::value::Value as W;
    Ok(match set(&of.value, "a value")? {
        W::Null(number) if *number == wire::Null::Value as i32 => Value::Null,
        W::Null(number) => return Err(unknown("a null", *number)),
        W::Boolean(value) => Value::Boolean(*value),
        W::Integer(value) => Value::Integer((*value).into()),
        W::Wide(bytes) => Value::Integer(wide(bytes)?),
        W::Float(value) => Value::Float(*value),
        W::String(text) => Value::string(text.as_str()),
        W::Binary(bytes) => Value::Binary(bytes.as_slice().into()),
        W::Interval(of) => Value::Interval { months: of.months, days: of.days, nanoseconds: of.nanoseconds },
        W::List(of) => Value::List(all(&of.values, value)?.into()),
    })
}

/// Reads two's complement, the most significant byte first.
fn wide(bytes: &[u8]) -> Result<i128> {
    match bytes {
        [] => Err(Error::input("an integer of no bytes: give 1 to 16")),
        bytes if bytes.len() > 16 => Err(Error::input(format!("an integer has up to 16 bytes, not {}", bytes.len()))),
        bytes => {
            let sign = if bytes[0] & 0x80 != 0 { 0xff } else { 0 };
            let mut whole = [sign; 16];
            whole[16 - bytes.len()..].copy_from_slice(bytes);
            Ok(i128::from_be_bytes(whole))
        }
    }
}

fn function(of: &wire::UserFunction) -> Result<UserFunction> {
    let local = |of: &wire::Local| Ok(Local { name: of.name.clone(), kind: kind_of(&of.kind)? });
    Ok(UserFunction {
        name: of.name.clone(),
        parameters: of.parameters as usize,
        locals: all(&of.locals, local)?,
        returns: kind_of(&of.returns)?,
        body: all(&of.body, statement)?,
    })
}

fn statement(of: &wire::Statement) -> Result<Statement> {
    use wire::statement::Statement as W;
    let one = |of: &Option<wire::Expr>| expr(set(of, "a part of a statement")?);
    Ok(match set(&of.statement, "a statement")? {
        W::Assign(of) => Statement::Assign(of.local as usize, one(&of.value)?),
        W::Resize(of) => Statement::Resize { list: of.list as usize, length: one(&of.length)?, fill: one(&of.fill)? },
        W::Store(of) => Statement::Store { list: of.list as usize, index: one(&of.index)?, value: one(&of.value)? },
        W::If(of) => Statement::If {
            condition: one(&of.condition)?,
            then: all(&of.then, statement)?,
            otherwise: all(&of.otherwise, statement)?,
        },
        W::While(of) => Statement::While { condition: one(&of.condition)?, body: all(&of.body, statement)? },
        W::For(of) => Statement::For {
            variable: of.variable as usize,
            from: one(&of.from)?,
            to: one(&of.to)?,
            body: all(&of.body, statement)?,
        },
        W::Jump(number) => match wire::Jump::try_from(*number) {
            Ok(wire::Jump::Break) => Statement::Break,
            Ok(wire::Jump::Continue) => Statement::Continue,
            _ => return Err(unknown("a jump", *number)),
        },
        W::Return(value) => Statement::Return(expr(value)?),
    })
}
