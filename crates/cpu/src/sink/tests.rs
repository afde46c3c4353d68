//! Contributions of any number and kind merge to one output.

use std::{collections::BTreeMap, sync::Arc};

use tandem_column::{Result, Scalar, Table};
use tandem_pipeline::{Query, Value, parse, partition, verify};
use tandem_plan::{Build, Planning};

use crate::{
    Contents, Contribution, Job, MemoryBudget, PipelineOutput, Switches, VectorSelector, lookup, values_table,
};

const ROWS: usize = 1000;

fn query(text: &str) -> Query {
    let query = parse(text).expect("a query");
    verify(&query).expect("it is well-formed");
    query
}

/// Rows of a key that repeats, one that is null at times, text and a float.
fn table(query: &Query, rows: std::ops::Range<usize>) -> Arc<Table> {
    let row = |i: usize| {
        let text = ["red", "green", "", "blue"][i % 4];
        vec![
            Value::Integer((i % 97) as i128 * 1000),
            if i.is_multiple_of(11) { Value::Null } else { Value::Integer((i % 7) as i128) },
            Value::string(text),
            Value::Float(i as f64 / 8.0),
        ]
    };
    Arc::new(values_table(&query.pipelines[0].slots[..4], &rows.map(row).collect::<Vec<_>>()))
}

fn job(query: &Query, table: Arc<Table>, collide: bool) -> Job {
    let memory = Arc::new(MemoryBudget::default());
    let selector = VectorSelector { functions: &[], memory: &memory };
    let planning = Planning {
        builds: &|_| None,
        sorted: &|_, _| false,
        selector: &selector,
        memory: memory.limit(),
        workers: 1,
        collide,
    };
    let physical = tandem_plan::plan(query, 0, &table, &planning).expect("it can be planned");
    let switches = Switches { vector_rows: 7, ..Switches::default() };
    Job::new(Arc::new(physical), table, &switches.into())
}

/// Runs all rows of a job as one worker.
fn contribute(job: &Job) -> Contribution {
    let mut worker = job.worker();
    (0..job.physical().morsels.len()).for_each(|morsel| job.run(&mut worker, morsel).expect("it runs"));
    worker.finish()
}

fn finish(job: &Job, all: Vec<Contribution>) -> PipelineOutput {
    let parallel = |tasks: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)| (0..tasks).try_for_each(task);
    job.finish(all, &parallel).expect("it finishes").0
}

/// Lays the rows of a contribution out, as a device may.
fn laid_out(job: &Job) -> Contribution {
    let PipelineOutput::Build(build) = finish(job, vec![contribute(job)]) else { panic!("a build") };
    let rows = build.rows as u64;
    Contribution::new(Contents::Build(Box::new(Arc::into_inner(build).expect("nobody else has it"))), rows)
}

/// Tells, for each text and float, how often rows with it are found by their keys.
fn found(build: &Build, keys: &[usize], rows: std::ops::Range<usize>, query: &Query) -> BTreeMap<String, usize> {
    let all = table(query, rows);
    let mut counts = BTreeMap::new();
    for part in &all.parts {
        let rows: Vec<u32> = (0..part.rows as u32).collect();
        let vectors: Vec<_> =
            keys.iter().map(|key| std::rc::Rc::new(crate::Vector::fetch(&part.columns[*key], &rows))).collect();
        let asked = lookup::Asked { null_equals_null: false, first: false };
        for (start, end) in lookup::find(build, &vectors, part.rows, asked) {
            for entry in start..end {
                let payload: Vec<String> =
                    build.payload.iter().map(|column| spell(column.value(entry as usize))).collect();
                *counts.entry(payload.join("|")).or_default() += 1;
            }
        }
    }
    counts
}

