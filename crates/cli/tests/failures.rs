//! Bad input of every kind: one sentence that names the thing, a non-zero exit, nothing left behind, never a panic.

mod common;

use std::{fs, path::Path, process::Command};

use common::*;

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

/// Writes a Parquet file of some size.
fn parquet(path: &Path) {
    let query =
        "SELECT value AS n, CAST(value * 7919 % 1000 AS VARCHAR) AS s FROM generate_series(1, 20000) AS g(value)";
    succeeds(&run(&["--on-fallback", "silent", "--format", "parquet", "-o", text(path), "-c", query]));
}

#[test]
fn flags() {
    fails(&run(&["--formt", "csv"]), 2, &["--formt", "--format"]);
    fails(&run(&["--mode", "tpu"]), 2, &["tpu", "auto", "cpu", "gpu", "host"]);
    fails(&run(&["--threads", "0"]), 2, &["--threads"]);
    fails(&run(&["--memory-limit", "lots"]), 2, &["lots", "4GB"]);
    fails(&run(&["--format", "xml", "-c", "SELECT 1"]), 2, &["xml", "jsonl"]);
    fails(&run(&["gen", "ssb"]), 2, &["--output"]);
    fails(&run(&["nonsense"]), 2, &["nonsense"]);
    fails(&run(&["demo", "--sf", "0"]), 1, &["0.01"]);
    fails(&run(&["gen", "ssb", "--sf", "-1", "-o", "nowhere"]), 2, &[]);
}

#[test]
fn syntax_and_names() {
    fails(&sql("SELEC 1"), 1, &["SELEC"]);
    fails(&sql("SELECT 'open"), 1, &[]);
    fails(&sql("CREATE TABLE orders AS SELECT 1 AS price; SELECT * FROM ordrs"), 1, &["ordrs", "orders"]);
    fails(&sql("CREATE TABLE orders AS SELECT 1 AS price; SELECT pricee FROM orders"), 1, &["pricee", "price"]);
    fails(&sql("SELECT nofunction(1)"), 1, &["nofunction"]);
}

#[test]
fn arithmetic() {
    let table =
        "CREATE TABLE t AS SELECT value AS n, 9223372036854775807 AS big FROM generate_series(0, 9) AS g(value);";
    fails(&sql(&format!("{table} SELECT 1 / n FROM t")), 1, &["zero"]);
    fails(&sql(&format!("{table} SELECT big + n FROM t")), 1, &["overflow"]);
    fails(&sql(&format!("{table} SELECT sum(n / (n - 5)) FROM t")), 1, &["zero"]);
    fails(&sql(&format!("{table} SELECT CAST(big AS DECIMAL(5, 2)) FROM t")), 1, &[]);
    fails(&sql(&format!("{table} SELECT CAST('x' || n AS INT) FROM t")), 1, &["x"]);
    fails(&sql("SELECT 1 / 0"), 1, &["zero"]);
}

#[test]
fn files() {
    let place = place();
    let good = place.path().join("good.parquet");
    parquet(&good);
    let bytes = fs::read(&good).expect("it was written");

    let missing = place.path().join("missing.parquet");
    fails(&sql(&format!("SELECT * FROM '{}'", text(&missing))), 1, &["missing.parquet"]);

    let not_parquet = place.path().join("not.parquet");
    fs::write(&not_parquet, "this is no Parquet file, though it is long enough to be one").expect("writable");
    fails(&sql(&format!("SELECT * FROM '{}'", text(&not_parquet))), 1, &["not.parquet"]);

    let truncated = place.path().join("truncated.parquet");
    fs::write(&truncated, &bytes[..bytes.len() / 2]).expect("writable");
    fails(&sql(&format!("SELECT * FROM '{}'", text(&truncated))), 1, &["truncated.parquet"]);

    let empty = place.path().join("empty.parquet");
    fs::write(&empty, "").expect("writable");
    fails(&sql(&format!("SELECT * FROM '{}'", text(&empty))), 1, &["empty.parquet"]);

    // Data pages overwritten, footer intact: the pages' headers or checksums give it away, whatever the mode.
    let corrupt = place.path().join("corrupt.parquet");
    let mut broken = bytes.clone();
    let end = broken.len() / 2;
    broken[4..end].fill(0xff);
    fs::write(&corrupt, &broken).expect("writable");
    for mode in ["auto", "host"] {
        let query = format!("SELECT sum(n), max(s) FROM '{}'", text(&corrupt));
        let output = run(&["--format", "csv", "--on-fallback", "silent", "--mode", mode, "-c", &query]);
        fails(&output, 1, &["corrupt.parquet"]);
    }
    fails(&run(&["-f", text(&missing)]), 1, &["missing.parquet"]);
    fails(&run(&["-f", text(place.path())]), 1, &[]);
}

/// Flips bytes all over a file: an answer or an error, but never a panic.
#[test]
fn damaged_bytes_never_panic() {
    let place = place();
    let good = place.path().join("good.parquet");
    parquet(&good);
    let bytes = fs::read(&good).expect("it was written");
    let damaged = place.path().join("damaged.parquet");
    for step in 0..24 {
        let mut copy = bytes.clone();
        let at = step * (copy.len() - 1) / 23;
        copy[at] ^= 0x5a;
        fs::write(&damaged, &copy).expect("writable");
        let output = sql(&format!("SELECT sum(n), count(DISTINCT s) FROM '{}'", text(&damaged)));
        assert!(matches!(output.status.code(), Some(0 | 1)), "byte {at}: {:?}", output.status);
        assert!(!err(&output).contains("panicked"), "byte {at}: {}", err(&output));
    }
}

