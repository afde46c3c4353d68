//! Random statements over random tables: our pipelines against DataFusion alone and against DuckDB.
//!
//! A round is 25 statements over the same tables, made from a number; rounds count up from the seed. `TANDEM_SEED` is another seed than
//! the one that every test run begins with, `TANDEM_ROUNDS` another number of rounds, `TANDEM_SECONDS` how long there may be more of
//! them; dev/random-sql sets these. A mistake is shown by the smallest case that was found, as a script, with the round that shows it.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tandem_tests::oracle::{Case, Counts, Engines, python, shrink};

/// 25 statements each: 20,000.
const ROUNDS: u64 = 800;
/// Mistakes after which the search ends.
const ENOUGH: usize = 5;

#[test]
fn statements_mean_the_same_in_every_engine() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seed = number("TANDEM_SEED").unwrap_or(1);
    let time = number("TANDEM_SECONDS").map(Duration::from_secs);
    let rounds = number("TANDEM_ROUNDS").unwrap_or(if time.is_some() { u64::MAX } else { ROUNDS });
    println!("random SQL from seed {seed}");
    let (python, start, next) = (python(), Instant::now(), AtomicU64::new(0));
    let found: Mutex<Vec<String>> = Mutex::default();
    let enough = || found.lock().expect("no worker panics with it").len() >= ENOUGH;
    let work = || {
        let mut engines = Engines::start(&python);
        loop {
            let round = next.fetch_add(1, Ordering::Relaxed);
            if round >= rounds || time.is_some_and(|time| start.elapsed() > time) || enough() {
                return engines.counts;
            }
            let seed = seed.wrapping_add(round);
            let cases = Case::round(seed);
            if let Some((at, wrong)) = engines.check(&cases) {
                let counts = engines.counts.clone();
                let (smallest, still) = shrink(&mut engines, &cases[at], &wrong);
                engines.counts = counts;
                let text =
                    format!("dev/random-sql --seed {seed} --rounds 1 (statement {at})\n{wrong}\n{smallest}{still}");
                eprintln!("\n{text}");
                found.lock().expect("no worker panics with it").push(text);
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let counts: Vec<Counts> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("workers do not panic")).collect()
    });
    report(&counts, start.elapsed());
    let found = found.into_inner().expect("no worker panics with it");
    assert!(found.is_empty(), "{} rounds show mistakes:\n\n{}", found.len(), found.join("\n\n"));
    let (all, refused) = (sum(&counts, |c| c.statements), sum(&counts, |c| c.duckdb_refused.values().sum()));
    let otherwise = sum(&counts, |c| c.duckdb_alone);
    assert!(otherwise * 200 <= all, "DuckDB answers {otherwise} of {all} statements otherwise than we and DataFusion");
    assert!(refused * 20 <= all, "DuckDB refuses {refused} of {all} statements, so that these show little");
}

fn sum(counts: &[Counts], of: impl Fn(&Counts) -> usize) -> usize {
    counts.iter().map(of).sum()
}

/// Says what ran, and what engines refused most.
fn report(counts: &[Counts], time: Duration) {
    let (all, native) = (sum(counts, |c| c.statements), sum(counts, |c| c.native));
    let (alone, otherwise) = (sum(counts, |c| c.host_wrong), sum(counts, |c| c.duckdb_alone));
    println!(
        "{all} statements in {:.0} s, {native} of them on our pipelines alone; DataFusion is alone with {alone} answers, DuckDB with {otherwise}",
        time.as_secs_f64()
    );
    for (engine, of) in [
        ("DataFusion", (|c: &Counts| &c.host_refused) as fn(&Counts) -> &std::collections::BTreeMap<String, usize>),
        ("DuckDB", |c: &Counts| &c.duckdb_refused),
    ] {
        let mut reasons = std::collections::BTreeMap::<&str, usize>::new();
        counts.iter().flat_map(of).for_each(|(reason, count)| *reasons.entry(reason).or_default() += count);
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        println!("{engine} refused {}", reasons.iter().map(|(_, count)| count).sum::<usize>());
        reasons.iter().take(8).for_each(|(reason, count)| println!("{count:>8} × {reason}"));
    }
}
