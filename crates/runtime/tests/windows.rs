//! Window functions on devices: the interpreter's rows (the CPU's, of many), and nothing left to the CPU; what is left has its reason.

use std::sync::Arc;

use tandem_column::{AlignedVec, Bitmap, BitmapBuilder, Codes, Column, Dictionary, Field, Part, Table, Type};
use tandem_device::{Backend, Device, Fault, Faulty, Operation, Search, shim::Shim, testing};
use tandem_pipeline::{
    Query,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, Class, Execution, QueryInputs, RunOptions, Runtime};

/// Few rows: those that the interpreter takes. Many: more than one work-item does alone.
const FEW: usize = 150;
const MANY: usize = 20_000;

const SOURCE: &str = "pipeline 0
  scan t [k@0: int64?, n@1: int64, v@2: int64?, w@3: decimal(38,2)?, f@4: float64?, c@5: string?, s@6: string, b@7: boolean?, d@8: decimal(9,2)?]
";

/// All of a window but its source and its output.
const WINDOWS: &[&str] = &[
    // Ranks: of partitions by numbers, by text of both kinds, of one partition, without an order.
    "by ($0) order ($1) compute (row_number() as int64, rank() as uint64, dense_rank() as int64, ntile(4) as int64, ntile(1000000) as int64)",
    "by ($0, $5) order ($2 desc nulls first) compute (rank() as int64, dense_rank() as int64, percent_rank() as float64, cume_dist() as float64)",
    "by ($6) order ($4, $3 desc) compute (rank() as int64, cume_dist() as float64)",
    "by () order ($5 desc, $6) compute (dense_rank() as int64, percent_rank() as float64)",
    "by ($7) order () compute (rank() as int64, count_rows(): int64 range unbounded to 0 as int64)",
    // Values of other rows: numbers, 128 bits, codes, plain text.
    "by ($0) order ($1) compute (lag($2, 1) as int64, lag($3, -2) as decimal(38,2), lag($5, 3) as string, lag($6, 1) as string)",
    "by ($0) order ($1) compute (lag($2, 1, $1) as int64, lag($3, 2, $3) as decimal(38,2), lag($6, 2, $6) as string, lag($4, 0) as float64)",
    "by ($7) order ($1 desc) compute (lag($2, 1) ignore nulls as int64, lag($2, -2, $1) ignore nulls as int64, lag($5, 2) ignore nulls as string, lag($2, 0) ignore nulls as int64)",
    "by ($0) order ($1) compute (nth($2, 1) rows -2 to 3 as int64, nth($6, -1) rows unbounded to 0 as string, nth($3, 2) groups -1 to 1 as decimal(38,2), nth($5, 9223372036854775807) rows 0 to unbounded as string)",
    "by ($0) order ($1) compute (nth($2, 1) ignore nulls rows -3 to 2 as int64, nth($5, -2) ignore nulls range unbounded to 0 as string)",
    // Counts and exact sums.
    "by ($0) order ($1) compute (count_rows(): int64 rows -100 to 0 as int64, count($2): int64 rows 3 to 7 as int64, sum($2): int64 rows -100 to 0 as int64, sum($2 where $7): int64 range unbounded to 0 as int64)",
    "by () order ($1) compute (sum($3): decimal(38,2) rows unbounded to unbounded as decimal(38,2), average($3): decimal(38,6) rows -1 to 1 as decimal(38,6), average($8): decimal(13,6) groups -3 to -1 as decimal(13,6), sum($8 where $7): decimal(19,2) rows -9223372036854775808 to 9223372036854775807 as decimal(19,2))",
    // Floats, and extremes of every kind.
    "by ($0) order ($1) compute (sum($4): float64 rows -5 to 5 as float64, average($4): float64 range unbounded to 0 as float64, min($4): float64 rows -3 to 0 as float64, max($4 where $7): float64 rows 0 to unbounded as float64)",
    "by ($0) order ($1) compute (min($2): int64 rows -50 to 50 as int64, max($2): int64 rows -50 to 50 as int64, min($3): decimal(38,2) groups -2 to 4 as decimal(38,2), max($3): decimal(38,2) rows unbounded to 0 as decimal(38,2))",
    "by () order ($1) compute (min($5): string rows -3 to 3 as string, max($5): string rows 1 to 2 as string, bool_and($7): boolean rows -2 to 2 as boolean, bool_or($7): boolean rows -2 to 2 as boolean)",
    "by ($0) order ($1) compute (first($2): int64 rows -2 to 2 as int64, first($6 where $7): string rows -2 to 2 as string, max(distinct $2): int64 rows -2 to 2 as int64)",
    "by ($0) order ($1) compute (variance_sample($4): float64 rows -5 to 5 as float64, deviation_population($4 where $7): float64 range unbounded to 0 as float64, deviation_sample($4): float64 rows 0 to 0 as float64)",
    // Distances, in both directions, with nulls first and last, and beyond 64 bits.
    "by ($0) order ($2) compute (count_rows(): int64 range -3 to 3 as int64, sum($1): int64 range unbounded to 2 as int64, max($1): int64 range -2 to unbounded as int64)",
    "by ($7) order ($2 desc nulls first) compute (count_rows(): int64 range -3 to 0 as int64, count_rows(): int64 range 1 to 4 as int64, count_rows(): int64 range -9223372036854775808 to -1 as int64, count_rows(): int64 range 1 to 9223372036854775807 as int64)",
    "by () order ($2 nulls first) compute (count_rows(): int64 range -9 to -2 as int64, count_rows(): int64 groups 1 to 2 as int64, count_rows(): int64 groups -2 to 0 as int64)",
    // The first rows of each partition.
    "by ($0) order ($1 desc) compute (row_number() as uint64, sum($2): int64 rows -1 to 1 as int64) fetch 2",
    "by ($5) order ($2) compute (rank() as int64, dense_rank() as int64) fetch 3",
    "by () order ($4, $1) compute (row_number() as int64) fetch 7",
    "by ($0, $7) order ($6) compute (rank() as int64, dense_rank() as int64) fetch 0",
];

