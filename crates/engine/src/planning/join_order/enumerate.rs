//! Finds the cheapest tree of inner joins: dynamic programming over sets of relations, greedy for many.
//!
//! Pure: it sees only numbers. A set of relations is a bit mask. The rows of a set do not depend on how it is joined:
//! the product of its relations' rows and of the selectivities of all equalities and conditions within it.

use super::BUILD_WEIGHT;

/// Relations up to which all bushy trees are considered: 3^12 splits are half a million.
const EXHAUSTIVE: usize = 12;
/// Relations that a mask holds.
pub(crate) const MOST_RELATIONS: usize = 64;
/// Build rows that fit a core's caches well; probing larger builds waits for memory.
const CACHED_ROWS: f64 = 4096.0;

/// What is to be joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// Each relation's rows after its own filters.
    pub rows: Vec<f64>,
    /// Each relation's rows before them.
    pub base: Vec<f64>,
    /// Sets of expressions that must be equal: the relation of each and its distinct values before filters.
    pub classes: Vec<Vec<(usize, f64)>>,
    /// Conditions on several relations: which, and the share of rows that fulfil them.
    pub conditions: Vec<(u64, f64)>,
}

/// A tree of joins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Leaf(usize),
    Join { probe: Box<Tree>, build: Box<Tree> },
}

impl Tree {
    /// Returns the relations in a tree.
    pub(crate) fn mask(&self) -> u64 {
        match self {
            Tree::Leaf(relation) => 1 << relation,
            Tree::Join { probe, build } => probe.mask() | build.mask(),
        }
    }
}

#[derive(Clone)]
struct Plan {
    tree: Tree,
    mask: u64,
    rows: f64,
    cost: f64,
}

/// Returns the cheapest tree over all relations (at least one, at most [`MOST_RELATIONS`]).
pub(crate) fn cheapest(graph: &Graph) -> Tree {
    let mut plans: Vec<Plan> = components(graph)
        .into_iter()
        .map(|component| {
            if component.count_ones() as usize <= EXHAUSTIVE {
                exhaustive(graph, component)
            } else {
                greedy(graph, component)
            }
        })
        .collect();
    // What nothing connects is multiplied at the end, the largest part flowing past the others.
    plans.sort_by(|a, b| b.rows.total_cmp(&a.rows));
    let mut plans = plans.into_iter();
    let first = plans.next().expect("a region has at least one relation");
    plans.fold(first, |plan, next| join(graph, &plan, &next)).tree
}

impl Graph {
    /// Returns the relations that share an equality with each relation.
    fn neighbours(&self) -> Vec<u64> {
        let mut neighbours = vec![0; self.rows.len()];
        for class in &self.classes {
            let all = class.iter().fold(0u64, |mask, (relation, _)| mask | 1 << relation);
            for (relation, _) in class {
                neighbours[*relation] |= all & !(1 << relation);
            }
        }
        neighbours
    }

    /// Estimates the rows of a set of relations joined.
    pub(crate) fn cardinality(&self, mask: u64) -> f64 {
        let within = |relation: usize| mask & (1 << relation) != 0;
        let mut rows: f64 = (0..self.rows.len()).filter(|r| within(*r)).map(|r| self.rows[r]).product();
        for class in &self.classes {
            // Of k equal expressions the smallest domain is kept; each other one divides.
            let mut domains: Vec<f64> =
                class.iter().filter(|(relation, _)| within(*relation)).map(|(_, distinct)| distinct.max(1.0)).collect();
            domains.sort_by(f64::total_cmp);
            rows /= domains.iter().skip(1).product::<f64>();
        }
        rows *= self.composite_correction(mask);
        for (relations, selectivity) in &self.conditions {
            if relations & mask == *relations {
                rows *= selectivity;
            }
        }
        rows
    }

    /// Two relations equal in several expressions: together these have no more distinct values than there are rows.
    fn composite_correction(&self, mask: u64) -> f64 {
        let mut factor = 1.0;
        for a in 0..self.rows.len() {
            for b in a + 1..self.rows.len() {
                if mask & (1 << a) == 0 || mask & (1 << b) == 0 {
                    continue;
                }
                let (mut product_a, mut product_b, mut divided, mut shared) = (1.0, 1.0, 1.0, 0);
                for class in &self.classes {
                    let find = |r: usize| class.iter().find(|(relation, _)| *relation == r).map(|(_, d)| d.max(1.0));
                    if let (Some(in_a), Some(in_b)) = (find(a), find(b)) {
                        product_a *= in_a;
                        product_b *= in_b;
                        divided *= in_a.max(in_b);
                        shared += 1;
                    }
                }
                if shared > 1 {
                    let possible = f64::max(product_a.min(self.base[a]), product_b.min(self.base[b])).max(1.0);
                    factor *= (divided / possible).max(1.0);
                }
            }
        }
        factor
    }
}

fn leaf(graph: &Graph, relation: usize) -> Plan {
    Plan { tree: Tree::Leaf(relation), mask: 1 << relation, rows: graph.rows[relation], cost: 0.0 }
}

