//! What a pipeline leaves for the next one stays on the device: only metadata and the final result come back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tandem_column::{AlignedVec, Column, Field, Part, Table, Type};
use tandem_device::{Backend, Device, Fault, Faulty, Operation, Search, testing};
use tandem_pipeline::{interpret::rows, parse};
use tandem_runtime::{Accelerator, DeviceMetrics, DeviceSettings, Execution, QueryInputs, RunOptions, Runtime};

/// Different keys of a large table, and of a small one; each has three rows.
const GROUPS: i64 = 100_000;
const FEW_GROUPS: i64 = 2000;
/// What may come back of a pipeline whose rows stay: ranges, counts and flags.
const METADATA: u64 = 16 << 10;

/// Sums for each key, an average and a largest value among them, of which the ten largest are wanted.
const TOP: &str = "pipeline 0
  scan t [k@0: int64, v@1: int64]
  aggregate by ($0) (count_rows(): int64, sum($1): int64, max($1): int64, average($1): float64)
pipeline 1
  result 0 [k: int64, n: int64, s: int64, m: int64, a: float64]
  sort by ($2 desc, $0) fetch 10 output ($0, $1, $2, $3, $4)
";

/// Rows that are left, then groups of those, then the largest.
const CHAIN: &str = "pipeline 0
  scan t [k@0: int64, v@1: int64]
  filter $1 > 10:int64
  let $2 w: int64 = $1 + $0
  materialize output ($0, $2)
pipeline 1
  result 0 [k: int64, w: int64]
  aggregate by ($0) (sum($1): int64)
pipeline 2
  result 1 [k: int64, s: int64]
  sort by ($1 desc, $0) fetch 5 output ($0, $1)
";

/// A key on each side of a join, the build side from groups.
const JOIN: &str = "pipeline 0
  scan t [k@0: int64, v@1: int64]
  aggregate by ($0) (sum($1): int64)
pipeline 1
  result 0 [k: int64, s: int64]
  filter $1 > 1000:int64
  build keys ($0) payload ($1)
pipeline 2
  scan t [k@0: int64, v@1: int64]
  probe inner 1 on ($0) adds ($2 s@0: int64)
  aggregate by () (count_rows(): int64, sum($2): int64)
";

fn inputs(groups: i64, spread: i64) -> QueryInputs {
    let rows = groups * 3;
    let column = |value: &dyn Fn(i64) -> i64| {
        Arc::new(Column::from_i64(Type::Int64, (0..rows).map(value).collect::<AlignedVec<i64>>(), None))
    };
    let columns = vec![column(&|row| (row * 7919 % groups) * spread), column(&|row| row * 31 % 1009 - 5)];
    let schema: Arc<[Field]> = ["k", "v"].map(|name| Field::new(name, Type::Int64, true)).into();
    let table = Table::with_statistics(schema, vec![Arc::new(Part { rows: rows as usize, columns })]);
    QueryInputs { tables: [("t".to_string(), Arc::new(table))].into(), ..QueryInputs::default() }
}

fn run(query: &str, inputs: &QueryInputs, devices: Vec<Arc<Accelerator>>) -> Execution {
    let query = parse(query).expect("the query is right");
    let options = RunOptions { devices, ..RunOptions::default() };
    Runtime::new(2).execute(&query, inputs, &options).expect("it runs")
}

fn first() -> Option<Arc<dyn Device>> {
    let found = Search::from_environment().run();
    testing::has(&found, Backend::OpenCl).then(|| found.devices[0].clone())
}

/// Returns what the device did for each pipeline: it ran all of them.
fn metrics(execution: &Execution) -> Vec<&DeviceMetrics> {
    let mut devices = Vec::new();
    for pipeline in &execution.metrics.pipelines {
        assert_eq!(pipeline.reason, None);
        devices.push(pipeline.device.as_ref().expect("all of it runs on the device"));
    }
    devices
}

/// Returns how many rows came into each pipeline's sink, and out of it, where they were counted.
fn sink_rows(execution: &Execution) -> Vec<Option<(u64, u64)>> {
    let sinks = execution.metrics.pipelines.iter().map(|pipeline| pipeline.steps.last().expect("a sink"));
    sinks.map(|sink| sink.counted.then_some((sink.rows_in, sink.rows_out))).collect()
}

#[test]
fn rows_between_pipelines_stay_on_the_device() {
    let Some(device) = first() else { return };
    // Keys that are close together have places in an array, others a hash table.
    for (spread, query) in [(1, TOP), (1 << 20, TOP), (1, CHAIN), (1 << 20, CHAIN), (1, JOIN)] {
        let inputs = inputs(GROUPS, spread);
        let on_cpu = run(query, &inputs, Vec::new());
        let expected = rows(&on_cpu.table);
        for in_turn in [false, true] {
            let accelerator = Accelerator::new(device.clone());
            let accelerator = Arc::new(if in_turn { accelerator.in_turn() } else { accelerator });
            let execution = run(query, &inputs, vec![accelerator]);
            assert_eq!(rows(&execution.table), expected, "spread {spread}, in turn: {in_turn}\n{query}");
            for (here, there) in sink_rows(&execution).into_iter().zip(sink_rows(&on_cpu)) {
                assert!(here.is_none() || here == there, "{here:?} for {there:?} rows into and out of a sink\n{query}");
            }
            let devices = metrics(&execution);
            assert!(devices[0].bytes_back < METADATA, "{} bytes come back of the groups", devices[0].bytes_back);
            if query == JOIN {
                continue;
            }
            for (at, later) in devices.iter().enumerate().skip(1) {
                assert!(later.bytes_back < METADATA, "{} bytes come back of pipeline {at}", later.bytes_back);
                assert!(later.bytes_to + later.bytes_shared < METADATA, "the rows were there: {later:?}");
            }
        }
    }
}

