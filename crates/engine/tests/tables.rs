//! Tables come, grow, are described and go, the same in every mode.

mod support;

use std::fs;

use support::{failure, rows, run, run_all, session};
use tandem_engine::{Mode, TableKind, Where};

const MODES: [Mode; 2] = [Mode::Auto, Mode::Host];

#[tokio::test]
async fn create_insert_select_drop() {
    for mode in MODES {
        let session = session(mode);
        run_all(
            &session,
            &[
                "CREATE TABLE t (k INT NOT NULL, name VARCHAR, price DECIMAL(10,2), day DATE, seen TIMESTAMP, ok BOOLEAN, x DOUBLE)",
                "INSERT INTO t VALUES (1, 'one', 1.50, '2024-02-29', '2024-02-29T12:00:00', true, 0.5)",
                "INSERT INTO t (k, name) SELECT value, 'n' || value FROM generate_series(2, 5)",
            ],
        )
        .await;
        assert_eq!(
            rows(&session, "SELECT * FROM t ORDER BY k LIMIT 2").await,
            ["1|one|1.50|2024-02-29|2024-02-29T12:00:00|true|0.5", "2|n2|NULL|NULL|NULL|NULL|NULL"],
            "{mode}"
        );
        assert_eq!(rows(&session, "SELECT count(*), count(price), min(name) FROM t").await, ["5|1|n2"], "{mode}");
        failure(&session, "INSERT INTO t VALUES (NULL, 'x', 1, NULL, NULL, NULL, NULL)").await;
        failure(
            &session,
            "INSERT INTO t SELECT value, 'x', 1 / (value - 3), NULL, NULL, NULL, NULL FROM generate_series(1, 5)",
        )
        .await;
        assert_eq!(rows(&session, "SELECT count(*) FROM t").await, ["5"], "nothing of a failed INSERT stays: {mode}");
        run_all(
            &session,
            &["CREATE OR REPLACE TABLE t AS SELECT 7 AS only", "CREATE VIEW v AS SELECT only + 1 AS more FROM t"],
        )
        .await;
        assert_eq!(rows(&session, "SELECT * FROM v").await, ["8"]);
        run_all(&session, &["DROP VIEW v", "DROP TABLE t"]).await;
        assert!(session.tables().is_empty());
        failure(&session, "SELECT * FROM t").await;
    }
}

#[tokio::test]
async fn a_failed_create_leaves_nothing() {
    for mode in MODES {
        let session = session(mode);
        failure(&session, "CREATE TABLE t AS SELECT 10 / (value - 5000) AS a FROM generate_series(1, 100000)").await;
        assert!(session.tables().is_empty());
        run_all(&session, &["CREATE TABLE t AS SELECT 1 AS a"]).await;
        failure(
            &session,
            "CREATE OR REPLACE TABLE t AS SELECT 10 / (value - 5000) AS a FROM generate_series(1, 100000)",
        )
        .await;
        assert_eq!(rows(&session, "SELECT a FROM t").await, ["1"]);
    }
}

#[tokio::test]
async fn types_without_resident_form_stay_with_the_host() {
    let session = session(Mode::Auto);
    run_all(&session, &["CREATE TABLE lists AS SELECT [1, 2, 3] AS l, INTERVAL '1 day' AS i, 1 AS a"]).await;
    assert_eq!(rows(&session, "SELECT array_length(l), a FROM lists").await, ["3|1"]);
    assert_eq!(session.tables()[0].kind, TableKind::Other);
}

#[tokio::test]
async fn files_by_path_name_directory_and_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    let writer = session(Mode::Host);
    fs::create_dir(folder.path().join("parts")).unwrap();
    for (file, from, to) in [("single.parquet", 1, 10), ("parts/a.parquet", 1, 5), ("parts/b.parquet", 6, 9)] {
        let sql = format!(
            "COPY (SELECT value AS v, 'v' || value AS t FROM generate_series({from}, {to})) TO '{root}/{file}'"
        );
        run(&writer, &sql).await.unwrap();
    }
    run(&writer, &format!("COPY (SELECT 1 AS v, 'x' AS t) TO '{root}/one.arrow'")).await.unwrap();
    fs::write(folder.path().join("Text.csv"), "v,t\n1,a\n2,\"b,\nc\"\n").unwrap();
    for mode in MODES {
        let session = session(mode);
        let mut names = session.register_directory(folder.path()).unwrap();
        names.sort();
        assert_eq!(names, ["Text", "one", "parts", "single"]);
        assert_eq!(rows(&session, "SELECT count(*), sum(v), max(t) FROM single").await, ["10|55|v9"], "{mode}");
        assert_eq!(rows(&session, "SELECT count(*), sum(v) FROM parts").await, ["9|45"], "{mode}");
        assert_eq!(rows(&session, "SELECT sum(v), max(t) FROM text").await, ["3|b,\nc"], "{mode}");
        assert_eq!(rows(&session, "SELECT v, t FROM one").await, ["1|x"], "{mode}");
        assert_eq!(rows(&session, &format!("SELECT sum(v) FROM '{root}/single.parquet'")).await, ["55"]);
        assert_eq!(rows(&session, &format!("SELECT sum(v) FROM '{root}/parts/*.parquet'")).await, ["45"]);
        assert_eq!(rows(&session, &format!("SELECT sum(v) FROM '{root}/parts/'")).await, ["45"]);
        let single = session.tables().into_iter().find(|table| table.name == "single").unwrap();
        assert_eq!((single.kind, single.rows), (TableKind::Parquet, Some(10)));
        assert_eq!(session.describe("single").unwrap()[1].kind, "VARCHAR");
        run_all(&session, &["CREATE TABLE copied AS SELECT * FROM single"]).await;
        assert_eq!(rows(&session, "SELECT count(*), sum(v), min(t) FROM copied").await, ["10|55|v1"], "{mode}");
    }
}

