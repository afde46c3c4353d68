//! What EXPLAIN and the help say of places is what happens.

mod common;

use common::{run, succeeds};
use tandem_device::{Backend, testing};

const TABLE: &str = "CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 1000)";

/// Runs statements after the table is made, and returns their result.
fn shown(mode: &str, sql: &str) -> String {
    succeeds(&run(&["--mode", mode, "--on-fallback", "silent", "--format", "csv", "-c", TABLE, "-c", sql]))
}

/// Rows of the window are the host's, so that the plan has a node of ours within.
const WINDOW: &str = "SELECT n, lag(n, 0) IGNORE NULLS OVER (ORDER BY n) FROM t WHERE n > 5";

#[test]
fn without_a_device_pipelines_are_on_the_cpu() {
    for mode in ["cpu", "auto"] {
        let text = shown(mode, &format!("EXPLAIN {WINDOW}"));
        assert!(text.contains("pipeline 0 (on cpu, ") && text.contains("TandemExec: 1 pipeline, on cpu"), "{text}");
        let text = shown(mode, &format!("EXPLAIN ANALYZE {WINDOW}"));
        assert!(text.contains("pipeline 0 (on cpu, ") && text.contains(" → 995 rows"), "{text}");
    }
}

/// A filter that holds for every row is not run: its place is not taken by the next one's rows.
#[test]
fn metrics_stand_at_their_steps() {
    let text = shown("cpu", "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE n > 0 AND n * n % 7 = 1");
    let line = |words: &str| text.lines().find(|line| line.contains(words)).unwrap_or_default().to_owned();
    assert!(line("filter n > 0").contains("[removed: statistics]"), "{text}");
    assert!(line("% 7").contains("[1000 → 286 rows, "), "{text}");
    assert!(line("aggregate").contains("[286 → 1 rows, "), "{text}");
}

/// What is expected of each pipeline stands beside what came, and is marked where it is far off.
#[test]
fn wrong_estimates_are_marked() {
    let pipeline = |sql: &str| {
        let text = shown("cpu", sql);
        text.lines().find(|line| line.contains("pipeline 0 (on cpu, ")).unwrap_or_default().to_owned()
    };
    let right = pipeline("EXPLAIN ANALYZE SELECT n FROM t WHERE n <= 250");
    assert!(right.contains("about 250 rows, 1000 rows in, 250 out, "), "{right}");
    // Nothing is known of a remainder: a third of the rows is assumed.
    let wrong = pipeline("EXPLAIN ANALYZE SELECT n FROM t WHERE n % 500 < 1");
    assert!(wrong.contains("about 330 rows, OFF BY 167 ×, 1000 rows in, 2 out, "), "{wrong}");
    let planned = pipeline("EXPLAIN SELECT n FROM t WHERE n % 500 < 1");
    assert!(planned.contains("(on cpu, about 330 rows)"), "{planned}");
}

#[test]
fn with_a_device_plans_name_it() {
    if !testing::has(&tandem_device::Search::from_environment().run(), Backend::OpenCl) {
        return;
    }
    let text = shown("gpu", &format!("EXPLAIN {WINDOW}"));
    assert!(text.contains("pipeline 0 (on opencl:0"), "{text}");
    let node = text.lines().find(|line| line.contains("TandemExec: 1 pipeline, on opencl:0"));
    assert!(node.is_some_and(|line| line.contains(", else cpu")), "{text}");
    assert!(!text.contains("on cpu"), "{text}");

    let text = shown("gpu", "EXPLAIN ANALYZE SELECT sum(n) FROM t WHERE n > 5");
    let pipeline = text.lines().find(|line| line.contains("pipeline 0 (on opencl:0")).expect("it ran on the device");
    assert!(!pipeline.contains("else cpu") && pipeline.contains("1000 rows in, 1 out"), "{text}");
    // Rows of single steps are not counted on a device: none are shown.
    let filter = text.lines().find(|line| line.contains("filter n > 5")).expect("the step is listed");
    assert!(!filter.contains('['), "{text}");

    // Blocks that statistics exclude are left out by the CPU alone.
    let create = "CREATE TABLE large AS SELECT value AS n FROM generate_series(1, 100000)";
    let explain = "EXPLAIN SELECT count(*) FROM large WHERE n < 10";
    let text = succeeds(&run(&["--mode", "gpu", "--format", "csv", "-c", create, "-c", explain]));
    assert!(text.contains("34464 of 100000 rows skipped on the CPU; a device skips whole parts"), "{text}");
}

#[test]
fn the_help_says_what_auto_is() {
    let text = succeeds(&run(&["--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("auto is the CPU until placement by cost exists"), "{text}");
}

/// EXPLAIN prints what is decided, and says what is not: it reads no file for it.
#[test]
fn plans_show_choices_once_columns_are_there() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("t.parquet");
    let write = format!("COPY (SELECT value AS n FROM generate_series(1, 1000)) TO '{}'", file.display());
    succeeds(&run(&["-c", &write]));
    let count = format!("SELECT count(*) FROM '{}' WHERE n > 0 AND n <= 100", file.display());
    let explain = format!("EXPLAIN {count}");
    let text = succeeds(&run(&["--format", "csv", "-c", &explain, "-c", &count, "-c", &explain]));
    let (before, after) = text.split_at(text.rfind("pipelines").expect("it is explained twice"));
    assert!(
        before.contains("the rest is decided when these columns are read") && !before.contains("values 1 to 100"),
        "{text}"
    );
    assert!(after.contains("filter n <= 100: values 1 to 100") && after.contains("[removed: statistics]"), "{text}");
    // The key of a join becomes a filter, with what is known of its build, once there is one.
    let join = "SELECT count(*) FROM t JOIN (SELECT n AS k FROM t WHERE n % 3 = 0) ON n = k";
    let text = shown("cpu", &format!("EXPLAIN {join}"));
    assert!(text.contains("decided when build 0 is there"), "{text}");
    let text = shown("cpu", &format!("EXPLAIN ANALYZE {join}"));
    let probe = text.lines().find(|line| line.contains("  probe ")).expect("the step is listed");
    assert!(probe.contains("333 keys as a bitmap over ") && probe.contains("[1000 → 333 rows, "), "{text}");
}
