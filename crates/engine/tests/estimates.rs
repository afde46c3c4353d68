//! Estimates that come from conditions tried on rows, where statistics of single columns do not tell; EXPLAIN ANALYZE shows both.

mod support;

use support::{rows, run_all, session};
use tandem_engine::Mode;

/// A table in which two columns are equal and one is a text that no two rows share, and a small one to join it with.
const TABLES: [&str; 2] = [
    "CREATE TABLE fact AS SELECT value % 100 + 1 AS id, value * 7919 % 1000 AS a, value * 7919 % 1000 AS b,
     concat(CAST(value AS VARCHAR), CASE value % 4 WHEN 0 THEN ' red' WHEN 1 THEN ' green' WHEN 2 THEN ' blue' ELSE ' grey' END) AS t
     FROM generate_series(1, 100000) AS g(value)",
    "CREATE TABLE few AS SELECT value AS id, value % 50 AS n FROM generate_series(1, 100) AS g(value)",
];

/// Returns the number in front of or behind a word.
fn number(text: &str, before: &str, after: &str) -> Option<f64> {
    let from = text.find(before)? + before.len();
    let to = from + text[from..].find(after)?;
    text[from..to].trim().parse().ok()
}

#[tokio::test]
async fn conditions_that_statistics_cannot_weigh_are_tried_on_rows() {
    let session = session(Mode::Cpu);
    run_all(&session, &TABLES).await;
    let conditions = [
        "f.a < 100 AND f.b < 100",
        "f.a < 100 AND f.b >= 100",
        "f.a = f.b",
        "f.a * 3 % 10 = 7",
        "f.t LIKE '%gre%'",
        "right(f.t, 1) = 'd'",
        "f.a % 2 = 0 OR f.b % 2 = 1",
        "NOT (f.a BETWEEN 10 AND 909)",
        "f.a < 500",
    ];
    for condition in conditions {
        let sql = format!("SELECT f.a, w.n FROM fact f JOIN few w ON f.id = w.id WHERE {condition}");
        let explained = rows(&session, &format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
        let mut lines = explained.lines().filter(|line| line.contains("pipeline ") && line.contains("about "));
        let last = lines.next_back().unwrap_or_else(|| panic!("{explained}"));
        let (estimated, came) = (number(last, "about ", " row"), number(last, " in, ", " out"));
        let (Some(estimated), Some(came)) = (estimated, came) else { panic!("{last}") };
        // A third, and what fewer than ten of a thousand rows cannot tell.
        assert!(estimated <= came * 1.35 + 300.0, "{condition}: {last}");
        assert!(estimated >= came / 1.35, "{condition}: {last}");
    }
}

/// A condition that fails on some row is not tried, and fails when the statement runs.
#[tokio::test]
async fn a_condition_that_fails_does_so_when_it_runs() {
    let session = session(Mode::Cpu);
    run_all(&session, &TABLES).await;
    let sql = "SELECT count(*) FROM fact f JOIN few w ON f.id = w.id WHERE f.a / (f.b - f.a) = 1";
    rows(&session, &format!("EXPLAIN {sql}")).await;
    let message = support::failure(&session, sql).await;
    assert!(message.contains("division by zero"), "{message}");
}
