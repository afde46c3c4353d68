//! The machine's practical limit: SSB queries as hand-fused loops over plain arrays, and a probe of memory bandwidth.
//!
//! Four queries, 1.1, 2.1, 3.1 and 4.1, one of each flight, are written the way a person would who knows the data: narrow
//! arrays, dense lookup tables by key, selection vectors filled without branches, sums in a dense array. No engine
//! code is used, so an engine can be compared with them, in time and in result. [`Arrays`] is the data, [`run`] a query,
//! [`bandwidth`] the probe.

mod answer;
mod arrays;
mod loops;
mod parallel;
mod probe;
mod simd;

pub use answer::Cell;
pub use arrays::Arrays;
pub use probe::bandwidth;

use std::time::{Duration, Instant};

/// The queries there are loops for.
pub const QUERIES: [&str; 4] = ["1.1", "2.1", "3.1", "4.1"];

/// Runs a query's loop on `threads` threads: its rows, in the order of the query's columns and sorted by them, and the time that
/// took, lookup tables included. `None` for a query without a loop.
pub fn run(query: &str, arrays: &Arrays, threads: usize) -> Option<(Vec<Vec<Cell>>, Duration)> {
    let query = match query {
        "1.1" => answer::query_1_1,
        "2.1" => answer::query_2_1,
        "3.1" => answer::query_3_1,
        "4.1" => answer::query_4_1,
        _ => return None,
    };
    let start = Instant::now();
    let rows = query(arrays, threads.max(1));
    Some((rows, start.elapsed()))
}
