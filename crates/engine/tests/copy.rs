//! COPY writes whole files or none.

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use support::{failure, rows, run, session};
use tandem_engine::{Cancel, Mode};

const MODES: [Mode; 2] = [Mode::Auto, Mode::Host];

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_format_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    for mode in MODES {
        let session = session(mode);
        run(
            &session,
            "CREATE TABLE t AS SELECT value AS a, value * 0.5 AS x, 'row ' || value AS s FROM generate_series(1, 3000)",
        )
        .await
        .unwrap();
        let expected = rows(&session, "SELECT count(*), sum(a), sum(x), max(s) FROM t").await;
        for file in ["t.parquet", "t.csv", "t.arrow", "t.json", "t.jsonl", "t.tsv"] {
            // .tsv is comma-separated unless told otherwise by DataFusion's options.
            let options = if file.ends_with("tsv") { " OPTIONS ('format.delimiter' '\t')" } else { "" };
            let written = rows(&session, &format!("COPY t TO '{root}/{file}'{options}")).await;
            assert_eq!(written, ["3000"], "{file}");
            let back = rows(&session, &format!("SELECT count(*), sum(a), sum(x), max(s) FROM '{root}/{file}'")).await;
            assert_eq!(back, expected, "{mode} {file}");
        }
        let written =
            rows(&session, &format!("COPY (SELECT a FROM t WHERE a < 11) TO '{root}/data' STORED AS PARQUET")).await;
        assert_eq!(written, ["10"]);
        fs::remove_dir_all(folder.path().join("data")).unwrap();
        assert_eq!(names(folder.path()).len(), 6, "nothing hidden stays: {:?}", names(folder.path()));
    }
}

#[tokio::test]
async fn a_failing_query_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    for mode in MODES {
        let session = session(mode);
        for file in ["t.parquet", "t.csv", "t.arrow", "t.json"] {
            let sql =
                format!("COPY (SELECT 1 / (value - 900000) AS a FROM generate_series(1, 1000000)) TO '{root}/{file}'");
            let message = failure(&session, &sql).await;
            assert!(message.starts_with("division by zero"), "{message}");
            assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
        }
    }
}

#[tokio::test]
async fn a_failing_copy_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let session = session(Mode::Auto);
    run(&session, &format!("COPY (SELECT 1 AS a) TO '{}'", file.display())).await.unwrap();
    failure(
        &session,
        &format!("COPY (SELECT 1 / (value - 5) AS a FROM generate_series(1, 9)) TO '{}'", file.display()),
    )
    .await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n1\n");
    run(&session, &format!("COPY (SELECT 2 AS b) TO '{}'", file.display())).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "b\n2\n");
}

#[tokio::test]
async fn a_full_disk_is_said() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let session = session(Mode::Auto);
    let sql = "COPY (SELECT value AS a FROM generate_series(1, 100000)) TO '/dev/full' STORED AS CSV";
    let message = failure(&session, sql).await;
    assert!(message.contains("disk is full") && message.contains("/dev/full"), "{message}");
    let kind = fs::metadata("/dev/full").unwrap();
    assert!(!kind.is_file(), "the device is still a device");
}

#[tokio::test]
async fn bad_targets_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let message = failure(&session, &format!("COPY (SELECT 1) TO '{}/no/such/t.csv'", folder.path().display())).await;
    assert!(message.contains("no/such"), "{message}");
    fs::create_dir(folder.path().join("d.csv")).unwrap();
    let message = failure(&session, &format!("COPY (SELECT 1) TO '{}/d.csv'", folder.path().display())).await;
    assert!(message.contains("directory"), "{message}");
    failure(&session, &format!("COPY (SELECT 1) TO '{}/t.unknown'", folder.path().display())).await;
    assert_eq!(names(folder.path()), ["d.csv"]);
}

#[tokio::test]
async fn a_cancelled_copy_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let cancel = Cancel::new();
    let sql =
        format!("COPY (SELECT value AS a FROM generate_series(1, 2000000000)) TO '{}/t.csv'", folder.path().display());
    let outcome = session.run(&sql, &cancel).await.unwrap();
    let reading = tokio::spawn(futures::TryStreamExt::try_collect::<Vec<_>>(outcome.stream));
    tokio::time::sleep(Duration::from_millis(300)).await;
    cancel.cancel();
    let error = tandem_engine::Error::from(reading.await.unwrap().unwrap_err());
    assert!(error.is_cancelled(), "{error}");
    for _ in 0..100 {
        if names(folder.path()).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("left behind: {:?}", names(folder.path()));
}
