//! Statements from flags, files and standard input; formats; output files; the shell's commands.

mod common;

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use common::*;

#[test]
fn every_text_format() {
    let query = "SELECT 1 AS a, 'x,\"y|' AS b, CAST(NULL AS INT) AS c UNION ALL SELECT 22, '', 3 ORDER BY a";
    let show = |format: &str| {
        let output = run(&["--on-fallback", "silent", "--format", format, "-c", query]);
        succeeds(&output)
    };
    assert_eq!(show("csv"), "a,b,c\n1,\"x,\"\"y|\",\n22,\"\",3\n");
    assert_eq!(show("json"), "[{\"a\":1,\"b\":\"x,\\\"y|\",\"c\":null},{\"a\":22,\"b\":\"\",\"c\":3}]\n");
    assert_eq!(show("jsonl"), "{\"a\":1,\"b\":\"x,\\\"y|\",\"c\":null}\n{\"a\":22,\"b\":\"\",\"c\":3}\n");
    assert_eq!(show("markdown"), "| a | b | c |\n| ---: | --- | ---: |\n| 1 | x,\"y\\| | NULL |\n| 22 |  | 3 |\n");
    let table = "┌────┬───────┬──────┐\n│  a │ b     │    c │\n├────┼───────┼──────┤\n│  1 │ x,\"y| │ NULL │\n\
                 │ 22 │       │    3 │\n└────┴───────┴──────┘\n2 rows\n";
    assert_eq!(show("table"), table);
}

#[test]
fn empty_results_keep_their_shape() {
    let show = |format: &str| {
        let output = run(&["--on-fallback", "silent", "--format", format, "-c", "SELECT 1 AS a WHERE false"]);
        succeeds(&output)
    };
    assert_eq!(show("csv"), "a\n");
    assert_eq!(show("json"), "[]\n");
    assert_eq!(show("jsonl"), "");
    assert!(show("table").ends_with("0 rows\n"));
}

#[test]
fn binary_formats_can_be_read_back() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    for format in ["parquet", "arrow"] {
        let file = place.path().join(format!("result.{format}"));
        let file = file.to_str().expect("the path is text");
        let query = "SELECT value AS n, CAST(value AS VARCHAR) AS s FROM generate_series(1, 5000) AS g(value)";
        succeeds(&run(&["--on-fallback", "silent", "--format", format, "-o", file, "-c", query]));
        assert_eq!(
            succeeds(&sql(&format!("SELECT count(*), sum(n), max(s) FROM '{file}'"))).lines().last(),
            Some("5000,12502500,999")
        );
    }
    assert_eq!(names(place.path()), ["result.arrow", "result.parquet"]);
}

#[test]
fn long_tables_are_elided_on_request() {
    let output = run(&[
        "--on-fallback",
        "silent",
        "--rows",
        "4",
        "-c",
        "SELECT value FROM generate_series(1, 1000) AS g(value) ORDER BY 1",
    ]);
    let text = succeeds(&output);
    assert!(text.ends_with("1,000 rows (4 shown)\n"), "{text}");
    for shown in ["│     1 │", "│     2 │", "│   999 │", "│  1000 │", "⋮"] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    assert!(!text.contains("│     3 │"), "{text}");
}

#[test]
fn an_output_file_appears_whole_or_not_at_all() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let file = place.path().join("out.csv");
    let name = file.to_str().expect("the path is text");
    let output =
        run(&["--format", "csv", "--on-fallback", "silent", "-o", name, "-c", "SELECT 1 AS a", "-c", "SELECT 1 / 0"]);
    fails(&output, 1, &["zero"]);
    assert!(names(place.path()).is_empty());
    succeeds(&run(&["--format", "csv", "--on-fallback", "silent", "-o", name, "-c", "SELECT 1 AS a; SELECT 2 AS b"]));
    assert_eq!(std::fs::read_to_string(&file).expect("it was written"), "a\n1\nb\n2\n");
    let output = run(&["--format", "csv", "--on-fallback", "silent", "-o", name, "-c", "SELECT nope"]);
    fails(&output, 1, &["nope"]);
    assert_eq!(std::fs::read_to_string(&file).expect("the old one is kept"), "a\n1\nb\n2\n");
    assert_eq!(names(place.path()), ["out.csv"]);
    let output = run(&["--format", "parquet", "-o", name, "-c", "SELECT 1; SELECT 2"]);
    fails(&output, 1, &["one result", "parquet"]);
}

