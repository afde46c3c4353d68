//! Statements nested too deeply fail with a sentence, and the shell lives on with its resident tables; long lists and
//! chains that people do write run.

mod common;

use common::*;

const TABLE: &str = "CREATE TABLE t AS SELECT value AS n, 's' || value AS s FROM generate_series(1, 10) AS g(value);";

fn chain(term: &str, operator: &str, length: usize) -> String {
    vec![term; length].join(operator)
}

fn nested(before: &str, inner: &str, after: &str, depth: usize) -> String {
    format!("{}{inner}{}", before.repeat(depth), after.repeat(depth))
}

/// Makes a statement of many parts, each of its number.
fn each(length: usize, separator: &str, part: impl Fn(usize) -> String) -> String {
    (0..length).map(part).collect::<Vec<_>>().join(separator)
}

#[test]
fn too_deep_is_a_sentence() {
    let (deep, absurd) = (10_000, 25_000);
    let sum = format!("n{}", " + 1".repeat(100));
    let views = each(30, "", |i| format!("CREATE VIEW v{} AS SELECT {sum} AS n FROM v{i};\n", i + 1));
    let statements = [
        chain("SELECT n FROM t", " UNION ALL ", deep),
        chain("SELECT n FROM t", " UNION ALL ", absurd),
        chain("SELECT n FROM t", " EXCEPT ", deep),
        format!("SELECT {} FROM t", chain("n", " + ", deep)),
        format!("SELECT {} FROM t", chain("n", " + ", absurd)),
        format!("SELECT {}", chain("1", " + ", deep)),
        format!("SELECT {} FROM t", chain("s", " || ", deep)),
        format!("SELECT {} FROM t", chain("s", " || ", absurd)),
        format!("SELECT count(*) FROM t WHERE {}", chain("n = 1", " OR ", deep)),
        format!("SELECT count(*) FROM t WHERE {}", chain("n = 1", " AND ", deep)),
        format!("SELECT count(*) FROM t WHERE {}", chain("n = 1", " AND ", absurd)),
        format!("SELECT {}", nested("(", "1", ")", deep)),
        format!("SELECT {}", nested("NOT ", "true", "", deep)),
        format!("SELECT {}", nested("- ", "1", "", deep)),
        format!("SELECT {} FROM t", nested("abs(", "n", ")", deep)),
        format!("SELECT {} FROM t", nested("CASE WHEN n = 1 THEN 1 ELSE ", "0", " END", deep)),
        format!("SELECT * FROM {}", nested("(SELECT * FROM ", "t", ")", deep)),
        format!("SELECT count(*) FROM t WHERE {}", nested("n IN (SELECT n FROM t WHERE ", "true", ")", deep)),
        format!("SELECT {}", nested("[", "1", "]", deep)),
        format!("SELECT CAST(NULL AS INT{})", "[]".repeat(deep)),
        format!("SELECT CAST(NULL AS {})", nested("ARRAY<", "INT", ">", deep)),
        format!("SELECT CAST(NULL AS {})", nested("STRUCT<a ", "INT", ">", deep)),
        format!("SELECT n{} FROM t", "::BIGINT".repeat(deep)),
        format!("SELECT n{} FROM t", " IS NULL".repeat(absurd)),
        format!("SELECT count(*) FROM {}", each(absurd, ", ", |i| format!("t t{i}"))),
        format!("SELECT count(*) FROM t {}", each(deep, " ", |i| format!("JOIN t t{i} ON true"))),
        format!(
            "WITH a0 AS (SELECT n FROM t), {} SELECT * FROM a{deep}",
            each(deep, ", ", |i| format!("a{} AS (SELECT n + 1 AS n FROM a{i})", i + 1))
        ),
        format!("COPY ({}) TO '/dev/null' STORED AS CSV", chain("SELECT n FROM t", " UNION ALL ", deep)),
        format!("EXPLAIN SELECT {} FROM t", chain("n", " + ", deep)),
        format!("INSERT INTO t SELECT {}, 's' FROM t", chain("n", " + ", deep)),
        format!("CREATE TABLE u AS SELECT {} AS n FROM t", chain("n", " + ", deep)),
        format!("PREPARE p AS SELECT {} FROM t", chain("n", " + ", deep)),
    ];
    for mode in ["auto", "host"] {
        let text = format!("{TABLE}\n{};\nSELECT count(*) AS alive FROM t;\n", statements.join(";\n"));
        let output = input(&["--format", "csv", "--on-fallback", "silent", "--mode", mode], &text);
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        assert!(out(&output).ends_with("alive\n10\n"), "{mode}: {}", out(&output));
        let errors = err(&output);
        for (number, line) in errors.lines().enumerate() {
            // Where the parser tries several ways, the last it tried is what it tells.
            let told = line.contains("nested too deeply") || line.starts_with("error: syntax error");
            assert!(told, "{mode} {number}: {line}");
        }
        assert_eq!(errors.lines().count(), statements.len(), "{mode}: {errors}");
    }
    // Views of views: some depth works, then a sentence.
    let text = format!("{TABLE}\nCREATE VIEW v0 AS SELECT n FROM t;\n{views}SELECT count(*) AS alive FROM v5;\n");
    let output = input(&["--format", "csv", "--on-fallback", "silent"], &text);
    assert!(out(&output).ends_with("alive\n10\n"), "{}", err(&output));
    assert!(err(&output).lines().next().is_some_and(|line| line.contains("nested too deeply")), "{}", err(&output));
}

