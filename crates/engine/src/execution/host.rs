//! The host engine's own threads, and the border between them and the caller.
//!
//! DataFusion computes on the threads that poll its streams, so it gets a tokio runtime of its own: the caller's runtime
//! only waits on channels, whatever it is. A [`Stop`] ends one statement: the caller's [`Cancel`] sets it (a watcher
//! thread looks every few milliseconds, since the runtime's threads may all be busy), and so does dropping the stream.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::{FutureExt, Stream, StreamExt};
use parking_lot::Mutex;
use tandem_column::guard_thread;
use tandem_runtime::Cancel;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::sql::nesting::STACK_BYTES;
use crate::{Error, Report, Result};

/// How often the watcher looks at the flags: well below what a person notices.
const WATCH_INTERVAL: Duration = Duration::from_millis(5);

/// Batches that wait between the host engine and the caller: enough to keep both busy.
const WAITING_BATCHES: usize = 4;

/// Ends one statement: every part of it that runs on Tandem has a flag of its own, so that dropping one part's stream
/// stops that part alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Mutex<(bool, Vec<Cancel>)>>);

impl Stop {
    /// Returns a flag for one part of the statement.
    pub(crate) fn part(&self) -> Cancel {
        let cancel = Cancel::new();
        let mut state = self.0.lock();
        if state.0 {
            cancel.cancel();
        }
        state.1.push(cancel.clone());
        cancel
    }

    /// Sets all flags, also of parts still to come.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock();
        state.0 = true;
        state.1.iter().for_each(Cancel::cancel);
    }

    fn is_stopped(&self) -> bool {
        self.0.lock().0
    }
}

/// The host engine's threads.
pub(crate) struct Host {
    runtime: Option<tokio::runtime::Runtime>,
    watched: Mutex<Option<std::sync::mpsc::Sender<Watched>>>,
}

struct Watched {
    cancel: Cancel,
    stop: Stop,
    told: oneshot::Sender<()>,
}

impl Host {
    pub(crate) fn new(threads: usize) -> Result<Host> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("tandem-host")
            // Deep plans recurse.
            .thread_stack_size(STACK_BYTES)
            // What DataFusion panics with comes back as an error of the statement: printed once, as one sentence.
            .on_thread_start(guard_thread)
            .enable_all()
            .build()
            .map_err(|error| Error::exhausted(format!("the system lets us start no more threads: {error}")))?;
        Ok(Host { runtime: Some(runtime), watched: Mutex::new(None) })
    }

    fn runtime(&self) -> &tokio::runtime::Runtime {
        self.runtime.as_ref().expect("the runtime lives as long as the host")
    }

    /// Watches the caller's flag: once set, stops the statement and tells the receiver.
    fn watch(&self, cancel: &Cancel, stop: &Stop) -> oneshot::Receiver<()> {
        let (told, receiver) = oneshot::channel();
        let watched = Watched { cancel: cancel.clone(), stop: stop.clone(), told };
        let mut sender = self.watched.lock();
        let sender = sender.get_or_insert_with(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name("tandem-watch".into());
            // Without the thread statements run, but are not cancelled from outside.
            let _ = thread.spawn(move || watch_all(&receiver));
            sender
        });
        let _ = sender.send(watched);
        receiver
    }

    /// Runs a future on the host's threads; returns as soon as the caller cancels.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        cancel: &Cancel,
        stop: &Stop,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        if cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let cancelled = self.watch(cancel, stop);
        let task = self.runtime().spawn(future);
        let mut guard = TaskGuard { task: task.abort_handle(), stop: stop.clone(), ended: false };
        let result = tokio::select! {
            result = task => match result {
                Ok(result) => result,
                Err(error) if error.is_cancelled() => Err(Error::cancelled()),
                Err(error) => Err(panicked("the host engine", error)),
            },
            Ok(()) = cancelled => return Err(Error::cancelled()),
        };
        guard.ended = true;
        result
    }

    /// Reads a stream on the host's threads and gives its batches to the caller; `translate` words its errors, and
    /// `keep` (the session, with this host) lives as long as the stream.
    pub(crate) fn stream(
        &self,
        cancel: &Cancel,
        stop: &Stop,
        mut stream: SendableRecordBatchStream,
        translate: impl Fn(DataFusionError) -> Error + Send + 'static,
        report: Arc<Report>,
        keep: Arc<dyn Any + Send + Sync>,
    ) -> BatchStream {
        let schema = stream.schema();
        let cancelled = self.watch(cancel, stop);
        let (sender, receiver) = mpsc::channel(WAITING_BATCHES);
        let task = self.runtime().spawn(async move {
            while let Some(item) = stream.next().await {
                let item = item.map_err(&translate);
                let failed = item.is_err();
                if sender.send(item).await.is_err() || failed {
                    break;
                }
            }
        });
        let guard = TaskGuard { task: task.abort_handle(), stop: stop.clone(), ended: false };
        BatchStream { schema, report, receiver, cancelled, task, guard, _keep: keep }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // A session may be dropped within the caller's runtime, where waiting for threads would panic.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Makes the error of a task that panicked.
pub(crate) fn panicked(who: &str, error: tokio::task::JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => Error::panicked(who, panic.as_ref()),
        Err(_) => Error::internal(format!("{who} was lost; please report this as a bug")),
    }
}

