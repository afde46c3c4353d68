//! Joins on devices with nothing left to the CPU: build rows that come out at the end, into every sink, and joins of
//! sorted tables, which merge.

use std::sync::Arc;

use tandem_column::{Bitmap, Column, Field, Part, Table, Type};
use tandem_device::{Backend, testing};
use tandem_pipeline::{
    JoinKind,
    interpret::{interpret, rows},
    parse, random, verify,
};
use tandem_runtime::{Accelerator, QueryInputs, RunOptions, Runtime};

/// Keys are further apart than an array of places allows.
const APART: i64 = 1_000_003;

/// How the rows of a table come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// In the order of their key.
    Sorted,
    /// In the opposite order.
    Reversed,
    /// In the order of their key, every fifth of which is null.
    Nulls,
    /// There are none.
    None,
}

/// Makes a table of a key that repeats, a number that may be null and a text, in three parts.
fn table(rows: Rows, first: i64, step: i64, count: i64) -> Arc<Table> {
    let schema: Arc<[Field]> = Arc::new([
        Field::new("k", Type::Int64, rows == Rows::Nulls),
        Field::new("v", Type::Int64, true),
        Field::new("s", Type::String, false),
    ]);
    let part = |part: i64| {
        let all: Vec<i64> = (part * count..(part + 1) * count).collect();
        let key = |row: i64| (first + row / 2 * step) * APART;
        let keys: Vec<i64> = match rows {
            Rows::Reversed => all.iter().map(|row| -key(*row)).collect(),
            _ => all.iter().map(|row| key(*row)).collect(),
        };
        let valid = |nth: i64| all.iter().map(|row| row % nth != 0).collect::<Bitmap>();
        let numbers: Vec<i64> = all.iter().map(|row| row % 7).collect();
        let text = all.iter().map(|row| Some(format!("text {}", row % 11)));
        let columns = vec![
            Column::from_i64(Type::Int64, keys, (rows == Rows::Nulls).then(|| valid(5))),
            Column::from_i64(Type::Int64, numbers, Some(valid(4))),
            Column::from_values(Type::String, text),
        ];
        Arc::new(Part::new(all.len(), columns))
    };
    let parts = if rows == Rows::None { Vec::new() } else { (0..3).map(part).collect() };
    Arc::new(Table::with_statistics(schema, parts))
}

/// The device with rows dealt out in runs and in turn.
fn accelerators() -> Vec<(&'static str, Arc<Accelerator>)> {
    let found = tandem_device::Search::from_environment().run();
    if !testing::has(&found, Backend::OpenCl) {
        return Vec::new();
    }
    let device = found.devices[0].clone();
    let in_turn = Accelerator::new(device.clone()).in_turn();
    vec![("in runs", Arc::new(Accelerator::new(device))), ("in turn", Arc::new(in_turn))]
}

/// Runs a query on devices alone and compares its rows with the interpreter's; returns what planners noted. What several
/// devices have computed of a build becomes a hash table on the CPU.
fn check(name: &str, devices: &[Arc<Accelerator>], tables: &[random::NamedTable], text: &str) -> Vec<String> {
    let query = parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    verify(&query).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let expected = interpret(&query, &random::inputs(tables)).expect("the interpreter runs it");
    let inputs = QueryInputs { tables: tables.iter().cloned().collect(), ..QueryInputs::default() };
    let options = RunOptions { devices: devices.to_vec(), ..RunOptions::default() };
    let execution = Runtime::new(1).execute(&query, &inputs, &options).expect("it runs");
    let count = execution.metrics.pipelines.len();
    for pipeline in &execution.metrics.pipelines[if devices.len() > 1 { count - 1 } else { 0 }..] {
        assert!(pipeline.device.is_some() && pipeline.reason.is_none(), "{name}: {:?}\n{text}", pipeline.reason);
    }
    let found = rows(&execution.table);
    assert!(random::same_rows(&expected, &found), "{name}\n{text}\nexpected {expected:?}\nfound {found:?}");
    execution.metrics.pipelines.into_iter().flat_map(|pipeline| pipeline.outline.choices()).collect()
}

