//! DataFusion's own `.slt` files, run with our session, capture on and off.
//!
//! The files come with the sources of the crate `datafusion-sqllogictest`, which cargo fetches but never builds. Many
//! records cannot pass either way here: data files that are not in the crate, functions of features we leave out, test
//! doubles of DataFusion's own driver. What counts is the comparison: no record may pass with capture off and fail with
//! capture on. `EXPLAIN` is left out, as captured plans are meant to differ; an expected error may have any text, as ours
//! are our own sentences; rows may come in any order where the query has no ORDER BY. `TANDEM_CORPUS=word` limits a run
//! to files whose name contains the word.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use sqllogictest::{ExpectedError, QueryExpect, Record, Runner, StatementExpect, strict_column_validator};
use tandem_engine::{Error, Mode, OnFallback, Session};
use tandem_tests::{ColumnKind, Database, normalize, validate_rows, validate_rows_in_any_order};

/// Files and folders left out, with the reason.
const SKIPPED: &[(&str, &str)] = &[
    ("spark/", "functions of datafusion-spark, which we do not ship"),
    ("encrypted_parquet.slt", "needs the feature parquet_encryption"),
    ("avro.slt", "needs the feature avro"),
    ("tpch/", "needs data that DataFusion's own script generates; see suites.rs"),
    ("clickbench", "needs data that is not in the crate"),
    ("imdb.slt", "needs data that is not in the crate"),
];

/// Records, by file and line, whose expectation is not what SQL defines: a captured plan may answer otherwise.
const ACCEPTED: &[(&str, u32, &str)] = &[
    ("group_by.slt", 5078, "expects two aggregates in different orders to be refused, which we compute"),
    ("information_schema.slt", 860, "the rows that differ in place are equal by the query's ORDER BY"),
    ("joins.slt", 4402, "LIMIT without ORDER BY: any two rows will do"),
    ("ordered_aggregate_spill.slt", 69, "expects memory to run out, ours suffices"),
    ("pwmj.slt", 141, "DataFusion's rows are not in the order that ORDER BY asks for"),
    ("pwmj.slt", 232, "DataFusion's rows are not in the order that ORDER BY asks for"),
    ("select.slt", 1721, "expects a division by zero behind AND, which we do not reach"),
    ("select.slt", 1724, "expects a division by zero behind OR, which we do not reach"),
    ("window.slt", 5992, "expects sums of distinct floats over a frame to be refused, which we compute"),
    ("window.slt", 5997, "expects sums of distinct decimals over a frame to be refused, which we compute"),
    ("window.slt", 6002, "expects sums of distinct unsigned numbers over a frame to be refused, which we compute"),
];

/// Partitions of DataFusion's own driver, so that unsorted results come in the order the files expect.
const THREADS: usize = 4;

#[test]
fn capture_loses_nothing() {
    let sources = corpus();
    let off = run(&sources, Mode::Host);
    let on = run(&sources, Mode::Cpu);
    let count = |outcomes: &Outcomes| outcomes.values().filter(|outcome| outcome.is_ok()).count();
    println!(
        "DataFusion's corpus: {} records, {} pass with capture off, {} with capture on",
        off.len(),
        count(&off),
        count(&on)
    );
    let lost: Vec<String> = off
        .iter()
        .filter(|(_, outcome)| outcome.is_ok())
        .filter_map(|(key, _)| match on.get(key) {
            Some(Err(_)) if ACCEPTED.iter().any(|(file, line, _)| *file == key.0 && *line == key.1) => None,
            Some(Err(reason)) => Some(format!("{}:{}\n{reason}", key.0, key.1)),
            _ => None,
        })
        .collect();
    assert!(
        lost.is_empty(),
        "{} records pass with capture off and fail with capture on:\n{}",
        lost.len(),
        lost.join("\n")
    );
}

/// The outcome of each record, by file and line.
type Outcomes = BTreeMap<(String, u32, usize), Result<(), String>>;

