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
const WINDOW: &str = "SELECT n, row_number() OVER (ORDER BY n) FROM t WHERE n > 5";

#[test]
fn without_a_device_pipelines_are_on_the_cpu() {
    for mode in ["cpu", "auto"] {
        let text = shown(mode, &format!("EXPLAIN {WINDOW}"));
        assert!(text.contains("pipeline 0 (on cpu, ") && text.contains("TandemExec: 1 pipeline, on cpu"), "{text}");
        let text = shown(mode, &format!("EXPLAIN ANALYZE {WINDOW}"));
        assert!(text.contains("pipeline 0 (on cpu, ") && text.contains(" → 995 rows"), "{text}");
    }
}

#[test]
fn with_a_device_plans_name_it() {
    if !testing::has(&tandem_device::find(), Backend::OpenCl) {
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
    // Rows per step are not counted on a device: none are shown.
    assert!(!text.contains('→'), "{text}");
}

#[test]
fn the_help_says_what_auto_is() {
    let text = succeeds(&run(&["--help"])).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("auto is the CPU until placement by cost exists"), "{text}");
}
