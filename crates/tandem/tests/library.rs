//! The library as a program uses it: parameters, tables, functions, and reading results in either world.

use std::sync::Arc;

use futures::StreamExt;
use tandem::arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, ListArray, RecordBatch};
use tandem::arrow::datatypes::{DataType, Int32Type, Int64Type};
use tandem::arrow::util::display::{ArrayFormatter, FormatOptions};
use tandem::{Cancel, Class, Error, Mode, OnFallback, Parameter, Result, Session, SqlQuery, Where};

fn session() -> Session {
    Session::builder().threads(2).build().expect("a session starts")
}

/// A session with a table `t` of ten rows: n from 1 to 10, text, a date, a decimal.
fn filled() -> Session {
    let session = session();
    let columns = "CAST(value AS INTEGER) AS n, 'text' || value AS s, DATE '2024-01-01' + CAST(value AS INTEGER) AS d, \
                   CAST(value AS DECIMAL(10, 2)) AS m";
    run(session.sql(format!("CREATE TABLE t AS SELECT {columns} FROM generate_series(1, 10)")));
    session
}

/// Returns the rows of a query as text, values separated by bars.
fn run(query: SqlQuery) -> Vec<String> {
    text(&query.collect().expect("it runs"))
}

fn text(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).expect("it prints"))
            .collect();
        for row in 0..batch.num_rows() {
            rows.push(columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

fn refused(query: SqlQuery) -> Error {
    let error = query.collect().expect_err("it is refused");
    assert!(!error.message.contains('\n'), "{error}");
    error
}

#[test]
fn parameters_take_values_of_their_kind() {
    let session = filled();
    let count = |condition: &str, value: Parameter| {
        run(session.sql(format!("SELECT count(*) FROM t WHERE {condition}")).bind(value)).concat()
    };
    assert_eq!(count("n > $1", 7i64.into()), "3");
    assert_eq!(count("n > $1", 7u8.into()), "3");
    assert_eq!(count("n > $1", 7.5.into()), "3");
    assert_eq!(count("n > $1", None::<i32>.into()), "0");
    assert_eq!(count("n > $1", Parameter::null()), "0");
    assert_eq!(count("s = $1", "text3".into()), "1");
    assert_eq!(count("s LIKE $1", "text1%".to_string().into()), "2");
    assert_eq!(count("d < $1", "2024-01-05".into()), "3");
    assert_eq!(count("d < $1", Parameter::date(19_727)), "3");
    assert_eq!(count("m = $1", Parameter::decimal(300, 10, 2)), "1");
    assert_eq!(count("m >= $1", 3.into()), "8");
    assert_eq!(count("n IN ($1, 2, 3)", 9.into()), "3");
    assert_eq!(count("n = (SELECT max(n) FROM t WHERE n < $1)", 5.into()), "1");
    let twice = session.sql("SELECT n FROM t WHERE n = $2 OR (n = $1 AND m = $1)").parameters([1, 2]);
    assert_eq!(run(twice).len(), 2);
    assert_eq!(run(session.sql("SELECT n FROM t ORDER BY n LIMIT $1").bind(2)), ["1", "2"]);
    // Bound values are constants to the planner: nothing of this runs on the host.
    let query = session.sql("SELECT sum(n) FROM t WHERE n > $1").bind(7);
    let report = query.report();
    run(query);
    assert_eq!((report.placement(), report.reasons()), (Where::Cpu, Vec::new()));
}

#[test]
fn parameters_that_do_not_fit_are_one_sentence() {
    let session = filled();
    let wrong = |query: SqlQuery, words: &[&str]| {
        let error = refused(query);
        assert_eq!(error.class, Class::Input, "{error}");
        assert!(words.iter().all(|word| error.message.contains(word)), "{error}");
    };
    wrong(session.sql("SELECT n FROM t WHERE n > $1"), &["$1", "no value"]);
    wrong(session.sql("SELECT n FROM t WHERE n > $1").parameters([1, 2]), &["$1", "2 values"]);
    wrong(session.sql("SELECT n FROM t WHERE n BETWEEN $1 AND $2").bind(1), &["$2", "1 value"]);
    wrong(session.sql("SELECT n FROM t").bind(1), &["no parameters", "1 value"]);
    wrong(session.sql("SELECT n FROM t WHERE n > $1").bind("seven"), &["$1", "INTEGER", "VARCHAR", "seven"]);
    wrong(session.sql("SELECT n FROM t WHERE d > $1").bind(true), &["$1", "DATE", "BOOLEAN"]);
    wrong(session.sql("SELECT n FROM t WHERE d > $1").bind("yesterday"), &["$1", "DATE", "yesterday"]);
    wrong(session.sql("SELECT n FROM t WHERE n > $age").bind(1), &["$1", "$age"]);
    assert_eq!(run(session.sql("SELECT count(*) FROM t")), ["10"]);
}

#[test]
fn prepared_statements_keep_their_parameters() {
    let session = filled();
    run(session.sql("PREPARE above(INTEGER) AS SELECT count(*) FROM t WHERE n > $1"));
    assert_eq!(run(session.sql("EXECUTE above(4)")), ["6"]);
}

#[test]
fn batches_become_tables() {
    let session = session();
    let batch = |values: Vec<Option<i64>>| {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(values)) as ArrayRef)]).expect("one column")
    };
    session
        .register_batches("t", [batch(vec![Some(1), None]), batch(vec![]), batch(vec![Some(3)])])
        .expect("it is made");
    assert_eq!(run(session.sql("SELECT count(*), count(n), sum(n) FROM t")), ["3|2|4"]);
    // In place of the first.
    session.register_batches("t", [batch(vec![])]).expect("it is made");
    assert_eq!(run(session.sql("SELECT count(*) FROM t")), ["0"]);

    let error = session.register_batches("t", []).expect_err("no schema");
    assert!(error.class == Class::Input && error.message.contains("at least one batch"), "{error}");
    let other =
        RecordBatch::try_from_iter([("m", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).expect("one column");
    let error = session.register_batches("t", [batch(vec![]), other]).expect_err("two schemas");
    assert!(error.class == Class::Input && error.message.contains("same columns"), "{error}");
}

#[test]
fn types_without_a_resident_form_stay_with_the_host() {
    let session = session();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(2)]), None]);
    let batch = RecordBatch::try_from_iter([("l", Arc::new(lists) as ArrayRef)]).expect("one column");
    session.register_batches("t", [batch]).expect("it is made");
    let query = session.sql("SELECT array_length(l) FROM t");
    let report = query.report();
    assert_eq!(run(query), ["2", "NULL"]);
    assert!(!report.reasons().is_empty());
}

