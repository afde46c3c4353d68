//! The states of partial aggregations are those of the reference interpreter, on the CPU and on a device.
//! The seed of a failure is printed; `TANDEM_SEED=n` runs it again.

use std::{collections::BTreeSet, sync::Arc};

use tandem_device::{Backend, Search};
use tandem_pipeline::{
    AggregateFunction, Phase, Query, Sink, Value,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, QueryInputs, RunOptions, Runtime, Switches};

/// How many seeds are tried; about half of their queries can end in a partial aggregation.
const QUERIES: u64 = 1200;
/// How many of them on a device, whose driver compiles every kernel.
const DEVICE_QUERIES: u64 = 60;

/// Makes the last pipeline of a query one that ends in a partial aggregation, if it can be.
fn partial(mut query: Query) -> Option<Query> {
    let is_final = |sink: &Sink| matches!(sink, Sink::Aggregate { phase: Phase::Final, .. });
    if query.pipelines.last().is_some_and(|last| is_final(&last.sink)) {
        query.pipelines.pop();
    }
    let Sink::Aggregate { phase, .. } = &mut query.pipelines.last_mut()?.sink else { return None };
    *phase = Phase::Partial;
    verify(&query).is_ok().then_some(query)
}

#[test]
fn states_agree_with_the_interpreter() {
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    let pools = [Runtime::new(1), Runtime::new(2)];
    let simulated = Search { simulate: Some("titan-rtx".to_owned()), ..Search::default() }.run();
    let device = simulated.devices.into_iter().find(|device| device.info().backend == Backend::Sim);
    let device = Arc::new(Accelerator::new(device.expect("a device that is asked for is simulated")));
    let with = |vector_rows, force_collisions| RunOptions {
        settings: Switches { vector_rows, force_collisions }.into(),
        ..RunOptions::default()
    };
    let configurations =
        [with(4096, false), with(7, true), RunOptions { devices: vec![device.clone()], ..RunOptions::default() }];
    let (mut functions, mut on_device, mut ran) = (BTreeSet::new(), 0, 0);
    for seed in first..first + QUERIES {
        let mut rng = random::generator(seed);
        let tables = random::tables(&mut rng, 200);
        let Some(query) = partial(random::query(&mut rng, &tables)) else { continue };
        let Ok(expected) = interpret(&query, &random::inputs(&tables)) else { continue };
        let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
        for (number, options) in configurations.iter().enumerate() {
            if !options.devices.is_empty() && seed - first >= DEVICE_QUERIES {
                continue;
            }
            let execution = match pools[number % 2].execute(&query, &inputs, options) {
                Ok(execution) => execution,
                Err(error) if error.class == tandem_runtime::Class::Unsupported => continue,
                Err(error) => panic!("seed {seed}: {error}\n{query}"),
            };
            ran += 1;
            on_device += usize::from(execution.metrics.pipelines.last().is_some_and(|last| last.device.is_some()));
            let found = rows(&execution.table);
            let same = random::same_rows(&expected, &found);
            assert!(same, "seed {seed}, configuration {number}\n{query}\nexpected {expected:?}\nfound {found:?}");
        }
        if let Some(Sink::Aggregate { aggregates, .. }) = query.pipelines.last().map(|last| &last.sink) {
            functions.extend(aggregates.iter().map(|aggregate| aggregate.function.name()));
        }
    }
    println!("{ran} runs, {on_device} on a device, of {functions:?}");
    assert!(ran > 200 && on_device > 0, "{ran} runs, {on_device} on a device");
    let determined = |function: &AggregateFunction| *function != AggregateFunction::First;
    let in_parts = |function: &AggregateFunction| {
        !function.is_holistic() && *function != AggregateFunction::CountApproximate && determined(function)
    };
    let missing: Vec<_> = AggregateFunction::all().filter(in_parts).filter(|f| !functions.contains(f.name())).collect();
    assert!(missing.is_empty(), "not tried: {missing:?}");
}

/// Runs a query over literal rows, with and without two workers.
fn run(text: &str) -> Vec<Vec<Value>> {
    let query = parse(text).expect("the query is right");
    verify(&query).expect("the query is well-formed");
    let found = Runtime::new(2).execute(&query, &QueryInputs::default(), &RunOptions::default()).expect("it runs");
    let found = rows(&found.table);
    assert_eq!(interpret(&query, &random::inputs(&[])).expect("it runs"), found);
    found
}

#[test]
fn no_rows_leave_one_state() {
    let found = run("pipeline 0
  values [x: int32, y: float64, d: decimal(10,2)]
  aggregate partial by () (count_rows(): int64, count($0): int64, sum($0): int64, average($0): float64, \
average($2): decimal(14,6), variance_sample($1): float64, min($0): int32)
");
    let (null, zero, none) = (Value::Null, Value::Integer(0), Value::Float(0.0));
    let average = [null.clone(), zero.clone()];
    let mut expected = vec![zero.clone(), zero.clone(), null.clone()];
    expected.extend(average.iter().chain(&average).cloned());
    expected.extend([zero, none.clone(), none, null]);
    assert_eq!(found, [expected]);
}

/// A host that adds up row by row would fail where these sums come back below the limit.
#[test]
fn sums_that_may_pass_their_limit_on_the_way_are_left_to_the_host() {
    let runs = |kind: &str, rows: &str, sum: &str| {
        let text = format!("pipeline 0\n  values [x: {kind}] {rows}\n  aggregate partial by () (sum($0): {sum})\n");
        let query = parse(&text).expect("the query is right");
        match Runtime::new(1).execute(&query, &QueryInputs::default(), &RunOptions::default()) {
            Ok(_) => true,
            Err(error) if error.message.contains("on the way") => false,
            Err(error) => panic!("{error}\n{text}"),
        }
    };
    assert!(!runs("int64", "(9223372036854775807), (1), (-1)", "int64"));
    assert!(runs("int64", "(9223372036854775800), (1), (1)", "int64"), "of one sign: what comes out tells");
    assert!(runs("int64", "(3000000000000000000), (-1), (1)", "int64"), "too small to pass it");
    assert!(runs("int32", "(2147483647), (-2147483648)", "int64"));
    assert!(runs("decimal(28,0)", "(9999999999999999999999999999), (-1)", "decimal(38,0)"));
    assert!(!runs("decimal(38,0)", "(99999999999999999999999999999999999999), (-1)", "decimal(38,0)"));
}

#[test]
fn averages_of_decimals_as_floats() {
    let rows = "(1.25), (null), (2.50)";
    let query = |phase: &str| {
        format!("pipeline 0\n  values [d: decimal(10,2)?] {rows}\n  aggregate {phase}by () (average($0): float64)\n")
    };
    let rows = |text: &str| run(&text.replace("1.25", "125").replace("2.50", "250"));
    assert_eq!(rows(&query("")), [[Value::Float(1.875)]]);
    assert_eq!(rows(&query("partial ")), [[Value::Float(3.75), Value::Integer(2)]]);
}