fn named(left: Arc<Table>, right: Arc<Table>) -> Vec<random::NamedTable> {
    vec![("l".to_owned(), left), ("r".to_owned(), right)]
}

const SCAN_LEFT: &str = "scan l [k@0: int64?, v@1: int64?, s@2: string]";
const BUILD: &str = "pipeline 0 scan r [k@0: int64?, v@1: int64?, s@2: string] build keys ($0) payload ($0, $1, $2)";
const ADDS: &str = "adds ($3 rk@0: int64?, $4 rv@1: int64?, $5 rs@2: string?)";

/// Build rows come out of every join that emits them, into every sink, with nothing left to the CPU.
#[test]
fn build_rows_come_out_on_the_device() {
    let sinks = [
        "materialize output ($0, $1, $2, $3, $4, $5)",
        "sort by ($4 desc nulls first, $3, $0) output ($1, $5)",
        "filter $3 > 5000015 let $6 x: int64? = $1 + $4 aggregate by () (sum($6): int64, count($0): int64, count_rows(): int64)",
        "aggregate by ($1, $4) (count($3): int64, min($0): int64)",
        "aggregate by ($2) (count_rows(): int64, max($4): int64)",
        "aggregate by ($5, $1) (count_rows(): int64)",
        "build keys ($3) payload ($1) pipeline 2 scan l [k@0: int64?] probe full 1 on ($0) adds ($1 w@0: int64?) \
         aggregate by () (count_rows(): int64, sum($1): int64)",
    ];
    let sides = [
        named(table(Rows::Sorted, 3, 1, 20), table(Rows::Reversed, -30, 2, 15)),
        named(table(Rows::Reversed, -40, 1, 20), table(Rows::Nulls, 2, 1, 15)),
        named(table(Rows::None, 0, 1, 0), table(Rows::Sorted, 0, 1, 10)),
        named(table(Rows::Nulls, 0, 1, 10), table(Rows::None, 0, 1, 0)),
    ];
    for (name, accelerator) in accelerators() {
        let devices = [accelerator];
        for kind in JoinKind::all().filter(|kind| kind.emits_build_rows()) {
            // Drivers compile for long: what is behind a join does not depend on its kind.
            let (all, few) = (sinks.as_slice(), &sinks[..if name == "in runs" { 1 } else { 0 }]);
            for sink in if kind == JoinKind::Full { all } else { few } {
                let text = format!("{BUILD} pipeline 1 {SCAN_LEFT} probe {} 0 on ($0) {ADDS} {sink}", kind.name());
                sides.iter().for_each(|tables| drop(check(name, &devices, tables, &text)));
            }
        }
    }
}

/// Build rows of one join look others up, and may be those that keep the others' rows from coming out.
#[test]
fn build_rows_go_through_later_joins() {
    let sides = named(table(Rows::Sorted, 3, 1, 20), table(Rows::Reversed, -30, 2, 15));
    let text = format!(
        "{BUILD} pipeline 1 scan l [k@0: int64?, v@1: int64?, s@2: string] filter $1 <> 3 build keys ($0) payload ($1) \
         pipeline 2 {SCAN_LEFT} filter $1 > 2 probe full 0 on ($0) where $1 < $4 {ADDS} probe right 1 on ($3) \
         adds ($6 w@0: int64?) filter $6 is null or $6 > 0 \
         aggregate by ($1, $4, $6) (count_rows(): int64, count($0): int64)"
    );
    for (name, accelerator) in accelerators() {
        check(name, &[accelerator], &sides, &text);
    }
}

