//! How far a statement is, and how another thread stops it.

use tandem::{Cancel, Class, Result, Session};

/// Runs the example.
pub fn main() -> Result<()> {
    let session = Session::builder().build()?;
    session.sql("CREATE TABLE n AS SELECT value AS a FROM generate_series(1, 100000)").collect()?;

    // Ten billion pairs: this takes minutes, if nobody stops it.
    let cancel = Cancel::new();
    let query = session.sql("SELECT count(*) FROM n x, n y WHERE (x.a * y.a) % 1000003 = 7").cancel(&cancel);
    let report = query.report();
    let running = std::thread::spawn(move || query.collect());

    // Any thread may look, at any time.
    let progress = loop {
        let progress = report.progress();
        if progress.rows_done > 0 {
            break progress;
        }
        std::thread::yield_now();
    };
    println!("{} of {} rows are done", progress.rows_done, progress.rows_total);
    cancel.cancel();

    let error = running.join().expect("the thread does not panic").expect_err("it was cancelled");
    println!("{error}");
    assert_eq!(error.class, Class::Cancelled);

    // The session lives on.
    session.sql("SELECT max(a) FROM n").collect()?;
    Ok(())
}
