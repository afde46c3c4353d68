//! INSERT into tables of files that DataFusion reads: all rows or none, and a sentence where that cannot be.

mod support;

use std::fs;
use std::path::Path;

use support::{failure, rows, run, run_all, session};
use tandem_engine::{Cancel, Mode};

const MODES: [Mode; 2] = [Mode::Auto, Mode::Host];
const FORMATS: [&str; 4] = ["PARQUET", "CSV", "JSON", "ARROW"];
/// Fails after dozens of batches.
const FAILING: &str = "SELECT 1 / (value - 290000) AS a, value % 3 AS p FROM generate_series(1, 300000)";
const GOOD: &str = "SELECT value AS a, value % 3 AS p FROM generate_series(1, 20000)";

/// Lists all files below a directory, hidden ones too.
fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path.display().to_string()),
        }
    }
    found
}

#[tokio::test]
async fn a_failing_insert_leaves_the_table_as_it_was() {
    for mode in MODES {
        for format in FORMATS {
            for partitioned in ["", " PARTITIONED BY (p)"] {
                let folder = tempfile::tempdir().unwrap();
                let directory = folder.path().join("d");
                let session = session(mode);
                let create = format!(
                    "CREATE EXTERNAL TABLE e (a BIGINT, p BIGINT) STORED AS {format}{partitioned} LOCATION '{}/'",
                    directory.display()
                );
                fs::create_dir(&directory).unwrap();
                run(&session, &create).await.unwrap();
                let what = format!("{mode} {format}{partitioned}");
                let message = failure(&session, &format!("INSERT INTO e {FAILING}")).await;
                assert!(message.starts_with("division by zero"), "{what}: {message}");
                assert_eq!(files(folder.path()), [""; 0], "{what}");
                assert_eq!(rows(&session, "SELECT count(*) FROM e").await, ["0"], "{what}");

                assert_eq!(rows(&session, &format!("INSERT INTO e {GOOD}")).await, ["20000"], "{what}");
                let expected = ["20000|200010000|20001"];
                assert_eq!(rows(&session, "SELECT count(*), sum(a), sum(p) FROM e").await, expected, "{what}");
                let written = files(folder.path());
                assert_eq!(written.len(), if partitioned.is_empty() { 1 } else { 3 }, "{what}: {written:?}");

                failure(&session, &format!("INSERT INTO e {FAILING}")).await;
                assert_eq!(rows(&session, "SELECT count(*), sum(a), sum(p) FROM e").await, expected, "{what}");
                assert_eq!(files(folder.path()), written, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn compressed_and_inferred_tables_take_rows() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let root = folder.path().display();
    let copy =
        format!("COPY (SELECT 1 AS a) TO '{root}/first.csv.gz' STORED AS CSV OPTIONS ('format.compression' 'gzip')");
    let create =
        format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{root}/' OPTIONS ('format.compression' 'gzip')");
    run_all(&session, &[copy.as_str(), create.as_str(), "INSERT INTO e SELECT 2", "INSERT INTO e VALUES (3)"]).await;
    assert_eq!(rows(&session, "SELECT count(*), sum(a) FROM e").await, ["3|6"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_insert_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let create = format!("CREATE EXTERNAL TABLE e (a BIGINT) STORED AS CSV LOCATION '{}/'", folder.path().display());
    run(&session, &create).await.unwrap();
    let cancel = Cancel::new();
    let endless = "INSERT INTO e SELECT value FROM generate_series(1, 2000000000000)";
    let reading = tokio::spawn(session.sql(endless).cancel(&cancel).into_future());
    while files(folder.path()).len() < 2 {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert!(reading.await.unwrap().unwrap_err().is_cancelled());
    session.wait_for_writers(std::time::Duration::from_secs(60));
    assert_eq!(files(folder.path()), [""; 0]);
    assert_eq!(rows(&session, "SELECT count(*) FROM e").await, ["0"]);
}

#[tokio::test]
async fn what_cannot_be_staged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let root = folder.path().display();
    fs::write(folder.path().join("one.csv"), "1\n").unwrap();
    let one = format!("CREATE EXTERNAL TABLE one (a BIGINT) STORED AS CSV LOCATION '{root}/one.csv'");
    let stream = format!("CREATE UNBOUNDED EXTERNAL TABLE stream (a BIGINT) STORED AS CSV LOCATION '{root}/one.csv'");
    let many = format!("CREATE EXTERNAL TABLE many (a BIGINT) STORED AS CSV LOCATION '{root}/'");
    let pattern = format!("CREATE EXTERNAL TABLE pattern (a BIGINT) STORED AS CSV LOCATION '{root}/one*'");
    let plain = format!("CREATE EXTERNAL TABLE plain STORED AS CSV LOCATION '{root}/one.csv'");
    run_all(&session, &[&one, &stream, &many, &pattern, &plain]).await;
    for (sql, words) in [
        ("INSERT INTO one VALUES (2)", "directory"),
        ("INSERT INTO stream VALUES (2)", "COPY"),
        ("INSERT OVERWRITE many VALUES (2)", "OVERWRITE"),
        ("INSERT INTO pattern VALUES (2)", "pattern"),
        ("INSERT INTO plain VALUES (2)", "COPY"),
    ] {
        let message = failure(&session, sql).await;
        assert!(message.contains(words), "{sql}: {message}");
        assert_eq!(files(folder.path()).len(), 1, "{sql}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("one.csv")).unwrap(), "1\n");
}

/// Tables in memory, ours and DataFusion's: INSERT, OVERWRITE and CREATE TABLE AS are whole, too.
#[tokio::test]
async fn tables_in_memory_are_as_they_were() {
    for mode in MODES {
        let session = session(mode);
        // Lists are DataFusion's to hold.
        run_all(&session, &["CREATE TABLE t AS SELECT 1 AS a, 2 AS p", "CREATE TABLE l AS SELECT [1] AS a, 2 AS p"])
            .await;
        for verb in ["INSERT INTO", "INSERT OVERWRITE"] {
            failure(&session, &format!("{verb} t {FAILING}")).await;
            failure(&session, &format!("{verb} l SELECT [a], p FROM ({FAILING})")).await;
            assert_eq!(rows(&session, "SELECT t.a, t.p, l.a, l.p FROM t, l").await, ["1|2|[1]|2"], "{mode} {verb}");
        }
        failure(&session, &format!("CREATE TABLE u AS {FAILING}")).await;
        failure(&session, &format!("CREATE OR REPLACE TABLE t AS {FAILING}")).await;
        failure(&session, &format!("CREATE OR REPLACE TABLE l AS SELECT [a] AS a FROM ({FAILING})")).await;
        assert_eq!(session.tables().len(), 2, "{mode}");
        assert_eq!(rows(&session, "SELECT t.a, t.p, l.a, l.p FROM t, l").await, ["1|2|[1]|2"], "{mode}");
    }
}
