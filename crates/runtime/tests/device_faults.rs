//! Whatever a device does wrong, the answer is right and the reason is told.

use std::{sync::Arc, thread, time::Duration, time::Instant};

use tandem_column::Table;
use tandem_device::{Backend, Device, Fault, Faulty, Operation, Search, testing};
use tandem_pipeline::{Query, Value, interpret::rows, parse};
use tandem_runtime::{Accelerator, DeviceSettings, Execution, QueryInputs, RunOptions, Runtime, Settings, Transfer};

/// Rows of a group each, with a value whose sum is checked.
const QUERY: &str = "pipeline 0
  values [k: int32, v: int64] (1, 10), (2, 20), (1, 30), (3, 5), (2, 1)
  filter $1 > 2
  aggregate by ($0) (count_rows(): int64, sum($1): int64)
";

/// The same rows from a table.
const SCAN: &str = "scan t [k@0: int32, v@1: int64]";

/// A limit, which must not count rows that were lost with the device.
const LIMITED: &str = "pipeline 0
  values [k: int32, v: int64] (1, 10), (2, 20), (1, 30), (3, 5), (2, 1)
  materialize fetch 2 output ($0, $1)
";

fn run(query: &str, device: Arc<dyn Device>) -> Execution {
    let query = parse(query).expect("the query is right");
    let options = RunOptions { devices: vec![Arc::new(Accelerator::new(device))], ..RunOptions::default() };
    Runtime::new(2).execute(&query, &QueryInputs::default(), &options).expect("the CPU computes what a device cannot")
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

/// Returns the first device, or says why there is none.
fn first() -> Option<Arc<dyn Device>> {
    let found = Search::from_environment().run();
    testing::has(&found, Backend::OpenCl).then(|| found.devices[0].clone())
}

#[test]
fn every_failure_ends_on_the_cpu() {
    let Some(device) = &first() else { return };
    let good = run(QUERY, device.clone());
    check(&good);
    assert!(good.metrics.used_device(), "the query runs on the device: {:?}", good.metrics.pipelines[0].reason);

    let mut faults: Vec<Fault> = (1..=3).map(|at| Fault::At(Operation::Allocate, at)).collect();
    faults.extend((2..=5).map(|at| Fault::At(Operation::Read, at)));
    for operation in [Operation::Write, Operation::Read, Operation::Fill, Operation::Launch, Operation::Share] {
        faults.push(Fault::At(operation, 1));
        faults.push(Fault::From(operation, 2));
    }
    faults.extend((0..12).map(Fault::LostAfter));
    for fault in faults {
        let limited = run(LIMITED, Arc::new(Faulty::new(device, &[fault])));
        assert_eq!(limited.table.rows(), 2, "{fault:?}");
        let execution = run(QUERY, Arc::new(Faulty::new(device, &[fault])));
        check(&execution);
        let pipeline = &execution.metrics.pipelines[0];
        assert_eq!(pipeline.device.is_none(), pipeline.reason.is_some(), "a reason, or the device: {fault:?}");
    }
}

#[test]
fn a_lost_device_gets_no_more_work() {
    let Some(device) = &first() else { return };
    let faulty = Arc::new(Faulty::new(device, &[Fault::At(Operation::Launch, 1)]));
    let accelerator = Arc::new(Accelerator::new(faulty.clone()));
    let query = parse(QUERY).expect("the query is right");
    let options = RunOptions { devices: vec![accelerator], ..RunOptions::default() };
    for _ in 0..3 {
        let execution =
            Runtime::new(1).execute(&query, &QueryInputs::default(), &options).expect("the CPU computes it");
        check(&execution);
        assert!(execution.metrics.pipelines[0].reason.is_some());
    }
    assert_eq!(faulty.count(Operation::Launch), 1, "quarantined after its first failure");
}

/// The query with its rows in a table of two parts.
fn scan() -> (Query, QueryInputs) {
    let query = QUERY.replace("values [k: int32, v: int64] (1, 10), (2, 20), (1, 30), (3, 5), (2, 1)", SCAN);
    let query = parse(&query).expect("the query is right");
    let part = |rows: &[[i128; 2]]| {
        let rows: Vec<Vec<Value>> = rows.iter().map(|row| row.map(Value::Integer).to_vec()).collect();
        tandem_cpu::values_table(&query.pipelines[0].slots[..2], &rows)
    };
    let (one, two) = (part(&[[1, 10], [2, 20]]), part(&[[1, 30], [3, 5], [2, 1]]));
    let table = Table::with_statistics(one.schema, [one.parts, two.parts].concat());
    let inputs = QueryInputs { tables: [("t".to_string(), Arc::new(table))].into(), ..QueryInputs::default() };
    (query, inputs)
}

/// One part for each device.
#[test]
fn a_lost_device_leaves_its_parts_to_the_others() {
    let Some(device) = &first() else { return };
    let (query, inputs) = scan();
    let faulty: Arc<dyn Device> = Arc::new(Faulty::new(device, &[Fault::At(Operation::Launch, 2)]));
    let devices = [device.clone(), faulty].map(|device| Arc::new(Accelerator::new(device))).to_vec();
    let options = RunOptions { devices, ..RunOptions::default() };
    let used: Vec<usize> = (0..3)
        .map(|_| {
            let execution = Runtime::new(1).execute(&query, &inputs, &options).expect("someone computes it");
            check(&execution);
            execution.metrics.pipelines[0].device.as_ref().map_or(0, |device| device.names.len())
        })
        .collect();
    assert_eq!(used, [2, 0, 1], "both, then the CPU, then the device that is left");
}

/// Within this time a query on five rows ends on any machine, if nothing hangs.
const LONG: Duration = Duration::from_secs(30);

/// Makes a device that hangs at an operation, and is waited for as long as `timeout` says. All bytes are copied to it.
fn hanging(device: &Arc<dyn Device>, fault: Fault, timeout: Duration) -> (Arc<Faulty>, RunOptions) {
    let faulty = Arc::new(Faulty::new(device, &[fault]));
    let settings = DeviceSettings { timeout: Some(timeout), transfer: Transfer::Active, ..DeviceSettings::default() };
    let accelerator = Arc::new(Accelerator::new(faulty.clone()).with_settings(settings));
    (faulty, RunOptions { devices: vec![accelerator], ..RunOptions::default() })
}

#[test]
fn a_device_that_hangs_is_not_waited_for() {
    let Some(device) = &first() else { return };
    let query = parse(QUERY).expect("the query is right");
    let mut hung = 0;
    for operation in [Operation::Write, Operation::Fill, Operation::Launch, Operation::Read] {
        for at in [1, 2] {
            let fault = Fault::Hang(operation, at);
            let (faulty, options) = hanging(device, fault, Duration::from_secs(1));
            let began = Instant::now();
            let execution =
                Runtime::new(1).execute(&query, &QueryInputs::default(), &options).expect("the CPU computes it");
            check(&execution);
            assert!(began.elapsed() < LONG, "{fault:?} took {:?}", began.elapsed());
            if faulty.count(operation) < at {
                continue;
            }
            hung += 1;
            let reason = execution.metrics.pipelines[0].reason.as_deref().unwrap_or_default();
            assert!(reason.contains("did not answer within 1 s"), "{fault:?}: {reason}");
            assert!(faulty.used() > 0, "what the device may still use is not freed: {fault:?}");
            let operations = faulty.operations();
            let execution =
                Runtime::new(1).execute(&query, &QueryInputs::default(), &options).expect("the CPU computes it");
            check(&execution);
            let reason = execution.metrics.pipelines[0].reason.as_deref().unwrap_or_default();
            assert!(reason.contains("gets no more work"), "{reason}");
            assert_eq!(faulty.operations(), operations, "quarantined after it did not answer: {fault:?}");
        }
    }
    assert!(hung >= 5, "most of these operations are needed: {hung}");
}

/// Runs a query on a device that hangs, and cancels it once the device has got an operation.
fn cancelled(query: &Query, inputs: &QueryInputs, faulty: &Faulty, operation: Operation, options: &RunOptions) {
    let options = RunOptions { settings: Settings::default(), ..options.clone() };
    let began = Instant::now();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            while faulty.count(operation) == 0 && began.elapsed() < LONG {
                thread::yield_now();
            }
            options.settings.cancel.cancel();
        });
        Runtime::new(1).execute(query, inputs, &options).expect_err("it is cancelled")
    });
    assert!(error.is_cancelled(), "{error}");
    assert!(began.elapsed() < LONG, "it took {:?}", began.elapsed());
}

#[test]
fn a_statement_can_be_cancelled_while_a_device_hangs() {
    let Some(device) = &first() else { return };
    let query = parse(QUERY).expect("the query is right");
    let (faulty, options) = hanging(device, Fault::Hang(Operation::Launch, 1), LONG * 100);
    cancelled(&query, &QueryInputs::default(), &faulty, Operation::Launch, &options);
}

#[test]
fn a_column_is_not_read_before_it_is_there() {
    let Some(device) = &first() else { return };
    let (query, inputs) = scan();
    let (faulty, options) = hanging(device, Fault::Hang(Operation::Write, 1), Duration::from_secs(2));
    cancelled(&query, &inputs, &faulty, Operation::Write, &options);
    // The device knows the column, and its copy never ends.
    let execution = Runtime::new(1).execute(&query, &inputs, &options).expect("the CPU computes it");
    check(&execution);
    let reason = execution.metrics.pipelines[0].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("did not answer within 2 s"), "{reason}");
}
