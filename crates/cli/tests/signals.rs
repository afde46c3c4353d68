//! SIGTERM and SIGHUP end the process in order: nothing half-written stays. What SIGKILL leaves, the next run sweeps.

mod common;

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use common::*;

/// Writes for hours if nobody stops it.
const ENDLESS: &str = "SELECT value AS v, md5(CAST(value AS VARCHAR)) AS m FROM generate_series(1, 2000000000000)";

fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory can be made")
}

/// Starts a process that writes into a directory, in one of several ways.
fn start(way: &str, directory: &Path) -> Child {
    let root = directory.to_str().expect("the path is text");
    let external = |partitioned: &str| {
        format!("CREATE EXTERNAL TABLE e (v BIGINT, m VARCHAR) STORED AS CSV {partitioned} LOCATION '{root}/'")
    };
    let statements = match way {
        "copy" => vec![format!("COPY ({ENDLESS}) TO '{root}/t.parquet'")],
        "copy to a directory" => vec![format!("COPY ({ENDLESS}) TO '{root}' STORED AS CSV")],
        "insert" => vec![external(""), format!("INSERT INTO e {ENDLESS}")],
        "insert into partitions" => {
            let rows = ENDLESS.replace("md5(CAST(value AS VARCHAR))", "CAST(value % 5 AS VARCHAR)");
            vec![external("PARTITIONED BY (m)"), format!("INSERT INTO e {rows}")]
        }
        _ => vec![ENDLESS.to_owned()],
    };
    // Whoever runs the tests may ignore SIGHUP, as nohup does, and its children would.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_tandem"), "--format", "csv", "--on-fallback", "silent"]);
    command.env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
    if way == "output" {
        command.arg("-o").arg(directory.join("t.csv"));
    }
    for statement in &statements {
        command.args(["-c", statement]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
}

const WAYS: [&str; 5] = ["copy", "copy to a directory", "insert", "insert into partitions", "output"];

/// Waits until the file of `-o` has rows: it is staged before its statement begins, and only a statement can be cancelled.
fn wait_for_rows(directory: &Path) {
    let written = || {
        let staged = std::fs::read_dir(directory).into_iter().flatten().flatten();
        staged.map(|entry| entry.path().join("rows/rows")).any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !written() {
        assert!(std::time::Instant::now() < end, "rows are written");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_is_left() {
    for way in WAYS {
        for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
            let place = place();
            let mut child = start(way, place.path());
            wait_for_staging(&mut child, place.path());
            if way == "output" {
                wait_for_rows(place.path());
            }
            signal(&child, name);
            let output = child.wait_with_output().expect("the binary ends");
            fails(&output, code, &["cancelled"]);
            assert_eq!(names(place.path()), [""; 0], "{way}, {name}");
        }
    }
}

#[test]
fn an_idle_process_ends_in_order() {
    let place = place();
    let mut child = tandem()
        .arg("-o")
        .arg(place.path().join("t.csv"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    wait_for_staging(&mut child, place.path());
    signal(&child, "TERM");
    // Standard input stays open: the process waits for statements.
    let input = child.stdin.take();
    assert_eq!(child.wait().expect("the binary ends").code(), Some(143));
    drop(input);
    assert_eq!(names(place.path()), [""; 0]);
}

/// `nohup` works: a signal that was ignored before us stays ignored.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" --format csv --on-fallback silent", env!("CARGO_BIN_EXE_tandem")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the shell runs");
    let mut input = child.stdin.take().expect("it is piped");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || lines.next().expect("there is a line").expect("it is text");
    writeln!(input, "SELECT 1 AS a;").expect("the binary reads");
    assert_eq!((next(), next()), ("a".to_owned(), "1".to_owned()));
    signal(&child, "HUP");
    writeln!(input, "SELECT 2 AS b;").expect("the binary reads");
    assert_eq!((next(), next()), ("b".to_owned(), "2".to_owned()));
    drop(input);
    assert!(child.wait().expect("the binary ends").success());
}

#[test]
fn the_next_run_sweeps_the_dead_and_leaves_the_living() {
    for way in WAYS {
        let place = place();
        let mut dead = start(way, place.path());
        wait_for_staging(&mut dead, place.path());
        dead.kill().expect("it is our child");
        dead.wait().expect("it was killed");
        let left = staged(place.path());
        assert_eq!(left.len(), 1, "{way}");
        assert_eq!(names(place.path()), left, "only hidden names: {way}");

        let mut living = start("copy", place.path());
        while staged(place.path()).iter().all(|name| left.contains(name)) {
            assert!(living.try_wait().expect("it is our child").is_none(), "it ended before it wrote anything");
        }
        let file = place.path().join("small.csv");
        succeeds(&sql(&format!("COPY (SELECT 1 AS a) TO '{}'", file.display())));
        let now = staged(place.path());
        assert_eq!(now.len(), 1, "{way}");
        assert_ne!(now, left, "{way}");
        signal(&living, "TERM");
        assert_eq!(living.wait().expect("the binary ends").code(), Some(143));
        assert_eq!(names(place.path()), ["small.csv"], "{way}");
    }
}