fn run(sources: &Path, mode: Mode) -> Outcomes {
    // The files name their data relative to the crate, and write below it: give them a copy.
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    copy(&sources.join("data"), &place.path().join("data"));
    copy(&sources.join("test_files"), &place.path().join("test_files"));
    std::env::set_current_dir(place.path()).expect("the copy is there");
    let wanted = std::env::var("TANDEM_CORPUS").unwrap_or_default();
    let root = Path::new("test_files");
    let mut outcomes = Outcomes::new();
    let mut files = Vec::new();
    collect(root, &mut files);
    files.sort();
    for file in files {
        let name = file.strip_prefix(root).expect("it was found there").to_string_lossy().into_owned();
        if !name.contains(&wanted) || SKIPPED.iter().any(|(skipped, _)| name.starts_with(skipped)) {
            continue;
        }
        let stem = file.file_stem().expect("it has a name");
        fs::create_dir_all(root.join("scratch").join(stem)).expect("the copy is writable");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_stack_size(8 << 20)
            .enable_all()
            .build()
            .expect("threads can start");
        runtime.block_on(run_file(&file, &name, mode, &mut outcomes));
        runtime.shutdown_background();
    }
    std::env::set_current_dir(sources).expect("the sources are there");
    outcomes
}

async fn run_file(file: &Path, name: &str, mode: Mode, outcomes: &mut Outcomes) {
    let records = match sqllogictest::parse_file::<ColumnKind>(file) {
        Ok(records) => records,
        Err(_) => return,
    };
    let mut runner = Runner::new(|| async {
        let session = Session::builder().mode(mode).on_fallback(OnFallback::Silent).threads(THREADS).build()?;
        Ok::<_, Error>(Database::new(session))
    });
    runner.add_label("Datafusion");
    runner.with_normalizer(normalize);
    runner.with_column_validator(strict_column_validator);
    for (index, record) in records.into_iter().enumerate() {
        let Some((record, line)) = comparable(record) else { continue };
        runner.with_validator(if is_ordered(&record) { validate_rows } else { validate_rows_in_any_order });
        let outcome = runner.run_async(record).await;
        if let Some(line) = line {
            let outcome = outcome.map(drop).map_err(|e| e.display(false).to_string());
            outcomes.insert((name.to_owned(), line, index), outcome);
        }
    }
}

/// Returns the record to run and, if it counts, its line; `None` for records that cannot be compared.
fn comparable(record: Record<ColumnKind>) -> Option<(Record<ColumnKind>, Option<u32>)> {
    let explains = |sql: &str| sql.trim_start().get(..7).is_some_and(|word| word.eq_ignore_ascii_case("explain"));
    match record {
        Record::Halt { .. } | Record::System { .. } | Record::Sleep { .. } => None,
        Record::Statement { sql, .. } | Record::Query { sql, .. } if explains(&sql) => None,
        Record::Statement { loc, conditions, connection, sql, expected, retry } => {
            let line = loc.line();
            let expected = match expected {
                StatementExpect::Error(_) => StatementExpect::Error(ExpectedError::Empty),
                other => other,
            };
            Some((Record::Statement { loc, conditions, connection, sql, expected, retry }, Some(line)))
        }
        Record::Query { loc, conditions, connection, sql, expected, retry } => {
            let line = loc.line();
            let expected = match expected {
                QueryExpect::Error(_) => QueryExpect::Error(ExpectedError::Empty),
                other => other,
            };
            Some((Record::Query { loc, conditions, connection, sql, expected, retry }, Some(line)))
        }
        other => Some((other, None)),
    }
}

/// Tells whether the order of a query's rows means anything: whether there is an ORDER BY outside parentheses.
fn is_ordered(record: &Record<ColumnKind>) -> bool {
    let Record::Query { sql, .. } = record else { return true };
    let mut depth = 0;
    let outside: String = sql
        .chars()
        .filter(|character| {
            depth += i32::from(*character == '(') - i32::from(*character == ')');
            depth == 0
        })
        .collect();
    outside.to_lowercase().contains("order by")
}

/// Finds the sources of the crate that holds the corpus.
fn corpus() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features", "--locked", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "datafusion-sqllogictest")
        .and_then(|package| package["manifest_path"].as_str())
        .expect("the crate datafusion-sqllogictest is a dependency");
    Path::new(manifest).parent().expect("a manifest lies in a directory").to_owned()
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the corpus is readable") {
        let path = entry.expect("the corpus is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            files.push(path);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the temporary directory is writable");
    for entry in fs::read_dir(from).expect("the corpus is readable") {
        let path = entry.expect("the corpus is readable").path();
        let target = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("the temporary directory is writable");
        }
    }
}
