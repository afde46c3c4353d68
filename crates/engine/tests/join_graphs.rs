//! Random graphs of up to 40 tiny tables: joins in the order that planning chooses give what the host engine gives.

mod support;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{run, session, text};
use tandem_engine::{Mode, Session};

/// Fills tables of a few rows: one that matches everywhere, so that no result is empty, and some that match now and then.
async fn fill(session: &Session, tables: usize, random: &mut ChaCha8Rng) {
    for table in 0..tables {
        let mut rows = vec!["(1, 1, 1, 'x')".to_string()];
        for _ in 0..random.random_range(0..3) {
            let mut key =
                || if random.random_bool(0.1) { "NULL".to_string() } else { random.random_range(0..5).to_string() };
            let keys = [key(), key(), key()].join(", ");
            rows.push(format!("({keys}, '{}')", ["x", "y", "z", "w"][random.random_range(0..4)]));
        }
        run(session, &format!("CREATE TABLE t{table} (a INT, b INT, c BIGINT, s VARCHAR)")).await.unwrap();
        run(session, &format!("INSERT INTO t{table} VALUES {}", rows.join(", "))).await.unwrap();
    }
}

/// Writes a statement whose joins form a tree with some cycles; each table is joined to one before it.
fn statement(tables: usize, random: &mut ChaCha8Rng) -> String {
    let column = |random: &mut ChaCha8Rng| ["a", "b", "s"][random.random_range(0..3)];
    let star = random.random_bool(0.3);
    let mut from = "t0".to_string();
    let mut conditions = Vec::new();
    for table in 1..tables {
        let other = if star { 0 } else { random.random_range(table.saturating_sub(4)..table) };
        // Text joins text.
        let mut on = Vec::new();
        for _ in 0..if random.random_bool(0.1) { 2 } else { 1 } {
            let key = column(random);
            let to = if key == "s" { "s" } else { ["a", "b"][random.random_range(0..2)] };
            on.push(format!("t{other}.{key} = t{table}.{to}"));
        }
        if random.random_bool(0.05) {
            on.push(format!("t{}.c <= t{table}.c", random.random_range(0..table)));
        }
        if random.random_bool(0.1) {
            from.push_str(&format!(" LEFT JOIN t{table} ON {}", on.join(" AND ")));
        } else {
            from.push_str(&format!(" JOIN t{table} ON {}", on.join(" AND ")));
        }
        if random.random_bool(0.05) {
            conditions.push(format!("t{}.c + t{table}.c < 4", random.random_range(0..table)));
        }
        if random.random_bool(0.05) {
            conditions.push(format!("t{table}.a IN (SELECT b FROM t{})", random.random_range(0..tables)));
        }
    }
    conditions.push("t0.a IS NOT NULL".to_string());
    let last = tables - 1;
    let filter = conditions.join(" AND ");
    format!("SELECT count(*), sum(t0.c), min(t{last}.s), max(t{last}.b), count(t{last}.a) FROM {from} WHERE {filter}")
}

#[tokio::test]
async fn ordered_joins_give_what_the_host_gives() {
    for seed in 0..24 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let tables = [2, 5, 9, 13, 20, 28, 40][seed as usize % 7];
        let session = session(Mode::Auto);
        fill(&session, tables, random).await;
        for _ in 0..3 {
            let sql = statement(tables, random);
            let mut results = Vec::new();
            for mode in [Mode::Host, Mode::Auto] {
                session.set_mode(mode);
                let batches =
                    run(&session, &sql).await.unwrap_or_else(|error| panic!("seed {seed}, {mode}, {sql}: {error}"));
                results.push(text(&batches));
            }
            assert_eq!(results[1], results[0], "seed {seed}: {sql}");
        }
    }
}
