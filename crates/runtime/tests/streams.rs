//! Copies overlap kernels on a simulated device, whose times are reckoned, and the rows are the same for any number of streams.

use std::{sync::Arc, time::Duration};

use tandem_column::{Column, Field, Part, Table, Type};
use tandem_device::{Backend, Clock, Device, Profile, Search, Simulated, testing};
use tandem_pipeline::{Value, interpret::rows, parse};
use tandem_runtime::{Accelerator, DeviceMetrics, DeviceSettings, QueryInputs, RunOptions, Runtime, Traffic, Transfer};

/// Parts of the table.
const PARTS: usize = 6;
/// Rows of a part: 50,000 of eight bytes take 25 µs over the bus of a TITAN RTX, a launch 5 µs.
const ROWS: usize = 50_000;

/// The bus of a TITAN RTX, in bytes per second.
const BUS: f64 = 15.75e9;

/// Groups in an array, groups in a hash table, rows part by part, and all rows in order.
const QUERIES: [&str; 4] = [
    "filter $1 > 1000\n  aggregate by ($0) (count_rows(): int64, sum($1): int64)",
    "filter $1 > 1000\n  aggregate by ($1) (count_rows(): int64, sum($0): int64)",
    "filter $1 > 3990000000\n  materialize output ($0, $1)",
    "filter $1 > 3990000000\n  sort by ($1 desc, $0) output ($0, $1)",
];

/// Makes a table of a small key and a large number.
fn table() -> Table {
    let fields = [Field::new("k", Type::Int64, false), Field::new("v", Type::Int64, false)];
    let part = |part: usize| {
        let number = |row: usize| (part * ROWS + row) as i64;
        let key: Vec<i64> = (0..ROWS).map(|row| number(row) * 7919 % 13).collect();
        let value: Vec<i64> = (0..ROWS).map(|row| number(row) * 1_000_003 % 40_000 * 100_000).collect();
        Arc::new(Part::new(ROWS, [key, value].map(|values| Column::from_i64(Type::Int64, values, None)).to_vec()))
    };
    Table::with_statistics(Arc::new(fields), (0..PARTS).map(part).collect())
}

fn sorted(table: &Table) -> Vec<Vec<Value>> {
    let mut rows = rows(table);
    rows.sort_by_key(|row| {
        let number = |value: &Value| if let Value::Integer(number) = value { *number } else { 0 };
        row.iter().map(number).collect::<Vec<_>>()
    });
    rows
}

/// Returns what the simulator computes on.
fn inner() -> Option<Arc<dyn Device>> {
    let found = Search::default().run();
    testing::has(&found, Backend::OpenCl).then(|| found.devices[0].clone())
}

/// Runs a query on a new device, to which nothing was copied yet; returns its rows, what it did, and how long that took there.
fn run(inner: &Arc<dyn Device>, query: &str, settings: DeviceSettings) -> (Vec<Vec<Value>>, DeviceMetrics, Duration) {
    let (clock, profile) = (Clock::new(), Profile::named("titan-rtx").expect("it is built in"));
    let device = Arc::new(Simulated::new(inner, &profile, &clock, 0));
    let devices = vec![Arc::new(Accelerator::new(device).with_settings(settings))];
    let query = parse(&format!("pipeline 0\n  scan t [k@0: int64, v@1: int64]\n  {query}\n")).expect("it is right");
    let inputs = QueryInputs { tables: [("t".to_owned(), Arc::new(table()))].into(), ..QueryInputs::default() };
    let execution = Runtime::new(1).execute(&query, &inputs, &RunOptions { devices, ..RunOptions::default() });
    let mut execution = execution.expect("the query runs");
    let pipeline = execution.metrics.pipelines.remove(0);
    let metrics = pipeline.device.unwrap_or_else(|| panic!("it runs on the device: {:?}", pipeline.reason));
    (sorted(&execution.table), metrics, Duration::from_nanos(clock.now()))
}

#[test]
fn copies_overlap_kernels() {
    let Some(inner) = inner() else { return };
    for query in QUERIES {
        let settings = |streams| DeviceSettings {
            streams: Some(streams),
            transfer: Transfer::Active,
            ..DeviceSettings::default()
        };
        let [one, two, four] = [1, 2, 4].map(|streams| run(&inner, query, settings(streams)));
        for (streams, (rows, metrics, time)) in [(1, &one), (2, &two), (4, &four)] {
            println!(
                "{streams} streams: {time:?}, kernels {:?}, copies {:?}, both {:?}",
                metrics.kernels, metrics.copies, metrics.overlapped
            );
            assert!(!rows.is_empty() && *rows == one.0, "{streams} streams give the rows of one: {query}");
            assert_eq!(metrics.bytes_shared, 0, "all is copied: {query}");
            assert!(metrics.bytes_to >= (PARTS * ROWS * 16) as u64, "{metrics:?}");
            // The rows of the last part are computed after all copies, which one engine makes.
            let bus = Duration::from_secs_f64(metrics.bytes_to as f64 / BUS);
            assert!(*time > bus, "{streams} streams: kernels wait for their copies, {time:?} against {bus:?}: {query}");
        }
        assert_eq!(one.1.overlapped, Duration::ZERO, "in order: {query}");
        assert!(two.1.overlapped > Duration::ZERO && four.1.overlapped > Duration::ZERO, "at once: {query}");
        assert!(two.2 < one.2 && four.2 < one.2, "two streams take less time than one: {query}");

        let passive = DeviceSettings { transfer: Transfer::Passive, ..DeviceSettings::default() };
        let (rows, metrics, _) = run(&inner, query, passive);
        assert!(rows == one.0 && metrics.bytes_to == 0 && metrics.bytes_shared > 0, "{query}: {metrics:?}");
        let (rows, metrics, _) = run(&inner, query, DeviceSettings::default());
        assert!(rows == one.0 && metrics.bytes_to < 100_000 && metrics.bytes_shared > 0, "{query}: {metrics:?}");
    }
}

/// Two runs of one kernel over the same columns, read where they are, differ by what they touch at the bus's speed.
#[test]
fn passive_columns_cost_what_is_touched() {
    let Some(inner) = inner() else { return };
    let sum = |least: i64| {
        let query = format!("filter $1 > {least}\n  aggregate by () (count_rows(): int64, sum($0): int64)");
        let passive = DeviceSettings { transfer: Transfer::Passive, ..DeviceSettings::default() };
        let (_, metrics, _) = run(&inner, &query, passive);
        assert!(metrics.traffic.iter().all(|traffic| traffic.passive), "{metrics:?}");
        let total = |bytes: fn(&Traffic) -> u64| metrics.traffic.iter().map(bytes).sum::<u64>();
        (total(|traffic| traffic.touched), total(|traffic| traffic.bytes), metrics.kernels)
    };
    let ((few, of_few, short), (most, of_most, long)) = (sum(3_990_000_000), sum(200_000));
    assert_eq!(of_few, of_most, "both read the same columns");
    assert!(few * 10 < most * 9 && most <= of_most, "one reads the sums of few rows: {few}, {most} of {of_most}");
    let expected = Duration::from_secs_f64((most - few) as f64 / BUS);
    // The model rounds each launch up to whole nanoseconds.
    let launches = Duration::from_nanos(2 * PARTS as u64);
    assert!((long - short).abs_diff(expected) <= launches, "{short:?} and {long:?} differ by {expected:?}");
}
