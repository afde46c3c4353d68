//! What `--memory-limit` promises: the process stays within it, whatever the statement and the file, and what does not fit
//! fails with a sentence.
//!
//! The resident set is that of the system's accounting, asked through Python, which knows the peak of a child that has ended.

mod common;

use std::{path::Path, process::Stdio, sync::OnceLock};

use common::*;

/// The limit of most statements here, in MB.
const LIMIT: usize = 96;

const PEAK: &str = "
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(done.returncode)
";

/// Runs statements under a limit in MB; returns whether they succeeded, what was said, and the peak in MB.
#[track_caller]
fn peak(limit: usize, statements: &[&str]) -> (bool, String, usize) {
    let mut command = std::process::Command::new("python3");
    command.args(["-c", PEAK, env!("CARGO_BIN_EXE_tandem"), "--on-fallback", "silent", "--format", "csv"]);
    command.args(["-o", "/dev/null", "--memory-limit", &format!("{limit}MB")]);
    statements.iter().for_each(|statement| {
        command.args(["-c", statement]);
    });
    let output = command.stdin(Stdio::null()).output().expect("python3 runs");
    let peak = out(&output).trim().parse().unwrap_or_else(|_| panic!("{}: {}", out(&output), err(&output)));
    (output.status.success(), err(&output), peak)
}

/// Asserts that statements stay within the limit, and that they say so if they fail.
#[track_caller]
fn stays(limit: usize, statements: &[&str]) -> bool {
    let (succeeded, said, peak) = peak(limit, statements);
    let last = statements.last().expect("a statement");
    let last: String = last.chars().take(120).collect();
    println!("{peak:5} MB  {}  {last}", if succeeded { "answered" } else { "refused " });
    assert!(succeeded || said.contains("memory limit"), "{last}: {said}");
    // Twice, for pages that the allocator has not given back yet; and DataFusion counts neither its batches nor what it decodes.
    let most = idle() + 2 * limit + 64;
    assert!(peak <= most, "{peak} MB of {most} with a limit of {limit}: {last}: {said}");
    succeeded
}

/// Returns what a process has that does nothing, in MB: its code, and the stacks of its threads.
fn idle() -> usize {
    static IDLE: OnceLock<usize> = OnceLock::new();
    *IDLE.get_or_init(|| peak(LIMIT, &["SELECT 1"]).2)
}

fn made(place: &Path, name: &str, query: &str, options: &str) -> String {
    let file = place.join(name).to_str().expect("the path is text").to_owned();
    succeeds(&sql(&format!("COPY ({query}) TO '{file}' {options}")));
    file
}

