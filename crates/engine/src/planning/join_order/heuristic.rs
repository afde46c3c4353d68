//! Orders joins of more relations than can be tried in every order, in polynomial time.
//!
//! Two orders of all relations are laid on a line: the leaves of a greedy tree, and the best left-deep order, which is found
//! by ranks (Ibaraki and Kameda's algorithm, on the spanning tree of the most selective equalities). Dynamic programming over
//! the runs of each line finds the cheapest bushy tree whose leaves are in that order (after Neumann and Radke's linearised
//! dynamic programming), never worse than what the line was made of. In the better one, small sub-trees are then
//! replaced by the best that there are.

use std::collections::VecDeque;

use super::enumerate::{Outcome, Plan, Tree, exhaustive};
use super::graph::{Weighed, members};

/// Relations of sub-trees that are ordered exhaustively at the end.
const SMALL: usize = 9;

/// Returns a cheap tree over a connected set of at least two relations.
pub(super) fn heuristic(weighed: &Weighed<'_>, component: u64) -> Plan {
    let greedy = greedy(weighed, component);
    let mut line = Vec::new();
    leaves(&greedy.tree, &mut line);
    let mut best = linear(weighed, &line);
    let ranked = linear(weighed, &ranked(weighed, component));
    if ranked.outcome.cost < best.outcome.cost {
        best = ranked;
    }
    polish(weighed, best.tree)
}

/// Joins the two parts whose join costs least again and again.
fn greedy(weighed: &Weighed<'_>, component: u64) -> Plan {
    let mut parts: Vec<Option<Plan>> = members(component)
        .map(|relation| Some(Plan { tree: Tree::Leaf(relation), outcome: Outcome::leaf(weighed, relation) }))
        .collect();
    let mut masks: Vec<u64> = members(component).map(|relation| 1 << relation).collect();
    let count = parts.len();
    // What each pair adds to the cost, the pair being in ascending order; infinite where nothing connects them.
    let mut added = vec![f64::INFINITY; count * count];
    let weigh = |parts: &[Option<Plan>], masks: &[u64], a: usize, b: usize| {
        let (Some(one), Some(other)) = (&parts[a], &parts[b]) else { return f64::INFINITY };
        if weighed.around(masks[a]) & masks[b] == 0 {
            return f64::INFINITY;
        }
        weighed.count_join();
        let (cost, _) = one.outcome.join(&other.outcome);
        // Costs end somewhere, so that a connected pair can always be told from others.
        (cost - one.outcome.cost - other.outcome.cost + weighed.cardinality(masks[a] | masks[b])).min(f64::MAX)
    };
    for a in 0..count {
        for b in a + 1..count {
            added[a * count + b] = weigh(&parts, &masks, a, b);
        }
    }
    for _ in 1..count {
        let cheapest = (0..count * count).min_by(|a, b| added[*a].total_cmp(&added[*b]));
        let pair = cheapest.expect("two parts are left to be joined");
        let (a, b) = (pair / count, pair % count);
        let (one, other) = (parts[a].take(), parts[b].take());
        let joined = one.zip(other).map(|(one, other)| Plan::join(weighed, one, other));
        parts[a] = Some(joined.expect("a connected set has two parts that an equality connects"));
        masks[a] |= masks[b];
        for c in 0..count {
            added[b.min(c) * count + b.max(c)] = f64::INFINITY;
            if c != a {
                let (low, high) = (a.min(c), a.max(c));
                added[low * count + high] = weigh(&parts, &masks, low, high);
            }
        }
    }
    parts.into_iter().flatten().next().expect("a component has a relation")
}

/// Adds the relations of a tree in the order of its leaves.
fn leaves(tree: &Tree, line: &mut Vec<usize>) {
    match tree {
        Tree::Leaf(relation) => line.push(*relation),
        Tree::Join { probe, build, .. } => {
            leaves(probe, line);
            leaves(build, line);
        }
    }
}

/// Returns the cheapest tree whose leaves are in the given order, up to the sides of joins.
fn linear(weighed: &Weighed<'_>, line: &[usize]) -> Plan {
    let count = line.len();
    let at = |first: usize, last: usize| first * count + last;
    let mut masks = vec![0u64; count * count];
    let mut around = vec![0u64; count * count];
    let mut outcomes: Vec<Option<Outcome>> = vec![None; count * count];
    // Where the cheapest join of a run divides it, and whether its second part is built.
    let mut splits = vec![(0, true); count * count];
    for (position, relation) in line.iter().enumerate() {
        masks[at(position, position)] = 1 << relation;
        around[at(position, position)] = weighed.neighbours[*relation];
        outcomes[at(position, position)] = Some(Outcome::leaf(weighed, *relation));
    }
    for length in 1..count {
        for first in 0..count - length {
            let last = first + length;
            masks[at(first, last)] = masks[at(first, last - 1)] | masks[at(last, last)];
            around[at(first, last)] = around[at(first, last - 1)] | around[at(last, last)];
            let mut best: Option<f64> = None;
            for middle in first..last {
                let (left, right) = (at(first, middle), at(middle + 1, last));
                if around[left] & masks[right] != 0
                    && let (Some(a), Some(b)) = (&outcomes[left], &outcomes[right])
                {
                    weighed.count_join();
                    let (cost, as_given) = a.join(b);
                    if best.is_none_or(|least| cost < least) {
                        best = Some(cost);
                        splits[at(first, last)] = (middle, as_given);
                    }
                }
            }
            if let Some(cost) = best {
                let mask = masks[at(first, last)];
                let rows = weighed.cardinality(mask);
                outcomes[at(first, last)] = Some(Outcome::new(mask, rows, cost + rows));
            }
        }
    }
    fn assemble(weighed: &Weighed<'_>, line: &[usize], splits: &[(usize, bool)], first: usize, last: usize) -> Tree {
        if first == last {
            return Tree::Leaf(line[first]);
        }
        let (middle, as_given) = splits[first * line.len() + last];
        let left = assemble(weighed, line, splits, first, middle);
        let right = assemble(weighed, line, splits, middle + 1, last);
        let (probe, build) = if as_given { (left, right) } else { (right, left) };
        Tree::join(weighed, probe, build)
    }
    let outcome = outcomes[at(0, count - 1)].expect("the line is one that some tree without cross products has");
    Plan { tree: assemble(weighed, line, &splits, 0, count - 1), outcome }
}

