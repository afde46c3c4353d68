//! What the engine's tests share: running a statement to its end, and seeing its rows as text.
#![allow(dead_code)]

use tandem_engine::arrow::array::RecordBatch;
use tandem_engine::arrow::util::display::{ArrayFormatter, FormatOptions};
use tandem_engine::{Error, Mode, Session};

/// Makes a session of two threads in a mode.
pub fn session(mode: Mode) -> Session {
    Session::builder().mode(mode).threads(2).build().expect("a session starts")
}

/// Runs one statement to its end.
pub async fn run(session: &Session, sql: &str) -> Result<Vec<RecordBatch>, Error> {
    session.sql(sql).await
}

/// Runs statements that must succeed.
pub async fn run_all(session: &Session, sql: &[&str]) {
    for statement in sql {
        run(session, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Runs a query that must succeed and returns its rows as text, values separated by bars.
pub async fn rows(session: &Session, sql: &str) -> Vec<String> {
    let batches = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    text(&batches)
}

/// Returns rows as text.
pub fn text(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

/// Runs a statement that must fail; its message must be one line without the marks of libraries' error chains.
pub async fn failure(session: &Session, sql: &str) -> String {
    let error = match run(session, sql).await {
        Ok(batches) => panic!("{sql}: succeeded with {:?}", text(&batches)),
        Err(error) => error,
    };
    assert_sentence(&error);
    error.message
}

/// Checks that an error is one sentence.
pub fn assert_sentence(error: &Error) {
    let message = &error.message;
    assert!(!message.contains('\n'), "several lines: {message}");
    assert!(!message.is_empty());
    for mark in ["External error", "Arrow error", "caused by", "DataFusion", "Error during planning", "Backtrace"] {
        assert!(!message.contains(mark), "{mark} in: {message}");
    }
}
