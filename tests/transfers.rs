//! What goes over the bus to a device that the simulator models, for the 13 queries of SSB: the whole tables that a
//! query names, the columns that it needs, and the sectors that its kernels touch when columns of the fact table are read
//! where they are and reference tables are copied.

use std::{fs, path::Path, sync::Arc};

use tandem_device::testing;
use tandem_engine::{Devices, Mode, OnFallback, Session, Table};
use tandem_generator::GeneratorOptions;
use tandem_runtime::Traffic;
use tandem_tests::has_device;

/// `TANDEM_TRANSFERS_SF` asks for another.
const SCALE: f64 = 0.1;

#[test]
fn passive_columns_move_less() {
    if has_device() {
        let environment = [("TANDEM_SIM", "titan-rtx"), ("TANDEM_DEVICES", "sim:0")];
        print!("{}", testing::child("child_counts_transfers", &environment));
    }
}

/// Bytes of one query.
struct Transfers {
    whole: u64,
    needed: u64,
    passive: u64,
}

#[test]
#[ignore = "a child of passive_columns_move_less: needs a simulated device"]
fn child_counts_transfers() {
    let sf = std::env::var("TANDEM_TRANSFERS_SF").ok().and_then(|sf| sf.parse().ok()).unwrap_or(SCALE);
    let tables = tandem_generator::ssb_tables(&GeneratorOptions { sf, ..GeneratorOptions::default() }, &|_, _| ());
    let tables = tables.expect("the scale factor is in range");
    let sizes: Vec<(String, u64)> = tables.iter().map(|(name, table)| (name.clone(), bytes(table))).collect();
    let runtime = tokio::runtime::Runtime::new().expect("threads can start");
    let tables: Vec<(String, Arc<Table>)> = tables.into_iter().map(|(name, table)| (name, Arc::new(table))).collect();
    println!(
        "{:>5} {:>14} {:>15} {:>14} {:>8} {:>8}",
        "query", "whole tables", "needed columns", "passive", "saved", "of need"
    );
    let devices = Arc::new(Devices::from_environment());
    for (name, sql) in queries() {
        // A session of its own: nothing is on the device yet.
        let session =
            Session::builder().mode(Mode::Gpu).on_fallback(OnFallback::Error).devices(devices.clone()).build();
        let session = session.expect("a session can be made");
        for (name, table) in &tables {
            // A copy: the device would know columns of an earlier query.
            session.register_table(name, Arc::new(copy(table))).expect("the name is free");
        }
        let first = runtime.block_on(traffic(&session, &sql));
        let Transfers { whole, needed, passive } = count(&first, &sql, &sizes);
        let (saved, share) = (1.0 - passive as f64 / whole as f64, passive as f64 / needed as f64);
        println!("{name:>5} {whole:>14} {needed:>15} {passive:>14} {:>7.1}% {:>7.1}%", saved * 100.0, share * 100.0);
        assert!(share <= 1.05, "query {name}: passive columns move more than copies of them would");
        assert!(saved >= 0.7 || !["2.1", "3.1", "4.1"].contains(&name.as_str()), "query {name} moves too much");
        // The choice follows the counts: what was nearly all read is copied the next time, the rest is not.
        let second = runtime.block_on(traffic(&session, &sql));
        assert_eq!(first.len(), second.len());
        for (first, second) in first.iter().zip(&second) {
            let sparse = first.touched * 10 <= first.bytes * 9;
            assert_eq!(second.passive, first.passive && sparse, "query {name}: {first:?}, then {second:?}");
        }
    }
}

fn queries() -> Vec<(String, String)> {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/suites/ssb");
    let mut files: Vec<_> =
        fs::read_dir(suite).expect("the suite is there").map(|e| e.expect("readable").path()).collect();
    files.sort();
    let query = |file: &std::path::PathBuf| {
        let name = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(file).expect("queries are text").trim().trim_end_matches(';').to_owned())
    };
    files.iter().map(query).collect()
}

fn bytes(table: &Table) -> u64 {
    table.parts.iter().flat_map(|part| &part.columns).map(|column| column.byte_len() as u64).sum()
}

/// Makes a table whose columns are new objects over the same bytes.
fn copy(table: &Table) -> Table {
    let mut table = table.clone();
    for part in &mut table.parts {
        let mut fresh = (**part).clone();
        fresh.columns = fresh.columns.iter().map(|column| Arc::new((**column).clone())).collect();
        *part = Arc::new(fresh);
    }
    table
}

/// Runs a query and returns what its kernels read of each column.
async fn traffic(session: &Session, sql: &str) -> Vec<Traffic> {
    let query = session.sql(sql);
    let report = query.report();
    query.await.expect("the query runs on the device");
    let metrics = report.metrics();
    let pipelines = metrics.iter().flat_map(|metrics| &metrics.pipelines);
    pipelines.filter_map(|pipeline| pipeline.device.as_ref()).flat_map(|device| device.traffic.clone()).collect()
}

fn count(traffic: &[Traffic], sql: &str, sizes: &[(String, u64)]) -> Transfers {
    let words: Vec<&str> = sql.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let whole = sizes.iter().filter(|(table, _)| words.contains(&table.as_str())).map(|(_, bytes)| bytes).sum();
    let moved = |traffic: &Traffic| if traffic.passive { traffic.touched } else { traffic.bytes };
    Transfers {
        whole,
        needed: traffic.iter().map(|traffic| traffic.bytes).sum(),
        passive: traffic.iter().map(moved).sum(),
    }
}