/// A kernel goes over whole parts, where the CPU leaves out blocks: metrics do not say that it skipped what it read.
#[test]
fn rows_that_a_kernel_read_are_not_called_skipped() {
    let Some(device) = first() else { return };
    let part = |from: i64| {
        let values = (from..from + 200_000).collect::<AlignedVec<i64>>();
        Arc::new(Part { rows: 200_000, columns: vec![Arc::new(Column::from_i64(Type::Int64, values, None))] })
    };
    let schema: Arc<[Field]> = [Field::new("k", Type::Int64, false)].into();
    let table = Table::with_statistics(schema, vec![part(0), part(200_000)]);
    let inputs = QueryInputs { tables: [("t".to_string(), Arc::new(table))].into(), ..QueryInputs::default() };
    let query = "pipeline 0\n  scan t [k@0: int64]\n  filter $0 < 10:int64\n  aggregate by () (count_rows(): int64)\n";
    let skipped = |devices| run(query, &inputs, devices).metrics.pipelines[0].rows_skipped;
    assert_eq!(skipped(Vec::new()), 400_000 - (1 << 16));
    assert_eq!(skipped(vec![Arc::new(Accelerator::new(device))]), 200_000);
}

/// What a program takes is told by the query that first needs it, and by no other.
#[test]
fn programs_are_made_once() {
    let Some(device) = first() else { return };
    let accelerator = Arc::new(Accelerator::new(device).keep_all());
    let inputs = inputs(FEW_GROUPS, 1);
    let execution = run(TOP, &inputs, vec![accelerator.clone()]);
    let programs: Vec<_> = metrics(&execution).into_iter().flat_map(|device| &device.programs).collect();
    let kernels: Vec<&str> = programs.iter().map(|program| program.kernel.as_str()).collect();
    assert!(["pipeline", "rows", "scan"].iter().all(|name| kernels.contains(name)), "{kernels:?}");
    for program in programs {
        assert!(!program.build.is_zero() && program.time() > program.build, "{program:?}");
    }
    let again = run(TOP, &inputs, vec![accelerator]);
    assert!(metrics(&again).into_iter().all(|device| device.programs.is_empty()), "they were known");
}

/// Whatever fails, whenever: rows that a device kept are read back, or computed again where they are lost with it.
#[test]
fn kept_rows_outlive_their_device() {
    let Some(device) = first() else { return };
    let inputs = inputs(FEW_GROUPS, 1);
    for query in [TOP, CHAIN, JOIN] {
        let expected = rows(&run(query, &inputs, Vec::new()).table);
        let counted = Arc::new(Faulty::new(&device, &[]));
        run(query, &inputs, vec![Arc::new(Accelerator::new(counted.clone()).keep_all())]);
        let mut faults = Vec::new();
        for operation in [Operation::Allocate, Operation::Read, Operation::Fill, Operation::Launch] {
            // Each would take long: several from the first to the last.
            let count = counted.count(operation).max(1);
            let step = (count / 4).max(1);
            faults.extend((1..=count).step_by(step).map(|at| Fault::At(operation, at)));
        }
        let mut again = 0;
        for fault in faults {
            let faulty: Arc<dyn Device> = Arc::new(Faulty::new(&device, &[fault]));
            let execution = run(query, &inputs, vec![Arc::new(Accelerator::new(faulty).keep_all())]);
            assert_eq!(rows(&execution.table), expected, "{fault:?}\n{query}");
            again += usize::from(execution.metrics.pipelines[0].reason.is_some());
        }
        assert!(again > 0, "some rows were lost with their device");
        // A device that hangs while its rows are read back is waited for no longer than any other time.
        let last = Fault::Hang(Operation::Read, counted.count(Operation::Read));
        let faulty: Arc<dyn Device> = Arc::new(Faulty::new(&device, &[last]));
        let settings = DeviceSettings { timeout: Some(Duration::from_secs(3)), ..DeviceSettings::default() };
        let accelerator = Accelerator::new(faulty).with_settings(settings).keep_all();
        let began = Instant::now();
        let execution = run(query, &inputs, vec![Arc::new(accelerator)]);
        assert_eq!(rows(&execution.table), expected, "{query}");
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}\n{query}", began.elapsed());
    }
}

/// Rows that one of two devices keeps are computed there, or come back where the other has to.
#[test]
fn kept_rows_are_found_among_devices() {
    let Some(device) = first() else { return };
    let inputs = inputs(FEW_GROUPS, 1);
    for query in [TOP, CHAIN, JOIN] {
        let expected = rows(&run(query, &inputs, Vec::new()).table);
        let devices = [device.clone(), device.clone()].map(|device| Arc::new(Accelerator::new(device).keep_all()));
        let execution = run(query, &inputs, devices.to_vec());
        assert_eq!(rows(&execution.table), expected, "{query}");
        assert!(metrics(&execution)[0].bytes_back < METADATA, "{query}");
    }
}
