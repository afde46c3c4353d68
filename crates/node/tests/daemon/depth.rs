//! Small commands that ask for much: deep nesting, long chains, many of everything. Each is run or refused, and the daemon goes on.

use std::sync::Arc;

use prost::Message;
use tandem_node::proto::{self, Class};
use tandem_pipeline::{
    Arithmetic, ArithmeticOperator, Comparison, Expr, Failure, Function, Local, Overflow, Query, Statement, Step, Type,
    UserFunction, Value, proto as wire,
};

use crate::fixture::*;

type Nest = fn(Expr) -> Expr;

/// Nests an expression as deep as the form of commands lets it: one level less than what cannot be decoded.
fn deepest(inner: &Expr, nest: Nest, place: &dyn Fn(&mut Query, Expr)) -> proto::Execute {
    let command_of = |depth: usize| {
        let mut query = tandem_pipeline::parse(&by_region(0)).unwrap();
        place(&mut query, (0..depth).fold(inner.clone(), |expr, _| nest(expr)));
        let mut execute = command(&by_region(0), Vec::new());
        execute.query = Some(wire::write(&query));
        execute
    };
    let decodes = |depth: &usize| proto::Execute::decode(command_of(*depth).encode_to_vec().as_slice()).is_ok();
    let depth = (1..200).rev().find(decodes).unwrap();
    assert!((20..120).contains(&depth), "{depth}");
    command_of(depth)
}

fn filter(query: &mut Query, condition: Expr) {
    query.pipelines[0].steps.push(Step::Filter(condition));
}

fn number(value: i64) -> Expr {
    Expr::Literal(Value::Integer(value.into()), Type::Int64)
}

fn add(expr: Expr) -> Expr {
    Expr::Arithmetic(Box::new(Arithmetic {
        operator: ArithmeticOperator::Add,
        left: expr,
        right: number(1),
        kind: Type::Int64,
        overflow: Overflow::Wrap,
        zero: Failure::Error,
    }))
}

fn coalesce(expr: Expr) -> Expr {
    Expr::Function { function: Function::Coalesce, arguments: vec![expr, number(1)], kind: Type::Int64 }
}

fn case(expr: Expr) -> Expr {
    let branches = vec![(Expr::IsNull(Box::new(Expr::Slot(1))), number(1))];
    Expr::Case { branches, otherwise: Some(Box::new(expr)), kind: Type::Int64 }
}

fn cast(expr: Expr) -> Expr {
    Expr::Cast { input: Box::new(expr), kind: Type::Int64, failure: Failure::Null }
}

/// Runs a command; what is refused is refused for what it asks, not for a fault of the daemon.
fn run(running: &Running, mut execute: proto::Execute) -> Result<(), tandem_node::Failed> {
    let path = running.directory.path().join("sales.parquet");
    if execute.tables[0].splits.is_empty() {
        execute.tables[0].splits = vec![whole(&path)];
    }
    let ran = running.client().execute(&execute, |_| unreachable!()).map(drop);
    if let Err(failed) = &ran {
        assert!(!matches!(failed.class, Class::Internal | Class::Protocol), "{failed}");
    }
    running.client().ping().unwrap();
    ran
}

#[test]
fn the_deepest_expressions() {
    let running = Running::start(|_| {});
    running.sales();
    let truth = Expr::Literal(Value::Boolean(true), Type::Boolean);
    let not: Nest = |expr| Expr::Not(Box::new(expr));
    let and: Nest = |expr| Expr::And(vec![Expr::Literal(Value::Boolean(true), Type::Boolean), expr]);
    let or: Nest = |expr| Expr::Or(vec![Expr::IsNull(Box::new(Expr::Slot(1))), expr]);
    for nest in [not, and, or] {
        run(&running, deepest(&truth, nest, &filter)).unwrap();
    }
    let positive = |query: &mut Query, expr: Expr| {
        let zero = Box::new(number(0));
        filter(query, Expr::Compare(Comparison::Greater, Box::new(expr), zero));
    };
    for nest in [add, coalesce, case, cast] {
        run(&running, deepest(&Expr::Slot(1), nest, &positive)).unwrap();
    }
    // Each slot of the last one: together far deeper than one expression may be.
    let mut long = tandem_pipeline::parse(&by_region(0)).unwrap();
    for at in 0..3000 {
        let slot = long.pipelines[0].slots.len();
        let input = if at == 0 { 1 } else { slot - 1 };
        long.pipelines[0].steps.push(Step::Let(vec![add(Expr::Slot(input))]));
        let kind = tandem_pipeline::Slot { name: String::new(), kind: Type::Int64, nullable: true };
        long.pipelines[0].slots.push(kind);
    }
    let last = long.pipelines[0].slots.len() - 1;
    filter(&mut long, Expr::Not(Box::new(Expr::IsNull(Box::new(Expr::Slot(last))))));
    let mut execute = command(&by_region(0), Vec::new());
    execute.query = Some(wire::write(&long));
    run(&running, execute).unwrap();
}