/// Relations that follow each other: by which factor they change the number of rows, and the rows they give on the way.
struct Module {
    relations: Vec<usize>,
    growth: f64,
    cost: f64,
}

impl Module {
    /// Tells how soon a module should come: what shrinks rows cheaply has the least rank.
    fn rank(&self) -> f64 {
        (self.growth - 1.0) / self.cost
    }

    fn append(&mut self, next: Module) {
        self.relations.extend(next.relations);
        self.cost = bounded(self.cost + self.growth * next.cost);
        self.growth = bounded(self.growth * next.growth);
    }
}

/// Keeps a factor where ranks made of it are numbers: they must have an order, or a relation would come before its parent.
fn bounded(factor: f64) -> f64 {
    factor.clamp(1e-150, 1e150)
}

/// Returns the left-deep order with the fewest rows on the way, over the spanning tree of the most selective equalities.
fn ranked(weighed: &Weighed<'_>, component: u64) -> Vec<usize> {
    let edges = spanning_tree(weighed, component);
    let orders = members(component).map(|root| {
        let mut order = Module { relations: vec![], growth: 1.0, cost: 0.0 };
        for module in chain(weighed, &edges, root, None, 1.0) {
            order.append(module);
        }
        order
    });
    let best = orders.min_by(|a, b| a.cost.total_cmp(&b.cost));
    best.map(|order| order.relations).expect("a component has a relation")
}

/// Orders what hangs below a relation, and the relation before it: modules of ascending rank, but for the relation's own.
fn chain(
    weighed: &Weighed<'_>,
    edges: &[Vec<(usize, f64)>],
    relation: usize,
    parent: Option<usize>,
    selectivity: f64,
) -> Vec<Module> {
    let mut below: Vec<Module> = Vec::new();
    for (child, selectivity) in edges[relation].iter().filter(|(child, _)| Some(*child) != parent) {
        below.extend(chain(weighed, edges, *child, Some(relation), *selectivity));
    }
    // Each child's modules are in order already: sorting merges them.
    below.sort_by(|a, b| a.rank().total_cmp(&b.rank()));
    let mut below = VecDeque::from(below);
    let rows = bounded(selectivity * weighed.graph.rows[relation]);
    let mut own = Module { relations: vec![relation], growth: rows, cost: rows };
    // What should come before the relation cannot: they go together.
    while parent.is_some() && below.front().is_some_and(|next| next.rank() < own.rank()) {
        own.append(below.pop_front().expect("there is a front"));
    }
    below.push_front(own);
    below.into()
}

/// Returns each relation's neighbours in the spanning tree of the most selective equalities, with their selectivities.
fn spanning_tree(weighed: &Weighed<'_>, component: u64) -> Vec<Vec<(usize, f64)>> {
    let count = weighed.graph.rows.len();
    let mut edges = vec![Vec::new(); count];
    let mut nearest: Vec<(f64, usize)> = vec![(f64::INFINITY, 0); count];
    let mut reached = 0u64;
    let mut next = component.trailing_zeros() as usize;
    loop {
        reached |= 1 << next;
        for other in members(weighed.neighbours[next] & !reached) {
            let selectivity = weighed.selectivity(next, other);
            if selectivity < nearest[other].0 {
                nearest[other] = (selectivity, next);
            }
        }
        let left = members(component & !reached).min_by(|a, b| nearest[*a].0.total_cmp(&nearest[*b].0));
        let Some(closest) = left else { break };
        let (selectivity, from) = nearest[closest];
        edges[closest].push((from, selectivity));
        edges[from].push((closest, selectivity));
        next = closest;
    }
    edges
}

/// Replaces the largest sub-trees of few relations by the cheapest ones over the same relations.
fn polish(weighed: &Weighed<'_>, tree: Tree) -> Plan {
    let mask = tree.mask();
    match tree {
        _ if mask.count_ones() as usize <= SMALL => exhaustive(weighed, mask),
        Tree::Leaf(relation) => Plan { tree: Tree::Leaf(relation), outcome: Outcome::leaf(weighed, relation) },
        Tree::Join { probe, build, .. } => Plan::join(weighed, polish(weighed, *probe), polish(weighed, *build)),
    }
}
