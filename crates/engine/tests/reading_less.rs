//! What a build knows goes below groups, windows and unions, and equal parts run once: against the host, on random rows with
//! nulls and repeated keys, of tables so unequal in size that it pays.

mod support;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use support::{run, session, text};
use tandem_engine::{Mode, Session};

/// Makes a large table of two keys and two values, and two small ones; nulls in all columns, repeated keys in all but `p.id`.
async fn fill(session: &Session, random: &mut ChaCha8Rng) {
    let mut insert = async |name: &str, rows: usize, kinds: &[&str], ends: &[i64]| {
        let columns: Vec<String> = kinds.iter().map(|column| format!("{column} BIGINT")).collect();
        run(session, &format!("CREATE TABLE {name} ({})", columns.join(", "))).await.unwrap();
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let cells = ends.iter().map(|end| match end {
                0 => row.to_string(),
                _ if random.random_bool(0.05) => "NULL".to_string(),
                _ => random.random_range(0..*end).to_string(),
            });
            values.push(format!("({})", cells.collect::<Vec<_>>().join(", ")));
        }
        run(session, &format!("INSERT INTO {name} VALUES {}", values.join(", "))).await.unwrap();
    };
    insert("f", 3_000, &["a", "b", "x", "y"], &[400, 20, 100, 5]).await;
    insert("p", 400, &["id", "c"], &[0, 80]).await;
    insert("q", 500, &["a", "b", "z"], &[400, 20, 60]).await;
}

const QUERIES: [&str; 22] = [
    "SELECT g.a, g.s, p.c FROM (SELECT a, sum(x) s FROM f GROUP BY a) g JOIN p ON g.a = p.id WHERE p.c = 3",
    "SELECT sum(f.x) FROM f JOIN p ON f.a = p.id WHERE p.c = 3 AND f.x < (SELECT avg(t.x) FROM f t WHERE t.a = p.id)",
    "SELECT p.id, g.s FROM p LEFT JOIN (SELECT a, sum(x) s FROM f GROUP BY a) g ON g.a = p.id WHERE p.c = 3",
    "SELECT g.a, g.s, p.c FROM (SELECT a, sum(x) s FROM f GROUP BY a) g LEFT JOIN (SELECT * FROM p WHERE c = 3) p ON g.a = p.id",
    "SELECT g.a, g.s, p.c FROM (SELECT a, sum(x) s FROM f GROUP BY a) g FULL JOIN (SELECT * FROM p WHERE c = 3) p ON g.a = p.id",
    "SELECT a, count(*) FROM f GROUP BY a HAVING a IN (SELECT id FROM p WHERE c < 2)",
    "SELECT a, count(*) FROM f GROUP BY a HAVING a NOT IN (SELECT id FROM p WHERE c > 2)",
    "SELECT id FROM p WHERE c < 4 AND NOT EXISTS (SELECT 1 FROM (SELECT a, sum(x) s FROM f GROUP BY a) g WHERE g.a = p.id AND g.s > 300)",
    "SELECT id FROM p WHERE c < 4 AND id NOT IN (SELECT a FROM f GROUP BY a HAVING count(*) > 5 AND a IS NOT NULL)",
    "SELECT id, c FROM p WHERE c < 4 OR id IN (SELECT a FROM f GROUP BY a HAVING count(*) > 8)",
    "SELECT q.a, q.b FROM q JOIN (SELECT a, b, sum(x) s FROM f GROUP BY a, b) g ON q.a = g.a AND q.b = g.b WHERE q.z < g.s AND q.a IN (SELECT id FROM p WHERE c = 3)",
    "SELECT w.a, w.x, w.r FROM (SELECT a, x, count(*) OVER (PARTITION BY a) r FROM f) w JOIN p ON w.a = p.id WHERE p.c = 3",
    "SELECT w.a, w.x, w.r FROM (SELECT a, x, count(*) OVER (PARTITION BY b) r FROM f) w JOIN p ON w.a = p.id WHERE p.c = 3",
    "SELECT u.a, p.c FROM (SELECT a, x FROM f UNION ALL SELECT a, z FROM q) u JOIN p ON u.a = p.id WHERE p.c = 3",
    "SELECT u.a, u.s FROM (SELECT a, sum(x) s FROM (SELECT a, x FROM f UNION ALL SELECT a, z FROM q) GROUP BY a) u JOIN p ON u.a = p.id WHERE p.c = 3",
    "SELECT g.b, g.m FROM (SELECT b, max(a) m FROM f GROUP BY b) g JOIN p ON g.m = p.id WHERE p.c < 40",
    "WITH g AS (SELECT a, sum(x) s FROM f WHERE y < 3 GROUP BY a) SELECT a, s FROM g WHERE s = (SELECT max(s) FROM g)",
    "WITH g AS (SELECT a, sum(x) s, count(*) n FROM f GROUP BY a) SELECT l.a, r.a, r.n FROM g l JOIN g r ON l.s = r.s WHERE l.n < 6",
    "WITH g AS (SELECT a, b, x FROM f WHERE x < 5) SELECT l.a, r.b FROM g l JOIN g r ON l.a = r.a AND l.b = r.b",
    "SELECT f.a, q.z FROM f, q, p WHERE f.a = q.a AND f.b = q.b AND p.id = q.a AND p.c < 4",
    "SELECT count(*) FROM f, p WHERE f.a = p.id AND p.c = 3 AND NOT EXISTS (SELECT 1 FROM f o WHERE o.a = f.a AND o.b <> f.b AND o.x > 50)",
    "SELECT f.b, count(*) FROM f, p WHERE f.a = p.id AND p.c = 3 AND EXISTS (SELECT 1 FROM f o WHERE o.a = f.a AND o.b <> f.b) GROUP BY f.b",
];