#[test]
fn closures_are_functions() {
    let session = filled();
    run(session.sql("CREATE TABLE u AS SELECT nullif(value, 3) AS n FROM generate_series(1, 11)"));
    session.register_function("twice", |n: i64| n * 2).expect("the name is free");
    session.register_function("half", |x: f64| x / 2.0).expect("the name is free");
    session.register_function("shout", |s: &str| s.to_uppercase() + "!").expect("the name is free");
    session.register_function("same", |a: &str, b: &str| a == b).expect("the name is free");
    session.register_function("either", |which: bool, a: i64, b: i64| if which { a } else { b }).expect("free");
    session.register_function("even", |n: i64| (n % 2 == 0).then_some(n)).expect("the name is free");
    session.register_function("Nth", |s: &str, n: i64| s.chars().nth(n as usize).map(String::from)).expect("free");
    let one = |expression: &str| run(session.sql(format!("SELECT {expression} FROM t WHERE n = 3"))).concat();
    assert_eq!(one("twice(n)"), "6");
    assert_eq!(one("half(n)"), "1.5");
    assert_eq!(one("shout(s)"), "TEXT3!");
    assert_eq!(one("same(s, 'text3')"), "true");
    assert_eq!(one("either(n > 5, 1, n)"), "3");
    assert_eq!(one("even(n)"), "NULL");
    assert_eq!(one("nth(s, 4)"), "3");
    assert_eq!(run(session.sql("SELECT count(*), count(twice(n)) FROM u")), ["11|10"]);
    assert_eq!(run(session.sql("SELECT twice(21)")), ["42"]);
    // A name may be given anew.
    session.register_function("twice", |n: i64| n * 20).expect("it was ours");
    assert_eq!(one("twice(n)"), "60");

    let query = session.sql("SELECT sum(twice(n)) FROM t");
    let report = query.report();
    run(query);
    assert!(report.reasons().iter().any(|reason| reason.contains("twice")), "{:?}", report.reasons());
}

#[test]
fn functions_that_fail_say_so_in_one_sentence() {
    let session = filled();
    session.register_function("parse", |s: &str| s.parse::<i64>()).expect("the name is free");
    session.register_function("burst", |n: i64| if n > 5 { panic!("too many: {n}") } else { n }).expect("free");
    let error = refused(session.sql("SELECT parse(s) FROM t"));
    assert!(error.class == Class::Input && error.message.starts_with("the function parse failed: invalid"), "{error}");
    let error = refused(session.sql("SELECT burst(n) FROM t"));
    assert_eq!(error.message, "the function burst panicked: too many: 6");
    assert_eq!(run(session.sql("SELECT count(burst(n)) FROM t WHERE n < 5")), ["4"]);

    let error = session.register_function("upper", |s: &str| s.len() as i64).expect_err("there is one");
    assert!(error.class == Class::Input && error.message.contains("upper"), "{error}");

    let short = |_: &[ArrayRef]| -> Result<ArrayRef> { Ok(Arc::new(Int64Array::from(vec![1]))) };
    session.register_array_function("short", &[DataType::Int64], DataType::Int64, short).expect("the name is free");
    let error = refused(session.sql("SELECT short(n) FROM t"));
    assert!(error.message.contains("10 values") && error.message.contains("returned 1"), "{error}");
}

