//! Cancelling ends a statement soon, whatever runs it, and the session lives on.

mod support;

use std::time::{Duration, Instant};

use futures::StreamExt;
use support::{rows, run_all, session};
use tandem_engine::{Cancel, Mode, Session};

/// How late a cancelled statement may end: these run for minutes otherwise. A busy machine is allowed for.
const SOON: Duration = Duration::from_secs(10);

async fn prepare(mode: Mode) -> Session {
    let session = session(mode);
    // The host ends a batch that it has begun: a smaller table keeps the statement after it from waiting long.
    let count = if mode == Mode::Host { 30_000 } else { 100_000 };
    let sql = format!("CREATE TABLE n AS SELECT value AS a, value % 7 AS b FROM generate_series(1, {count})");
    run_all(&session, &[sql.as_str()]).await;
    session
}

const LONG: [&str; 3] = [
    "SELECT count(*) FROM n x, n y WHERE (x.a * y.a) % 1000003 = x.b + y.b",
    "SELECT sum(x.a * y.b) FROM n x CROSS JOIN n y",
    "SELECT x.a, y.a FROM n x JOIN n y ON x.b = y.b ORDER BY x.a * y.a LIMIT 5",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_running_statement_ends_soon() {
    for mode in [Mode::Auto, Mode::Host] {
        let session = prepare(mode).await;
        for sql in LONG {
            let cancel = Cancel::new();
            let running = {
                let (session, cancel) = (session.clone(), cancel.clone());
                tokio::spawn(async move { session.sql(sql).cancel(&cancel).await })
            };
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(!running.is_finished(), "not long enough to test: {mode} {sql}");
            let start = Instant::now();
            cancel.cancel();
            let error = running.await.unwrap().unwrap_err();
            assert!(error.is_cancelled(), "{mode} {sql}: {error}");
            assert!(start.elapsed() < SOON, "{mode} {sql}: {:?}", start.elapsed());
            assert_eq!(rows(&session, "SELECT min(a) FROM n").await, ["1"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_stream_frees_the_workers() {
    let session = prepare(Mode::Auto).await;
    for sql in LONG {
        let mut stream = session.sql(sql).stream().await.unwrap();
        let _ = tokio::time::timeout(Duration::from_millis(200), stream.next()).await;
        drop(stream);
    }
    let next = tokio::time::timeout(SOON, rows(&session, "SELECT count(*) FROM n WHERE b = 3")).await;
    assert_eq!(next.expect("the workers are free again"), ["14286"]);
}

#[tokio::test]
async fn a_statement_cancelled_before_it_begins_does_not() {
    let session = session(Mode::Auto);
    let cancel = Cancel::new();
    cancel.cancel();
    let error = session.sql("CREATE TABLE t AS SELECT 1 AS a").cancel(&cancel).await.unwrap_err();
    assert!(error.is_cancelled());
    assert!(session.tables().is_empty());
}
