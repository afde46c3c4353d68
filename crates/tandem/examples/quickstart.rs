//! A Parquet file as a table, a query over it, and its rows.

use tandem::{Result, Session, arrow};

/// Runs the example.
pub fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("orders.parquet");
    write_orders(&path)?;

    let session = Session::builder().build()?;
    session.register_file("orders", &path)?;
    let batches = session
        .sql("SELECT region, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY region ORDER BY region")
        .collect()?;
    println!("{}", arrow::util::pretty::pretty_format_batches(&batches)?);

    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 3);
    Ok(())
}

/// Writes some orders; any program's Parquet, CSV and Arrow files will do.
fn write_orders(path: &std::path::Path) -> Result<()> {
    let session = Session::builder().build()?;
    let regions = "CASE value % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' ELSE 'west' END";
    let rows = format!("SELECT value AS id, {regions} AS region, value * 10 AS amount FROM generate_series(1, 1000)");
    session.sql(format!("COPY ({rows}) TO '{}'", path.display())).collect()?;
    Ok(())
}