fn watch_all(receiver: &std::sync::mpsc::Receiver<Watched>) {
    use std::sync::mpsc::RecvTimeoutError::Disconnected;
    let mut all: Vec<Watched> = Vec::new();
    loop {
        if all.is_empty() {
            match receiver.recv() {
                Ok(watched) => all.push(watched),
                Err(_) => return,
            }
        } else {
            match receiver.recv_timeout(WATCH_INTERVAL) {
                Ok(watched) => all.push(watched),
                Err(Disconnected) => return,
                Err(_) => {}
            }
        }
        all.retain(|watched| !watched.told.is_closed());
        for watched in all.extract_if(.., |watched| watched.cancel.is_cancelled()) {
            watched.stop.stop();
            let _ = watched.told.send(());
        }
    }
}

/// Stops a task and its statement when dropped before the end.
struct TaskGuard {
    task: AbortHandle,
    stop: Stop,
    ended: bool,
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if !self.ended {
            self.stop.stop();
            self.task.abort();
        }
    }
}

/// The rows of a statement, batch by batch, as a [`futures::Stream`]: the caller's side of what runs on the session's
/// threads. Dropping it stops the statement.
pub struct BatchStream {
    schema: SchemaRef,
    report: Arc<Report>,
    receiver: mpsc::Receiver<Result<RecordBatch>>,
    cancelled: oneshot::Receiver<()>,
    task: tokio::task::JoinHandle<()>,
    guard: TaskGuard,
    _keep: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for BatchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchStream").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl BatchStream {
    /// Returns the batches' schema; without fields for statements that return nothing.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the statement's report, filled as the stream is read.
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }
}

impl Stream for BatchStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.guard.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(Ok(())) = self.cancelled.poll_unpin(context) {
            self.guard.task.abort();
            self.guard.ended = true;
            return Poll::Ready(Some(Err(Error::cancelled())));
        }
        match self.receiver.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(batch))) => Poll::Ready(Some(Ok(batch))),
            Poll::Ready(Some(Err(error))) => {
                self.guard.ended = true;
                // A part that was stopped reports itself in its own words.
                let error = if self.guard.stop.is_stopped() { Error::cancelled() } else { error };
                Poll::Ready(Some(Err(error)))
            }
            // The sender is gone: the task has ended or is about to.
            Poll::Ready(None) => match self.task.poll_unpin(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(())) => {
                    self.guard.ended = true;
                    Poll::Ready(None)
                }
                Poll::Ready(Err(error)) => {
                    self.guard.ended = true;
                    Poll::Ready(Some(Err(panicked("the host engine", error))))
                }
            },
        }
    }
}