#[test]
fn arrays_are_functions() {
    let session = filled();
    session
        .register_array_function("add_all", &[DataType::Int64, DataType::Int64], DataType::Int64, |columns| {
            let (a, b) = (columns[0].as_primitive::<Int64Type>(), columns[1].as_primitive::<Int64Type>());
            let sums = a.iter().zip(b).map(|(a, b)| Some(a? + b?));
            Ok(Arc::new(sums.collect::<Int64Array>()))
        })
        .expect("the name is free");
    assert_eq!(run(session.sql("SELECT sum(add_all(n, 1)) FROM t")), ["65"]);
}

#[test]
fn results_are_read_batch_by_batch() {
    let session = filled();
    let mut batches = session.sql("SELECT n, s FROM t").batches().expect("it is planned");
    assert_eq!(batches.schema().fields().len(), 2);
    let rows: usize = batches.by_ref().map(|batch| batch.expect("it runs").num_rows()).sum();
    assert_eq!((rows, batches.report().placement()), (10, Where::Cpu));
    assert!(batches.next().is_none());

    let mut failing = session.sql("SELECT CAST(s AS INTEGER) FROM t").batches().expect("it is planned");
    assert!(failing.next().expect("there is an error").is_err());
    assert!(failing.next().is_none());
}

#[tokio::test]
async fn either_world_works_within_a_runtime() {
    let session = filled();
    let awaited = session.sql("SELECT count(*) FROM t").await.expect("it runs");
    let blocked = session.sql("SELECT count(*) FROM t").collect().expect("it runs");
    assert_eq!(text(&awaited), text(&blocked));
    let mut stream = session.sql("SELECT n FROM t").stream().await.expect("it is planned");
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.expect("it runs").num_rows();
    }
    assert_eq!((rows, stream.report().placement()), (10, Where::Cpu));
}

#[test]
fn cancelled_statements_have_a_class_of_their_own() {
    let session = filled();
    let cancel = Cancel::new();
    let mut batches = session.sql("SELECT n FROM t").cancel(&cancel).batches().expect("it is planned");
    cancel.cancel();
    // What was on its way may still come.
    let error = batches.find_map(|batch| batch.err());
    assert!(error.is_none_or(|error| error.class == Class::Cancelled && error.is_cancelled()));
    let error = refused(session.sql("CREATE TABLE never AS SELECT 1 AS a").cancel(&cancel));
    assert!(error.class == Class::Cancelled && error.message == "the statement was cancelled", "{error}");
    assert_eq!(session.tables().len(), 1);
}

#[test]
fn a_report_tells_what_ran_where() {
    let session = filled();
    let query = session.sql("SELECT s, sum(n) FROM t WHERE n > 2 GROUP BY s ORDER BY s");
    let report = query.report();
    assert_eq!((report.progress().rows_done, report.pipelines().len()), (0, 0));
    run(query);
    let progress = report.progress();
    assert!(progress.rows_done >= 10 && progress.rows_done <= progress.rows_total, "{progress:?}");
    let pipelines = report.pipelines();
    assert!(pipelines.len() >= 2 && pipelines.iter().all(|pipeline| pipeline.devices.is_empty()), "{pipelines:?}");
    assert_eq!((pipelines[0].rows_in, pipelines[0].rows_out, &pipelines[0].reason), (10, 8, &None));
    assert_eq!(report.places(), "cpu");
}

/// A statement keeps the settings that it began with, whatever is set meanwhile.
#[test]
fn a_statement_keeps_its_settings() {
    let session = filled();
    session.set_on_fallback(OnFallback::Error);
    let window = "SELECT lag(n, 0) IGNORE NULLS OVER (ORDER BY n) FROM t";
    let error = refused(session.sql(window));
    assert_eq!(error.class, Class::Unsupported, "{error}");
    session.set_on_fallback(OnFallback::Silent);
    session.set_mode(Mode::Host);
    let mut batches = session.sql("SELECT n FROM t").batches().expect("it is planned");
    session.set_mode(Mode::Cpu);
    let rows: usize = batches.by_ref().map(|batch| batch.expect("it runs").num_rows()).sum();
    assert_eq!((rows, batches.report().placement()), (10, Where::Host));
    assert_eq!(session.config().mode, Mode::Cpu);
}