/// Joins two plans, the side that costs less being built.
fn join(graph: &Graph, a: &Plan, b: &Plan) -> Plan {
    let mask = a.mask | b.mask;
    join_to(a, b, mask, graph.cardinality(mask))
}

fn join_to(a: &Plan, b: &Plan, mask: u64, rows: f64) -> Plan {
    let (cost_ab, cost_ba) = (lookup_cost(a, b), lookup_cost(b, a));
    let (probe, build, cost) = if cost_ab <= cost_ba { (a, b, cost_ab) } else { (b, a, cost_ba) };
    let tree = Tree::Join { probe: Box::new(probe.tree.clone()), build: Box::new(build.tree.clone()) };
    Plan { tree, mask, rows, cost: a.cost + b.cost + cost + rows }
}

/// Returns what building one plan and looking the other's rows up in it costs, in rows looked up in a small build.
fn lookup_cost(probe: &Plan, build: &Plan) -> f64 {
    let miss = (1.0 + build.rows / CACHED_ROWS).log2() / 8.0;
    // A build of joined relations carries the columns of each of them.
    let width = f64::from(build.mask.count_ones());
    probe.rows * (1.0 + miss) + build.rows * BUILD_WEIGHT * width
}

/// Returns the sets of relations that equalities connect.
fn components(graph: &Graph) -> Vec<u64> {
    let neighbours = graph.neighbours();
    let mut left: u64 = (0..graph.rows.len()).fold(0, |mask, relation| mask | 1 << relation);
    let mut found = Vec::new();
    while left != 0 {
        let mut component = left & left.wrapping_neg();
        loop {
            let grown = (0..graph.rows.len())
                .filter(|relation| component & (1 << relation) != 0)
                .fold(component, |mask, relation| mask | neighbours[relation]);
            if grown == component {
                break;
            }
            component = grown;
        }
        found.push(component);
        left &= !component;
    }
    found
}

/// Considers every tree without cross products over a connected set.
fn exhaustive(graph: &Graph, component: u64) -> Plan {
    let members: Vec<usize> = (0..graph.rows.len()).filter(|relation| component & (1 << relation) != 0).collect();
    let neighbours = graph.neighbours();
    let spread = |local: usize| {
        members.iter().enumerate().filter(|(i, _)| local & (1 << i) != 0).fold(0u64, |mask, (_, r)| mask | 1 << r)
    };
    let size = 1usize << members.len();
    let mut plans: Vec<Option<Plan>> = vec![None; size];
    let mut around: Vec<u64> = vec![0; size];
    for local in 1..size {
        let lowest = local.trailing_zeros() as usize;
        around[local] = around[local & (local - 1)] | neighbours[members[lowest]];
        if local.is_power_of_two() {
            plans[local] = Some(leaf(graph, members[lowest]));
            continue;
        }
        let mask = spread(local);
        let mut rows = None;
        let mut best: Option<Plan> = None;
        let mut part = (local - 1) & local;
        while part != 0 {
            // Each split is seen once: the part with the lowest relation is `part`.
            if part & (1 << lowest) != 0
                && let (Some(a), Some(b)) = (&plans[part], &plans[local ^ part])
                && around[part] & b.mask != 0
            {
                let rows = *rows.get_or_insert_with(|| graph.cardinality(mask));
                let plan = join_to(a, b, mask, rows);
                if best.as_ref().is_none_or(|best| plan.cost < best.cost) {
                    best = Some(plan);
                }
            }
            part = (part - 1) & local;
        }
        plans[local] = best;
    }
    plans.pop().flatten().expect("a connected set has a tree without cross products")
}

/// Joins the two parts with the fewest rows again and again.
fn greedy(graph: &Graph, component: u64) -> Plan {
    let neighbours = graph.neighbours();
    let mut plans: Vec<Plan> = (0..graph.rows.len())
        .filter(|relation| component & (1 << relation) != 0)
        .map(|relation| leaf(graph, relation))
        .collect();
    while plans.len() > 1 {
        let mut best: Option<(usize, usize, Plan)> = None;
        for a in 0..plans.len() {
            let around = (0..graph.rows.len())
                .filter(|relation| plans[a].mask & (1 << relation) != 0)
                .fold(0, |mask, relation| mask | neighbours[relation]);
            for b in a + 1..plans.len() {
                if around & plans[b].mask != 0 {
                    let plan = join(graph, &plans[a], &plans[b]);
                    let added = |plan: &Plan, a: &Plan, b: &Plan| plan.cost - a.cost - b.cost;
                    let better = best.as_ref().is_none_or(|(i, j, known)| {
                        added(&plan, &plans[a], &plans[b]) < added(known, &plans[*i], &plans[*j])
                    });
                    if better {
                        best = Some((a, b, plan));
                    }
                }
            }
        }
        let (a, b, plan) = best.expect("a connected set has two parts that an equality connects");
        plans.remove(b);
        plans[a] = plan;
    }
    plans.pop().expect("a component has a relation")
}
