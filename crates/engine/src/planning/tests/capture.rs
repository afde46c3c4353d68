//! Golden plans of the SSB queries with the statistics of scale factor 10, and what capture leaves to the host.
//!
//! `UPDATE_GOLDENS=1` rewrites the goldens in `tests/plans`.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use arrow::datatypes::{DataType, Field as ArrowField, Schema};
use datafusion::{
    common::TableReference,
    datasource::empty::EmptyTable,
    execution::SessionState,
    logical_expr::{LogicalPlan, TableSource},
    prelude::SessionContext,
};
use tandem_column::{ColumnStatistics, Dictionary, Field, Type};
use tandem_pipeline::{Pipeline, Query};
use tandem_runtime::{Outline, OutlineItem, OutlineLine};

use crate::explain::render::render;
use crate::planning::{
    capture::capture,
    captured::Captured,
    options::CaptureOptions,
    reason::Reason,
    table_stats::{TableResolver, TableStats},
};
use crate::sql::nesting::STACK_BYTES;

/// Tables with made-up statistics.
#[derive(Default)]
pub(crate) struct Tables {
    stats: HashMap<String, TableStats>,
    context: SessionContext,
    /// How often each scan was lowered, all in all.
    resolved: AtomicUsize,
}

/// What is made up of a column.
pub(crate) enum Values {
    Key,                  // 1 to the number of rows, unique
    Range(i64, i64, f64), // first, last, distinct
    Words(Vec<String>),   // all texts, evenly
    Text,                 // nothing is known
    Other(DataType),      // nothing is known
}

impl Tables {
    pub(crate) fn add(&mut self, name: &str, rows: f64, columns: Vec<(&str, Values)>) {
        let mut fields = Vec::new();
        let mut arrow = Vec::new();
        let mut statistics = Vec::new();
        let mut dictionaries = Vec::new();
        for (name, values) in columns {
            let integer = |range, distinct, unique| ColumnStatistics {
                range: Some(range),
                distinct: Some(distinct),
                unique,
                ..ColumnStatistics::default()
            };
            let (kind, known, dictionary) = match values {
                Values::Key => (DataType::Int32, integer((1, rows as i64), rows, true), None),
                Values::Range(low, high, distinct) => (DataType::Int32, integer((low, high), distinct, false), None),
                Values::Words(words) => {
                    let (dictionary, _) = Dictionary::from_unsorted(&Type::String, &words).unwrap();
                    let distinct = ColumnStatistics { distinct: Some(words.len() as f64), ..Default::default() };
                    (DataType::Utf8View, distinct, Some(Arc::new(dictionary)))
                }
                Values::Text => (DataType::Utf8View, ColumnStatistics::default(), None),
                Values::Other(kind) => (kind, ColumnStatistics::default(), None),
            };
            if let Ok(kind) = Type::from_arrow(&kind) {
                fields.push(Field { name: name.into(), kind, nullable: false });
            } else {
                fields.push(Field { name: name.into(), kind: Type::Null, nullable: true });
            }
            arrow.push(ArrowField::new(name, kind, false));
            statistics.push(known);
            dictionaries.push(dictionary);
        }
        self.context
            .register_table(TableReference::bare(name), Arc::new(EmptyTable::new(Arc::new(Schema::new(arrow)))))
            .unwrap();
        let stats = TableStats { rows, fields: fields.into(), columns: statistics, dictionaries, rows_at_hand: None };
        self.stats.insert(name.into(), stats);
    }

    /// Returns the state of a session that has the tables.
    pub(crate) fn state(&self) -> SessionState {
        self.context.state()
    }

    pub(crate) async fn unoptimized(&self, sql: &str) -> LogicalPlan {
        self.context.sql(sql).await.unwrap().into_unoptimized_plan()
    }

    pub(crate) async fn optimized(&self, sql: &str) -> LogicalPlan {
        self.context.sql(sql).await.unwrap().into_optimized_plan().unwrap()
    }

    pub(crate) async fn capture(&self, sql: &str) -> (LogicalPlan, Vec<Reason>) {
        capture(self.optimized(sql).await, self, &CaptureOptions::default()).unwrap()
    }

    /// Captures a statement that is taken as a whole.
    pub(crate) async fn whole(&self, sql: &str) -> Captured {
        let (plan, reasons) = self.capture(sql).await;
        assert_eq!(reasons, vec![], "{sql}");
        captured(&plan).unwrap_or_else(|| panic!("not captured: {sql}")).clone()
    }
}

impl TableResolver for Tables {
    fn resolve(&self, _source: &Arc<dyn TableSource>, name: &TableReference) -> Option<TableStats> {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        self.stats.get(name.table()).cloned()
    }
}

