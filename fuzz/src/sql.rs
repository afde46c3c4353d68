//! SQL text over a few small tables: split, parsed, planned, and run where it is a query.

use std::{
    sync::{
        Mutex, OnceLock,
        mpsc::{Sender, channel},
    },
    time::Duration,
};

use futures::{StreamExt, executor::block_on};
use tandem_engine::{Cancel, Class, Mode, OnFallback, Session};

use crate::panics;

/// How long a query may take before it is cancelled.
const PATIENCE: Duration = Duration::from_millis(200);
/// Rows read before the rest is dropped.
const MOST_ROWS: usize = 1 << 16;
/// Bytes that a query may take.
const MEMORY_LIMIT: usize = 64 << 20;

/// The statements that make the tables: those of `tests/sql`, smaller.
const TABLES: &str = include_str!("../tables.sql");

/// Words of statements that would do more than answer, also where they are planned only.
const ACTS: [&str; 3] = ["into", "analyze", "copy"];

/// A statement.
pub(crate) fn sql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let session = session();
    let _ = Session::is_complete(text);
    let Ok(statements) = session.split(text) else { return };
    let lower = text.to_lowercase();
    if statements.len() != 1 || ACTS.iter().any(|word| lower.contains(word)) {
        return;
    }
    let is_query = ["select", "with", "values", "("].iter().any(|word| lower.trim_start().starts_with(word));
    match is_query {
        true => run(session, &statements[0]),
        // Planned, not done: the tables stay as they are for the next input.
        false => run(session, &format!("EXPLAIN {}", statements[0])),
    }
}

fn run(session: &Session, sql: &str) {
    let cancel = Cancel::new();
    watch(cancel.clone());
    let outcome = block_on(async {
        let mut stream = session.sql(sql).cancel(&cancel).stream().await?;
        let mut rows = 0;
        while let Some(batch) = stream.next().await {
            rows += batch?.num_rows();
            if rows > MOST_ROWS {
                break;
            }
        }
        Ok::<(), tandem_engine::Error>(())
    });
    // What DataFusion says of itself, and its panics, are not ours to fix; the session must live on.
    if let Err(error) = outcome {
        assert!(!error.message.is_empty(), "an error without a message");
        let ours = error.class == Class::Internal && error.message.contains("a worker panicked");
        assert!(!ours, "an internal error: {error}; {}", panics::last());
    }
}

/// Cancels a query that takes too long, from a thread that all queries share.
fn watch(cancel: Cancel) {
    static WATCHER: OnceLock<Mutex<Sender<Cancel>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = channel::<Cancel>();
        std::thread::spawn(move || {
            let mut current = receiver.recv();
            while let Ok(cancel) = current {
                current = match receiver.recv_timeout(PATIENCE) {
                    Ok(next) => Ok(next),
                    Err(_) => {
                        cancel.cancel();
                        receiver.recv()
                    }
                };
            }
        });
        Mutex::new(sender)
    };
    let sender = WATCHER.get_or_init(start).lock().expect("sending does not panic");
    sender.send(cancel).expect("the watcher lives as long as the process");
}

fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let builder = Session::builder().mode(Mode::Cpu).on_fallback(OnFallback::Silent);
        let session = builder.threads(1).memory_limit(MEMORY_LIMIT).build().expect("a session starts");
        for statement in session.split(TABLES).expect("statements as we write them") {
            session.sql(statement).collect().map(drop).expect("tables as we write them");
        }
        session
    })
}