/// What is left to the CPU, and why.
const LEFT: &[(&str, &str)] = &[
    (
        "by () order ($1) compute (count(distinct $2): int64 rows -2 to 2 as int64)",
        "aggregates of distinct values in frames are not on the device yet",
    ),
    (
        "by () order ($1) compute (min($6): string rows -2 to 2 as string)",
        "the smallest or largest plain text of a frame is not on the device yet",
    ),
    ("by () order ($1) compute (lag($6, 1, $5) as string)", "text of two columns in one is put together by the CPU"),
    (
        "by () order ($1) compute (median($4): float64 rows -2 to 2 as float64)",
        "the aggregate median over a window is not on the device yet",
    ),
];

/// Makes a column's validity: every row that is not one of so many is valid.
fn validity(rows: &[usize], null_each: usize) -> Option<Bitmap> {
    let mut bits = BitmapBuilder::new();
    rows.iter().for_each(|row| bits.push(row % null_each != 0));
    bits.finish_validity()
}

/// Makes a table in two parts, with repetitions, nulls, extremes, NaN and negative zero.
fn table(rows: usize) -> Arc<Table> {
    let words = ["", "a", "ab", "abcdefghij", "b", "日本", "éclair"];
    let (dictionary, places) = Dictionary::from_unsorted(&Type::String, &words).expect("words differ");
    let dictionary = Arc::new(dictionary);
    let part = |all: Vec<usize>| {
        let integers = |value: &dyn Fn(usize) -> i64| all.iter().map(|row| value(*row)).collect::<AlignedVec<i64>>();
        let floats = [0.0, -0.0, f64::NAN, 1e-300, 1.5, -2.25, 1e10];
        let float = |row: usize| {
            if row.is_multiple_of(5) { floats[row / 5 % floats.len()] } else { (row * 37 % 1000) as f64 / 8.0 }
        };
        let nulls_of_words = validity(&all, 5);
        let code = |at: usize| nulls_of_words.as_ref().is_none_or(|valid| valid.get(at));
        let codes = all.iter().enumerate().map(|(at, row)| if code(at) { places[row * 3 % 7] as u64 } else { 0 });
        let columns = vec![
            Column::from_i64(Type::Int64, integers(&|row| (row * 7919 % 13) as i64), validity(&all, 11)),
            Column::from_i64(Type::Int64, integers(&|row| (row * 7919 % rows) as i64 - 20), None),
            Column::from_i64(Type::Int64, integers(&|row| (row * 31 % 41) as i64 - 20), validity(&all, 7)),
            Column::from_i128(
                Type::Decimal { precision: 38, scale: 2 },
                all.iter().map(|row| (*row as i128 - 70) * 1_000_000_007_000_000_000_000).collect::<AlignedVec<i128>>(),
                validity(&all, 6),
            ),
            Column::from_f64(all.iter().map(|row| float(*row)).collect::<AlignedVec<f64>>(), validity(&all, 9)),
            Column::from_codes(
                Type::String,
                Codes::collect(1, all.len(), codes),
                dictionary.clone(),
                nulls_of_words.clone(),
            ),
            Column::from_values(Type::String, all.iter().map(|row| Some(format!("{}{}", words[row % 7], row / 3 % 9)))),
            Column::from_bools(all.iter().map(|row| row % 3 == 0), validity(&all, 4)),
            Column::from_i64(
                Type::Decimal { precision: 9, scale: 2 },
                integers(&|row| row as i64 % 999 - 500),
                validity(&all, 8),
            ),
        ];
        Arc::new(Part::new(all.len(), columns))
    };
    let field = |(name, kind, nullable): &(&str, Type, bool)| Field::new(*name, kind.clone(), *nullable);
    let fields = [
        ("k", Type::Int64, true),
        ("n", Type::Int64, false),
        ("v", Type::Int64, true),
        ("w", Type::Decimal { precision: 38, scale: 2 }, true),
        ("f", Type::Float64, true),
        ("c", Type::String, true),
        ("s", Type::String, false),
        ("b", Type::Boolean, true),
        ("d", Type::Decimal { precision: 9, scale: 2 }, true),
    ];
    let half = rows / 3;
    let parts = vec![part((0..half).collect()), part((half..rows).collect())];
    Arc::new(Table::with_statistics(fields.iter().map(field).collect(), parts))
}