/// Makes a query whose filter calls the last of some functions, each of which calls the one before within an expression.
fn tower(functions: usize, depth: usize) -> proto::Execute {
    let mut query = tandem_pipeline::parse(&by_region(0)).unwrap();
    for index in 0..functions {
        let inner = match index {
            0 => Expr::Slot(0),
            _ => Expr::Call { function: index - 1, arguments: vec![Expr::Slot(0)], kind: Type::Int64 },
        };
        query.functions.push(Arc::new(function(vec![Statement::Return((0..depth).fold(inner, |expr, _| add(expr)))])));
    }
    let arguments = vec![Expr::Slot(1)];
    let call = Expr::Call { function: functions - 1, arguments, kind: Type::Int64 };
    filter(&mut query, Expr::Compare(Comparison::Greater, Box::new(call), Box::new(number(0))));
    let mut execute = command(&by_region(0), Vec::new());
    execute.query = Some(wire::write(&query));
    execute
}

/// A function of a number with a list.
fn function(body: Vec<Statement>) -> UserFunction {
    let local = |name: &str, kind: Type| Local { name: name.to_owned(), kind };
    let locals = vec![local("x", Type::Int64), local("list", Type::List(Arc::new(Type::Int64)))];
    UserFunction { name: "f".to_owned(), parameters: 1, locals, returns: Type::Int64, body }
}

#[test]
fn functions_that_call_functions() {
    let running = Running::start(|_| {});
    running.sales();
    let failed = run(&running, tower(60, 40)).unwrap_err();
    assert!(failed.class == Class::Input && failed.message.contains("nests more than 256 deep"), "{failed}");
    run(&running, tower(6, 40)).unwrap();
    let failed = run(&running, tower(300, 1)).unwrap_err();
    assert!(failed.class == Class::Unsupported && failed.message.contains("functions"), "{failed}");
}

/// A list of a gigabyte, and many small ones that are kept.
#[test]
fn functions_that_make_lists() {
    let running = Running::start(|_| {});
    running.sales();
    let with = |body: Vec<Statement>| {
        let mut execute = tower(1, 1);
        execute.query.as_mut().unwrap().functions =
            wire::write(&Query { functions: vec![Arc::new(function(body))], pipelines: Vec::new() }).functions;
        run(&running, execute)
    };
    let resize = |length: i64| Statement::Resize { list: 1, length: number(length), fill: number(0) };
    let store = Statement::Store { list: 1, index: number(3), value: number(7) };
    let element = Expr::Element(Box::new(Expr::Slot(1)), Box::new(number(3)));
    with(vec![resize(10), store, Statement::Return(element)]).unwrap();
    for length in [1 << 24, 1 << 60, i64::MAX] {
        let failed = with(vec![resize(length), Statement::Return(number(1))]).unwrap_err();
        assert!(failed.class == Class::Exhausted && failed.message.contains("elements"), "{failed}");
    }
    let failed = with(vec![resize(-1), Statement::Return(number(1))]).unwrap_err();
    assert_eq!(failed.class, Class::Input, "{failed}");
}

#[test]
fn many_of_everything() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let refused = |what: &str, change: &dyn Fn(&mut proto::Execute)| {
        let mut execute = command(&by_region(0), vec![whole(&path)]);
        change(&mut execute);
        let failed = run(&running, execute).unwrap_err();
        assert!(failed.class == Class::Unsupported && failed.message.contains(what), "{what}: {failed}");
    };
    fn pipelines(execute: &mut proto::Execute) -> &mut Vec<wire::Pipeline> {
        &mut execute.query.as_mut().unwrap().pipelines
    }
    fn columns(execute: &mut proto::Execute) -> &mut Vec<u32> {
        match pipelines(execute)[0].source.as_mut().unwrap().source.as_mut().unwrap() {
            wire::source::Source::Table(table) => &mut table.columns,
            _ => unreachable!(),
        }
    }
    refused("pipelines", &|execute| {
        let one = pipelines(execute)[0].clone();
        pipelines(execute).resize(5000, one);
    });
    refused("slots", &|execute| {
        let one = pipelines(execute)[0].slots[0].clone();
        pipelines(execute)[0].slots.resize(100_000, one);
    });
    refused("columns and keys", &|execute| columns(execute).resize(1_000_000, 0));
    refused("columns and keys", &|execute| {
        let source = wire::source::Source::Result(wire::ResultSource { pipelines: vec![0; 1_000_000] });
        let mut more = pipelines(execute)[0].clone();
        more.source = Some(wire::Source { source: Some(source) });
        pipelines(execute).push(more);
    });
    refused("steps", &|execute| {
        let one = pipelines(execute)[0].steps[0].clone();
        pipelines(execute)[0].steps.resize(100_000, one);
    });
    refused("columns of tables", &|execute| {
        let one = execute.tables[0].columns[0].clone();
        execute.tables[0].columns.resize(100_000, one);
    });
    // Some splits are read by many pipelines.
    refused("splits", &|execute| {
        let split = proto::Split { path: "/a".to_owned(), ..Default::default() };
        execute.tables[0].splits = vec![split; 10_000];
        let one = pipelines(execute)[0].clone();
        pipelines(execute).resize(100, one);
    });
    refused("blocks", &|execute| execute.blocks = vec![proto::Block::default(); 100_000]);
    refused("bytes of a name", &|execute| execute.tables[0].columns[0].name = "n".repeat(100_000));
    let long = proto::Hello { application: "a".repeat(5000), ..tandem_node::Client::hello() };
    let failed = tandem_node::Client::connect_as(&running.socket, &long).map(drop).unwrap_err();
    assert!(failed.message.contains("too long"), "{failed}");
}