#[test]
fn statements_come_from_files_and_standard_input() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let script = place.path().join("script.sql");
    std::fs::write(&script, "-- a comment; with a semicolon\nCREATE TABLE t AS\n  SELECT 'a;b' AS s;\nSELECT s\nFROM t;\n.mode json\nSELECT 1 AS last")
        .expect("the place is writable");
    let script = script.to_str().expect("the path is text");
    let expected = "s\na;b\n[{\"last\":1}]\n";
    let both = ["--format", "csv", "--on-fallback", "silent", "-f", script, "-c", "SELECT count(*) AS n FROM t"];
    assert_eq!(succeeds(&run(&both)), format!("{expected}[{{\"n\":1}}]\n"));
    assert_eq!(succeeds(&run(&["--format", "csv", "--on-fallback", "silent", "-f", script])), expected);
    assert_eq!(
        succeeds(&input(&["--format", "csv", "--on-fallback", "silent"], &format!(".read {script}\n"))),
        expected
    );
    assert_eq!(
        succeeds(&input(&["--format", "csv", "--on-fallback", "silent"], "SELECT 5 AS five;\n.quit\nSELECT 6;\n")),
        "five\n5\n"
    );
    assert_eq!(succeeds(&input(&["--format", "csv"], "")), "");
    assert_eq!(succeeds(&input(&["--format", "csv"], "  \n -- nothing\n")), "");
}

#[test]
fn standard_input_goes_on_after_a_failure() {
    let output =
        input(&["--format", "csv", "--on-fallback", "silent"], "SELECT 1 AS a;\nSELECT nope;\n.nope\nSELECT 2 AS b;\n");
    assert_eq!(out(&output), "a\n1\nb\n2\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err(&output).lines().filter(|line| line.starts_with("error: ")).count(), 2, "{}", err(&output));
}

#[test]
fn flags_stop_at_the_first_failure() {
    let output = run(&[
        "--format",
        "csv",
        "--on-fallback",
        "silent",
        "-c",
        "SELECT 1 AS a",
        "-c",
        "SELECT nope",
        "-c",
        "SELECT 2 AS b",
    ]);
    assert_eq!(out(&output), "a\n1\n");
    fails(&output, 1, &["nope"]);
}

#[test]
fn the_timer_goes_to_standard_error() {
    let output = run(&["--timer", "--on-fallback", "silent", "--format", "csv", "-c", "SELECT 1 AS a"]);
    assert_eq!(succeeds(&output), "a\n1\n");
    let text = err(&output);
    let time = text.trim().strip_prefix("time: ").and_then(|rest| rest.strip_suffix(" ms")).expect("a time");
    assert!(time.parse::<f64>().is_ok() && time.split_once('.').is_some_and(|(_, digits)| digits.len() == 3), "{text}");
}

#[test]
fn commands_show_tables_and_columns() {
    let text = "CREATE TABLE t AS SELECT value AS n, 'x' AS s FROM generate_series(1, 100) AS g(value);\n.tables\n.schema t\n.help\n.mode\n";
    let shown = succeeds(&input(&["--format", "csv", "--on-fallback", "silent"], text));
    assert!(shown.contains("t,resident,100,"), "{shown}");
    assert!(shown.lines().any(|line| line.starts_with("n,") && line.contains("u8")), "{shown}");
    assert!(shown.contains(".tables") && shown.contains("runs on: auto"), "{shown}");
    assert!(shown.contains("(auto, cpu, gpu, host)"), "{shown}");
    fails(&run(&["-c", ".mode nope"]), 1, &["auto, cpu, gpu, host"]);
    for bad in [".timer maybe", ".rows many", ".read", ".read /nowhere", ".schema nope"] {
        fails(&run(&["-c", bad]), 1, &[]);
    }
}

#[test]
fn modes_agree() {
    let query = "SELECT n % 3 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY 1 ORDER BY 1";
    let create = "CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 1000) AS g(value)";
    let show = |mode: &str| {
        succeeds(&run(&[
            "--format",
            "csv",
            "--on-fallback",
            "silent",
            "--mode",
            mode,
            "--threads",
            "2",
            "-c",
            create,
            "-c",
            query,
        ]))
    };
    assert_eq!(show("auto"), show("host"));
    assert_eq!(show("cpu"), show("host"));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = tandem()
        .args([
            "--format",
            "csv",
            "--on-fallback",
            "silent",
            "-c",
            "SELECT value FROM generate_series(1, 5000000) AS g(value)",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut first = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut first).expect("there is a line");
    assert_eq!(first, "value\n");
    let output = child.wait_with_output().expect("the binary ends");
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(err(&output), "");
}
