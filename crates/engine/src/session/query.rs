//! A statement that is to run: its text, parameters, and what watches it; and its result as a stream or an iterator.
//!
//! The work happens on the session's own threads whichever way the result is read, so a caller needs no async runtime:
//! [`SqlQuery::collect`] and [`SqlQuery::batches`] block, [`SqlQuery::stream`] and awaiting the query do not.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use tandem_runtime::Cancel;

use super::Session;
use crate::execution::host::BatchStream;
use crate::sql::parameters::Parameter;
use crate::{Report, Result};

/// A statement that has not started.
///
/// ```
/// # let session = tandem_engine::Session::builder().threads(1).build()?;
/// let batches = session.sql("SELECT $1 + 1 AS n").bind(41i64).collect()?;
/// assert_eq!(batches[0].num_rows(), 1);
/// # Ok::<(), tandem_engine::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a statement runs when its result is asked for: collect(), batches(), stream() or .await"]
pub struct SqlQuery {
    session: Session,
    sql: String,
    values: Vec<Parameter>,
    cancel: Cancel,
    report: Arc<Report>,
}

impl SqlQuery {
    pub(super) fn new(session: Session, sql: String) -> SqlQuery {
        SqlQuery { session, sql, values: Vec::new(), cancel: Cancel::new(), report: Arc::default() }
    }

    /// Gives the next parameter its value: the first call `$1`, the second `$2`.
    pub fn bind(mut self, value: impl Into<Parameter>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Gives the next parameters their values, in order.
    pub fn parameters<V: Into<Parameter>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.values.extend(values.into_iter().map(Into::into));
        self
    }

    /// Stops the statement when the flag is set, from any thread.
    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// Returns the statement's report: how far it is, where it runs and why. It may be read at any time, from any thread,
    /// and is complete when the result has been read.
    pub fn report(&self) -> Arc<Report> {
        self.report.clone()
    }

    /// Runs the statement and returns its rows. Blocks until they are all there.
    ///
    /// # Errors
    /// One sentence that names the thing and the remedy; the session lives on.
    pub fn collect(self) -> Result<Vec<RecordBatch>> {
        self.batches()?.collect()
    }

    /// Runs the statement and returns its rows batch by batch, while it runs. Blocks until it is planned; each step of
    /// the iterator blocks until the next batch is there, and dropping it stops the statement.
    ///
    /// # Errors
    /// As [`Self::collect`].
    pub fn batches(self) -> Result<Batches> {
        wait(self.stream()).map(Batches)
    }

    /// Runs the statement and returns its rows as a stream. When this returns, statements that define something have done
    /// so; queries, INSERT and COPY run while the stream is read, and dropping it stops them.
    ///
    /// # Errors
    /// As [`Self::collect`].
    pub async fn stream(self) -> Result<BatchStream> {
        self.session.start(self.sql, self.values, &self.cancel, self.report).await
    }
}

impl IntoFuture for SqlQuery {
    type Output = Result<Vec<RecordBatch>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// Runs the statement and returns its rows, as [`SqlQuery::collect`] does, without blocking the thread.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.stream().await?.try_collect().await })
    }
}

/// The rows of a statement, batch by batch, as an iterator that blocks.
#[derive(Debug)]
pub struct Batches(BatchStream);

impl Batches {
    /// Returns the batches' schema; without fields for statements that return nothing.
    pub fn schema(&self) -> &SchemaRef {
        self.0.schema()
    }

    /// Returns the statement's report.
    pub fn report(&self) -> &Arc<Report> {
        self.0.report()
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        wait(self.0.next())
    }
}

/// Blocks this thread until a future is done. Unlike tokio's, it may be called anywhere: the work is on other threads.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    /// The thread that waits, and whether it was woken: others may park it and take the token that a wake leaves.
    struct Waiting(Thread, AtomicBool);

    impl Wake for Waiting {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::Release);
            self.0.unpark();
        }
    }

    let waiting = Arc::new(Waiting(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(waiting.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        while !waiting.1.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}
