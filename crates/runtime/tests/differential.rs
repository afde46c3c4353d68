//! Random queries give the same rows on the pool's workers as in the reference interpreter, under every setting that
//! changes how they run. The seed of a failure is printed; `TANDEM_SEED=n` runs it again.

use std::{collections::BTreeMap, sync::Arc};

use tandem_device::{Backend, Device, Search, testing};
use tandem_pipeline::{
    Query, Sink,
    interpret::{interpret, rows},
    random, verify,
};
use tandem_runtime::{Accelerator, Class, Inputs, Options, Runtime};

/// How often a query is made; each one runs under every configuration.
const QUERIES: u64 = 400;
/// How many of them run on a device, whose driver compiles every kernel.
const DEVICE_QUERIES: u64 = 200;
/// How many of them run on other kinds of devices, which need few kernels that the first does not.
const OTHER_QUERIES: u64 = 60;

fn configurations() -> Vec<(&'static str, usize, Options)> {
    let with = |vector_rows, force_collisions| Options { vector_rows, force_collisions, ..Options::default() };
    vec![
        ("usual", 2, with(4096, false)),
        ("vectors of one row", 1, with(1, false)),
        ("vectors of seven rows", 2, with(7, false)),
        ("one thread", 1, with(4096, false)),
        ("colliding hashes", 2, with(64, true)),
    ]
}

/// The rows that come out of a plain limit, or of ties at the end of a top-k, are not determined.
fn is_determined(query: &Query) -> bool {
    query.pipelines.iter().all(|pipeline| match &pipeline.sink {
        Sink::Materialize { skip, fetch, .. } => fetch.is_none() && *skip == 0,
        Sink::Sort { skip, fetch, .. } => fetch.is_none() && *skip == 0,
        _ => true,
    })
}

/// Runs random queries on devices: they give the interpreter's rows, or say why they ran on the processor.
fn check(name: &str, queries: u64, devices: Vec<Accelerator>) {
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    let runtime = Runtime::new(2);
    let devices: Vec<Arc<Accelerator>> = devices.into_iter().map(Arc::new).collect();
    let labels: Vec<String> = devices.iter().map(|device| device.label()).collect();
    let (mut taken, mut reasons) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    for seed in (0..queries).map(|i| first.wrapping_add(i)) {
        let mut rng = random::generator(seed);
        let tables = random::tables(&mut rng, 200);
        let query = random::query(&mut rng, &tables);
        let Ok(expected) = interpret(&query, &random::inputs(&tables)) else { continue };
        let inputs = Inputs {
            tables: tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect(),
            ..Inputs::default()
        };
        let options = Options { devices: devices.clone(), ..Options::default() };
        let execution = match runtime.execute(&query, &inputs, &options) {
            Ok(execution) => execution,
            Err(error) if error.class == Class::Unsupported => continue,
            Err(error) => panic!("seed {seed}, {name}: {error}\n{query}"),
        };
        for pipeline in execution.metrics.pipelines {
            for label in pipeline.device.into_iter().flat_map(|device| device.names) {
                *taken.entry(label).or_default() += 1;
            }
            if let Some(reason) = pipeline.reason {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        let found = rows(&execution.table);
        let same = random::same_rows(&expected, &found);
        assert!(!is_determined(&query) || same, "seed {seed}, {name}\n{query}\nexpected {expected:?}\nfound {found:?}");
    }
    println!("{name}: pipelines on devices: {taken:?}; reasons of others: {reasons:#?}");
    assert!(labels.iter().all(|label| taken.contains_key(label)), "pipelines run on each device of {name}: {taken:?}");
}

/// Returns what a search finds of a backend; nothing where there is no OpenCL device.
fn found(search: &Search, backend: Backend) -> Vec<Arc<dyn Device>> {
    let found = search.run();
    let devices = if testing::has(&found, backend) { found.devices } else { Vec::new() };
    devices.into_iter().filter(|device| device.info().backend == backend).collect()
}

/// With kernels for processors and for GPUs.
#[test]
fn random_queries_agree_on_devices() {
    for device in found(&Search::from_environment(), Backend::OpenCl) {
        let name = device.info().id();
        check(&name, DEVICE_QUERIES, vec![Accelerator::new(device.clone())]);
        check(&format!("{name} in turn"), DEVICE_QUERIES, vec![Accelerator::new(device).in_turn()]);
    }
}

#[test]
fn random_queries_agree_on_poor_devices() {
    let poor = Search { poor: true, ..Search::default() };
    for device in found(&poor, Backend::OpenCl) {
        check("opencl-poor", OTHER_QUERIES, vec![Accelerator::new(device)]);
    }
}

#[test]
fn random_queries_agree_on_simulated_devices() {
    let simulated = Search { simulate: Some("titan-rtx".to_owned()), ..Search::default() };
    for device in found(&simulated, Backend::Sim) {
        check("sim", OTHER_QUERIES, vec![Accelerator::new(device)]);
    }
}

#[test]
fn random_queries_agree_on_two_devices() {
    let found = tandem_device::find();
    if testing::has(&found, Backend::OpenCl) && testing::is_pocl(&found) {
        print!("{}", testing::child("child_uses_two_devices", &[testing::TWO_DEVICES]));
    }
}

#[test]
#[ignore = "a child of random_queries_agree_on_two_devices: needs two OpenCL devices"]
fn child_uses_two_devices() {
    let devices = found(&Search::default(), Backend::OpenCl);
    assert_eq!(devices.len(), 2, "{devices:?}");
    check("opencl-two-devices", OTHER_QUERIES, devices.into_iter().map(Accelerator::new).collect());
}

#[test]
fn random_queries_agree_with_the_interpreter() {
    // The same queries in every run, unless a seed is given: other seeds are for looking for new differences.
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    println!("seeds {first}..{}", first.wrapping_add(QUERIES));
    let pools = [Runtime::new(1), Runtime::new(2)];
    let (mut ran, mut failed) = (0usize, 0usize);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for seed in (0..QUERIES).map(|i| first.wrapping_add(i)) {
        let mut rng = random::generator(seed);
        let tables = random::tables(&mut rng, 200);
        let query = random::query(&mut rng, &tables);
        verify(&query).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{query}"));
        let expected = interpret(&query, &random::inputs(&tables));
        let inputs = Inputs {
            tables: tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect(),
            ..Inputs::default()
        };
        for (name, threads, options) in configurations() {
            let found = pools[threads - 1].execute(&query, &inputs, &options);
            let text = || format!("seed {seed}, {name}\n{query}");
            match (&expected, found) {
                (_, Err(e)) if e.class == Class::Unsupported => *refused.entry(e.message).or_default() += 1,
                (Err(_), Err(e)) => {
                    assert_eq!(e.class, Class::Input, "{}: {e}", text());
                    failed += 1;
                }
                (Ok(expected), Ok(execution)) => {
                    let found = rows(&execution.table);
                    if is_determined(&query) {
                        assert!(
                            random::same_rows(expected, &found),
                            "{}\nexpected {expected:?}\nfound {found:?}",
                            text()
                        );
                    } else {
                        assert_eq!(expected.len(), found.len(), "{}", text());
                    }
                    ran += 1;
                }
                (Ok(_), Err(e)) => panic!("{}: only here: {e}", text()),
                (Err(e), Ok(_)) => panic!("{}: only in the interpreter: {e}", text()),
            }
        }
    }
    println!("{ran} runs agreed, {failed} failed alike; refused: {refused:#?}");
    assert!(ran > refused.values().sum::<usize>(), "most random queries run here: {ran} ran; refused: {refused:#?}");
}