fn query(window: &str) -> Query {
    let text = format!("{SOURCE}  window {window} output ($1, $6, $5, $3)\n");
    let query = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&query).unwrap_or_else(|error| panic!("{error}\n{text}"));
    query
}

fn inputs(rows: usize) -> QueryInputs {
    QueryInputs { tables: [("t".to_owned(), table(rows))].into(), ..QueryInputs::default() }
}

/// Every way in which kernels are made: for CPUs, for GPUs, for CUDA.
fn accelerators() -> Vec<(&'static str, Arc<Accelerator>)> {
    let found = Search::from_environment().run();
    let mut all = Vec::new();
    if testing::has(&found, Backend::OpenCl) {
        let device = found.devices[0].clone();
        all.push(("runs", Accelerator::new(device.clone()).only_declared()));
        all.push(("in turn", Accelerator::new(device).in_turn().only_declared()));
    }
    if let Ok(shim) = Shim::open() {
        let shim: Arc<dyn Device> = Arc::new(shim);
        all.push(("shim", Accelerator::new(shim)));
    }
    all.into_iter().map(|(name, accelerator)| (name, Arc::new(accelerator))).collect()
}

fn run(query: &Query, inputs: &QueryInputs, devices: Vec<Arc<Accelerator>>) -> tandem_runtime::Result<Execution> {
    Runtime::new(2).execute(query, inputs, &RunOptions { devices, ..RunOptions::default() })
}

#[test]
fn windows_run_on_devices() {
    let few = random::inputs(&[("t".to_owned(), table(FEW))]);
    for (name, accelerator) in accelerators() {
        for window in WINDOWS {
            let query = query(window);
            for rows_of_table in [FEW, MANY] {
                let inputs = inputs(rows_of_table);
                let expected = match rows_of_table == FEW {
                    true => interpret(&query, &few).expect("the interpreter runs it"),
                    false => rows(&run(&query, &inputs, Vec::new()).expect("the CPU runs it").table),
                };
                let execution = run(&query, &inputs, vec![accelerator.clone()]).expect("it runs");
                let found = rows(&execution.table);
                assert!(random::same_rows(&expected, &found), "{name}, {rows_of_table} rows: {window}");
                assert_eq!(execution.metrics.pipelines[0].reason, None, "{name}: {window}");
            }
        }
    }
}

#[test]
fn what_windows_leave_to_the_cpu_has_a_reason() {
    let inputs = inputs(FEW);
    for (name, accelerator) in accelerators() {
        for (window, reason) in LEFT {
            let execution = run(&query(window), &inputs, vec![accelerator.clone()]).expect("it runs");
            assert_eq!(execution.metrics.pipelines[0].reason.as_deref(), Some(*reason), "{name}: {window}");
        }
    }
}

