//! Statements that join many tables, from text to pipelines: what planning does grows as a polynomial.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{OptimizerContext, OptimizerRule};

use super::capture::{Tables, Values};
use crate::planning::cross_joins::CrossJoins;

/// Returns tables and a statement over them that joins `count` of them in a shape, each with a filter or none.
fn joined(shape: &str, count: usize, filtered: bool) -> (Tables, String) {
    let mut tables = Tables::default();
    for table in 0..count {
        let columns = vec![("id", Values::Key), ("a", Values::Range(1, 90, 90.0)), ("b", Values::Range(1, 50, 50.0))];
        tables.add(&format!("t{table}"), 100.0 + table as f64, columns);
    }
    let mut sql = "select count(*) from t0".to_string();
    for table in 1..count {
        let on = match shape {
            "chain" => format!("t{}.a = t{table}.b", table - 1),
            "star" => format!("t0.a = t{table}.id"),
            "cycle" if table == count - 1 && table > 1 => {
                format!("t{}.a = t{table}.b and t{table}.a = t0.b", table - 1)
            }
            "cycle" => format!("t{}.a = t{table}.b", table - 1),
            "outer" => format!("t{}.a = t{table}.b", table - 1),
            _ => (0..table).map(|other| format!("t{other}.id = t{table}.id")).collect::<Vec<_>>().join(" and "),
        };
        let kind = if shape == "outer" { "left join" } else { "join" };
        sql.push_str(&format!(" {kind} t{table} on {on}"));
    }
    if filtered {
        let filters: Vec<String> = (0..count).map(|table| format!("t{table}.a < {}", 20 + table)).collect();
        sql.push_str(&format!(" where {}", filters.join(" and ")));
    }
    (tables, sql)
}

/// Returns how many nodes may be looked at: a few times each, and what is unique is asked of each side of each join, of as
/// many sets of keys as there are joins above.
fn most(count: usize) -> usize {
    10 * count + 2 * count * count
}

#[tokio::test]
async fn estimating_looks_at_each_node_a_few_times() {
    for shape in ["chain", "star", "cycle", "clique", "outer"] {
        for count in [2, 3, 8, 12, 13, 20, 32, 48, 64] {
            // A filter on the right side of an outer join makes it an inner one.
            for filtered in [false, true].into_iter().take(if shape == "outer" { 1 } else { 2 }) {
                let (tables, sql) = joined(shape, count, filtered);
                let captured = tables.whole(&sql).await;
                assert!(captured.looked <= most(count), "{shape} of {count}: looked at {} nodes", captured.looked);
                assert_eq!(captured.estimates.len(), captured.query.pipelines.len());
                assert!(captured.estimates.iter().all(|rows| rows.is_finite()), "{:?}", captured.estimates);
            }
        }
    }
}

#[tokio::test]
async fn more_relations_than_a_mask_holds_are_joined_in_a_line() {
    for shape in ["chain", "star", "cycle"] {
        let (tables, sql) = joined(shape, 90, true);
        let captured = tables.whole(&sql).await;
        assert_eq!(captured.query.pipelines.len(), 90);
        assert!(captured.looked <= most(90), "{shape}: looked at {} nodes", captured.looked);
    }
}

/// Equalities of a WHERE become keys, whatever the order of the tables; what connects nothing stays a condition.
#[tokio::test]
async fn equalities_become_keys_of_joins() {
    let (tables, _) = joined("chain", 30, false);
    // Of a chain, every other table first: most tables come before those that they are joined by.
    let list: Vec<String> = (0..30).step_by(2).chain((1..30).step_by(2)).map(|table| format!("t{table}")).collect();
    let mut conditions: Vec<String> = (1..30).map(|table| format!("t{}.a = t{table}.b", table - 1)).collect();
    conditions.extend(["t3.a < t9.b".to_owned(), "t4.id = 7".to_owned(), "t1.a + t2.a = t5.a".to_owned()]);
    let sql = format!("select t7.a, t3.b from {} where {}", list.join(", "), conditions.join(" and "));
    let plan = tables.unoptimized(&sql).await;
    let rewritten = CrossJoins::default().rewrite(plan.clone(), &OptimizerContext::new()).unwrap().data;
    assert_eq!(rewritten.schema(), plan.schema());
    let (mut keys, mut without) = (0, 0);
    rewritten
        .apply(|node| {
            if let LogicalPlan::Join(join) = node {
                keys += join.on.len();
                without += usize::from(join.on.is_empty());
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
    assert_eq!((keys, without), (29, 0), "{}", rewritten.display_indent());
    let text = rewritten.display_indent().to_string();
    for condition in ["t3.a < t9.b", "t4.id = Int64(7)", "t1.a + t2.a = t5.a"] {
        assert!(text.contains(condition), "{condition} in {text}");
    }
}
