//! The sub-commands: generators and the demonstration.

mod common;

use common::*;

#[test]
fn generated_files_are_tables() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let directory = place.path().to_str().expect("the path is text");
    let text = succeeds(&run(&["gen", "ssb", "--sf", "0.01", "-o", directory]));
    assert!(text.contains("lineorder.parquet"), "{text}");
    assert_eq!(
        names(place.path()),
        ["customer.parquet", "date.parquet", "lineorder.parquet", "part.parquet", "supplier.parquet"]
    );
    let query = "SELECT count(*) AS c, min(d_year) AS y FROM lineorder, date WHERE lo_orderdate = d_datekey";
    let text = succeeds(&run(&["--data", directory, "--format", "csv", "--on-fallback", "silent", "-c", query]));
    let (rows, year) = text.lines().nth(1).and_then(|line| line.split_once(',')).expect("there is a row");
    assert!(rows.parse::<u64>().is_ok_and(|rows| rows > 50_000), "{text}");
    assert_eq!(year, "1992");

    let again = tempfile::tempdir().expect("a temporary directory can be made");
    succeeds(&run(&["gen", "ssb", "--sf", "0.01", "--threads", "1", "-o", again.path().to_str().expect("text")]));
    for name in names(place.path()) {
        let read = |directory: &std::path::Path| std::fs::read(directory.join(&name)).expect("it was written");
        assert!(read(place.path()) == read(again.path()), "{name} is the same whatever the threads");
    }
}

#[test]
fn tpch_has_eight_tables() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let directory = place.path().to_str().expect("the path is text");
    succeeds(&run(&["gen", "tpch", "--sf", "0.01", "-o", directory]));
    assert_eq!(names(place.path()).len(), 8);
    let query = "SELECT count(*) AS c FROM region JOIN nation ON r_regionkey = n_regionkey";
    assert_eq!(
        succeeds(&run(&["--data", directory, "--format", "csv", "--on-fallback", "silent", "-c", query])),
        "c\n25\n"
    );
}

#[test]
fn the_demonstration_checks_all_queries() {
    let text = succeeds(&run(&["demo", "--sf", "0.01"]));
    assert_eq!(text.matches("│ equal").count(), 13, "{text}");
    assert!(text.contains("geometric mean") && text.contains("What to try next"), "{text}");
}

#[test]
fn help_and_version() {
    assert!(succeeds(&run(&["--help"])).contains("--on-fallback"));
    assert!(succeeds(&run(&["--version"])).starts_with("tandem "));
}
