//! Ctrl-C cancels the running statement: `-c` ends with 130, statements on standard input go on.

mod common;

use std::{
    io::Write,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use common::*;

/// Runs for hours if nobody stops it, on our pipelines and on DataFusion's.
const ENDLESS: &str = "SELECT count(*) FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k";
const CREATE: &str = "CREATE TABLE t AS SELECT value % 2 AS k FROM generate_series(1, 200000) AS g(value)";

#[test]
fn a_statement_of_a_flag_ends_with_130() {
    for mode in ["auto", "host"] {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let file = place.path().join("out.csv");
        let child = tandem()
            .args(["--mode", mode, "--on-fallback", "silent", "-o"])
            .arg(&file)
            .args(["-c", CREATE, "-c", ENDLESS])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        sleep(Duration::from_secs(3));
        let started = Instant::now();
        signal(&child, "INT");
        let output = child.wait_with_output().expect("the binary ends");
        assert!(started.elapsed() < Duration::from_secs(20), "{mode} took {:?} to stop", started.elapsed());
        fails(&output, 130, &["cancelled"]);
        assert!(names(place.path()).is_empty(), "no file is left");
    }
}

#[test]
fn standard_input_goes_on() {
    let mut child = tandem()
        .args(["--format", "csv", "--on-fallback", "silent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    write!(stdin, "{CREATE};\n{ENDLESS};\nSELECT 42 AS answer;\n").expect("the binary reads");
    drop(stdin);
    sleep(Duration::from_secs(3));
    signal(&child, "INT");
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!(out(&output), "answer\n42\n", "{}", err(&output));
    assert!(err(&output).contains("cancelled"), "{}", err(&output));
    assert_eq!(output.status.code(), Some(1));
}
