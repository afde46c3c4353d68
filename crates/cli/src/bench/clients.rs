//! Several clients at once: what statements that run together take, against the same statements one at a time.
//!
//! Each client runs all queries, beginning with another one; all share our one session, so that its workers are what they compete
//! for. With N clients a fair share of the machine is an N-th: a statement that takes more than N times its time alone has got less.

use std::{
    sync::Barrier,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{own::Own, suite::BenchQuery};

/// What several clients saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Clients {
    /// How many ran at once.
    pub clients: usize,
    /// Statements a second, one at a time.
    pub alone: f64,
    /// Statements a second, so many at once.
    pub together: f64,
    /// The query that got least of its share, and how many times its fair time it took.
    pub slowest: (&'static str, f64),
}

impl Clients {
    /// Returns how many times more statements were done at once than one at a time.
    pub fn ratio(&self) -> f64 {
        self.together / self.alone
    }

    /// Writes it as a line under the table.
    pub fn line(&self) -> String {
        let Clients { clients, alone, together, slowest: (query, share) } = self;
        format!(
            "{clients} clients: {together:.1} statements/s at once, {alone:.1} one at a time ({:.2} ×); slowest: {query}, \
             {share:.2} × its fair time",
            self.ratio()
        )
    }

    /// Writes it as JSON.
    pub fn json(&self) -> Value {
        let (query, share) = self.slowest;
        json!({
            "clients": self.clients, "statements_per_s_one_at_a_time": self.alone, "statements_per_s_at_once": self.together,
            "at_once_over_one_at_a_time": self.ratio(), "slowest_query": query, "slowest_over_fair_time": share,
        })
    }
}

/// Runs the queries one at a time, `repeat` times, and then by so many clients at once.
///
/// # Errors
/// One sentence of why a query failed.
pub fn measure(own: &Own, queries: &[BenchQuery], clients: usize, repeat: u32) -> Result<Clients, String> {
    let time = |query: &BenchQuery| own.execute(query).map(|(_, time, _)| time);
    let mut alone = vec![Duration::ZERO; queries.len()];
    for round in 0..=repeat {
        for (query, sum) in queries.iter().zip(&mut alone) {
            let took = time(query)?;
            // The first run warms caches.
            *sum += if round == 0 { Duration::ZERO } else { took };
        }
    }
    alone.iter_mut().for_each(|sum| *sum /= repeat);
    // One more than the clients: whoever starts the clock.
    let ready = Barrier::new(clients + 1);
    let run = |client: usize| -> Result<Vec<(usize, Duration)>, String> {
        ready.wait();
        let order = (0..queries.len()).map(|at| (at + client * queries.len() / clients) % queries.len());
        order.map(|at| Ok((at, time(&queries[at])?))).collect()
    };
    let run = &run;
    let (ran, together) = std::thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|client| scope.spawn(move || run(client))).collect();
        ready.wait();
        let start = Instant::now();
        let ran: Vec<_> = running.into_iter().map(|client| client.join().expect("clients do not panic")).collect();
        (ran, start.elapsed())
    });
    let took: Vec<(usize, Duration)> = ran.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    Ok(summarize(queries, clients, &alone, &took, together))
}

/// Makes figures of times: alone of each query, and of each statement of all clients with the time that all took.
fn summarize(
    queries: &[BenchQuery],
    clients: usize,
    alone: &[Duration],
    took: &[(usize, Duration)],
    together: Duration,
) -> Clients {
    let share = |&(at, time): &(usize, Duration)| {
        (queries[at].name, time.as_secs_f64() / (clients as f64 * seconds(alone[at])))
    };
    let slowest = took.iter().map(share).max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or(("", 0.0));
    Clients {
        clients,
        alone: queries.len() as f64 / seconds(alone.iter().sum()),
        together: took.len() as f64 / seconds(together),
        slowest,
    }
}

/// Returns a time that can be divided by.
fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_alone() {
        let queries = ["a", "b"].map(|name| BenchQuery { name, sql: "" });
        let alone = [1, 3].map(Duration::from_secs);
        // Two clients, twice as long each but for one statement of `a`.
        let took = [(0, 2), (1, 6), (0, 4), (1, 6)].map(|(at, seconds)| (at, Duration::from_secs(seconds)));
        let clients = summarize(&queries, 2, &alone, &took, Duration::from_secs(8));
        assert_eq!(clients, Clients { clients: 2, alone: 0.5, together: 0.5, slowest: ("a", 2.0) });
        assert_eq!(
            clients.line(),
            "2 clients: 0.5 statements/s at once, 0.5 one at a time (1.00 ×); slowest: a, 2.00 × its fair time"
        );
    }
}
