//! Each kind of bad input gives one sentence that names the thing and the remedy, in every mode, and the session lives on.

mod support;

use std::fs;
use std::path::Path;

use support::{assert_sentence, failure, rows, run, run_all, session};
use tandem_engine::{Class, Mode, OnFallback, Session};

const MODES: [Mode; 2] = [Mode::Auto, Mode::Host];

async fn lives(session: &Session) {
    assert_eq!(rows(session, "SELECT 41 + 1").await, ["42"]);
}

/// Writes a Parquet file of `rows` rows with columns a (integer) and b (text).
async fn parquet(path: &Path, rows: usize) {
    let session = session(Mode::Host);
    let sql = format!(
        "COPY (SELECT value AS a, 'text ' || value AS b FROM generate_series(1, {rows})) TO '{}'",
        path.display()
    );
    run(&session, &sql).await.unwrap();
}

#[tokio::test]
async fn missing_file() {
    for mode in MODES {
        let session = session(mode);
        let message = failure(&session, "SELECT * FROM 'no/such/file.parquet'").await;
        assert!(message.contains("does not exist") && message.contains("no/such/file.parquet"), "{message}");
        let error = session.register_file("t", Path::new("no/such.csv")).unwrap_err();
        assert!(error.message.contains("no/such.csv"), "{error}");
        assert_sentence(&error);
        lives(&session).await;
    }
}

#[tokio::test]
async fn not_a_parquet_file() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in
        [("text.parquet", "this is no Parquet file at all"), ("empty.parquet", ""), ("x.parquet", "PAR1")]
    {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        for mode in MODES {
            let session = session(mode);
            let message = failure(&session, &format!("SELECT * FROM '{}'", path.display())).await;
            assert!(message.contains(name), "{message}");
            lives(&session).await;
        }
    }
}

#[tokio::test]
async fn truncated_or_corrupted_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.parquet");
    parquet(&good, 20_000).await;
    let bytes = fs::read(&good).unwrap();
    for keep in [bytes.len() / 4, bytes.len() / 2, bytes.len() - 1, bytes.len() - 9] {
        let path = folder.path().join("cut.parquet");
        fs::write(&path, &bytes[..keep]).unwrap();
        for mode in MODES {
            let session = session(mode);
            let message = failure(&session, &format!("SELECT sum(a), max(b) FROM '{}'", path.display())).await;
            assert!(message.contains("cut.parquet"), "{message}");
            lives(&session).await;
        }
    }
    // Damaged pages: an error or, where nothing tells, other values; never a panic, and the session lives on.
    for step in 1..20 {
        let mut damaged = bytes.clone();
        let at = step * bytes.len() / 20;
        damaged[at..(at + 16).min(bytes.len())].fill(0xA5);
        let path = folder.path().join("damaged.parquet");
        fs::write(&path, &damaged).unwrap();
        for mode in MODES {
            let session = session(mode);
            if let Err(error) = run(&session, &format!("SELECT sum(a), max(b) FROM '{}'", path.display())).await {
                assert_sentence(&error);
                assert_ne!(error.class, Class::Internal, "{error}");
            }
            lives(&session).await;
        }
    }
}

#[tokio::test]
async fn two_schemas_in_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("t");
    fs::create_dir(&table).unwrap();
    fs::write(table.join("one.csv"), "a,b\n1,2\n").unwrap();
    fs::write(table.join("two.csv"), "a,c,d\n1,x,2\n").unwrap();
    for mode in MODES {
        let session = session(mode);
        let error = session.register_directory(folder.path()).unwrap_err();
        assert_sentence(&error);
        assert!(error.message.contains("one.csv") && error.message.contains("two.csv"), "{error}");
        assert!(session.tables().is_empty());
        lives(&session).await;
    }
}

