//! The order of runs: for each repeat, for each query, each contender in turn, so that whatever disturbs the machine disturbs
//! all alike; who begins changes from repeat to repeat. The first run of each is kept apart: it warms caches, and its rows
//! are the ones compared.

use std::{
    io::{IsTerminal, Write},
    thread,
    time::Duration,
};

use super::{
    compare::compare,
    contender::{Contender, Rows},
    suite::BenchQuery,
};

/// What one contender did with one query.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Seconds of the first run.
    pub first: Option<f64>,
    /// Seconds of each measured run.
    pub times: Vec<f64>,
    /// Why there is no time, or why the result is not trusted.
    pub error: Option<String>,
    /// What it ran on, where that may differ from query to query; more than one if it did from run to run.
    pub places: Vec<String>,
    /// What the contender says of its runs.
    pub notes: Vec<String>,
    /// The contender has no such query.
    pub absent: bool,
    /// The first run's rows.
    pub rows: Rows,
}

impl Outcome {
    /// Returns the best time in seconds, if the query ran and its result agreed.
    pub fn best(&self) -> Option<f64> {
        match self.error {
            None => self.times.iter().copied().reduce(f64::min),
            Some(_) => None,
        }
    }
}

/// Between two runs: what an engine still does behind its answer should not slow the next one.
const SETTLE: Duration = Duration::from_millis(20);

/// Runs every query on every contender, and `repeat` times more. Outcomes are by query, then contender.
pub fn measure(contenders: &mut [Box<dyn Contender>], queries: &[BenchQuery], repeat: u32) -> Vec<Vec<Outcome>> {
    let mut outcomes = vec![vec![Outcome::default(); contenders.len()]; queries.len()];
    let status = Status::new();
    for round in 0..=repeat {
        for (query, outcomes) in queries.iter().zip(&mut outcomes) {
            let count = contenders.len();
            for at in (0..count).map(|at| (at + round as usize) % count) {
                let (contender, outcome) = (&mut contenders[at], &mut outcomes[at]);
                if outcome.absent || outcome.error.is_some() {
                    continue;
                }
                if !contender.has(query) {
                    outcome.absent = true;
                    continue;
                }
                thread::sleep(SETTLE);
                status.show(&format!("run {round} of {repeat}: query {} on {}", query.name, contender.name()));
                match contender.run(query) {
                    Err(reason) => outcome.error = Some(reason),
                    Ok(answer) => {
                        let seconds = answer.time.as_secs_f64();
                        add_missing(&mut outcome.places, answer.places);
                        add_missing(&mut outcome.notes, answer.notes);
                        if round == 0 {
                            (outcome.first, outcome.rows) = (Some(seconds), answer.rows);
                        } else {
                            outcome.times.push(seconds);
                        }
                    }
                }
            }
        }
    }
    outcomes
}

/// Adds what a run says to what earlier runs said.
pub fn add_missing(known: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    for text in more {
        if !known.contains(&text) {
            known.push(text);
        }
    }
}

/// Compares the results of each query: those that differ from what most contenders found are errors.
pub fn verify(outcomes: &mut [Vec<Outcome>]) {
    for outcomes in outcomes {
        let ran = |o: &Outcome| o.first.is_some() && o.error.is_none();
        let votes: Vec<usize> = (0..outcomes.len())
            .map(|at| {
                let agrees = |o: &&Outcome| ran(o) && compare(&outcomes[at].rows, &o.rows).is_ok();
                if ran(&outcomes[at]) { outcomes.iter().filter(agrees).count() } else { 0 }
            })
            .collect();
        let most = votes.iter().copied().max().unwrap_or(0);
        // The first of the largest group, which is ours where we are in it: a tie is shown as the other's difference.
        let Some(reference) = votes.iter().position(|&v| v == most && v > 0) else { continue };
        let rows = outcomes[reference].rows.clone();
        for outcome in outcomes.iter_mut().filter(|o| ran(o)) {
            if let Err(difference) = compare(&rows, &outcome.rows) {
                outcome.error = Some(format!("result differs: {difference}"));
            }
        }
    }
}

/// One line on a terminal that says what runs now.
struct Status {
    terminal: bool,
}

impl Status {
    fn new() -> Self {
        Status { terminal: std::io::stderr().is_terminal() }
    }

    fn show(&self, text: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{text}");
            // Only cosmetic.
            let _ = std::io::stderr().flush();
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.show("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contender::Answer;

    struct Fake(&'static str, Result<&'static str, &'static str>);

    impl Contender for Fake {
        fn name(&self) -> &str {
            self.0
        }
        fn version(&self) -> &str {
            "1"
        }
        fn run(&mut self, _: &BenchQuery) -> Result<Answer, String> {
            let rows = vec![vec![Some(self.1?.to_string())]];
            Ok(Answer { time: Duration::from_millis(2), rows, places: None, notes: Vec::new() })
        }
    }

    #[test]
    fn failures_and_differences_are_kept_and_have_no_time() {
        let query = BenchQuery { name: "1", sql: "select 1" };
        let fakes = [Ok("1"), Ok("1"), Ok("2"), Err("no")];
        let mut contenders: Vec<Box<dyn Contender>> =
            fakes.into_iter().map(|answer| Box::new(Fake("fake", answer)) as Box<dyn Contender>).collect();
        let mut outcomes = measure(&mut contenders, &[query], 3);
        verify(&mut outcomes);
        let best: Vec<_> = outcomes[0].iter().map(Outcome::best).collect();
        assert_eq!(best, [Some(0.002), Some(0.002), None, None]);
        assert_eq!(outcomes[0][2].error.as_deref(), Some("result differs: row (2) instead of (1)"));
        assert_eq!(outcomes[0][0].times.len(), 3);
    }
}
