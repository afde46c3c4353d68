//! The record of a run: what ran on what, every time, and the figures that follow from them.

use serde_json::{Value, json};
use tandem_engine::Mode;

use super::{
    Storage,
    clients::Clients,
    machine::Machine,
    measure::Outcome,
    suite::{BenchQuery, Size},
};

/// Our name among the contenders.
pub const OWN: &str = "tandem";
/// The name of our CPU's executor among the contenders, where we run on devices.
pub const OWN_CPU: &str = "tandem (cpu)";
/// The loops' name among the contenders.
pub const LIMIT: &str = "limit";

/// One run of the benchmark.
pub struct Record {
    /// The suite's name.
    pub suite: &'static str,
    /// How much data there was.
    pub size: Size,
    /// Where the data was.
    pub from: Storage,
    /// The mode that we ran in.
    pub mode: Mode,
    /// The devices that we ran on, by what they are.
    pub devices: Vec<String>,
    /// Threads of each engine.
    pub threads: usize,
    /// Measured runs of each query.
    pub repeat: u32,
    /// Whether engines ran alone, one after the other.
    pub isolated: bool,
    /// The day, as yyyy-mm-dd.
    pub date: String,
    /// The machine.
    pub machine: Machine,
    /// Names and versions, ourselves first.
    pub contenders: Vec<(String, String)>,
    /// Engines that took no part, and why.
    pub skipped: Vec<(String, String)>,
    /// The queries.
    pub queries: Vec<BenchQuery>,
    /// What came out, by query, then contender.
    pub outcomes: Vec<Vec<Outcome>>,
    /// What several clients saw, where there were some.
    pub clients: Option<Clients>,
}

