//! Join order over made-up numbers.

use super::enumerate::{Graph, Tree, cheapest};

/// Returns the relations that flow past each other in the probing pipeline: the first, then the builds in order.
fn spine(tree: &Tree) -> Vec<u64> {
    match tree {
        Tree::Leaf(relation) => vec![1 << relation],
        Tree::Join { probe, build } => {
            let mut order = spine(probe);
            order.push(build.mask());
            order
        }
    }
}

#[test]
fn a_star_probes_the_most_selective_dimension_first() {
    let graph = Graph {
        rows: vec![60e6, 2556.0, 32e3, 4e3],
        base: vec![60e6, 2556.0, 800e3, 20e3],
        classes: vec![vec![(0, 2406.0), (1, 2556.0)], vec![(0, 800e3), (2, 800e3)], vec![(0, 20e3), (3, 20e3)]],
        conditions: vec![],
    };
    assert_eq!(spine(&cheapest(&graph)), vec![1, 4, 8, 2]);
}

#[test]
fn the_larger_side_probes() {
    let graph = Graph {
        rows: vec![10.0, 1000.0],
        base: vec![10.0, 1000.0],
        classes: vec![vec![(0, 10.0), (1, 10.0)]],
        conditions: vec![],
    };
    assert_eq!(spine(&cheapest(&graph)), vec![2, 1]);
}

#[test]
fn a_snowflake_is_bushy() {
    // A fact table, a dimension, and a tiny filtered table that reduces only the dimension.
    let graph = Graph {
        rows: vec![1e6, 1e5, 1.0],
        base: vec![1e6, 1e5, 25.0],
        classes: vec![vec![(0, 1e5), (1, 1e5)], vec![(1, 25.0), (2, 25.0)]],
        conditions: vec![],
    };
    assert_eq!(spine(&cheapest(&graph)), vec![1, 6]);
}

#[test]
fn equalities_follow_from_others() {
    // a = b and b = c: joining a with c first is possible, and best when b is huge.
    let graph = Graph {
        rows: vec![10.0, 1e7, 10.0],
        base: vec![10.0, 1e7, 10.0],
        classes: vec![vec![(0, 10.0), (1, 1e6), (2, 10.0)]],
        conditions: vec![],
    };
    let tree = cheapest(&graph);
    assert_eq!(spine(&tree), vec![2, 5]);
}

#[test]
fn unconnected_relations_are_multiplied_last() {
    let graph = Graph {
        rows: vec![100.0, 1000.0, 3.0],
        base: vec![100.0, 1000.0, 3.0],
        classes: vec![vec![(0, 100.0), (1, 100.0)]],
        conditions: vec![],
    };
    assert_eq!(spine(&cheapest(&graph)), vec![2, 1, 4]);
}

#[test]
fn keys_of_several_columns_are_no_rarer_than_rows() {
    let graph = Graph {
        rows: vec![6e6, 800e3],
        base: vec![6e6, 800e3],
        classes: vec![vec![(0, 200e3), (1, 200e3)], vec![(0, 10e3), (1, 10e3)]],
        conditions: vec![],
    };
    let rows = graph.cardinality(3);
    assert!((0.5e6..6.1e6).contains(&rows), "{rows}");
}

#[test]
fn many_relations_are_ordered_greedily() {
    let count = 30;
    let graph = Graph {
        rows: (0..count).map(|i| 10.0 + i as f64).collect(),
        base: vec![100.0; count],
        classes: (1..count).map(|i| vec![(i - 1, 10.0), (i, 10.0)]).collect(),
        conditions: vec![],
    };
    assert_eq!(cheapest(&graph).mask(), (1 << count) - 1);
}
