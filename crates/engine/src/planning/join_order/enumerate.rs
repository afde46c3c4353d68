//! Finds the cheapest tree of inner joins: dynamic programming over sets of relations, a heuristic for many.

use super::BUILD_WEIGHT;
use super::graph::{Graph, Weighed, Work, members};

/// Relations up to which all bushy trees are considered: 3^12 splits are half a million.
pub(super) const EXHAUSTIVE: usize = 12;
/// Build rows that fit a core's caches well; probing larger builds waits for memory.
const CACHED_ROWS: f64 = 4096.0;

/// A tree of joins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Leaf(usize),
    Join {
        probe: Box<Tree>,
        build: Box<Tree>,
        /// Estimated rows, before the conditions that need both sides.
        rows: f64,
    },
}

impl Tree {
    /// Returns the relations in a tree.
    pub(crate) fn mask(&self) -> u64 {
        match self {
            Tree::Leaf(relation) => 1 << relation,
            Tree::Join { probe, build, .. } => probe.mask() | build.mask(),
        }
    }

    /// Makes a join of two trees.
    pub(super) fn join(weighed: &Weighed<'_>, probe: Tree, build: Tree) -> Tree {
        let rows = weighed.joined(probe.mask(), build.mask());
        Tree::Join { probe: Box::new(probe), build: Box::new(build), rows }
    }
}

/// What joining some relations gives and costs, without saying how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// What a look-up in a build of these rows waits for memory, as a share of a look-up.
    miss: f64,
    /// What putting these rows into a build costs: one of joined relations carries the columns of each of them.
    build: f64,
}

impl Outcome {
    pub(super) fn new(mask: u64, rows: f64, cost: f64) -> Self {
        let miss = (1.0 + rows / CACHED_ROWS).log2() / 8.0;
        Outcome { rows, cost, miss, build: rows * BUILD_WEIGHT * f64::from(mask.count_ones()) }
    }

    pub(super) fn leaf(weighed: &Weighed<'_>, relation: usize) -> Self {
        Outcome::new(1 << relation, weighed.graph.rows[relation], 0.0)
    }

    /// Returns what joining two sets costs, both sides' own costs included but not the rows of the result, in rows looked up
    /// in a small build; and whether the second one is better built.
    pub(super) fn join(&self, other: &Outcome) -> (f64, bool) {
        let lookup = |probe: &Outcome, build: &Outcome| probe.rows * (1.0 + build.miss) + build.build;
        let (ab, ba) = (lookup(self, other), lookup(other, self));
        (self.cost + other.cost + ab.min(ba), ab <= ba)
    }
}

/// A tree and what it gives and costs.
pub(super) struct Plan {
    pub(super) tree: Tree,
    pub(super) outcome: Outcome,
}

impl Plan {
    /// Joins two plans, the side that costs less being built.
    pub(super) fn join(weighed: &Weighed<'_>, a: Plan, b: Plan) -> Plan {
        let mask = a.tree.mask() | b.tree.mask();
        let (cost, as_given) = a.outcome.join(&b.outcome);
        let rows = weighed.cardinality(mask);
        let (probe, build) = if as_given { (a, b) } else { (b, a) };
        Plan { tree: Tree::join(weighed, probe.tree, build.tree), outcome: Outcome::new(mask, rows, cost + rows) }
    }
}

/// Returns the cheapest tree over all relations (at least one, at most [`MOST_RELATIONS`](super::graph::MOST_RELATIONS)), and
/// what finding it took.
pub(crate) fn cheapest(graph: &Graph) -> (Tree, Work) {
    let weighed = Weighed::new(graph);
    let plan = cheapest_plan(&weighed);
    (plan.tree, weighed.work.get())
}

