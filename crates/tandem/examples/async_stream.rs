//! In an async program: a query is awaited, or read as a stream, on any executor.

use futures::TryStreamExt;
use tandem::{Result, Session};

/// Runs the example.
#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<()> {
    let session = Session::builder().build()?;
    session.sql("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 100000)").await?;

    let mut stream = session.sql("SELECT n, n * n AS square FROM t").stream().await?;
    let mut rows = 0;
    while let Some(batch) = stream.try_next().await? {
        rows += batch.num_rows();
    }
    println!("{rows} rows of {} columns", stream.schema().fields().len());
    assert_eq!(rows, 100_000);
    Ok(())
}
