//! SSB and TPC-H at a small scale: every query gives the host's answer, and runs on Tandem as a whole.

use std::{path::PathBuf, sync::Arc};

use arrow::{
    array::{Array, Float32Array, Float64Array, RecordBatch},
    util::display::{ArrayFormatter, FormatOptions},
};
use futures::TryStreamExt;
use tandem_engine::{Cancel, Config, Mode, Session, Where};
use tandem_generator::{Options, ssb_tables, tpch_tables};

fn texts(suite: &str, queries: &[&str]) -> Vec<(String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../bench/suites").join(suite);
    queries
        .iter()
        .map(|query| {
            let path = root.join(format!("{query}.sql"));
            (query.to_string(), std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// One row: its texts, and its floats apart, which agree to a tolerance only.
type Row = (Vec<String>, Vec<f64>);

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let options = FormatOptions::default().with_null("null");
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let (mut texts, mut floats) = (Vec::new(), Vec::new());
            for column in batch.columns() {
                let any = column.as_any();
                if let Some(values) = any.downcast_ref::<Float64Array>().filter(|values| values.is_valid(row)) {
                    floats.push(values.value(row));
                } else if let Some(values) = any.downcast_ref::<Float32Array>().filter(|v| v.is_valid(row)) {
                    floats.push(values.value(row).into());
                } else {
                    let formatter = ArrayFormatter::try_new(column.as_ref(), &options).unwrap();
                    texts.push(formatter.value(row).to_string());
                }
            }
            rows.push((texts, floats));
        }
    }
    // Ties may come in any order.
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    rows
}

async fn run(session: &Session, sql: &str) -> Result<(Vec<Row>, Where, Vec<String>), tandem_engine::Error> {
    let outcome = session.run(sql, &Cancel::new()).await?;
    let batches: Vec<RecordBatch> = outcome.stream.try_collect().await.map_err(tandem_engine::Error::from)?;
    Ok((rows(&batches), outcome.report.placement(), outcome.report.reasons()))
}

fn same(found: &[Row], expected: &[Row]) -> bool {
    let close = |a: &f64, b: &f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
    found.len() == expected.len()
        && found.iter().zip(expected).all(|((texts, floats), (other_texts, other_floats))| {
            texts == other_texts
                && floats.len() == other_floats.len()
                && floats.iter().zip(other_floats).all(|(a, b)| close(a, b))
        })
}

async fn check(tables: Vec<(String, tandem_engine::Table)>, queries: Vec<(String, String)>) {
    let session = Session::new(Config::default()).unwrap();
    for (name, table) in tables {
        session.register_table(&name, Arc::new(table)).unwrap();
    }
    let mut wrong = Vec::new();
    for (query, sql) in queries {
        for statement in session.split(&sql).unwrap() {
            session.set_mode(Mode::Host);
            let expected = run(&session, &statement).await.unwrap();
            session.set_mode(Mode::Cpu);
            match run(&session, &statement).await {
                Err(error) => wrong.push(format!("{query}: {error}")),
                Ok((found, place, reasons)) => {
                    if !same(&found, &expected.0) {
                        wrong.push(format!(
                            "{query}: {} rows against {}\n  found    {:?}\n  expected {:?}",
                            found.len(),
                            expected.0.len(),
                            found.first(),
                            expected.0.first()
                        ));
                    }
                    if place != Where::Cpu {
                        wrong.push(format!("{query}: ran on {place}: {}", reasons.join("; ")));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ssb_agrees_with_the_host() {
    let options = Options { sf: 0.01, ..Options::default() };
    let queries = ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"];
    check(ssb_tables(&options, &|_, _| ()).unwrap(), texts("ssb", &queries)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tpch_agrees_with_the_host() {
    let options = Options { sf: 0.01, ..Options::default() };
    let names: Vec<String> = (1..=22).map(|query| query.to_string()).collect();
    let queries: Vec<&str> = names.iter().map(String::as_str).collect();
    check(tpch_tables(&options, &|_, _| ()).unwrap(), texts("tpch", &queries)).await;
}
