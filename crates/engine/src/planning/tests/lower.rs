//! Expressions and operators, lowered: what each becomes, as text.

use arrow::datatypes::DataType;
use tandem_pipeline::{Sink, Step};

use super::capture::{Tables, Values};

fn tables() -> Tables {
    let mut tables = Tables::default();
    tables.add(
        "t",
        1000.0,
        vec![
            ("i", Values::Range(0, 99, 100.0)),
            ("j", Values::Range(0, 9, 10.0)),
            ("s", Values::Text),
            ("r", Values::Text),
            ("x", Values::Other(DataType::Float64)),
            ("d", Values::Other(DataType::Date32)),
            ("n", Values::Other(DataType::Decimal128(10, 2))),
            ("b", Values::Other(DataType::Boolean)),
        ],
    );
    tables
}

/// Returns the lines of all pipelines.
async fn lowered(sql: &str) -> String {
    let captured = tables().whole(sql).await;
    let query = &captured.query;
    query.pipelines.iter().flat_map(|pipeline| pipeline.describe(query)).collect::<Vec<_>>().join("\n")
}

/// Every expression here is taken; what it means is the interpreter's business, that it is the host's the engine tests'.
#[tokio::test]
async fn expressions_are_taken() {
    for expr in [
        "i + j * 2 - 1",
        "i / (j + 1)",
        "i % 7",
        "-i",
        "n * n",
        "n / 3",
        "x / 2.5",
        "s || r",
        "s || 'x'",
        "concat(s, r, 'x')",
        "i is null",
        "s is not null",
        "b is true",
        "b is not false",
        "b is unknown",
        "not b",
        "i is distinct from j",
        "i is not distinct from j",
        "s like 'a%'",
        "s not ilike '%B_'",
        "i in (1, 2, 3)",
        "i not in (1, j)",
        "i between 3 and j",
        "i not between 3 and 5",
        "case when i > 3 then 'a' when i > 2 then s end",
        "case i when 1 then 10 else j end",
        "cast(i as double)",
        "cast(i as bigint)",
        "cast(n as integer)",
        "try_cast(s as integer)",
        "cast(i as varchar)",
        "coalesce(i, j)",
        "nullif(i, j)",
        "extract(year from d)",
        "date_part('month', d)",
        "upper(s)",
        "lower(s)",
        "trim(s)",
        "ltrim(s)",
        "rtrim(s)",
        "length(s)",
        "octet_length(s)",
        "substr(s, 2)",
        "substring(s, 1, 2)",
        "left(s, 2)",
        "right(s, -1)",
        "replace(s, 'a', r)",
        "strpos(s, 'b')",
        "starts_with(s, 'a')",
        "ends_with(s, 'a')",
        "contains(s, 'a')",
        "reverse(s)",
        "abs(i)",
        "signum(x)",
        "round(x)",
        "round(x, 2)",
        "floor(x)",
        "ceil(x)",
        "power(x, 2.0)",
        "exp(x)",
        "ln(x)",
        "log10(x)",
        "log2(x)",
        "sin(x)",
        "cos(x)",
        "tan(x)",
        "atan(x)",
        "greatest(i, j)",
        "least(i, j)",
    ] {
        lowered(&format!("select {expr} as e from t")).await;
    }
}

#[tokio::test]
async fn expressions_that_differ_are_left() {
    let tables = tables();
    for expr in ["substr(s, -1)", "trim('x' from s)", "date_part('epoch', d)", "regexp_match(s, 'a')", "sha512(s)"] {
        let (_, reasons) = tables.capture(&format!("select {expr} as e from t")).await;
        assert_eq!(reasons.len(), 1, "{expr}: {reasons:?}");
    }
}

#[tokio::test]
async fn aggregates_are_taken() {
    let text = lowered(
        "select j, count(*), count(i), count(distinct i), sum(i), sum(n), avg(i), avg(n), min(s), max(d), var_samp(x),
         var_pop(x), stddev(x), stddev_pop(x), bool_and(b), bool_or(b), sum(i) filter (where b) from t group by j",
    )
    .await;
    assert!(text.contains("count_rows") || text.contains("count(*)"), "{text}");
}

/// The host truncates an average of decimals: a sum and a count, divided.
#[tokio::test]
async fn average_of_decimals_divides() {
    let captured = tables().whole("select avg(n) from t").await;
    let last = captured.query.pipelines.last().unwrap();
    assert!(matches!(last.steps[..], [Step::Let(_)]));
    assert_eq!(last.slots.last().unwrap().kind.to_string(), "decimal(14,6)");
}

#[tokio::test]
async fn only_live_columns_are_scanned() {
    let captured = tables().whole("select sum(j) from t where i < 10 and s <> 'x'").await;
    assert_eq!(captured.scans[0].columns, vec![0, 1, 2]);
    assert_eq!(captured.scans[0].predicates.len(), 2);
    let captured = tables().whole("select count(*) from t").await;
    assert_eq!(captured.scans[0].columns, Vec::<usize>::new());
}

#[tokio::test]
async fn sorts_and_limits_merge() {
    let captured = tables().whole("select i from t order by j desc limit 5 offset 3").await;
    assert_eq!(captured.query.pipelines.len(), 1);
    match &captured.query.pipelines[0].sink {
        Sink::Sort { skip: 3, fetch: Some(5), keys, .. } => assert!(keys[0].descending && keys[0].nulls_first),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn joins_of_every_kind_are_taken() {
    for sql in [
        "select a.i, b.s from t a join t b on a.i = b.j",
        "select a.i, b.s from t a left join t b on a.i = b.j and b.x > 1",
        "select a.i, b.s from t a right join t b on a.i = b.j",
        "select a.i, b.s from t a full join t b on a.i = b.j",
        "select a.i, b.s from t a cross join t b",
        "select a.i, b.s from t a join t b on a.i < b.j",
        "select i from t where i in (select j from t)",
        "select i from t where i not in (select j from t)",
        "select i from t a where exists (select 1 from t b where a.i = b.j and a.x <> b.x)",
        "select i from t a where not exists (select 1 from t b where a.i = b.j)",
        "select i from t where b or i in (select j from t)",
        "select i from t where i > (select max(j) from t)",
        "select i from t union all select j from t",
        "select i from t union select j from t",
        "select i from t intersect select j from t",
        "select i from t except select j from t",
        "select distinct s, r from t",
        "select column1 from (values (1), (2)) join t on column1 = i",
    ] {
        lowered(sql).await;
    }
}

/// The host takes both zeros for equal; the IR orders −0.0 before 0.0.
#[tokio::test]
async fn both_zeros_are_equal() {
    for (condition, filter) in [
        ("x = 0", "filter x in (-0.0, 0.0)"),
        ("x < 0", "filter x < -0.0"),
        ("x >= 0", "filter x >= -0.0"),
        ("x > 0", "filter x > 0.0"),
        ("x > 1", "filter x > 1.0"),
    ] {
        let text = lowered(&format!("select i from t where {condition}")).await;
        assert!(text.contains(filter), "{condition}: {text}");
    }
    assert!(lowered("select x, count(*) from t group by x").await.contains("x + 0.0"));
}
