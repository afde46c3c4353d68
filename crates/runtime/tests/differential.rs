//! Random queries give the same rows on the pool's workers as in the reference interpreter, under every setting that
//! changes how they run. The seed of a failure is printed; `TANDEM_SEED=n` runs it again.

use std::{collections::BTreeMap, sync::Arc};

use tandem_pipeline::{
    Query, Sink,
    interpret::{interpret, rows},
    random, verify,
};
use tandem_runtime::{Accelerator, Class, Inputs, Options, Runtime};

/// How often a query is made; each one runs under every configuration.
const QUERIES: u64 = 400;
/// How many of them run on each device, whose drivers compile every kernel.
const DEVICE_QUERIES: u64 = 200;

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

/// Every device found, with kernels for processors and for GPUs. Without one, only the processor is tested, unless
/// `TANDEM_REQUIRE_OPENCL` asks for one.
fn devices() -> Vec<(String, Arc<Accelerator>)> {
    let found = tandem_device::find();
    let required = std::env::var_os("TANDEM_REQUIRE_OPENCL").is_some();
    assert!(!required || !found.devices.is_empty(), "no device is usable: {:?}", found.unusable);
    let mut all = Vec::new();
    for device in found.devices {
        let name = device.info().id();
        all.push((name.clone(), Arc::new(Accelerator::new(device.clone()))));
        all.push((format!("{name} in turn"), Arc::new(Accelerator::new(device).in_turn())));
    }
    all
}

/// Random aggregations give the same rows on devices, or say why they ran on the processor.
#[test]
fn random_queries_agree_on_devices() {
    let first = if std::env::var_os("TANDEM_SEED").is_some() { random::seed() } else { 1 };
    let runtime = Runtime::new(2);
    for (name, accelerator) in devices() {
        let (mut taken, mut reasons) = (0, BTreeMap::<String, usize>::new());
        for seed in (0..DEVICE_QUERIES).map(|i| first.wrapping_add(i)) {
            let mut rng = random::generator(seed);
            let tables = random::tables(&mut rng, 200);
            let query = random::query(&mut rng, &tables);
            let Ok(expected) = interpret(&query, &random::inputs(&tables)) else { continue };
            let inputs = Inputs {
                tables: tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect(),
                ..Inputs::default()
            };
            // With colliding hashes, joins and groups that could do without a hash table have one.
            let force_collisions = seed % 2 == 1;
            let options = Options { device: Some(accelerator.clone()), force_collisions, ..Options::default() };
            let execution = match runtime.execute(&query, &inputs, &options) {
                Ok(execution) => execution,
                Err(error) if error.class == Class::Unsupported => continue,
                Err(error) => panic!("seed {seed}, {name}: {error}\n{query}"),
            };
            for pipeline in &execution.metrics.pipelines {
                taken += usize::from(pipeline.device.is_some());
                if let Some(reason) = &pipeline.reason {
                    *reasons.entry(reason.clone()).or_default() += 1;
                }
            }
            let found = rows(&execution.table);
            let same = random::same_rows(&expected, &found);
            assert!(
                !is_determined(&query) || same,
                "seed {seed}, {name}\n{query}\nexpected {expected:?}\nfound {found:?}"
            );
        }
        println!("{name}: {taken} pipelines on the device; reasons of others: {reasons:#?}");
        assert!(taken > 0, "some pipelines run on {name}");
    }
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
