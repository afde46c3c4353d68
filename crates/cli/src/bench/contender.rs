//! What takes part in a benchmark, and what it answers.

use std::time::Duration;

use super::suite::BenchQuery;

/// The rows of a result, values as text.
pub type Rows = Vec<Vec<Option<String>>>;

/// One run of one query.
pub struct Answer {
    /// How long executing and fetching took.
    pub time: Duration,
    /// What came out.
    pub rows: Rows,
    /// What it ran on, where that may differ from query to query.
    pub places: Option<String>,
    /// Why it ran elsewhere than the contender's name says; empty where it did not.
    pub notes: Vec<String>,
}

/// An engine, or a hand-written loop, that runs queries one at a time.
pub trait Contender {
    /// Returns its name, as in the head of the table.
    fn name(&self) -> &str;
    /// Returns its version.
    fn version(&self) -> &str;
    /// Tells whether it has this query at all.
    fn has(&self, _query: &BenchQuery) -> bool {
        true
    }
    /// Runs a query.
    ///
    /// # Errors
    /// One sentence of why not.
    fn run(&mut self, query: &BenchQuery) -> Result<Answer, String>;
}