#[tokio::test]
async fn unreadable_directory() {
    let session = session(Mode::Auto);
    let error = session.register_directory(Path::new("no/such/directory")).unwrap_err();
    assert_sentence(&error);
    assert!(error.message.contains("no/such/directory"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = session.register_directory(&file).unwrap_err();
    assert!(error.message.contains("not one"), "{error}");
}

#[tokio::test]
async fn unknown_names_come_with_the_nearest() {
    for mode in MODES {
        let session = session(mode);
        run_all(&session, &["CREATE TABLE lineorder (lo_orderkey INT, lo_revenue INT, \"Capital\" INT)"]).await;
        let message = failure(&session, "SELECT * FROM linorder").await;
        assert!(message.contains("unknown table 'linorder'") && message.contains("'lineorder'"), "{message}");
        let message = failure(&session, "SELECT lo_revenu FROM lineorder").await;
        assert!(message.contains("unknown column 'lo_revenu'") && message.contains("'lo_revenue'"), "{message}");
        let message = failure(&session, "SELECT lineorder.zzz FROM lineorder").await;
        assert!(message.contains("lineorder.zzz") && message.contains("lo_orderkey"), "{message}");
        let message = failure(&session, "SELECT capital FROM lineorder").await;
        assert!(message.contains("quotes"), "{message}");
        let message = failure(&session, "SELECT uper('x')").await;
        assert!(message.contains("unknown function 'uper'") && message.contains("upper"), "{message}");
        let message = failure(&session, "DROP TABLE lineordr").await;
        assert!(message.contains("lineorder"), "{message}");
        lives(&session).await;
    }
}

#[tokio::test]
async fn arithmetic_and_casts() {
    for mode in MODES {
        let session = session(mode);
        run_all(
            &session,
            &[
                "CREATE TABLE t (i BIGINT, z BIGINT, s VARCHAR, d DECIMAL(38,0))",
                "INSERT INTO t VALUES (9223372036854775807, 0, 'abc', 99999999999999999999999999999999999999)",
            ],
        )
        .await;
        for sql in ["SELECT i / z FROM t", "SELECT i % z FROM t", "SELECT 1 / 0"] {
            let message = failure(&session, sql).await;
            assert!(message.starts_with("division by zero"), "{mode} {sql}: {message}");
        }
        for sql in
            ["SELECT i + 1 FROM t", "SELECT i * 2 FROM t", "SELECT sum(i + 1) FROM t", "SELECT 9223372036854775807 + 1"]
        {
            let message = failure(&session, sql).await;
            assert!(message.contains("overflow"), "{mode} {sql}: {message}");
        }
        let message = failure(&session, "SELECT d * d FROM t").await;
        assert!(message.contains("overflow"), "{mode}: {message}");
        for sql in ["SELECT CAST(s AS INT) FROM t", "SELECT CAST('x' AS DATE)", "SELECT CAST(i AS INT) FROM t"] {
            let message = failure(&session, sql).await;
            assert!(message.contains("cast") || message.contains("CAST"), "{mode} {sql}: {message}");
        }
        lives(&session).await;
    }
}

#[tokio::test]
async fn syntax_errors_have_a_position() {
    let session = session(Mode::Auto);
    let message = failure(&session, "SELECT a\nFROM t WHERE GROUP BY a").await;
    assert!(message.contains("line 2") && message.contains("WHERE GROUP"), "{message}");
    let message = failure(&session, "SELEC 1").await;
    assert!(message.starts_with("syntax error"), "{message}");
    let message = failure(&session, "SELECT 'abc").await;
    assert!(message.starts_with("syntax error"), "{message}");
    failure(&session, "").await;
    failure(&session, "SELECT 1; SELECT 2").await;
}

#[tokio::test]
async fn out_of_the_memory_limit() {
    for mode in MODES {
        let session = Session::builder().mode(mode).threads(2).memory_limit(16 << 20).build().unwrap();
        let message = failure(
            &session,
            "CREATE TABLE big AS SELECT value AS a, sha256('x' || value) AS h FROM generate_series(1, 3000000)",
        )
        .await;
        assert!(message.contains("memory") && message.contains("--memory-limit"), "{mode}: {message}");
        assert!(session.tables().is_empty());
        run_all(&session, &["CREATE TABLE small AS SELECT value AS a FROM generate_series(1, 10)"]).await;
        assert_eq!(rows(&session, "SELECT count(*) FROM small").await, ["10"]);
    }
}

#[tokio::test]
async fn unsupported_statements_say_so() {
    let session = session(Mode::Auto);
    run_all(&session, &["CREATE TABLE t AS SELECT 1 AS a"]).await;
    for sql in ["DELETE FROM t WHERE a = 1", "UPDATE t SET a = 2", "CREATE TEMPORARY TABLE x AS SELECT 1"] {
        failure(&session, sql).await;
    }
    let message = failure(&session, "CREATE TABLE t AS SELECT 2 AS a").await;
    assert!(message.contains("already exists"), "{message}");
    let message = failure(&session, "CREATE TABLE u AS SELECT 1 AS a, 2 AS a").await;
    assert!(message.contains("'a'") && message.contains("twice"), "{message}");
}

#[tokio::test]
async fn fallback_can_be_an_error() {
    let session = session(Mode::Auto);
    run_all(&session, &["CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 10)"]).await;
    session.set_on_fallback(OnFallback::Error);
    let message = failure(&session, "SELECT a, lag(a, 0) IGNORE NULLS OVER (ORDER BY a) FROM t").await;
    assert!(message.contains("--on-fallback"), "{message}");
    lives(&session).await;
    assert_eq!(rows(&session, "SELECT sum(a) FROM t").await, ["55"]);
    rows(&session, "EXPLAIN SELECT a, lag(a, 0) IGNORE NULLS OVER (ORDER BY a) FROM t").await;
    rows(&session, "SHOW TABLES").await;
}
