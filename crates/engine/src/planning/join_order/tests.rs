//! Join order over made-up numbers.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::enumerate::{Outcome, Plan, Tree, exhaustive};
use super::graph::{Graph, Weighed, Work};
use super::heuristic::heuristic;

fn cheapest(graph: &Graph) -> Tree {
    super::enumerate::cheapest(graph).0
}

/// Returns the relations that flow past each other in the probing pipeline: the first, then the builds in order.
fn spine(tree: &Tree) -> Vec<u64> {
    match tree {
        Tree::Leaf(relation) => vec![1 << relation],
        Tree::Join { probe, build, .. } => {
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
    let rows = Weighed::new(&graph).cardinality(3);
    assert!((0.5e6..6.1e6).contains(&rows), "{rows}");
}

/// The shapes that joins come in.
const SHAPES: [&str; 4] = ["chain", "star", "cycle", "clique"];

/// Returns the pairs of relations that a shape connects.
fn edges(shape: &str, count: usize) -> Vec<(usize, usize)> {
    match shape {
        "chain" => (1..count).map(|i| (i - 1, i)).collect(),
        "star" => (1..count).map(|i| (0, i)).collect(),
        "cycle" => (0..count).map(|i| (i, (i + 1) % count)).filter(|(a, b)| a != b).collect(),
        _ => (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect(),
    }
}

fn generated(shape: &str, count: usize, random: &mut ChaCha8Rng) -> Graph {
    let base: Vec<f64> = (0..count).map(|_| 10f64.powf(random.random_range(0.0..7.0)).round()).collect();
    let rows = base.iter().map(|base| (base * random.random_range(0.001..1.0f64)).max(1.0)).collect();
    let distinct = |random: &mut ChaCha8Rng, rows: f64| (rows * random.random_range(0.01..1.0f64)).max(1.0);
    let classes = edges(shape, count)
        .into_iter()
        .map(|(a, b)| vec![(a, distinct(random, base[a])), (b, distinct(random, base[b]))])
        .collect();
    let conditions = if count > 2 { vec![(0b101, 0.3)] } else { vec![] };
    Graph { rows, base, classes, conditions }
}

fn all(count: usize) -> u64 {
    u64::MAX >> (64 - count)
}

#[test]
fn work_grows_as_a_polynomial_of_relations() {
    for shape in SHAPES {
        for count in 2..=64 {
            let graph = generated(shape, count, &mut ChaCha8Rng::seed_from_u64(count as u64));
            let (tree, Work { estimates, joins }) = super::enumerate::cheapest(&graph);
            assert_eq!(tree.mask(), all(count), "{shape} of {count}");
            // All sets and splits of twelve, or a few lines of all: a run has fewer divisions than relations.
            let (most_estimates, most_joins) = match count {
                ..=12 => (1 << (count + 1), 3usize.pow(count as u32)),
                _ => (4 * count * count + 8 * (1 << 9), count.pow(3) + 8 * 3usize.pow(9)),
            };
            assert!(estimates <= most_estimates, "{shape} of {count}: {estimates} estimates");
            assert!(joins <= most_joins, "{shape} of {count}: {joins} joins");
        }
    }
}

/// Adds up what a tree costs, from its leaves.
fn cost(weighed: &Weighed<'_>, tree: &Tree) -> Plan {
    match tree {
        Tree::Leaf(relation) => Plan { tree: tree.clone(), outcome: Outcome::leaf(weighed, *relation) },
        Tree::Join { probe, build, .. } => Plan::join(weighed, cost(weighed, probe), cost(weighed, build)),
    }
}

#[test]
fn the_heuristic_comes_near_the_best() {
    let (mut worst, mut sum, mut trials) = (1.0f64, 0.0, 0);
    for shape in SHAPES {
        for seed in 0..25 {
            let graph = generated(shape, 11, &mut ChaCha8Rng::seed_from_u64(seed));
            let weighed = Weighed::new(&graph);
            let (best, found) = (exhaustive(&weighed, all(11)), heuristic(&weighed, all(11)));
            let again = cost(&weighed, &found.tree).outcome.cost;
            assert!((again / found.outcome.cost - 1.0).abs() < 1e-9, "{shape}, seed {seed}: {again}");
            let ratio = found.outcome.cost / best.outcome.cost;
            assert!(ratio > 1.0 - 1e-9, "{shape}, seed {seed}: cheaper than the cheapest, {ratio}");
            worst = worst.max(ratio);
            sum += ratio.ln();
            trials += 1;
        }
    }
    let mean = (sum / f64::from(trials)).exp();
    assert!(mean < 1.05 && worst < 2.0, "mean {mean}, worst {worst}");
}

#[test]
fn rows_do_not_depend_on_how_classes_are_counted() {
    // Two equal expressions of one relation, and three relations in one class: as the definition says.
    let graph = Graph {
        rows: vec![100.0, 50.0, 20.0],
        base: vec![100.0, 50.0, 20.0],
        classes: vec![vec![(0, 10.0), (1, 50.0), (2, 20.0)], vec![(0, 5.0), (1, 4.0), (1, 8.0)]],
        conditions: vec![(0b110, 0.5)],
    };
    let weighed = Weighed::new(&graph);
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    near(weighed.cardinality(0b010), 50.0 / 8.0);
    near(weighed.cardinality(0b110), 50.0 * 20.0 / 50.0 / 8.0 * 0.5);
    near(weighed.joined(0b010, 0b100), 50.0 * 20.0 / 50.0 / 8.0);
    // The pair 0, 1 shares two classes: of their 50 × 5 values no more than 50 can be there.
    near(weighed.cardinality(0b011), 100.0 * 50.0 / 50.0 / (5.0 * 8.0) * (250.0 / 50.0));
}

#[test]
fn enormous_products_stay_numbers() {
    let graph = Graph {
        rows: vec![1e12; 64],
        base: vec![1e12; 64],
        classes: (1..64).map(|i| vec![(i - 1, 1.0), (i, 1.0)]).collect(),
        conditions: vec![(0b11, 0.0)],
    };
    let (tree, _) = super::enumerate::cheapest(&graph);
    assert_eq!(tree.mask(), u64::MAX);
}