/// Returns what the cheapest tree gives and costs before the rows of one relation, or of the result, are looked up in a build of
/// `right` rows, which keeps a share of the relation's: first so, then so.
pub(super) fn before_or_after(graph: &Graph, relation: usize, kept: f64, right: f64) -> (f64, f64) {
    let look_up = |left: f64| Outcome::new(1, left, 0.0).join(&Outcome::new(1, right, 0.0)).0;
    let after = cheapest_plan(&Weighed::new(graph)).outcome;
    let mut reduced = graph.clone();
    reduced.rows[relation] = (reduced.rows[relation] * kept).max(1.0);
    let before = cheapest_plan(&Weighed::new(&reduced)).outcome;
    (look_up(graph.rows[relation]) + before.cost, after.cost + look_up(after.rows))
}

fn cheapest_plan(weighed: &Weighed<'_>) -> Plan {
    let mut plans: Vec<Plan> = weighed
        .components()
        .into_iter()
        .map(|component| {
            if component.count_ones() as usize <= EXHAUSTIVE {
                exhaustive(weighed, component)
            } else {
                super::heuristic::heuristic(weighed, component)
            }
        })
        .collect();
    // What nothing connects is multiplied at the end, the largest part flowing past the others.
    plans.sort_by(|a, b| b.outcome.rows.total_cmp(&a.outcome.rows));
    let mut plans = plans.into_iter();
    let first = plans.next().expect("a region has at least one relation");
    plans.fold(first, |plan, next| Plan::join(weighed, plan, next))
}

/// Considers every tree without cross products over a connected set.
pub(super) fn exhaustive(weighed: &Weighed<'_>, component: u64) -> Plan {
    let relations: Vec<usize> = members(component).collect();
    let size = 1usize << relations.len();
    let spread = |local: usize| members(local as u64).fold(0u64, |mask, position| mask | 1 << relations[position]);
    // Neighbours as positions within the component.
    let gather = |mask: u64| {
        relations
            .iter()
            .enumerate()
            .filter(|(_, r)| mask & (1 << **r) != 0)
            .fold(0usize, |local, (i, _)| local | 1 << i)
    };
    let near: Vec<usize> = relations.iter().map(|relation| gather(weighed.neighbours[*relation])).collect();
    let mut around = vec![0usize; size];
    let mut outcomes: Vec<Option<Outcome>> = vec![None; size];
    // The probing part of the cheapest join of each set.
    let mut probes = vec![0usize; size];
    for local in 1..size {
        let lowest = local & local.wrapping_neg();
        around[local] = around[local ^ lowest] | near[lowest.trailing_zeros() as usize];
        if local == lowest {
            outcomes[local] = Some(Outcome::leaf(weighed, relations[lowest.trailing_zeros() as usize]));
            continue;
        }
        let mut best: Option<(f64, usize)> = None;
        // Each split is seen once: the part with the lowest relation is `part`.
        let rest = local ^ lowest;
        let mut others = rest;
        while others != 0 {
            let part = local ^ others;
            if around[part] & others != 0
                && let (Some(a), Some(b)) = (&outcomes[part], &outcomes[others])
            {
                weighed.count_join();
                let (cost, as_given) = a.join(b);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, if as_given { part } else { others }));
                }
            }
            others = (others - 1) & rest;
        }
        if let Some((cost, probe)) = best {
            let mask = spread(local);
            let rows = weighed.cardinality(mask);
            outcomes[local] = Some(Outcome::new(mask, rows, cost + rows));
            probes[local] = probe;
        }
    }
    fn assemble(weighed: &Weighed<'_>, relations: &[usize], probes: &[usize], local: usize) -> Tree {
        if local.is_power_of_two() {
            return Tree::Leaf(relations[local.trailing_zeros() as usize]);
        }
        let probe = assemble(weighed, relations, probes, probes[local]);
        let build = assemble(weighed, relations, probes, local ^ probes[local]);
        Tree::join(weighed, probe, build)
    }
    let outcome = outcomes[size - 1].expect("a connected set has a tree without cross products");
    Plan { tree: assemble(weighed, &relations, &probes, size - 1), outcome }
}
