//! The sub-commands: generators and the demonstration.

mod common;

use common::*;
use serde_json::{Value, json};
use tandem_device::{Backend, testing};

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

/// Tells whether there is a device, which the environment may require.
fn has_device() -> bool {
    testing::has(&tandem_device::Search::from_environment().run(), Backend::OpenCl)
}

#[test]
fn the_demonstration_checks_all_queries() {
    let text = succeeds(&run(&["demo", "--sf", "0.01"]));
    let modes = if has_device() { 2 } else { 1 };
    assert_eq!(text.matches("│ equal").count(), 13 * modes, "{text}");
    assert_eq!(text.contains("mode gpu: opencl:0 "), modes == 2, "{text}");
    assert!(text.contains("geometric mean") && text.contains("What to try next"), "{text}");
}

#[test]
fn the_demonstration_needs_no_device() {
    let output = tandem().args(["demo", "--sf", "0.01"]).env("TANDEM_DEVICES", "none").output().expect("it runs");
    let text = succeeds(&output);
    assert_eq!(text.matches("│ equal").count(), 13, "{text}");
    assert_eq!(text.matches("no device was found").count(), 1, "{text}");
}

#[test]
fn devices_are_listed() {
    let output = tandem().arg("devices").env("TANDEM_DEVICES", "none").output().expect("it runs");
    assert!(succeeds(&output).contains("no device is usable"));
    let found: Value = serde_json::from_str(&succeeds(&run(&["devices", "--json"]))).expect("it is JSON");
    assert!(found["unusable"].is_array());
    if !has_device() {
        return;
    }
    let first = &found["devices"][0];
    assert_eq!((&first["id"], &first["used_by_mode_gpu"]), (&json!("opencl:0"), &json!(true)));
    assert!(first["bandwidth"]["to_device"].as_f64().is_some_and(|rate| rate > 0.0), "{first}");
    let text = succeeds(&run(&["devices"]));
    assert!(["opencl:0  ", "kind", "GB/s to the device"].iter().all(|word| text.contains(word)), "{text}");
}

/// The CPU's executor runs beside the device, and the record says what ran on what.
#[test]
fn devices_are_measured_against_the_cpu() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let bench = |mode: &str| {
        let options = ["--sf", "0.01", "--vs", "none", "--repeat", "1", "--queries", "1.1,2.1", "--json", "run.json"];
        tandem().args(["bench", "ssb", "--mode", mode]).args(options).current_dir(&place).output().expect("it runs")
    };
    fails(&bench("host"), 2, &["host", "auto, cpu, gpu"]);
    if !has_device() {
        return fails(&bench("gpu"), 1, &["no device is usable"]);
    }
    let text = succeeds(&bench("gpu"));
    assert!(text.contains("mode gpu ÷ cpu") && text.contains("tandem in mode gpu on opencl:0"), "{text}");
    let record = std::fs::read_to_string(place.path().join("run.json")).expect("it was written");
    let record: Value = serde_json::from_str(&record).expect("it is JSON");
    assert_eq!(record["mode"], "gpu");
    assert!(record["devices"][0].as_str().is_some_and(|name| name.starts_with("opencl:0 ")), "{record}");
    assert!(record["geometric_mean"]["gpu_mode_over_cpu"].as_f64().is_some_and(|ratio| ratio > 0.0), "{record}");
    for query in record["queries"].as_array().expect("there are queries") {
        let engines = &query["engines"];
        assert!(
            engines["tandem"]["ran_on"][0].as_str().is_some_and(|place| place.starts_with("opencl:0 (")),
            "{query}"
        );
        assert_eq!(engines["tandem (cpu)"]["ran_on"], json!(["cpu"]));
        assert!(query["gpu_mode_over_cpu"].as_f64().is_some_and(|ratio| ratio > 0.0), "{query}");
    }
}

