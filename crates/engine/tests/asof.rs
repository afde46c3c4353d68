//! ASOF joins give the nearest of all pairs, on random rows with nulls, repeated values and extremes; on pipelines alone, by a search.

mod support;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{rows, run, session};
use tandem_engine::{Mode, OnFallback};

/// Returns rows of an id, a key and two values, of which either may be null.
fn values(random: &mut ChaCha8Rng, count: usize, keys: i64) -> String {
    let cell =
        |random: &mut ChaCha8Rng, value: String| if random.random_bool(0.1) { "NULL".to_string() } else { value };
    let row = |id: usize| {
        let key = random.random_range(0..keys) * 1_000_003;
        let whole = match random.random_range(0..20) {
            0 => i64::MAX,
            1 => i64::MIN + 1,
            _ => random.random_range(0..40),
        };
        let float = ["'NaN'", "0.0", "-0.0", "'inf'", "1.5", "2.5", "-7.25"][random.random_range(0..7)];
        let cells = [
            cell(random, key.to_string()),
            cell(random, whole.to_string()),
            cell(random, format!("CAST({float} AS DOUBLE)")),
        ];
        format!("({id}, {})", cells.join(", "))
    };
    (0..count).map(row).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn asof_joins_find_the_nearest() {
    for seed in 0..12 {
        println!("seed {seed}");
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let session = session(Mode::Auto);
        let keys = random.random_range(1..6);
        for name in ["l", "r"] {
            let count = random.random_range(1..120);
            run(&session, &format!("CREATE TABLE {name} (id BIGINT, k BIGINT, t BIGINT, x DOUBLE)")).await.unwrap();
            let values = values(&mut random, count, keys);
            run(&session, &format!("INSERT INTO {name} VALUES {values}")).await.unwrap();
        }
        session.set_on_fallback(OnFallback::Error);
        for (operator, nearest) in [(">=", "max"), (">", "max"), ("<=", "min"), ("<", "min")] {
            for (column, key) in [("t", "l.k = r.k AND "), ("t", ""), ("x", "l.k = r.k AND ")] {
                let on = format!("{key}l.{column} {operator} r.{column}");
                let pairs = format!("SELECT l.id, {nearest}(r.{column}) n FROM l LEFT JOIN r ON {on} GROUP BY l.id");
                let left = format!("SELECT l.id, r.{column} n FROM l ASOF LEFT JOIN r ON {on} ORDER BY 1");
                let inner = format!("SELECT l.id, r.{column} n FROM l ASOF JOIN r ON {on} ORDER BY 1");
                let expected = rows(&session, &format!("{pairs} ORDER BY 1")).await;
                assert_eq!(rows(&session, &left).await, expected, "seed {seed}: {left}");
                let expected = rows(&session, &format!("{pairs} HAVING count(r.{column}) > 0 ORDER BY 1")).await;
                assert_eq!(rows(&session, &inner).await, expected, "seed {seed}: {inner}");
                let plan = rows(&session, &format!("EXPLAIN ANALYZE {left}")).await.join("\n");
                // Where no key repeats, there is nothing to search.
                assert!(!key.is_empty() || plan.contains("searched by inequality"), "{plan}");
            }
        }
    }
}