fn spell(value: Scalar<'_>) -> String {
    match value {
        Scalar::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn builds_and_rows_merge_to_the_build_of_all_rows() {
    let all_keys = [("$0", vec![0]), ("$1", vec![1]), ("$0, $1", vec![0, 1]), ("$2, $3", vec![2, 3])];
    for ((keys, columns), payload) in all_keys.iter().flat_map(|keys| [(keys, "$2, $3"), (keys, "")]) {
        // Without a probe, only existence matters.
        let query = query(&format!(
            "pipeline 0\n  scan t [a@0: int64, b@1: int32?, c@2: string, d@3: float64]\n  \
             build keys ({keys}) payload ({payload})\n"
        ));
        for collide in [false, true] {
            let (first, second) =
                (job(&query, table(&query, 0..600), collide), job(&query, table(&query, 600..ROWS), collide));
            let whole = job(&query, table(&query, 0..ROWS), collide);
            let PipelineOutput::Build(expected) = finish(&whole, vec![contribute(&whole)]) else { panic!("a build") };
            let merged = [
                vec![contribute(&first), contribute(&second)],
                vec![laid_out(&first), contribute(&second)],
                vec![contribute(&first), laid_out(&second)],
                vec![laid_out(&first), laid_out(&second)],
            ];
            for (way, all) in merged.into_iter().enumerate() {
                let PipelineOutput::Build(build) = finish(&whole, all) else { panic!("a build") };
                assert_eq!(build.rows, expected.rows, "keys {keys}, way {way}");
                assert_eq!(build.null_key, expected.null_key, "keys {keys}, way {way}");
                let expected = found(&expected, columns, 0..ROWS, &query);
                assert!(!expected.is_empty());
                assert_eq!(found(&build, columns, 0..ROWS, &query), expected, "keys {keys}, way {way}, {collide}");
            }
        }
    }
}

#[test]
fn rows_of_one_partition_lie_together() {
    let query = query(
        "pipeline 0\n  scan t [a@0: int64, b@1: int32?, c@2: string, d@3: float64]\n  \
         partition by ($2, $1) into 5 output ($1, $2)\n",
    );
    let (first, second) = (job(&query, table(&query, 0..600), false), job(&query, table(&query, 600..ROWS), false));
    let PipelineOutput::Partitions(table, rows) = finish(&first, vec![contribute(&first), contribute(&second)]) else {
        panic!("partitions")
    };
    assert_eq!((rows.len(), rows.iter().sum::<usize>(), table.rows()), (5, ROWS, ROWS));
    assert!(rows.iter().filter(|rows| **rows > 0).count() > 1, "{rows:?}");
    let values = table.parts.iter().flat_map(|part| (0..part.rows).map(move |row| (part, row)));
    let parts = values.map(|(part, row)| {
        let text = part.columns[1].bytes_at(row);
        let number = match part.columns[0].value(row) {
            Scalar::Int(number) => Value::Integer(number.into()),
            _ => Value::Null,
        };
        partition::part_of(&[Value::string(String::from_utf8_lossy(text)), number], 5)
    });
    let expected = rows.iter().enumerate().flat_map(|(part, rows)| std::iter::repeat_n(part, *rows));
    assert!(parts.eq(expected), "rows are where their keys say");
}

/// Runs a query over many rows with two workers that take turns; returns its rows.
fn run_in_turns(text: &str, rows: usize) -> Vec<Vec<Value>> {
    let query =
        query(&format!("pipeline 0\n  scan t [a@0: int64, b@1: int32?, c@2: string, d@3: float64]\n  {text}\n"));
    let job = job(&query, table(&query, 0..rows), false);
    let mut workers = [job.worker(), job.worker()];
    for morsel in 0..job.physical().morsels.len() {
        job.run(&mut workers[morsel % 2], morsel).expect("it runs");
    }
    match finish(&job, workers.into_iter().map(crate::Worker::finish).collect()) {
        PipelineOutput::Rows(table) => tandem_pipeline::interpret::rows(&table),
        _ => panic!("rows"),
    }
}

/// More rows than a worker collects before it drops some.
const MANY: usize = 600_000;

#[test]
fn the_first_rows_are_those_of_the_whole_order() {
    for keys in ["$1 desc nulls first, $3", "$3 desc", "$2, $1, $0 desc", "$1, $2 desc, $3 desc", "$0, $3"] {
        let whole = run_in_turns(&format!("sort by ({keys}) output ($0, $1, $2, $3)"), MANY);
        for (skip, fetch) in [(0, 1), (0, 10), (7, 3000)] {
            // Only d tells rows apart: keys without it may end among equal rows.
            let output = if keys.contains("$3") { "$0, $1, $2, $3" } else { "$2, $1, $0" };
            let first = run_in_turns(&format!("sort by ({keys}) skip {skip} fetch {fetch} output ({output})"), MANY);
            let columns: &[usize] = if keys.contains("$3") { &[0, 1, 2, 3] } else { &[2, 1, 0] };
            let expected = whole[skip..skip + fetch].iter();
            let expected = expected.map(|row| columns.iter().map(|column| row[*column].clone()).collect::<Vec<_>>());
            assert!(first.into_iter().eq(expected), "{keys}, {skip}, {fetch}");
        }
    }
}

#[test]
fn the_first_rows_of_partitions_are_those_of_whole_partitions() {
    for (by, order, rank) in [
        ("$1", "$3 desc", "row_number()"),
        ("$0, $2", "$3", "row_number()"),
        ("$2", "$1 desc", "rank()"),
        ("", "$0", "rank()"),
        ("$0", "$2, $3 desc", "row_number()"),
        ("$3", "$0", "row_number()"),
    ] {
        let text = format!("window by ({by}) order ({order}) compute ({rank} as int64");
        let mut whole = run_in_turns(&format!("{text}) output ($0, $3)"), MANY);
        whole.retain(|row| matches!(row[2], Value::Integer(place) if place <= 3));
        let first = run_in_turns(&format!("{text}, dense_rank() as int64) fetch 3 output ($0, $3)"), MANY);
        let sorted = |rows: Vec<Vec<Value>>| {
            let mut rows: Vec<String> = rows.iter().map(|row| format!("{:?}", &row[..3])).collect();
            rows.sort();
            rows
        };
        assert!(!whole.is_empty());
        assert_eq!(sorted(first), sorted(whole), "{by}, {order}");
    }
}