#[test]
fn what_people_write_runs() {
    let statements = [
        chain("SELECT n FROM t", " UNION ALL ", 300).replacen("SELECT n", "SELECT count(*) AS c FROM (SELECT n", 1)
            + ")",
        format!("SELECT count(*) AS c FROM t WHERE {}", each(1_000, " OR ", |i| format!("n = {}", 2 * i))),
        format!("SELECT count(*) AS c FROM t WHERE {}", each(500, " OR ", |i| format!("(n = {i} AND s = 's{i}')"))),
        format!("SELECT count(*) AS c FROM t WHERE {}", each(1_000, " AND ", |i| format!("n <> {}", 2 * i))),
        format!("SELECT count(*) AS c FROM t WHERE n IN ({})", each(50_000, ", ", |i| (2 * i).to_string())),
        format!("SELECT count(*) AS c FROM t WHERE s IN ({})", each(20_000, ", ", |i| format!("'s{i}'"))),
        format!("SELECT max(CASE {} END) AS c FROM t", each(1_000, " ", |i| format!("WHEN n = {i} THEN {i}"))),
        format!("SELECT max({}) AS c FROM t", chain("n", " + ", 500)),
        format!("SELECT max(length({})) AS c FROM t", chain("s", " || ", 500)),
        format!("SELECT count(*) AS c FROM (VALUES {}) AS v(a)", each(20_000, ", ", |i| format!("({i} + 1)"))),
        format!("SELECT {} AS c", chain("1", " + ", 500)),
    ];
    let expected = [3_000, 5, 10, 5, 5, 10, 10, 5_000, 1_500, 20_000, 500];
    let text = format!("{TABLE}\n{};\n", statements.join(";\n"));
    let output = input(&["--format", "csv", "--on-fallback", "silent"], &text);
    let results: Vec<_> = succeeds(&output).lines().filter(|line| *line != "c").map(str::to_owned).collect();
    assert_eq!(results, expected.map(|number: u32| number.to_string()));
}

/// Every table joined with every other one has thousands of conditions, written at the joins or after them.
#[test]
fn a_clique_of_64_tables_runs() {
    let equal = |table: usize| each(table, " AND ", |other| format!("t{other}.n = t{table}.n"));
    let joins = format!("t t0 {}", each(63, " ", |i| format!("JOIN t t{} ON {}", i + 1, equal(i + 1))));
    let list = each(64, ", ", |i| format!("t t{i}"));
    let filters = each(64, " AND ", |i| format!("t{i}.n < {}", 5 + i));
    let all = format!("{} AND {filters}", each(63, " AND ", |i| equal(i + 1)));
    let text = format!(
        "{TABLE}\nSELECT count(*) AS c FROM {joins};\nSELECT count(*) AS c FROM {joins} WHERE {filters};\n\
         SELECT count(*) AS c FROM {list} WHERE {all};\n"
    );
    for mode in ["auto", "host"] {
        let output = input(&["--format", "csv", "--on-fallback", "silent", "--mode", mode], &text);
        let results: Vec<_> = succeeds(&output).lines().filter(|line| *line != "c").map(str::to_owned).collect();
        assert_eq!(results, ["10", "4", "4"], "{mode}");
    }
}