impl Record {
    /// Returns the contenders that are other engines.
    pub fn peers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.contenders.len()).filter(|&at| {
            let name = &self.contenders[at].0;
            name != LIMIT && !name.starts_with(OWN)
        })
    }

    /// Finds a contender by name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.contenders.iter().position(|(known, _)| known == name)
    }

    /// Returns the best time of a query, in seconds.
    pub fn best(&self, query: usize, contender: usize) -> Option<f64> {
        self.outcomes[query].get(contender)?.best()
    }

    /// Returns how many times longer than ours the best time of a contender is.
    pub fn ratio(&self, query: usize, contender: usize) -> Option<f64> {
        Some(self.best(query, contender)? / self.best(query, self.find(OWN)?)?)
    }

    /// Returns how many times longer than ours the fastest peer's best time is.
    pub fn lead(&self, query: usize) -> Option<f64> {
        self.peers().filter_map(|peer| self.ratio(query, peer)).reduce(f64::min)
    }

    /// Returns how many times longer than the loop our best time is.
    pub fn over_limit(&self, query: usize) -> Option<f64> {
        Some(1.0 / self.ratio(query, self.find(LIMIT)?)?)
    }

    /// Returns how many times longer on devices than on the CPU our best time is.
    pub fn over_cpu(&self, query: usize) -> Option<f64> {
        Some(1.0 / self.ratio(query, self.find(OWN_CPU)?)?)
    }

    /// Returns what we ran a query on.
    pub fn places(&self, query: usize) -> String {
        let own = self.find(OWN).and_then(|own| self.outcomes[query].get(own));
        own.map_or(String::new(), |outcome| outcome.places.join(" or "))
    }

    /// Returns the geometric mean of a figure over the queries that have it.
    pub fn mean(&self, figure: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let logarithms: Vec<f64> = (0..self.queries.len()).filter_map(figure).map(f64::ln).collect();
        let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
        (!logarithms.is_empty()).then(|| mean.exp())
    }

    /// Returns the sum of a contender's best times in seconds, if it has them all.
    pub fn total(&self, contender: usize) -> Option<f64> {
        (0..self.queries.len()).map(|query| self.best(query, contender)).sum()
    }

    /// Lists what went wrong, a sentence each: engines that took no part, queries that failed or differ.
    pub fn failures(&self) -> Vec<String> {
        let mut failures: Vec<String> =
            self.skipped.iter().map(|(name, reason)| format!("{name} took no part: {reason}")).collect();
        self.each(|query, contender, outcome| {
            if let Some(error) = &outcome.error {
                failures.push(format!("{contender} {query}: {error}"));
            }
        });
        failures
    }

    /// Lists what contenders say of their runs, such as why we left a query to another engine; what is the same for
    /// several queries, once.
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<(String, String, Vec<String>)> = Vec::new();
        self.each(|query, contender, outcome| {
            if outcome.notes.is_empty() {
                return;
            }
            let text = format!("ran on {}: {}", outcome.places.join(" or "), outcome.notes.join("; "));
            match notes.iter_mut().find(|(name, known, _)| name == contender && *known == text) {
                Some((_, _, queries)) => queries.push(query.to_string()),
                None => notes.push((contender.to_string(), text, vec![query.to_string()])),
            }
        });
        notes
            .into_iter()
            .map(|(contender, text, queries)| format!("{contender} {}: {text}", queries.join(", ")))
            .collect()
    }

    fn each(&self, mut see: impl FnMut(&str, &str, &Outcome)) {
        for (query, outcomes) in self.queries.iter().zip(&self.outcomes) {
            for ((contender, _), outcome) in self.contenders.iter().zip(outcomes) {
                see(query.name, contender, outcome);
            }
        }
    }

    /// Returns the queries in which we failed or no peer agrees with us.
    pub fn wrong(&self) -> Vec<&'static str> {
        let own = self.find(OWN);
        let wrong = |query: usize| {
            let outcomes = &self.outcomes[query];
            let ours = own.and_then(|own| outcomes[own].error.as_ref()).is_some();
            let answered = |at: &usize| outcomes[*at].first.is_some();
            let alone = self.peers().filter(answered).count() > 0
                && self.peers().filter(answered).all(|peer| outcomes[peer].error.is_some());
            ours || alone
        };
        (0..self.queries.len()).filter(|&query| wrong(query)).map(|query| self.queries[query].name).collect()
    }

    /// Writes everything measured as JSON.
    pub fn json(&self) -> Value {
        let queries: Vec<Value> = (0..self.queries.len())
            .map(|query| {
                let engines: serde_json::Map<String, Value> = self
                    .contenders
                    .iter()
                    .zip(&self.outcomes[query])
                    .filter(|(_, outcome)| !outcome.absent)
                    .map(|((name, _), o)| {
                        let value = json!({
                            "best_s": o.best(), "first_s": o.first, "times_s": o.times, "error": o.error,
                            "ran_on": o.places, "notes": o.notes,
                        });
                        (name.clone(), value)
                    })
                    .collect();
                json!({
                    "query": self.queries[query].name,
                    "sql": self.queries[query].sql,
                    "rows": self.outcomes[query].iter().find(|o| o.first.is_some()).map(|o| o.rows.len()),
                    "engines": engines,
                    "fastest_peer_over_tandem": self.lead(query),
                    "tandem_over_limit": self.over_limit(query),
                    "gpu_mode_over_cpu": self.over_cpu(query),
                })
            })
            .collect();
        let means: serde_json::Map<String, Value> = self
            .peers()
            .map(|peer| (self.contenders[peer].0.clone(), json!(self.mean(|query| self.ratio(query, peer)))))
            .collect();
        let (sf, rows) = match self.size {
            Size::Factor(factor) => (Some(factor), None),
            Size::Rows(rows) => (None, Some(rows)),
        };
        json!({
            "suite": self.suite,
            "sf": sf,
            "rows": rows,
            "from": format!("{:?}", self.from).to_lowercase(),
            "mode": self.mode.to_string(),
            "devices": self.devices,
            "threads": self.threads,
            "repeat": self.repeat,
            "interleaved": !self.isolated,
            "date": self.date,
            "machine": self.machine,
            "versions": self.contenders.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "queries": queries,
            "geometric_mean": {
                "fastest_peer_over_tandem": self.mean(|query| self.lead(query)),
                "tandem_over_limit": self.mean(|query| self.over_limit(query)),
                "gpu_mode_over_cpu": self.mean(|query| self.over_cpu(query)),
                "peer_over_tandem": means,
            },
            "clients": self.clients.as_ref().map(Clients::json),
            "failures": self.failures(),
        })
    }
}