#[test]
fn directories() {
    let place = place();
    fails(&run(&["--data", text(&place.path().join("nowhere")), "-c", "SELECT 1"]), 1, &["nowhere"]);
    let file = place.path().join("file.txt");
    fs::write(&file, "x").expect("writable");
    fails(&run(&["--data", text(&file), "-c", "SELECT 1"]), 1, &["file.txt"]);

    let mixed = place.path().join("mixed");
    fs::create_dir_all(mixed.join("t")).expect("writable");
    for (name, query) in [("a", "SELECT 1 AS n"), ("b", "SELECT 'x' AS other")] {
        let path = mixed.join("t").join(format!("{name}.parquet"));
        succeeds(&run(&["--on-fallback", "silent", "--format", "parquet", "-o", text(&path), "-c", query]));
    }
    fails(&run(&["--data", text(&mixed), "-c", "SELECT count(n) FROM t"]), 1, &["schema"]);
}

#[test]
fn output() {
    let place = place();
    fails(&run(&["-o", text(&place.path().join("no/such/dir.csv")), "-c", "SELECT 1"]), 1, &["dir.csv"]);
    fails(&run(&["-o", text(place.path()), "-c", "SELECT 1"]), 1, &["directory"]);
    if Path::new("/dev/full").exists() {
        fails(
            &run(&["--on-fallback", "silent", "--format", "csv", "-o", "/dev/full", "-c", "SELECT 1"]),
            1,
            &["space"],
        );
    }
    assert!(names(place.path()).is_empty());
}

/// A disk that fills up while several writers run: one sentence, and nothing stays, not even hidden.
#[test]
fn full_disk() {
    let able = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|output| output.status.success());
    if !able {
        eprintln!("skipped: a small file system needs unshare");
        return;
    }
    let place = place();
    let root = text(place.path());
    let rows = "SELECT value AS a, md5(CAST(value AS VARCHAR)) AS s, value % 7 AS p FROM generate_series(1, 300000) AS g(value)";
    let external = format!("CREATE EXTERNAL TABLE e (a BIGINT, s VARCHAR, p BIGINT) STORED AS CSV LOCATION '{root}/'");
    let parts = format!(
        "CREATE EXTERNAL TABLE e (a BIGINT, s VARCHAR, p BIGINT) STORED AS PARQUET PARTITIONED BY (p) LOCATION '{root}/'"
    );
    for statements in [
        vec!["-c".to_owned(), format!("COPY ({rows}) TO '{root}/big.parquet'")],
        vec!["-c".to_owned(), format!("COPY ({rows}) TO '{root}/big.csv'")],
        vec!["-c".to_owned(), format!("COPY ({rows}) TO '{root}/new' STORED AS CSV")],
        vec!["-c".to_owned(), format!("COPY ({rows}) TO '{root}/new' STORED AS PARQUET PARTITIONED BY (p)")],
        vec!["-c".to_owned(), external, "-c".to_owned(), format!("INSERT INTO e {rows}")],
        vec!["-c".to_owned(), parts, "-c".to_owned(), format!("INSERT INTO e {rows}")],
        vec![
            "--format".to_owned(),
            "csv".to_owned(),
            "-o".to_owned(),
            format!("{root}/out"),
            "-c".to_owned(),
            rows.to_owned(),
        ],
    ] {
        let script = "directory=$1; shift; mount -t tmpfs -o size=256k tmpfs \"$directory\" && \"$@\"; code=$?; \
                      ls -A \"$directory\"; exit $code";
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", script, "sh", root, env!("CARGO_BIN_EXE_tandem"), "--on-fallback", "silent"])
            .args(&statements)
            .output()
            .expect("unshare runs");
        fails(&output, 1, &["space"]);
        assert_eq!(out(&output), "", "nothing is left: {statements:?}");
    }
}

#[test]
fn memory_limit() {
    let create = "CREATE TABLE t AS SELECT value AS n, md5(CAST(value AS VARCHAR)) AS s FROM generate_series(1, 500000) AS g(value)";
    let query = "SELECT s, count(*) FROM t GROUP BY s ORDER BY 2, 1 LIMIT 1";
    let output = run(&["--memory-limit", "1MB", "--on-fallback", "silent", "-c", create, "-c", query]);
    fails(&output, 1, &["memory"]);
}

#[test]
fn fallback_as_an_error() {
    let create = "CREATE TABLE t (a INT)";
    let query = "SELECT lag(a, 0) IGNORE NULLS OVER (ORDER BY a) FROM t";
    fails(&run(&["--on-fallback", "error", "-c", create, "-c", query]), 1, &["Window"]);
    let output = run(&["--on-fallback", "warn", "-c", create, "-c", query]);
    succeeds(&output);
    assert!(err(&output).contains("note: "), "{}", err(&output));
    let output = run(&["--on-fallback", "silent", "-c", create, "-c", query]);
    succeeds(&output);
    assert_eq!(err(&output), "");
}
