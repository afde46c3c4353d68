//! Tandem and the host engine agree on small random data.

mod support;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{rows, run, session, text};
use tandem_engine::{Mode, OnFallback, Session};

/// Fills two tables with random rows: few distinct keys, some nulls, some extremes.
async fn fill(session: &Session, random: &mut ChaCha8Rng) {
    for (name, rows) in [("f", random.random_range(0..400)), ("d", random.random_range(1..40))] {
        let mut values = Vec::new();
        for _ in 0..rows {
            let mut value = |text: String| if random.random_bool(0.1) { "NULL".to_string() } else { text };
            let key = value(format!("{}", ChaCha8Rng::seed_from_u64(values.len() as u64).random_range(0..30)));
            let cells = [
                key,
                value(format!("{}", (values.len() * 7919) % 1000)),
                value(format!("'{}'", ["", "a", "ab", "b%", "ö", "zebra"][values.len() % 6])),
                value(format!("DATE '2020-{:02}-{:02}'", values.len() % 12 + 1, values.len() % 28 + 1)),
                value(format!("{}.{:02}", values.len() % 90, values.len() % 100)),
            ];
            values.push(format!("({})", cells.join(", ")));
        }
        run(session, &format!("CREATE TABLE {name} (k INT, n BIGINT, s VARCHAR, day DATE, price DECIMAL(12,2))"))
            .await
            .unwrap();
        if !values.is_empty() {
            run(session, &format!("INSERT INTO {name} VALUES {}", values.join(", "))).await.unwrap();
        }
    }
}

const QUERIES: [&str; 18] = [
    "SELECT count(*), count(n), sum(n), min(n), max(n), avg(n) FROM f",
    "SELECT k, count(*), sum(price), min(s), max(day) FROM f GROUP BY k",
    "SELECT s, k, count(DISTINCT n) FROM f GROUP BY s, k",
    "SELECT * FROM f WHERE n BETWEEN 100 AND 700 AND s IN ('a', 'ab', 'ö')",
    "SELECT * FROM f WHERE s LIKE '%b%' OR s LIKE 'z_bra' OR day IS NULL",
    "SELECT f.n, d.s FROM f JOIN d ON f.k = d.k",
    "SELECT f.n, d.s FROM f LEFT JOIN d ON f.k = d.k AND f.n > d.n",
    "SELECT f.n, d.n FROM f RIGHT JOIN d ON f.k = d.k",
    "SELECT f.n, d.n FROM f FULL JOIN d ON f.n = d.n",
    "SELECT n FROM f WHERE k IN (SELECT k FROM d WHERE n < 500)",
    "SELECT n FROM f WHERE k NOT IN (SELECT k FROM d WHERE k IS NOT NULL)",
    "SELECT n FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.k = f.k)",
    "SELECT n, s FROM f ORDER BY n DESC NULLS LAST, s, k, day, price LIMIT 7",
    "SELECT extract(year FROM day) AS y, extract(month FROM day) AS m, sum(price * (1 - 0.05)) FROM f GROUP BY 1, 2",
    "SELECT CASE WHEN n > 500 THEN 'high' WHEN n IS NULL THEN 'none' ELSE 'low' END AS c, count(*) FROM f GROUP BY 1",
    "SELECT sum(price) FROM f WHERE n > (SELECT avg(n) FROM d)",
    "SELECT k FROM f UNION ALL SELECT k FROM d",
    "SELECT d.s, sum(f.price) FROM f, d WHERE f.k = d.k AND d.day < DATE '2020-09-01' GROUP BY d.s HAVING count(*) > 1 ORDER BY 2 DESC, 1",
];

#[tokio::test]
async fn tandem_and_host_agree() {
    for seed in 0..8 {
        let session = session(Mode::Auto);
        fill(&session, &mut ChaCha8Rng::seed_from_u64(seed)).await;
        for sql in QUERIES {
            let mut results = Vec::new();
            for mode in [Mode::Host, Mode::Auto] {
                session.set_mode(mode);
                let batches =
                    run(&session, sql).await.unwrap_or_else(|error| panic!("seed {seed}, {mode}, {sql}: {error}"));
                let kinds: Vec<_> = batches
                    .first()
                    .map(|batch| batch.schema().fields().iter().map(|f| f.data_type().clone()).collect())
                    .unwrap_or_default();
                let mut rows = text(&batches);
                if !sql.contains("ORDER BY") {
                    rows.sort();
                }
                results.push((kinds, rows));
            }
            let (auto, host) = (results.pop().unwrap(), results.pop().unwrap());
            assert_eq!(auto.1, host.1, "seed {seed}: {sql}");
            if !auto.0.is_empty() && !host.0.is_empty() {
                assert_eq!(auto.0, host.0, "types, seed {seed}: {sql}");
            }
        }
    }
}