#[tokio::test]
async fn a_file_that_changes_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet").display().to_string();
    let writer = session(Mode::Host);
    for mode in MODES {
        let session = session(mode);
        for count in [10, 2000] {
            run(&writer, &format!("COPY (SELECT value AS v FROM generate_series(1, {count})) TO '{file}'"))
                .await
                .unwrap();
            let expected = format!("{count}|{count}");
            assert_eq!(rows(&session, &format!("SELECT count(*), max(v) FROM '{file}'")).await, [expected], "{mode}");
        }
    }
}

#[tokio::test]
async fn describe_tells_encodings() {
    let session = session(Mode::Auto);
    run_all(&session, &["CREATE TABLE t AS SELECT 19920101 + value AS day, 'city' || (value % 25) AS city FROM generate_series(1, 1000)"])
        .await;
    let columns = session.describe("t").unwrap();
    assert_eq!(columns[0].kind, "BIGINT");
    assert_eq!(columns[0].encoding, "u16 offsets from 19920102");
    assert_eq!(columns[0].width, Some(2));
    assert_eq!(columns[1].encoding, "dictionary of 25, u8");
    assert!(columns.iter().all(|column| column.bytes.is_some()));
    let error = session.describe("tt").unwrap_err();
    assert!(error.message.contains("'t'"), "{error}");
    let table = &session.tables()[0];
    assert_eq!((table.kind, table.rows), (TableKind::Resident, Some(1000)));
}

#[tokio::test]
async fn the_report_says_where_and_why() {
    let session = session(Mode::Auto);
    run_all(&session, &["CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 100)"]).await;
    for (sql, expected) in [
        ("SELECT sum(a) FROM t WHERE a > 10", Where::Cpu),
        ("SELECT a, lag(a, 0) IGNORE NULLS OVER (ORDER BY a) FROM t", Where::Mixed),
        ("SELECT 1", Where::Host),
    ] {
        let query = session.sql(sql);
        let report = query.report();
        query.await.unwrap();
        assert_eq!(report.placement(), expected, "{sql}: {:?}", report.reasons());
        assert_eq!(report.reasons().is_empty(), expected != Where::Mixed, "{sql}");
        assert_eq!(report.metrics().is_empty(), expected == Where::Host, "{sql}");
    }
}

#[tokio::test]
async fn explain_shows_pipelines_and_reasons() {
    let session = session(Mode::Auto);
    run_all(&session, &["CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 100)"]).await;
    let plan = rows(&session, "EXPLAIN SELECT sum(a) FROM t").await;
    assert!(plan[0].starts_with("pipelines|"), "{plan:?}");
    let plan =
        rows(&session, "EXPLAIN ANALYZE SELECT a, lag(a, 0) IGNORE NULLS OVER (ORDER BY a) FROM t").await.join("\n");
    assert!(plan.contains("TandemExec") && plan.contains("reasons|") && plan.contains("100 rows"), "{plan}");
    session.set_mode(Mode::Host);
    let plan = rows(&session, "EXPLAIN SELECT sum(a) FROM t").await.join("\n");
    assert!(plan.contains("ResidentExec"), "{plan}");
}

#[tokio::test]
async fn settings_and_prepared_statements() {
    let session = session(Mode::Auto);
    run_all(
        &session,
        &[
            "SET datafusion.execution.batch_size = 100",
            "CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 1000)",
            "PREPARE above(BIGINT) AS SELECT count(*) FROM t WHERE a > $1",
        ],
    )
    .await;
    assert_eq!(rows(&session, "EXECUTE above(990)").await, ["10"]);
    assert_eq!(rows(&session, "SHOW datafusion.execution.batch_size").await, ["datafusion.execution.batch_size|100"]);
    assert!(run(&session, "SELECT a FROM t").await.unwrap().len() >= 10);
    let message = failure(&session, "SET datafusion.no.such = 1").await;
    assert!(message.contains("no"), "{message}");
}
