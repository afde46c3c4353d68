//! From a stream of Arrow rows to a resident table.
//!
//! The host's thread that reads the stream only numbers the batches; encoding happens on blocking threads, as many as
//! the worker pool has, and finishing (dictionaries, statistics) on the pool itself.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use parking_lot::Mutex;
use tandem_column::{Field, LoadOptions, Loader, Reservation, Table, Type};
use tandem_runtime::{Cancel, MemoryBudget, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Error;
use crate::error::IntoHost;

/// Returns the resident form of an Arrow schema.
///
/// # Errors
/// Unsupported, if a column's type has none.
pub(crate) fn fields(schema: &Schema) -> tandem_column::Result<Arc<[Field]>> {
    let convert = |field: &Arc<arrow::datatypes::Field>| match Field::from_arrow(field)? {
        Field { kind: kind @ (Type::Interval | Type::List(_)), name, .. } => {
            Err(Error::unsupported(format!("no resident column holds the type {kind} of '{name}'")))
        }
        field => Ok(field),
    };
    schema.fields().iter().map(convert).collect()
}

/// Reads a stream to its end and makes a table of its rows, in order; the reservation stands for its memory.
pub(crate) async fn load(
    mut stream: SendableRecordBatchStream,
    fields: Arc<[Field]>,
    name: &str,
    runtime: &Arc<Runtime>,
    budget: &Arc<MemoryBudget>,
) -> Result<(Table, Reservation)> {
    let options = LoadOptions { name: name.to_string(), memory: budget.clone(), ..LoadOptions::default() };
    let loader = Arc::new(Loader::new(fields, options));
    let threads = runtime.threads();
    let (sender, receiver) = mpsc::channel::<(u64, RecordBatch)>(2 * threads);
    let receiver = Arc::new(Mutex::new(receiver));
    let mut workers = JoinSet::new();
    for _ in 0..threads {
        let (loader, receiver) = (loader.clone(), receiver.clone());
        workers.spawn_blocking(move || {
            loop {
                let next = receiver.lock().blocking_recv();
                let Some((sequence, batch)) = next else { return Ok(()) };
                if let Err(error) = loader.append(sequence, batch) {
                    // Closing tells the reader to stop; the other workers drain what is left.
                    receiver.lock().close();
                    return Err(error);
                }
            }
        });
    }
    let mut sequence = 0;
    let mut failed = None;
    while let Some(batch) = stream.next().await {
        match batch {
            Ok(batch) if batch.num_rows() == 0 => {}
            Ok(batch) => {
                if sender.send((sequence, batch)).await.is_err() {
                    break;
                }
                sequence += 1;
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    drop(sender);
    while let Some(worker) = workers.join_next().await {
        match worker {
            Ok(Ok(())) => {}
            Ok(Err(error)) => failed = failed.or_else(|| Some(error.into_host())),
            Err(error) => failed = failed.or_else(|| Some(DataFusionError::ExecutionJoin(Box::new(error)))),
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let runtime = runtime.clone();
    let finished = tokio::task::spawn_blocking(move || {
        let loader = Arc::into_inner(loader).expect("all workers have ended");
        loader.finish_held(&parallel(&runtime))
    });
    finished.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?.into_host()
}

/// Lends the worker pool to the column crate, which knows no runtime.
pub(crate) fn parallel(runtime: &Runtime) -> impl Fn(usize, &(dyn Fn(usize) + Sync)) + Sync + '_ {
    move |tasks, f| {
        let run = runtime.parallel(tasks, &Cancel::new(), |task| {
            f(task);
            Ok(())
        });
        // A task that panicked has lost its part of the result: go on panicking here.
        run.expect("tasks that return nothing fail only by panicking");
    }
}