/// Returns the captured node at the root of a plan.
pub(crate) fn captured(plan: &LogicalPlan) -> Option<&Captured> {
    match plan {
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
        _ => None,
    }
}

fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("{prefix}{number}")).collect()
}

/// The nations of SSB's five regions.
const NATIONS: [(&str, [&str; 5]); 5] = [
    ("AFRICA", ["ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"]),
    ("AMERICA", ["ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"]),
    ("ASIA", ["CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"]),
    ("EUROPE", ["FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"]),
    ("MIDDLE EAST", ["EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"]),
];

fn place(
    key: &'static str,
    city: &'static str,
    nation: &'static str,
    region: &'static str,
) -> Vec<(&'static str, Values)> {
    let nations: Vec<String> = NATIONS.iter().flat_map(|(_, nations)| nations).map(|n| n.to_string()).collect();
    let cities = nations.iter().flat_map(|n| (0..10).map(move |i| format!("{n:9.9}{i}"))).collect();
    let regions = NATIONS.iter().map(|(region, _)| region.to_string()).collect();
    vec![
        (key, Values::Key),
        (city, Values::Words(cities)),
        (nation, Values::Words(nations)),
        (region, Values::Words(regions)),
    ]
}

/// SSB at scale factor 10.
pub(crate) fn ssb() -> Tables {
    let mut tables = Tables::default();
    tables.add(
        "lineorder",
        59_986_052.0,
        vec![
            ("lo_orderkey", Values::Range(1, 60_000_000, 15e6)),
            ("lo_custkey", Values::Range(1, 300_000, 200e3)),
            ("lo_partkey", Values::Range(1, 800_000, 800e3)),
            ("lo_suppkey", Values::Range(1, 20_000, 20e3)),
            ("lo_orderdate", Values::Range(19920101, 19980802, 2406.0)),
            ("lo_quantity", Values::Range(1, 50, 50.0)),
            ("lo_extendedprice", Values::Range(90_000, 10_494_950, 1e6)),
            ("lo_discount", Values::Range(0, 10, 11.0)),
            ("lo_revenue", Values::Range(81_000, 10_494_950, 3e6)),
            ("lo_supplycost", Values::Range(54_000, 125_939, 1e4)),
        ],
    );
    tables.add("customer", 300_000.0, place("c_custkey", "c_city", "c_nation", "c_region"));
    tables.add("supplier", 20_000.0, place("s_suppkey", "s_city", "s_nation", "s_region"));
    let categories: Vec<String> = (1..=5).flat_map(|m| (1..=5).map(move |c| format!("MFGR#{m}{c}"))).collect();
    let brands = categories.iter().flat_map(|c| (1..=40).map(move |b| format!("{c}{b}"))).collect();
    tables.add(
        "part",
        800_000.0,
        vec![
            ("p_partkey", Values::Key),
            ("p_mfgr", Values::Words(numbered("MFGR#", 5))),
            ("p_category", Values::Words(categories)),
            ("p_brand1", Values::Words(brands)),
        ],
    );
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let year_months = (1992..=1998).flat_map(|year| months.iter().map(move |month| format!("{month}{year}"))).collect();
    tables.add(
        "date",
        2556.0,
        vec![
            ("d_datekey", Values::Key),
            ("d_year", Values::Range(1992, 1998, 7.0)),
            ("d_yearmonthnum", Values::Range(199201, 199812, 84.0)),
            ("d_yearmonth", Values::Words(year_months)),
            ("d_weeknuminyear", Values::Range(1, 53, 53.0)),
        ],
    );
    tables
}

fn project_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[tokio::test]
async fn ssb_plans_are_as_recorded() {
    let tables = ssb();
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut different = Vec::new();
    for query in ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3", "3.1", "3.2", "3.3", "3.4", "4.1", "4.2", "4.3"] {
        let sql = std::fs::read_to_string(project_root().join(format!("bench/suites/ssb/{query}.sql"))).unwrap();
        let captured = tables.whole(&sql).await;
        // These tables have statistics and no rows: what is decided by rows is not a part of these plans.
        let outlines: Vec<Option<Outline>> =
            captured.query.pipelines.iter().map(|pipeline| Some(in_words(&captured.query, pipeline))).collect();
        let text = render(&captured, &outlines, None, None);
        let golden = project_root().join(format!("tests/plans/ssb-{query}.txt"));
        if update {
            std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
            std::fs::write(&golden, &text).unwrap();
        } else if std::fs::read_to_string(&golden).unwrap_or_default() != text {
            different.push(format!("{query}:\n{text}"));
        }
    }
    assert!(different.is_empty(), "plans differ; review, then UPDATE_GOLDENS=1:\n{}", different.join("\n"));
}