/// Suites by rows, several sizes with what a row takes in each, and several clients.
#[test]
fn growth_and_clients_are_measured() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let bench = |arguments: &[&str]| {
        let options = ["--vs", "none", "--repeat", "1", "--json", "run.json"];
        tandem().arg("bench").args(arguments).args(options).current_dir(&place).output().expect("it runs")
    };
    let record = || -> Value {
        let text = std::fs::read_to_string(place.path().join("run.json")).expect("it was written");
        serde_json::from_str(&text).expect("it is JSON")
    };
    let text = succeeds(&bench(&["h2o", "--rows", "2e3,1000", "--clients", "3"]));
    let words = [
        "H2O of 1,000 rows",
        "H2O of 2,000 rows",
        "groupby.10",
        "join.5",
        "3 clients: ",
        "time for a row of 2,000 rows",
    ];
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
    let grown = record();
    assert!(
        grown["growth"][0]["time_per_row"]["tandem"]["join.1"].as_f64().is_some_and(|ratio| ratio > 0.0),
        "{grown}"
    );
    assert_eq!((&grown["runs"][0]["rows"], &grown["runs"][1]["sf"]), (&json!(1000), &json!(null)));
    let clients = &grown["runs"][1]["clients"];
    assert_eq!(clients["clients"], 3);
    assert!(clients["slowest_over_fair_time"].as_f64().is_some_and(|share| share > 0.0), "{clients}");

    // The same data, which is not made again.
    let text = succeeds(&bench(&["windows", "--rows", "1000", "--queries", "1,10"]));
    assert!(text.contains("WINDOWS of 1,000 rows") && !text.contains("clients"), "{text}");
    assert_eq!(record()["queries"][1]["query"], "10");
    fails(&bench(&["h2o", "--sf", "1"]), 2, &["--rows instead of --sf"]);
    fails(&bench(&["ssb", "--rows", "1e6"]), 2, &["--sf instead of --rows"]);
    fails(&bench(&["h2o", "--rows", "1.5"]), 2, &["whole number"]);
    fails(&bench(&["h2o", "--rows", "7"]), 2, &["from 100 to"]);
    fails(&bench(&["h2o", "--rows", "1e3,1e4", "--html", "page.html"]), 2, &["one size"]);
}

/// Every program is compiled by one process and found on disk by the next.
#[test]
fn compiling_is_measured_by_program() {
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let bench = |queries: &str| {
        let options = ["--sf", "0.01", "--repeat", "1", "--queries", queries, "--json", "run.json"];
        tandem().args(["bench", "kernels"]).args(options).current_dir(&place).output().expect("it runs")
    };
    fails(&bench("9"), 2, &["no query 9"]);
    if !has_device() {
        return fails(&bench("1.1"), 1, &["no device is usable"]);
    }
    let text = succeeds(&bench("1.1"));
    assert!(["from disk", "pipeline", "most but the first"].iter().all(|word| text.contains(word)), "{text}");
    let record = std::fs::read_to_string(place.path().join("run.json")).expect("it was written");
    let record: Value = serde_json::from_str(&record).expect("it is JSON");
    let programs = |how: &str| record[how].as_array().expect("there are programs").clone();
    assert!(programs("compiled").len() > 2 && programs("compiled").len() == programs("stored").len(), "{record}");
    for (compiled, stored) in programs("compiled").iter().zip(&programs("stored")) {
        assert_eq!((&compiled["compiled"], &stored["compiled"]), (&json!(true), &json!(false)));
        assert_eq!(compiled["kernel"], stored["kernel"]);
        let time = |took: &Value| took["build_ms"].as_f64().zip(took["launch_ms"].as_f64()).map(|(a, b)| a + b);
        assert!(time(compiled) > time(stored) && time(stored) > Some(0.0), "{compiled} {stored}");
    }
}

#[test]
fn help_and_version() {
    assert!(succeeds(&run(&["--help"])).contains("--on-fallback"));
    assert!(succeeds(&run(&["--version"])).starts_with("tandem "));
}