/// Subqueries over `f` of a row of `d`, whose columns are in braces: values, and conditions.
const VALUES: [&str; 16] = [
    "(SELECT count(*) FROM f WHERE f.k < {k})",
    "(SELECT sum(f.n) FROM f WHERE f.n > {n} OR f.s = {s})",
    "(SELECT f.n FROM f WHERE f.k = {k} ORDER BY f.n DESC NULLS LAST LIMIT 1)",
    "(SELECT f.n FROM f WHERE f.k <> {k} ORDER BY f.n NULLS FIRST, f.price LIMIT 1 OFFSET 2)",
    "(SELECT max(t.c) FROM (SELECT count(*) AS c FROM f WHERE f.k <= {k} GROUP BY f.s) t)",
    "(SELECT sum(t.n) FROM (SELECT f.n FROM f WHERE f.k = {k} UNION ALL SELECT {n} FROM f WHERE f.k = 3) t)",
    "(SELECT max(t.r) FROM (SELECT row_number() OVER (ORDER BY f.n) AS r FROM f WHERE f.k >= {k}) t)",
    "(SELECT count(g.n) FROM f LEFT JOIN f g ON f.n = g.n AND g.k > {k} WHERE f.s = {s})",
    "(SELECT count(*) FROM f FULL JOIN (SELECT * FROM f WHERE f.k = {k}) g ON f.n = g.n)",
    "(SELECT {k} + max(f.n) FROM f WHERE f.k < (SELECT max(g.k) FROM f g WHERE g.n < {n}))",
    "(SELECT count(*) FROM f WHERE EXISTS (SELECT 1 FROM f g WHERE g.k = f.k AND g.n < f.n AND g.s = {s}))",
    "(SELECT count(*) FROM f WHERE f.k NOT IN (SELECT g.k FROM f g WHERE g.n > {n} AND g.n < f.n))",
    "(SELECT count(DISTINCT f.s) FROM f WHERE f.k BETWEEN {k} - 3 AND {k} + 3)",
    "EXISTS (SELECT 1 FROM f WHERE f.k > {k} AND f.n < {n})",
    "{k} NOT IN (SELECT f.k FROM f WHERE f.n > {n})",
    "{k} >= ALL (SELECT f.k FROM f WHERE f.n < {n})",
];

/// Every value of a subquery is that of the same one with the row's values as constants, and nothing runs on the host.
#[tokio::test]
async fn correlated_subqueries_are_those_of_constants() {
    for seed in [1, 2, 5] {
        let session = session(Mode::Cpu);
        fill(&session, &mut ChaCha8Rng::seed_from_u64(seed)).await;
        let outer = rows(&session, "SELECT k, n, s FROM d").await;
        for value in VALUES {
            let expression = value.replace("{k}", "d.k").replace("{n}", "d.n").replace("{s}", "d.s");
            let mut wanted = Vec::new();
            session.set_on_fallback(OnFallback::Silent);
            for row in &outer {
                let cells: Vec<&str> = row.split('|').collect();
                let text = if cells[2] == "NULL" { "NULL".to_string() } else { format!("'{}'", cells[2]) };
                let constant = value
                    .replace("{k}", &format!("CAST({} AS INT)", cells[0]))
                    .replace("{n}", &format!("CAST({} AS BIGINT)", cells[1]))
                    .replace("{s}", &format!("CAST({text} AS VARCHAR)"));
                let found = rows(&session, &format!("SELECT {constant} AS value")).await;
                wanted.push(format!("{row}|{}", found.join(",")));
            }
            wanted.sort();
            session.set_on_fallback(OnFallback::Error);
            let sql = format!("SELECT d.k, d.n, d.s, {expression} AS value FROM d");
            let mut found = rows(&session, &sql).await;
            found.sort();
            assert_eq!(found, wanted, "seed {seed}: {sql}");
        }
    }
}