/// A sum that leaves its type is an error, and one that is null instead is null.
#[test]
fn sums_that_leave_their_type_fail_alike() {
    let inputs = inputs(FEW);
    let sum = |overflow: &str| {
        query(&format!("by () order ($1) compute (sum($8): decimal(3,2){overflow} rows -9 to 0 as decimal(3,2))"))
    };
    for (name, accelerator) in accelerators() {
        let errors = [vec![accelerator.clone()], Vec::new()].map(|devices| {
            let error = run(&sum(""), &inputs, devices).map(|execution| rows(&execution.table));
            let error = error.expect_err("some sums are too large");
            assert_eq!(error.class, Class::Input, "{name}: {error}");
            error.message
        });
        assert_eq!(errors[0], errors[1], "{name}");
        let nulls = [vec![accelerator], Vec::new()].map(|devices| {
            let execution = run(&sum(" overflow null"), &inputs, devices).expect("it runs");
            assert_eq!(execution.metrics.pipelines[0].reason, None, "{name}");
            rows(&execution.table)
        });
        assert!(random::same_rows(&nulls[0], &nulls[1]), "{name}");
    }
}

/// A device without double precision does all that needs none.
#[test]
fn poor_devices_have_windows() {
    for (name, accelerator) in accelerators() {
        let Some(accelerator) = Arc::into_inner(accelerator).map(|accelerator| Arc::new(accelerator.poor())) else {
            panic!("nobody else has it")
        };
        let reason = |window: &str| {
            let execution = run(&query(window), &inputs(FEW), vec![accelerator.clone()]).expect("it runs");
            execution.metrics.pipelines[0].reason.clone()
        };
        let none = Some("the device has no double precision".to_owned());
        assert_eq!(reason("by ($0) order ($1) compute (percent_rank() as float64)"), none, "{name}");
        assert_eq!(reason("by ($0) order ($1) compute (sum($2): int64 rows -1 to 0 as int64)"), None, "{name}");
    }
}

/// Whichever allocation does not fit, the CPU gives the answer, with the reason.
#[test]
fn memory_that_runs_out_is_a_reason() {
    let found = Search::from_environment().run();
    if !testing::has(&found, Backend::OpenCl) {
        return;
    }
    let window = "by ($0) order ($2) compute (rank() as int64, max($3): decimal(38,2) rows -2 to 2 as decimal(38,2), sum($2): int64 range unbounded to 0 as int64) fetch 5";
    let (query, inputs) = (query(window), inputs(FEW));
    let expected = rows(&run(&query, &inputs, Vec::new()).expect("the CPU runs it").table);
    let mut refused = 0;
    loop {
        let faulty = Faulty::new(&found.devices[0], &[Fault::At(Operation::Allocate, refused + 1)]);
        let execution = run(&query, &inputs, vec![Arc::new(Accelerator::new(Arc::new(faulty)))]).expect("it runs");
        assert!(random::same_rows(&expected, &rows(&execution.table)), "after {refused} allocations");
        let pipeline = &execution.metrics.pipelines[0];
        assert_eq!(pipeline.device.is_none(), pipeline.reason.is_some(), "after {refused} allocations");
        if pipeline.device.is_some() {
            break;
        }
        refused += 1;
    }
    assert!(refused > 20, "every allocation was refused once: {refused}");
}

/// What a window leaves stays for the next pipeline.
#[test]
fn rows_of_windows_stay() {
    let text = format!(
        "{SOURCE}  window by ($0) order ($1) compute (row_number() as int64, lag($6, 1) as string, sum($2): int64 range unbounded to 0 as int64) output ($1, $5)
pipeline 1
  result 0 [n: int64, c: string?, place: int64, before: string?, total: int64?]
  aggregate by ($1) (count_rows(): int64, sum($2): int64, sum($4): int64)
"
    );
    let query = parse(&text).expect("the query is right");
    verify(&query).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let inputs = inputs(MANY);
    let expected = rows(&run(&query, &inputs, Vec::new()).expect("the CPU runs it").table);
    for (name, accelerator) in accelerators() {
        let execution = run(&query, &inputs, vec![accelerator]).expect("it runs");
        assert!(random::same_rows(&expected, &rows(&execution.table)), "{name}");
        let pipelines = &execution.metrics.pipelines;
        assert!(pipelines.iter().all(|pipeline| pipeline.reason.is_none()), "{name}: {pipelines:?}");
        let to = pipelines[1].device.as_ref().expect("it ran there").bytes_to;
        assert!(to < (MANY * 8) as u64, "{name}: numbers are not copied again: {to} bytes");
    }
}
