//! Random queries give the same rows on the pool's workers as in the reference interpreter, under every setting that
//! changes how they run. The seed of a failure is printed; `TANDEM_SEED=n` runs it again.

mod corpus;

use std::{collections::BTreeMap, sync::Arc};

use tandem_device::{Backend, Device, Search, shim::Shim, testing};
use tandem_pipeline::{
    Value,
    interpret::{interpret, rows},
    parse, random,
};
use tandem_runtime::{Accelerator, Class, DeviceSettings, QueryInputs, RunOptions, Runtime, Switches, Transfer};

/// How often a query is made; each one runs under every configuration.
const QUERIES: u64 = 400;
/// How many of them run on a device, whose driver compiles every kernel.
const DEVICE_QUERIES: u64 = 200;
/// How many of them run on other kinds of devices, which need few kernels that the first does not.
const OTHER_QUERIES: u64 = 60;

fn configurations() -> Vec<(&'static str, usize, RunOptions)> {
    let with = |vector_rows, force_collisions| RunOptions {
        settings: Switches { vector_rows, force_collisions }.into(),
        ..RunOptions::default()
    };
    vec![
        ("usual", 2, with(4096, false)),
        ("vectors of one row", 1, with(1, false)),
        ("vectors of seven rows", 2, with(7, false)),
        ("one thread", 1, with(4096, false)),
        ("colliding hashes", 2, with(64, true)),
    ]
}

/// Returns what a search finds of a backend; nothing where there is no OpenCL device.
fn found(search: &Search, backend: Backend) -> Vec<Arc<dyn Device>> {
    let found = search.run();
    let devices = if testing::has(&found, backend) { found.devices } else { Vec::new() };
    devices.into_iter().filter(|device| device.info().backend == backend).collect()
}

/// Every device found, with kernels for CPUs and for GPUs, and what is generated for CUDA, compiled for the CPU.
fn devices() -> Vec<(String, Arc<Accelerator>)> {
    let mut all = Vec::new();
    for device in found(&Search::from_environment(), Backend::OpenCl) {
        let name = device.info().id();
        all.push((name.clone(), Arc::new(Accelerator::new(device.clone()).keep_all().only_declared())));
        all.push((format!("{name} in turn"), Arc::new(Accelerator::new(device).in_turn().keep_all().only_declared())));
    }
    match Shim::open() {
        Ok(shim) => all.push(("shim".into(), Arc::new(Accelerator::new(Arc::new(shim))))),
        Err(error) => {
            assert!(std::env::var_os("TANDEM_REQUIRE_SHIM").is_none(), "{error}");
            println!("not tested on the shim: {error}");
        }
    }
    all
}

/// Random queries give the same rows on devices, or say why they ran on the CPU.
#[test]
fn random_queries_agree_on_devices() {
    for (name, accelerator) in devices() {
        corpus::agree(&name, std::slice::from_ref(&accelerator), corpus::seeds(DEVICE_QUERIES), 200);
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
        let options = RunOptions { devices: vec![accelerator], ..RunOptions::default() };
        let execution = Runtime::new(1).execute(&query, &QueryInputs::default(), &options).expect("it runs");
        assert!(execution.metrics.used_device(), "{name}: {:?}", execution.metrics.pipelines[0].reason);
        assert_eq!(rows(&execution.table), [[Value::Integer(0)]], "{name}");
    }
}

fn few(name: &str, devices: Vec<Accelerator>) {
    let devices: Vec<Arc<Accelerator>> = devices.into_iter().map(Arc::new).collect();
    if !devices.is_empty() {
        corpus::agree(name, &devices, corpus::seeds(OTHER_QUERIES), 200);
    }
}

fn accelerators(devices: Vec<Arc<dyn Device>>) -> Vec<Accelerator> {
    devices.into_iter().map(Accelerator::new).collect()
}

/// Devices without double precision and 64-bit atomics, with kernels for CPUs and for GPUs, and for CUDA.
#[test]
fn random_queries_agree_on_poor_devices() {
    let poor = Search { poor: true, ..Search::default() };
    few("opencl-poor", accelerators(found(&poor, Backend::OpenCl)));
    let in_turn = |accelerator: Accelerator| accelerator.in_turn().keep_all();
    few("opencl-poor in turn", accelerators(found(&poor, Backend::OpenCl)).into_iter().map(in_turn).collect());
    if let Ok(shim) = Shim::open() {
        few("shim-poor", vec![Accelerator::new(Arc::new(shim)).poor()]);
    }
}

#[test]
fn random_queries_agree_on_simulated_devices() {
    let simulated = Search { simulate: Some("titan-rtx".to_owned()), ..Search::default() };
    few("sim", accelerators(found(&simulated, Backend::Sim)).into_iter().map(Accelerator::keep_all).collect());
}

/// Columns are copied, parts ahead of the kernels.
#[test]
fn random_queries_agree_with_streams() {
    let search = Search { simulate: Some("titan-rtx".to_owned()), ..Search::default() };
    for (backend, streams) in [(Backend::OpenCl, 4), (Backend::Sim, 2), (Backend::Sim, 4)] {
        let settings =
            DeviceSettings { streams: Some(streams), transfer: Transfer::Active, ..DeviceSettings::default() };
        for device in found(&search, backend) {
            let accelerator = Arc::new(Accelerator::new(device).with_settings(settings));
            corpus::agree(&format!("{backend}, {streams} streams"), &[accelerator], corpus::seeds(OTHER_QUERIES), 200);
        }
    }
}

#[test]
fn random_queries_agree_on_two_devices() {
    let found = tandem_device::Search::from_environment().run();
    if testing::has(&found, Backend::OpenCl) && testing::is_pocl(&found) {
        print!("{}", testing::child("child_uses_two_devices", &[testing::TWO_DEVICES]));
    }
}

#[test]
#[ignore = "a child of random_queries_agree_on_two_devices: needs two OpenCL devices"]
fn child_uses_two_devices() {
    let devices = found(&Search::default(), Backend::OpenCl);
    assert_eq!(devices.len(), 2, "{devices:?}");
    few("opencl-two-devices", accelerators(devices));
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
        let inputs = QueryInputs {
            tables: tables.iter().map(|(name, table)| (name.clone(), Arc::clone(table))).collect(),
            ..QueryInputs::default()
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
