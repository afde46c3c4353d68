//! What a statement ran on, pipeline by pipeline, as values.

use tandem::{Mode, OnFallback, Result, Session, Where};

/// Runs the example.
pub fn main() -> Result<()> {
    let session = Session::builder().mode(Mode::Cpu).on_fallback(OnFallback::Silent).build()?;
    session.sql("CREATE TABLE t AS SELECT value AS n, value % 10 AS g FROM generate_series(1, 100000)").collect()?;

    let query = session.sql("SELECT g, sum(n) FROM t GROUP BY g ORDER BY g");
    let report = query.report();
    query.collect()?;
    println!("ran on {}", report.places());
    for pipeline in report.pipelines() {
        let place = if pipeline.devices.is_empty() { "cpu".to_string() } else { pipeline.devices.join(" and ") };
        println!("on {place}: {} rows in, {} out, {:?}", pipeline.rows_in, pipeline.rows_out, pipeline.elapsed);
    }
    assert_eq!(report.placement(), Where::Cpu);
    assert_eq!(report.pipelines()[0].rows_in, 100_000);

    // This window function runs on the host engine; the reason is a value, too.
    let query = session.sql("SELECT lag(n, 0) IGNORE NULLS OVER (PARTITION BY g ORDER BY n) FROM t LIMIT 1");
    let report = query.report();
    query.collect()?;
    println!("ran on {}: {}", report.places(), report.reasons().join("; "));
    assert!(!report.reasons().is_empty());

    // A program that must not be slow by surprise says so.
    session.set_on_fallback(OnFallback::Error);
    let error = session
        .sql("SELECT lag(n, 0) IGNORE NULLS OVER (PARTITION BY g ORDER BY n) FROM t LIMIT 1")
        .collect()
        .unwrap_err();
    println!("{error}");
    Ok(())
}
