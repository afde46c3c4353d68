//! Statements on a device, where the machine has one.

use std::sync::Arc;
use std::time::Duration;

use tandem::{Class, DeviceOptions, Devices, Mode, Result, Session};

const SALES: &str = "SELECT shop, sum(amount) AS amount FROM sales GROUP BY shop ORDER BY shop";

/// Runs the example.
pub fn main() -> Result<()> {
    let options = DeviceOptions::default().only("opencl").timeout(Duration::from_secs(10));
    let session = Session::builder().devices(Arc::new(Devices::new(options))).build()?;
    let rows = "SELECT value % 3 AS shop, value AS amount FROM generate_series(1, 100000)";
    session.sql(format!("CREATE TABLE sales AS {rows}")).collect()?;
    let expected = session.sql(SALES).collect()?;

    session.set_mode(Mode::Gpu);
    let query = session.sql(SALES);
    let report = query.report();
    match query.collect() {
        Ok(batches) => {
            println!("ran on {}", report.places());
            assert_eq!(batches, expected);
        }
        Err(error) if error.class == Class::Unsupported => println!("{error}"),
        Err(error) => return Err(error),
    }
    Ok(())
}