/// Sorted tables merge, whatever the join, and give what hashed ones do.
#[test]
fn sorted_tables_merge() {
    let sorted = named(table(Rows::Sorted, 3, 1, 40), table(Rows::Sorted, 0, 2, 15));
    let unsorted = named(table(Rows::Reversed, -60, 1, 40), table(Rows::Sorted, 0, 2, 15));
    for (name, accelerator) in accelerators() {
        let devices = [accelerator];
        for kind in JoinKind::all().filter(|kind| name == "in runs" || *kind == JoinKind::Full) {
            let (adds, output) = match kind {
                JoinKind::Mark => ("adds ($3 m: boolean)", "($0, $1, $2, $3)"),
                JoinKind::Semi | JoinKind::Anti => ("", "($0, $1, $2)"),
                _ => (ADDS, "($0, $1, $2, $3, $4, $5)"),
            };
            let text = format!(
                "{BUILD} pipeline 1 {SCAN_LEFT} filter $1 <> 5 or $1 is null probe {} 0 on ($0) {adds} \
                 materialize output {output}",
                kind.name()
            );
            for (tables, way) in [(&sorted, "in the order of their key"), (&unsorted, "hashed by a packed integer")] {
                let notes = check(name, &devices, tables, &text);
                assert!(notes.iter().any(|note| note.contains(way)), "{name}: {way}: {notes:?}");
            }
        }
    }
}

/// Where devices share the parts, one of them adds the build rows that have met no row of any.
#[test]
fn build_rows_of_shared_parts_come_out_once() {
    let found = tandem_device::Search::from_environment().run();
    if testing::has(&found, Backend::OpenCl) && testing::is_pocl(&found) {
        print!("{}", testing::child("child_joins_on_two_devices", &[testing::TWO_DEVICES]));
    }
}

#[test]
#[ignore = "a child of build_rows_of_shared_parts_come_out_once: needs two OpenCL devices"]
fn child_joins_on_two_devices() {
    let devices = tandem_device::Search::from_environment().run().devices;
    assert_eq!(devices.len(), 2, "{devices:?}");
    let devices: Vec<Arc<Accelerator>> = devices.into_iter().map(|device| Arc::new(Accelerator::new(device))).collect();
    let tables = named(table(Rows::Sorted, 3, 1, 20), table(Rows::Reversed, -30, 2, 15));
    for kind in JoinKind::all().filter(|kind| kind.emits_build_rows()) {
        for sink in ["materialize output ($1, $2, $3, $5)", "aggregate by ($4, $1) (count($0): int64, min($3): int64)"]
        {
            let text = format!("{BUILD} pipeline 1 {SCAN_LEFT} probe {} 0 on ($0) {ADDS} {sink}", kind.name());
            check("two devices", &devices, &tables, &text);
        }
    }
}

/// More pairs than 32 bits count are left to the CPU, which stops at the limit.
#[test]
fn pairs_beyond_32_bits_are_not_lost() {
    let table = |rows: i64| {
        let numbers: Vec<i64> = (0..rows).collect();
        let part = Part::new(numbers.len(), vec![Column::from_i64(Type::Int64, numbers, None)]);
        let schema: Arc<[Field]> = Arc::new([Field::new("x", Type::Int64, false)]);
        Arc::new(Table::with_statistics(schema, vec![Arc::new(part)]))
    };
    let text = "pipeline 0 scan r [x@0: int64] build keys () payload ($0) \
                pipeline 1 scan l [x@0: int64] probe inner 0 on () adds ($1 y@0: int64) \
                materialize fetch 3 output ($0, $1)";
    let query = parse(text).expect("the query is right");
    let inputs = QueryInputs {
        tables: named(table(1 << 20), table((1 << 12) + 1)).into_iter().collect(),
        ..QueryInputs::default()
    };
    for (name, device) in accelerators() {
        let options = RunOptions { devices: vec![device], ..RunOptions::default() };
        let execution = Runtime::new(1).execute(&query, &inputs, &options).expect("it runs");
        assert_eq!(execution.table.rows(), 3, "{name}");
        let reason = execution.metrics.pipelines[1].reason.as_deref();
        assert!(reason.is_some_and(|reason| reason.contains("too many")), "{name}: {reason:?}");
    }
}

/// The interpreter gives a build's payload as its rows; a build of ours has none to give.
#[test]
fn a_query_that_ends_with_a_build_is_refused() {
    let query = parse("pipeline 0 values [a: int32] (1) build keys ($0) payload ($0)").expect("it is well-formed");
    let error =
        Runtime::new(1).execute(&query, &QueryInputs::default(), &RunOptions::default()).expect_err("it gives no rows");
    assert_eq!(error.class, tandem_runtime::Class::Unsupported, "{error}");
    assert!(error.message.contains("ends with a build"), "{error}");
}
