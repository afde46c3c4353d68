//! Growth: what a row takes in more data against what it takes in less, for each engine.

use serde_json::{Value, json};

use super::{record::Record, table};

/// Returns how many times longer a row takes in the larger of two runs, for a query and a contender.
fn growth(small: &Record, large: &Record, query: usize, contender: usize) -> Option<f64> {
    let rows = large.size.amount() / small.size.amount();
    let at = small.find(&large.contenders[contender].0)?;
    Some(large.best(query, contender)? / small.best(query, at)? / rows)
}

/// Writes a table of each size against the one before it.
pub fn render(records: &[Record]) -> String {
    let mut text = String::new();
    for pair in records.windows(2) {
        let (small, large) = (&pair[0], &pair[1]);
        let mut head = vec!["query".to_string()];
        head.extend(large.contenders.iter().map(|(name, _)| name.clone()));
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
        let row = |query: usize| {
            let times = (0..large.contenders.len()).map(|at| cell(growth(small, large, query, at)));
            std::iter::once(large.queries[query].name.to_string()).chain(times).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = (0..large.queries.len()).map(row).collect();
        let means = (0..large.contenders.len()).map(|at| cell(large.mean(|query| growth(small, large, query, at))));
        let foot: Vec<String> = std::iter::once("geomean".to_string()).chain(means).collect();
        text.push_str(&format!("\ntime for a row {}, of that {}\n\n", large.size, small.size));
        text.push_str(&table::align(&head, &rows, &[foot]));
    }
    text
}

/// Writes all runs and their growth as JSON.
pub fn json(records: &[Record]) -> Value {
    let pair = |pair: &[Record]| {
        let (small, large) = (&pair[0], &pair[1]);
        let engine = |at: usize| {
            let queries: serde_json::Map<String, Value> = (0..large.queries.len())
                .map(|query| (large.queries[query].name.to_string(), json!(growth(small, large, query, at))))
                .collect();
            (large.contenders[at].0.clone(), json!(queries))
        };
        let engines: serde_json::Map<String, Value> = (0..large.contenders.len()).map(engine).collect();
        json!({"from": small.size.amount(), "to": large.size.amount(), "time_per_row": engines})
    };
    json!({
        "runs": records.iter().map(Record::json).collect::<Vec<_>>(),
        "growth": records.windows(2).map(pair).collect::<Vec<_>>(),
    })
}
