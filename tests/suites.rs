//! The benchmark queries at scale factor 0.1, or some hundred thousand rows: our pipelines against DataFusion alone, row by row.

use std::{fs, path::Path, sync::Arc};

use arrow::record_batch::RecordBatch;
use tandem_engine::{Devices, Mode, OnFallback, Session, Table, Where};
use tandem_generator::GeneratorOptions;
use tandem_tests::{has_device, spell_rows};

/// Large enough for several blocks and workers, small enough for every test run.
const SCALE: f64 = 0.1;
/// The same, where data is by rows.
const ROWS: u64 = 600_000;

#[test]
fn ssb_equals_datafusion() {
    let tables = tandem_generator::ssb_tables(&options(), &|_, _| ()).expect("the scale factor is in range");
    let placed = compare("ssb", tables, 13, Mode::Auto);
    assert!(placed.iter().all(|(_, place)| *place == Where::Cpu), "all of SSB runs on our pipelines: {placed:?}");
}

#[test]
fn tpch_equals_datafusion() {
    let tables = tandem_generator::tpch_tables(&options(), &|_, _| ()).expect("the scale factor is in range");
    let placed = compare("tpch", tables, 22, Mode::Auto);
    println!("TPC-H placement: {placed:?}");
}

#[test]
fn h2o_and_windows_equal_datafusion() {
    let tables = || tandem_generator::h2o_tables(&options(), &|_, _| ()).expect("the number of rows is in range");
    let placed = [compare("h2o", tables(), 15, Mode::Auto), compare("windows", tables(), 10, Mode::Auto)];
    println!("h2o and windows placement: {placed:?}");
}

/// Every SSB query runs on a device from its first scan to its last sort.
#[test]
fn ssb_on_a_device_equals_datafusion() {
    if !has_device() {
        return;
    }
    let tables = tandem_generator::ssb_tables(&options(), &|_, _| ()).expect("the scale factor is in range");
    let placed = compare("ssb", tables, 13, Mode::Gpu);
    assert!(placed.iter().all(|(_, place)| *place == Where::Gpu), "{placed:?}");
}

#[test]
fn tpch_on_a_device_equals_datafusion() {
    if !has_device() {
        return;
    }
    let tables = tandem_generator::tpch_tables(&options(), &|_, _| ()).expect("the scale factor is in range");
    let placed = compare("tpch", tables, 22, Mode::Gpu);
    assert!(placed.iter().all(|(_, place)| *place == Where::Gpu), "nothing is left to the CPU: {placed:?}");
}

/// Groups of every number, medians, deviations, correlations, and the largest two of each group run on a device from scan to result.
#[test]
fn h2o_on_a_device_equals_datafusion() {
    if !has_device() {
        return;
    }
    let tables = tandem_generator::h2o_tables(&options(), &|_, _| ()).expect("the number of rows is in range");
    let placed = compare("h2o", tables, 15, Mode::Gpu);
    let groups: Vec<_> = placed.iter().filter(|(name, _)| name.starts_with("groupby.")).collect();
    assert_eq!(groups.len(), 10, "{placed:?}");
    assert!(groups.iter().all(|(_, place)| *place == Where::Gpu), "left to the CPU: {placed:?}");
}

/// Every question of windows, sorts and distinct values runs on a device.
#[test]
fn windows_on_a_device_equal_datafusion() {
    if !has_device() {
        return;
    }
    let tables = tandem_generator::h2o_tables(&options(), &|_, _| ()).expect("the number of rows is in range");
    let placed = compare("windows", tables, 10, Mode::Gpu);
    assert!(placed.iter().all(|(_, place)| *place == Where::Gpu), "left to the CPU: {placed:?}");
}

fn options() -> GeneratorOptions {
    GeneratorOptions { sf: SCALE, rows: ROWS, ..GeneratorOptions::default() }
}

/// Runs every query of a suite both ways; returns where each ran with capture on.
fn compare(suite: &str, tables: Vec<(String, Table)>, queries: usize, mode: Mode) -> Vec<(String, Where)> {
    let devices = Arc::new(Devices::from_environment());
    let open = |mode| {
        let session = Session::builder().mode(mode).on_fallback(OnFallback::Silent).devices(devices.clone());
        session.build().expect("a session can be made")
    };
    let (ours, host) = (open(mode), open(Mode::Host));
    for (name, table) in tables {
        let table = Arc::new(table);
        ours.register_table(&name, Arc::clone(&table)).expect("the name is free");
        host.register_table(&name, table).expect("the name is free");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("threads can start");
    let (mut placed, mut different) = (Vec::new(), Vec::new());
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/suites").join(suite);
    let mut files: Vec<_> =
        fs::read_dir(suite).expect("the suite is there").map(|e| e.expect("readable").path()).collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "sql")) {
        let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let sql = fs::read_to_string(file).expect("queries are text");
        let sql = sql.trim().trim_end_matches(';');
        let found = runtime.block_on(rows(&ours, sql)).unwrap_or_else(|e| panic!("query {name} failed: {e}"));
        let theirs =
            runtime.block_on(rows(&host, sql)).unwrap_or_else(|e| panic!("query {name} failed on the host: {e}"));
        if found.0 != theirs.0 {
            different.push(format!(
                "query {name}: {} rows, {} expected\n  {:?}\n  {:?}",
                found.0.len(),
                theirs.0.len(),
                found.0.first(),
                theirs.0.first()
            ));
        }
        placed.push((name, found.1));
    }
    assert_eq!(placed.len(), queries);
    assert!(different.is_empty(), "{} of {queries} queries differ:\n{}", different.len(), different.join("\n"));
    placed
}

/// Returns the rows in an order of their own, floats rounded to what summation order leaves alone, and where it ran.
async fn rows(session: &Session, sql: &str) -> Result<(Vec<Vec<String>>, Where), String> {
    let query = session.sql(sql);
    let report = query.report();
    let batches: Vec<RecordBatch> = query.await.map_err(|e| e.to_string())?;
    let mut rows = spell_rows(&batches).map_err(|e| e.to_string())?;
    for cell in rows.iter_mut().flatten() {
        if let (true, Ok(value)) = (cell.contains('.'), cell.parse::<f64>()) {
            *cell = format!("{value:.6e}");
        }
    }
    rows.sort();
    Ok((rows, report.placement()))
}