fn in_words(query: &Query, pipeline: &Pipeline) -> Outline {
    let line = |text| OutlineLine { of: OutlineItem::Waiting, text, choice: None };
    Outline { lines: pipeline.describe(query).into_iter().map(line).collect() }
}

/// A star query is one pipeline over the fact table with one probe per dimension, and one build for each.
#[tokio::test]
async fn a_star_is_one_pipeline() {
    use tandem_pipeline::{JoinKind, Sink, Source, Step};
    let tables = ssb();
    let sql = std::fs::read_to_string(project_root().join("bench/suites/ssb/4.3.sql")).unwrap();
    let captured = tables.whole(&sql).await;
    let pipelines = &captured.query.pipelines;
    let builds = pipelines.iter().filter(|pipeline| matches!(pipeline.sink, Sink::Build { .. })).count();
    assert_eq!(builds, 4);
    let fact = pipelines.iter().find(|pipeline| matches!(pipeline.sink, Sink::Aggregate { .. })).unwrap();
    assert!(matches!(&fact.source, Source::Table { table, .. } if table.starts_with("lineorder#")));
    let kinds: Vec<JoinKind> = fact
        .steps
        .iter()
        .filter_map(|step| if let Step::Probe(probe) = step { Some(probe.kind) } else { None })
        .collect();
    // Only the customer's existence matters.
    assert_eq!(kinds.iter().filter(|kind| **kind == JoinKind::Semi).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == JoinKind::Inner).count(), 3);
}

#[tokio::test]
async fn what_is_not_taken_has_a_reason() {
    let mut tables = ssb();
    tables.add(
        "nested",
        10.0,
        vec![("k", Values::Key), ("l", Values::Other(DataType::new_list(DataType::Int32, true)))],
    );
    for (sql, reason) in [
        (
            "select lag(c_custkey, 0) ignore nulls over (order by c_custkey) from customer",
            "Window: lag of the row itself with IGNORE NULLS runs on the host",
        ),
        ("select sha512(c_city) from customer", "Projection: the function sha512 runs on the host"),
        ("select array_agg(c_custkey) from customer", "Aggregate: nested values run on the host"),
        ("select l from nested", "TableScan of nested: column l: nested values run on the host"),
        (
            "select count(*) from customer group by cube(c_custkey, c_custkey + 1, c_custkey + 2, c_custkey + 3, c_city, c_nation, c_region)",
            "Aggregate: more than 64 grouping sets run on the host",
        ),
    ] {
        let (_, reasons) = tables.capture(sql).await;
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        assert!(reasons.iter().any(|found| found == reason), "{sql}: {reasons:?}");
    }
}

#[tokio::test]
async fn the_rest_of_a_plan_is_taken_around_the_host() {
    let tables = ssb();
    let sql = "select c_region, max(n) from
        (select c_region, lag(c_custkey, 0) ignore nulls over (order by c_custkey) as n from customer) group by c_region";
    let (plan, reasons) = tables.capture(sql).await;
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let outer = captured(&plan).expect("the aggregate is taken");
    assert_eq!(outer.inputs.len(), 1);
    assert!(outer.inputs[0].display_indent().to_string().contains("Tandem"), "the scan below the window is taken");
}

#[tokio::test]
async fn a_plan_without_tables_stays() {
    let (plan, reasons) = ssb().capture("select 1").await;
    assert!(captured(&plan).is_none());
    assert_eq!(reasons, vec![]);
}

#[tokio::test]
async fn scalar_subqueries_join_without_keys() {
    use tandem_pipeline::{JoinKind, Step};
    let captured =
        ssb().whole("select c_city from customer where c_custkey > (select avg(s_suppkey) from supplier)").await;
    let probes: Vec<_> = captured
        .query
        .pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.steps)
        .filter_map(|step| if let Step::Probe(probe) = step { Some(probe) } else { None })
        .collect();
    assert_eq!(probes.len(), 1);
    assert_eq!((probes[0].kind, probes[0].keys.len()), (JoinKind::Left, 0));
}

/// Whatever stays on the host, and however deep, what is below is lowered once.
#[test]
fn no_sub_plan_is_lowered_twice() {
    let check = async |limit: &str| {
        let tables = ssb();
        let mut sql = "select c_custkey, c_city from customer".to_string();
        for level in 0..20 {
            sql = format!("select c_custkey, c_city from ({sql}) where sha512(c_city) <> 'x' {limit} {}", 1000 - level);
        }
        let (_, reasons) = tables.capture(&sql).await;
        assert!(!reasons.is_empty());
        assert_eq!(tables.resolved.load(Ordering::Relaxed), 1, "{sql}");
    };
    // Parsing and planning recurse, so that sessions have threads with such a stack.
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check("limit"));
        runtime.block_on(check("order by c_city limit"));
    });
    thread.unwrap().join().unwrap();
}
