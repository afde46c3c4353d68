//! Files that would end or stop the process give a sentence instead, also where DataFusion reads them.

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{assert_sentence, failure, rows, run, run_all, session};
use tandem_engine::{Mode, Session};

/// Nothing here takes a second; who waits longer would wait for ever.
const PATIENCE: Duration = Duration::from_secs(120);

async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing hangs")
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo is there").success());
}

/// Waits for a call that blocks, but not for ever.
async fn opened<T: Send + 'static>(session: &Session, call: impl FnOnce(&Session) -> T + Send + 'static) -> T {
    let session = session.clone();
    patiently(tokio::task::spawn_blocking(move || call(&session))).await.unwrap()
}

/// Writes a Parquet file of 24 KB whose schema is nested 3,000 deep, byte by byte in Thrift's compact protocol.
fn deep(path: &Path) {
    // The version; a list of structures; in each the repetition, a name, and one child.
    let mut footer = vec![0x15, 0x04, 0x19, 0xFC, 0xB8, 0x17];
    footer.extend([0x35, 0x00, 0x18, 0x01, b'g', 0x15, 0x02, 0x00].repeat(3000));
    let length = (footer.len() as u32).to_le_bytes();
    fs::write(path, [b"PAR1", &footer[..], &length, b"PAR1"].concat()).unwrap();
}

#[tokio::test]
async fn pipes_and_sockets_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let _listener = UnixListener::bind(folder.join("socket.csv")).unwrap();
    for name in ["pipe.csv", "pipe.parquet", "pipe.arrow", "pipe.json", "pipe.csv.gz"] {
        pipe(&folder.join(name));
    }
    for mode in [Mode::Auto, Mode::Host] {
        let session = session(mode);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let kind = if path.ends_with("socket.csv") { "it is a socket" } else { "it is a pipe" };
            let shown = path.display().to_string();
            let message = patiently(failure(&session, &format!("SELECT * FROM '{shown}'"))).await;
            assert!(message.contains(kind) && message.contains(&shown), "{message}");
            let error = opened(&session, move |session| session.register_file("t", path)).await.unwrap_err();
            assert!(error.message.contains(kind), "{error}");
            assert_sentence(&error);
            for (columns, format) in [("(a BIGINT)", "CSV"), ("(a BIGINT)", "PARQUET"), ("", "JSON"), ("", "ARROW")] {
                let sql = format!("CREATE EXTERNAL TABLE e {columns} STORED AS {format} LOCATION '{shown}'");
                let message = patiently(failure(&session, &sql)).await;
                assert!(message.contains(kind), "{sql}: {message}");
            }
        }
        // In a directory they are passed over.
        fs::write(folder.join("good.csv"), "a\n1\n2\n").unwrap();
        let sql = format!("SELECT sum(a) FROM '{}/*.csv'", folder.display());
        assert_eq!(patiently(rows(&session, &sql)).await, ["3"]);
        let whole = folder.to_path_buf();
        assert_eq!(opened(&session, move |session| session.register_directory(whole)).await.unwrap(), ["good"]);
        fs::remove_file(folder.join("good.csv")).unwrap();
    }
}

#[tokio::test]
async fn a_table_whose_file_becomes_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for columns in ["", "(a BIGINT)"] {
        fs::write(&path, "a\n1\n2\n").unwrap();
        let session = session(Mode::Auto);
        let options = if columns.is_empty() { "" } else { "OPTIONS ('format.has_header' 'true')" };
        let sql = format!("CREATE EXTERNAL TABLE t {columns} STORED AS CSV LOCATION '{}' {options}", path.display());
        run_all(&session, &[&sql]).await;
        assert_eq!(rows(&session, "SELECT sum(a) FROM t").await, ["3"]);
        fs::remove_file(&path).unwrap();
        pipe(&path);
        assert!(patiently(failure(&session, "SELECT sum(a) FROM t")).await.contains("it is a pipe"));
        fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn deep_schemas_end_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.parquet");
    deep(&path);
    for mode in [Mode::Auto, Mode::Host] {
        let session = session(mode);
        let shown = path.display();
        for sql in [
            format!("SELECT * FROM '{shown}'"),
            format!("CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{shown}'"),
            format!("CREATE EXTERNAL TABLE e (a BIGINT) STORED AS PARQUET LOCATION '{shown}'"),
            format!("CREATE EXTERNAL TABLE e (a BIGINT) STORED AS PARQUET LOCATION '{}/'", folder.path().display()),
            format!(
                "CREATE EXTERNAL TABLE e (a BIGINT, p INT) STORED AS PARQUET PARTITIONED BY (p) LOCATION '{shown}'"
            ),
        ] {
            let message = failure(&session, &sql).await;
            assert!(
                message.contains("nested more than 64 groups deep") && message.contains("deep.parquet"),
                "{sql}: {message}"
            );
        }
        assert_eq!(rows(&session, "SELECT 41 + 1").await, ["42"]);
    }
}

#[tokio::test]
async fn files_that_appear_later_are_looked_at_too() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let place = folder.path().display();
    let copy = format!("COPY (SELECT 1::BIGINT AS a) TO '{place}/good.parquet'");
    let create = format!("CREATE EXTERNAL TABLE e (a BIGINT) STORED AS PARQUET LOCATION '{place}/'");
    run_all(&session, &[&copy, &create]).await;
    assert_eq!(rows(&session, "SELECT a FROM e").await, ["1"]);
    deep(&folder.path().join("later.parquet"));
    assert!(failure(&session, "SELECT a FROM e").await.contains("nested more than 64 groups deep"));
    fs::remove_file(folder.path().join("later.parquet")).unwrap();
    assert_eq!(rows(&session, "SELECT a FROM e").await, ["1"]);
    run(&session, "DROP TABLE e").await.unwrap();
}
