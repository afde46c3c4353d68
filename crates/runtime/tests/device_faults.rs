//! Whatever a device does wrong, the answer is right and the reason is told.

use std::sync::Arc;

use tandem_device::{Device, Fault, Faulty, Operation, find};
use tandem_pipeline::{Value, interpret::rows, parse};
use tandem_runtime::{Accelerator, Execution, Inputs, Options, Runtime};

/// Rows of a group each, with a value whose sum is checked.
const QUERY: &str = "pipeline 0
  values [k: int32, v: int64] (1, 10), (2, 20), (1, 30), (3, 5), (2, 1)
  filter $1 > 2
  aggregate by ($0) (count_rows(): int64, sum($1): int64)
";

fn run(device: Arc<dyn Device>) -> Execution {
    let query = parse(QUERY).expect("the query is right");
    let options = Options { device: Some(Arc::new(Accelerator::new(device))), ..Options::default() };
    Runtime::new(2).execute(&query, &Inputs::default(), &options).expect("the processor computes what a device cannot")
}

fn check(execution: &Execution) {
    let mut found = rows(&execution.table);
    found.sort_by_key(|row| match row[0] {
        Value::Integer(key) => key,
        _ => i128::MAX,
    });
    let number = |values: [i128; 3]| values.map(Value::Integer).to_vec();
    assert_eq!(found, [number([1, 2, 40]), number([2, 1, 20]), number([3, 1, 5])]);
}

#[test]
fn every_failure_ends_on_the_processor() {
    let found = find();
    let required = std::env::var_os("TANDEM_REQUIRE_OPENCL").is_some();
    assert!(!required || !found.devices.is_empty(), "no device is usable: {:?}", found.unusable);
    let Some(device) = found.devices.first() else { return println!("not tested: {:?}", found.unusable) };

    let good = run(device.clone());
    check(&good);
    assert!(good.metrics.used_device(), "the query runs on the device: {:?}", good.metrics.pipelines[0].reason);

    let mut faults: Vec<Fault> = (1..=3).map(|at| Fault::At(Operation::Allocate, at)).collect();
    for operation in [Operation::Write, Operation::Read, Operation::Fill, Operation::Launch, Operation::Share] {
        faults.push(Fault::At(operation, 1));
        faults.push(Fault::From(operation, 2));
    }
    faults.extend((0..12).map(Fault::LostAfter));
    for fault in faults {
        let execution = run(Arc::new(Faulty::new(device, &[fault])));
        check(&execution);
        let pipeline = &execution.metrics.pipelines[0];
        assert_eq!(pipeline.device.is_none(), pipeline.reason.is_some(), "a reason, or the device: {fault:?}");
    }
}

#[test]
fn a_lost_device_gets_no_more_work() {
    let found = find();
    let Some(device) = found.devices.first() else { return println!("not tested: {:?}", found.unusable) };
    let faulty = Arc::new(Faulty::new(device, &[Fault::At(Operation::Launch, 1)]));
    let accelerator = Arc::new(Accelerator::new(faulty.clone()));
    let query = parse(QUERY).expect("the query is right");
    let options = Options { device: Some(accelerator), ..Options::default() };
    for _ in 0..3 {
        let execution =
            Runtime::new(1).execute(&query, &Inputs::default(), &options).expect("the processor computes it");
        check(&execution);
        assert!(execution.metrics.pipelines[0].reason.is_some());
    }
    assert_eq!(faulty.count(Operation::Launch), 1, "quarantined after its first failure");
}