#[test]
fn every_operator_stays_within_the_limit() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let rows = "SELECT value AS id, value % 7 AS few, (value * 7919) % 1000003 AS many, \
                'text of row ' || CAST((value * 31) % 500009 AS VARCHAR) || repeat('-', CAST(value % 20 AS INT)) AS t \
                FROM generate_series(1, 1000000) AS g(value)";
    let file = made(place.path(), "rows.parquet", rows, "");
    // Numbers fit, and are resident; what operators make of them may not.
    let table = format!("CREATE TABLE r AS SELECT id, few, many FROM '{file}'");
    let mut answered = 0;
    let queries = [
        "SELECT sum(id), min(many), avg(few) FROM r",
        "SELECT few, count(*), sum(many) FROM r GROUP BY few",
        "SELECT many, count(*), sum(id), avg(id), min(few), max(few) FROM r GROUP BY many",
        "SELECT id, many, few, count(*), sum(id), sum(many), avg(id), min(many), max(id) FROM r GROUP BY id, many, few",
        "SELECT count(DISTINCT many), count(DISTINCT id) FROM r",
        "SELECT DISTINCT id, many FROM r",
        "SELECT * FROM r ORDER BY many, few, id",
        "SELECT * FROM r ORDER BY many DESC LIMIT 10",
        "SELECT * FROM r LIMIT 900000",
        "SELECT a.id, b.few, a.many, b.many FROM r a JOIN r b ON a.id = b.many",
        "SELECT count(*) FROM r a LEFT JOIN r b ON a.many = b.id AND a.few < b.few",
        "SELECT a.id FROM r a WHERE NOT EXISTS (SELECT 1 FROM r b WHERE b.many = a.id)",
        "SELECT a.few, count(*) FROM r a CROSS JOIN (SELECT id FROM r LIMIT 20) b GROUP BY a.few",
        "SELECT id, id * 2 AS a, id * 3 AS b, id * 4 AS c, id * 5 AS d, id * 6 AS e, id * 7 AS f FROM r",
        "SELECT id FROM r UNION ALL SELECT many FROM r UNION ALL SELECT few FROM r",
        "SELECT few, row_number() OVER (PARTITION BY few ORDER BY many) FROM r",
        "SELECT CAST(id AS VARCHAR) || ' and some text that is long' AS t FROM r",
        "CREATE TABLE copy AS SELECT id, many, few, id + many AS s, id - many AS d, id * few AS p FROM r",
    ];
    for query in queries {
        answered += usize::from(stays(LIMIT, &[&table, query]));
    }
    // With its text the file does not fit: the host reads it bit by bit, or the statement is refused.
    let file_queries = [
        format!("SELECT max(t), min(t), count(t) FROM '{file}'"),
        format!("SELECT t, count(*) FROM '{file}' GROUP BY t"),
        format!("SELECT * FROM '{file}' ORDER BY t"),
        format!("SELECT count(*) FROM '{file}' a JOIN '{file}' b ON a.t = b.t"),
        format!("CREATE TABLE copy AS SELECT * FROM '{file}'"),
    ];
    for query in &file_queries {
        answered += usize::from(stays(LIMIT, &[query]));
    }
    assert!(stays(16, &[&file_queries[0]]), "the host needs little to read a file from end to end");
    assert!(answered > queries.len() / 2, "a limit that refuses most statements shows nothing: {answered}");
}

#[test]
fn computed_text_stays_within_the_limit() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let rows = "SELECT repeat('a', 100) || CAST(value AS VARCHAR) AS t FROM generate_series(1, 100000) AS g(value)";
    let file = made(place.path(), "text.parquet", rows, "");
    let long = "b".repeat(40_000);
    let table = format!("CREATE TABLE r AS SELECT t FROM '{file}'");
    for query in [
        format!("SELECT max(replace(t, 'a', '{long}')) FROM r"),
        format!("SELECT count(*) FROM r WHERE replace(t, 'a', '{long}') LIKE '%c%'"),
        format!("SELECT max(t || '{long}') FROM r"),
        format!("SELECT count(*) FROM (SELECT CASE WHEN t > 'b' THEN t ELSE '{long}' END AS x FROM r) WHERE x > 'a'"),
        "SELECT max(a.t || b.t || a.t || b.t) FROM r a CROSS JOIN (SELECT t FROM r LIMIT 50) b".to_owned(),
    ] {
        stays(LIMIT, &[&table, &query]);
    }
}

#[test]
fn small_files_of_many_rows_stay_within_the_limit() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    // Without statistics numbers take eight bytes each at first; the file itself has a few kilobytes.
    let options = "OPTIONS ('format.statistics_enabled' 'none')";
    let same =
        "SELECT arrow_cast(7, 'Int64') AS a, repeat('x', 200) AS t FROM generate_series(1, 30000000) AS g(value)";
    let file = made(place.path(), "run.parquet", same, options);
    let bytes = std::fs::metadata(&file).expect("the file is there").len();
    assert!(bytes < 4 << 20, "{bytes} bytes");
    for query in ["SELECT sum(a) FROM", "SELECT max(t) FROM", "SELECT count(*) FROM", "CREATE TABLE c AS SELECT a FROM"]
    {
        stays(64, &[&format!("{query} '{file}'")]);
    }
}