#[tokio::test]
async fn tandem_and_host_agree() {
    for seed in 0..4 {
        let session = session(Mode::Auto);
        fill(&session, &mut ChaCha8Rng::seed_from_u64(seed)).await;
        for sql in QUERIES {
            let mut results = Vec::new();
            for mode in [Mode::Host, Mode::Auto] {
                session.set_mode(mode);
                let batches =
                    run(&session, sql).await.unwrap_or_else(|error| panic!("seed {seed}, {mode}, {sql}: {error}"));
                let mut rows = text(&batches);
                rows.sort();
                results.push(rows);
            }
            assert_eq!(results[1], results[0], "seed {seed}: {sql}");
        }
    }
}

#[tokio::test]
async fn explain_shows_the_build_that_filters_and_the_rows_that_are_shared() {
    let session = session(Mode::Auto);
    fill(&session, &mut ChaCha8Rng::seed_from_u64(1)).await;
    let explained = async |sql: &str| text(&run(&session, &format!("EXPLAIN {sql}")).await.unwrap()).join("\n");
    let plan = explained(QUERIES[1]).await;
    assert_eq!(plan.matches("probe semi 0 on (a)").count(), 2, "{plan}");
    assert_eq!(plan.matches("scan \"p#").count(), 1, "{plan}");
    let plan = explained(QUERIES[16]).await;
    assert_eq!(plan.matches("result 0 ").count(), 2, "{plan}");
    assert_eq!(plan.matches("scan \"f#").count(), 1, "{plan}");
}

/// Keys too far apart for an array, in a domain small enough for a bit each; nulls on both sides, repeated keys in `many`.
const SPARSE: [&str; 3] = [
    "CREATE TABLE large AS SELECT CASE WHEN value % 41 = 0 THEN NULL ELSE value * 4099 % 100003 * 101 END AS k, value AS v FROM generate_series(1, 200000) t(value)",
    "CREATE TABLE few AS SELECT CASE WHEN value % 7 = 0 THEN NULL ELSE value * 101 * 97 END AS k, value % 5 AS c, -value AS n FROM generate_series(0, 1000) t(value)",
    "CREATE TABLE many AS SELECT k, c, n + i AS n FROM few, generate_series(0, 3) t(i)",
];

#[tokio::test]
async fn bits_of_hashed_keys_drop_rows_ahead_of_the_look_up() {
    let session = session(Mode::Auto);
    support::run_all(&session, &SPARSE).await;
    let queries = [
        "SELECT count(*), sum(v), sum(n) FROM large JOIN few ON large.k = few.k",
        "SELECT count(*), sum(v), sum(n) FROM large JOIN many ON large.k = many.k WHERE c < 3",
        "SELECT count(*), sum(v), sum(n) FROM large JOIN many ON large.k = many.k AND v % 3 > n % 2",
        "SELECT count(*), sum(v) FROM large WHERE EXISTS (SELECT 1 FROM many WHERE many.k = large.k AND n + v <> 7)",
        "SELECT count(*), sum(v), sum(n) FROM large LEFT JOIN few ON large.k = few.k",
        "SELECT count(*), sum(v), sum(n) FROM large JOIN few ON large.k IS NOT DISTINCT FROM few.k",
        "SELECT count(*), sum(v) FROM large WHERE k NOT IN (SELECT k FROM few WHERE k IS NOT NULL)",
    ];
    for (at, sql) in queries.into_iter().enumerate() {
        session.set_mode(Mode::Host);
        let expected = support::rows(&session, sql).await;
        session.set_mode(Mode::Auto);
        assert_eq!(support::rows(&session, sql).await, expected, "{sql}");
        let plan = support::rows(&session, &format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
        // The first four drop rows without a match; outer joins, joins of nulls and anti joins keep some of them.
        assert_eq!(plan.contains("the key of build"), at < 4, "{sql}\n{plan}");
    }
}
