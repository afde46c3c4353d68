//! What a build knows goes below groups, and equal parts run once: by the pipelines that a statement becomes.

use tandem_pipeline::{JoinKind, Query, Sink, Source, Step};

use super::capture::{Tables, Values};

/// A large table of sales, of parts and suppliers, and the smaller ones that these are keys of.
fn tables() -> Tables {
    let mut tables = Tables::default();
    let sales = vec![
        ("part", Values::Range(1, 20_000, 20_000.0)),
        ("supplier", Values::Range(1, 1_000, 1_000.0)),
        ("quantity", Values::Range(1, 50, 50.0)),
        ("price", Values::Range(1, 10_000, 10_000.0)),
    ];
    tables.add("sales", 600_000.0, sales);
    let part = vec![("id", Values::Key), ("brand", Values::Range(1, 1_000, 1_000.0))];
    tables.add("part", 20_000.0, part);
    let stock = vec![
        ("part", Values::Range(1, 20_000, 20_000.0)),
        ("supplier", Values::Range(1, 1_000, 1_000.0)),
        ("available", Values::Range(1, 9_999, 9_999.0)),
    ];
    tables.add("stock", 80_000.0, stock);
    tables
}

/// Returns the kinds of the probes of each pipeline that scans a table, with the build that each asks.
fn probes(query: &Query, table: &str) -> Vec<Vec<(JoinKind, usize)>> {
    let scans = query.pipelines.iter().filter(
        |pipeline| matches!(&pipeline.source, Source::Table { table: name, .. } if name.starts_with(&format!("{table}#"))),
    );
    let kinds = scans.map(|pipeline| {
        let probes = pipeline.steps.iter().filter_map(|step| match step {
            Step::Probe(probe) => Some((probe.kind, probe.build)),
            _ => None,
        });
        probes.collect()
    });
    kinds.collect()
}

/// Counts the pipelines that scan a table.
fn scans(query: &Query, table: &str) -> usize {
    probes(query, table).len()
}

#[tokio::test]
async fn a_filtered_build_reaches_rows_before_they_are_grouped() {
    let sql = "select sum(s.price) from sales s join part p on s.part = p.id where p.brand = 7
               and s.quantity < (select 0.2 * avg(t.quantity) from sales t where t.part = p.id)";
    let captured = tables().whole(sql).await;
    let probes = probes(&captured.query, "sales");
    assert_eq!(probes.len(), 2, "{}", captured.query);
    // Both scans ask the one build of the filtered parts first.
    assert_eq!(scans(&captured.query, "part"), 1, "{}", captured.query);
    assert!(probes.iter().all(|probes| probes.first().is_some_and(|(kind, _)| *kind == JoinKind::Semi)));
    assert_eq!(probes[0][0].1, probes[1][0].1, "{}", captured.query);
}

#[tokio::test]
async fn one_of_several_keys_is_enough() {
    let sql = "select k.supplier from stock k join (select part, supplier, sum(quantity) q from sales group by part, supplier) g
               on k.part = g.part and k.supplier = g.supplier
               where k.available > g.q and k.part in (select id from part where brand = 7)";
    let captured = tables().whole(sql).await;
    let grouped = captured.query.pipelines.iter().find(|pipeline| matches!(pipeline.sink, Sink::Aggregate { .. }));
    let steps = &grouped.expect("sales are grouped").steps;
    assert!(
        steps.iter().any(|step| matches!(step, Step::Probe(probe) if probe.kind == JoinKind::Semi)),
        "{}",
        captured.query
    );
    assert_eq!(scans(&captured.query, "part"), 1, "{}", captured.query);
}

/// Tells whether the scans of sales that are grouped ask a build first.
async fn reduced(sql: &str) -> bool {
    let captured = tables().whole(sql).await;
    probes(&captured.query, "sales").iter().any(|probes| !probes.is_empty())
}

#[tokio::test]
async fn only_sides_whose_rows_without_a_partner_are_not_given_are_reduced() {
    let grouped = "(select part, sum(price) total from sales group by part) g";
    let few = "(select id from part where brand = 7) p";
    assert!(reduced(&format!("select * from {grouped} join {few} on g.part = p.id")).await);
    assert!(reduced(&format!("select * from {few} left join {grouped} on g.part = p.id")).await);
    assert!(!reduced(&format!("select * from {grouped} left join {few} on g.part = p.id")).await);
    assert!(!reduced(&format!("select * from {grouped} full join {few} on g.part = p.id")).await);
    assert!(
        !reduced(&format!("select * from {grouped} where part not in (select id from part where brand = 7)")).await
    );
    // The key is not one that is grouped by, so that other groups depend on the rows.
    let total = "(select supplier, max(part) part from sales group by supplier) g";
    assert!(!reduced(&format!("select * from {total} join {few} on g.part = p.id")).await);
    // Of all parts nothing is dropped.
    assert!(!reduced(&format!("select * from {grouped} join part p on g.part = p.id")).await);
}

#[tokio::test]
async fn equal_groups_are_made_once() {
    let revenue = "select supplier, sum(price) total from sales where quantity < 10 group by supplier";
    let sql = format!(
        "with revenue as ({revenue}) select supplier, total from revenue where total = (select max(total) from revenue)"
    );
    let captured = tables().whole(&sql).await;
    assert_eq!(scans(&captured.query, "sales"), 1, "{}", captured.query);
    let readers = captured.query.pipelines.iter().filter(|pipeline| match &pipeline.source {
        Source::Result { pipelines } => pipelines
            .iter()
            .any(|id| matches!(&captured.query.pipelines[*id].sink, Sink::Aggregate { keys, .. } if !keys.is_empty())),
        _ => false,
    });
    assert_eq!(readers.count(), 2, "{}", captured.query);
    // Other rows are other groups.
    let sql = format!("select * from ({revenue}) a join ({}) b on a.total = b.total", revenue.replace("10", "11"));
    assert_eq!(scans(&tables().whole(&sql).await.query, "sales"), 2);
}
