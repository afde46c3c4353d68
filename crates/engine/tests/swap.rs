//! Where estimates mislead, and the side that was to be built turns out to be the larger one, the other one is built.

mod support;

use support::{rows, run_all, session};
use tandem_engine::Mode;

/// What every row fulfils, and what nobody knows without looking.
const OPAQUE: &str =
    "abs(v - 1) < v AND abs(v - 2) <= v AND abs(v - 3) <= v + 2 AND abs(v - 4) <= v + 3 AND abs(v - 5) <= v + 4";

#[tokio::test]
async fn a_build_that_turns_out_large_is_not_built() {
    let session = session(Mode::Auto);
    run_all(
        &session,
        &[
            "CREATE TABLE large AS SELECT (i * 7919) % 1000003 * 1000003 AS k, i AS v FROM generate_series(1, 100000) AS s(i)",
            "CREATE TABLE small AS SELECT (i * 23757) % 1000003 * 1000003 AS k, i AS w FROM generate_series(1, 5000) AS s(i)",
        ],
    )
    .await;
    // Conditions on a table's rows would be tried on some of them; behind a limit nobody knows.
    let large = format!("(SELECT * FROM (SELECT * FROM large ORDER BY v LIMIT 100000) WHERE {OPAQUE}) l");
    for sql in [
        format!("SELECT count(*), sum(v), sum(w) FROM small s JOIN {large} ON s.k = l.k"),
        format!("SELECT count(*), sum(v), sum(w), count(v) FROM small s LEFT JOIN {large} ON s.k = l.k AND w < v"),
        format!("SELECT w, v FROM small s JOIN {large} ON s.k = l.k ORDER BY w LIMIT 7"),
        format!("SELECT count(*), sum(w) FROM small s WHERE NOT EXISTS (SELECT 1 FROM {large} WHERE l.k = s.k)"),
    ] {
        session.set_mode(Mode::Host);
        let expected = rows(&session, &sql).await;
        session.set_mode(Mode::Auto);
        assert_eq!(rows(&session, &sql).await, expected, "{sql}");
        let plan = rows(&session, &format!("EXPLAIN ANALYZE {sql}")).await.join("\n");
        assert!(plan.contains("100000 rows, of the other side at most 5000: sides swapped"), "{plan}");
    }
}
