//! Random queries on a device, each compared with the reference interpreter: what all tests of kernels run.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use tandem_pipeline::{
    Phase, Query, Sink, Step,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, Class, QueryInputs, RunOptions, Runtime, Switches};

/// Squares, which are errors beyond int32.
const SQUARES: &str = "pipeline 0
  scan table0 [id@0: int32]
  let $1 large: int32 = $0 * factor:int32
  let $2 square: int32 = $1 * $1
  aggregate by () (sum($2): int64)
";

/// The most rows of a table in a query that may look at all pairs of rows.
const PAIRED_ROWS: usize = 200;

/// Of so many windows, some run on any device, whatever it lacks.
const MANY_WINDOWS: usize = 20;

/// The rows that come out of a plain limit, or of ties at the end of a top-k, are not determined.
pub fn is_determined(query: &Query) -> bool {
    query.pipelines.iter().all(|pipeline| match &pipeline.sink {
        Sink::Materialize { skip, fetch, .. } => fetch.is_none() && *skip == 0,
        Sink::Sort { skip, fetch, .. } => fetch.is_none() && *skip == 0,
        _ => true,
    })
}

/// Returns the seeds of a run: the same in every one, unless `TANDEM_SEED` asks for others.
pub fn seeds(count: u64) -> Range<u64> {
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    first..first.saturating_add(count)
}

/// Makes the query of a seed, with tables of up to so many rows where that takes no pairs of rows.
pub fn query(seed: u64, most_rows: usize) -> (Vec<random::NamedTable>, Query) {
    let make = |most_rows| {
        let mut rng = random::generator(seed);
        let tables = random::tables(&mut rng, most_rows);
        let query = random::query(&mut rng, &tables);
        verify(&query).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{query}"));
        (tables, query)
    };
    let (tables, query) = make(most_rows);
    let pairs = query.pipelines.iter().any(|pipeline| {
        matches!(pipeline.sink, Sink::Window { .. })
            || pipeline.steps.iter().any(|step| matches!(step, Step::Probe { .. }))
    });
    if pairs && most_rows > PAIRED_ROWS { make(PAIRED_ROWS) } else { (tables, query) }
}

/// Kinds of aggregations that devices compute in ways of their own, and of which two hundred queries have some. Medians are rarer.
const KINDS: [&str; 5] = ["distinct", "states", "spread", "pairs", "bits"];

/// Returns the kinds of aggregations that a sink has.
fn kinds_of_aggregates(sink: &Sink) -> impl Iterator<Item = &'static str> {
    use tandem_pipeline::AggregateFunction as F;
    let (aggregates, phase) = match sink {
        Sink::Aggregate { aggregates, phase, .. } => (aggregates.as_slice(), *phase),
        _ => (&[][..], Phase::Single),
    };
    aggregates.iter().flat_map(move |aggregate| {
        let function = aggregate.function;
        let distinct = aggregate.distinct && !function.ignores_repetition();
        let kinds = [
            ("distinct", distinct),
            ("states", phase == Phase::Final),
            ("spread", function.is_spread()),
            ("pairs", function.is_of_pairs()),
            ("bits", matches!(function, F::BitAnd | F::BitOr | F::BitXor)),
            ("in order", matches!(function, F::Median | F::Quantile) && !distinct),
        ];
        kinds.into_iter().filter(|(_, is)| *is).map(|(kind, _)| kind)
    })
}

/// Runs the queries of some seeds on devices; they give the same rows there, or say why they ran on the CPU.
pub fn agree(name: &str, devices: &[Arc<Accelerator>], seeds: Range<u64>, most_rows: usize) {
    let runtime = Runtime::new(2);
    let queries = seeds.end - seeds.start;
    let (mut taken, mut reasons) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    let mut aggregates = BTreeMap::<&str, usize>::new();
    let (mut windows, mut windows_there) = (0, 0);
    for seed in seeds {
        let (tables, query) = query(seed, most_rows);
        let Ok(expected) = interpret(&query, &random::inputs(&tables)) else { continue };
        let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
        // With colliding hashes, joins and groups that could do without a hash table have one.
        let switches = Switches { force_collisions: seed % 2 == 1, ..Switches::default() };
        let options = RunOptions { devices: devices.to_vec(), settings: switches.into(), ..RunOptions::default() };
        let execution = match runtime.execute(&query, &inputs, &options) {
            Ok(execution) => execution,
            Err(error) if error.class == Class::Unsupported => continue,
            Err(error) => panic!("seed {seed}, {name}: {error}\n{query}"),
        };
        for (pipeline, of) in execution.metrics.pipelines.iter().zip(&query.pipelines) {
            if pipeline.reason.is_none() {
                kinds_of_aggregates(&of.sink).for_each(|kind| *aggregates.entry(kind).or_default() += 1);
            }
            if matches!(of.sink, Sink::Window { .. }) {
                windows += 1;
                windows_there += usize::from(pipeline.device.is_some() && pipeline.reason.is_none());
            }
            for label in pipeline.device.iter().flat_map(|device| &device.names) {
                *taken.entry(label.clone()).or_default() += 1;
            }
            if let Some(reason) = &pipeline.reason {
                let broken = reason.contains("does not compile") || reason.contains("failed before");
                assert!(!broken, "seed {seed}, {name}: {reason}\n{query}");
                *reasons.entry(reason.clone()).or_default() += 1;
            }
        }
        let found = rows(&execution.table);
        let same = random::same_rows(&expected, &found);
        assert!(!is_determined(&query) || same, "seed {seed}, {name}\n{query}\nexpected {expected:?}\nfound {found:?}");
    }
    println!("{name}: pipelines on devices: {taken:?}; aggregates: {aggregates:?}; reasons of others: {reasons:#?}");
    // Small devices leave some to the CPU, and say why.
    let small = reasons.keys().any(|reason| reason.starts_with("the device has no "));
    let missing: Vec<_> = KINDS.into_iter().filter(|kind| !aggregates.contains_key(kind)).collect();
    assert!(small || queries < 200 || missing.is_empty(), "not run on {name}: {missing:?}");
    println!("{name}: {windows_there} of {windows} windows ran there from scan to functions");
    assert!(windows < MANY_WINDOWS || windows_there > 0, "windows run on {name}");
    let all = devices.iter().all(|device| taken.contains_key(&device.label()));
    assert!(all, "pipelines run on each device of {name}: {taken:?}");
}

/// Runs a query in which many rows have no value: the device notices, and the error is the CPU's.
pub fn fail_alike(name: &str, accelerator: &Arc<Accelerator>) {
    let table = Arc::new(random::table(&mut random::generator(1), 1000));
    let inputs = QueryInputs { tables: [("table0".to_owned(), table)].into_iter().collect(), ..QueryInputs::default() };
    let on_device = RunOptions { devices: vec![accelerator.clone()], ..RunOptions::default() };
    let run = |factor: &str, options: &RunOptions| {
        let query = parse(&SQUARES.replace("factor", factor)).expect("the query is right");
        Runtime::new(1).execute(&query, &inputs, options)
    };
    // With another literal the same kernel has a value for every row.
    let execution = run("1", &on_device).expect("small squares fit");
    assert!(execution.metrics.used_device(), "{name}: {:?}", execution.metrics.pipelines[0].reason);
    let errors = [on_device, RunOptions::default()].map(|options| {
        let error = run("100000", &options).expect_err("some rows have no value");
        assert_eq!(error.class, Class::Input, "{name}: {error}");
        error.message
    });
    assert_eq!(errors[0], errors[1], "on {name} and on the CPU");
}
