//! Random queries give the same rows on the pool's workers as in the reference interpreter, under every setting that
//! changes how they run. The seed of a failure is printed; `TANDEM_SEED=n` runs it again.

mod corpus;

use std::{collections::BTreeMap, sync::Arc};

use tandem_device::shim::Shim;
use tandem_pipeline::{
    Value,
    interpret::{interpret, rows},
    parse, random,
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
    // What is generated for CUDA, compiled for the processor.
    match Shim::open() {
        Ok(shim) => all.push(("shim".into(), Arc::new(Accelerator::new(Arc::new(shim))))),
        Err(error) => {
            assert!(std::env::var_os("TANDEM_REQUIRE_SHIM").is_none(), "{error}");
            println!("not tested on the shim: {error}");
        }
    }
    all
}

/// Random queries give the same rows on devices, or say why they ran on the processor.
#[test]
fn random_queries_agree_on_devices() {
    for (name, accelerator) in devices() {
        corpus::agree(&name, &accelerator, corpus::seeds(DEVICE_QUERIES), 200);
        corpus::fail_alike(&name, &accelerator);
    }
}

/// Compilers may turn a product and a sum into one operation that rounds once; x·x − x·x is then not 0.
#[test]
fn products_are_rounded_on_devices() {
    let text = "pipeline 0
  values [x: float64] (0.1), (1.1), (0.3), (3.3)
  let $1 d: float64 = ($0 * $0) - ($0 * $0)
  filter $1 <> 0.0
  aggregate by () (count_rows(): int64)
";
    let query = parse(text).expect("the query is right");
    for (name, accelerator) in devices() {
        let options = Options { device: Some(accelerator), ..Options::default() };
        let execution = Runtime::new(1).execute(&query, &Inputs::default(), &options).expect("it runs");
        assert!(execution.metrics.used_device(), "{name}: {:?}", execution.metrics.pipelines[0].reason);
        assert_eq!(rows(&execution.table), [[Value::Integer(0)]], "{name}");
    }
}

#[test]
fn random_queries_agree_with_the_interpreter() {
    let seeds = corpus::seeds(QUERIES);
    println!("seeds {seeds:?}");
    let pools = [Runtime::new(1), Runtime::new(2)];
    let (mut ran, mut failed) = (0usize, 0usize);
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for seed in seeds {
        let (tables, query) = corpus::query(seed, 200);
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
                    if corpus::is_determined(&query) {
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
