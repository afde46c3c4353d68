//! A region of inner joins: taken apart, ordered, put together.
//!
//! Equalities form classes of equal expressions, so that joins may follow from others (a = b and b = c give a = c).
//! Computed columns in the region move above it; conditions on them use their definition. Semi and anti joins are
//! filters by another relation: one that concerns a single relation goes right above that one where that costs less, the others
//! above the region.

use std::collections::{BTreeMap, BTreeSet};

use tandem_pipeline::{Comparison, Expr};

use super::{
    Estimator, choose_side,
    enumerate::{EXHAUSTIVE, Tree, before_or_after, cheapest},
    graph::{Graph, MOST_RELATIONS},
    many::line,
    order,
};
use crate::planning::tree::{
    node::{ColumnId, Estimate, Join, JoinRows, Node, conjuncts, references},
    substitute,
};

/// The share of rows that a semi or anti join may keep to be done before the inner joins, of which there are too many to weigh both.
const WORTH_FIRST: f64 = 0.5;

/// A semi or anti join without its left side.
struct Reducer {
    kind: JoinRows,
    right: Node,
    on: Vec<(Expr, Expr)>,
    residual: Option<Expr>,
    null_equals_null: bool,
    null_aware: bool,
}

#[derive(Default)]
struct JoinRegion {
    relations: Vec<Node>,
    equalities: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
    reducers: Vec<Reducer>,
    /// Computed columns, in an order in which each sees those before it.
    computed: Vec<(ColumnId, Expr)>,
}

/// Tells whether a node is the top of a region.
pub(super) fn begins(node: &Node) -> bool {
    match node {
        Node::Join(join) => match join.kind {
            JoinRows::Inner => !join.null_equals_null,
            JoinRows::Semi | JoinRows::Anti => true,
            JoinRows::Left | JoinRows::Full | JoinRows::Mark(_) => false,
        },
        Node::Filter { input, .. } | Node::Let { input, .. } => begins(input),
        _ => false,
    }
}

/// Orders the region that begins at a node, and everything below it.
pub(super) fn order_region(estimator: &Estimator<'_>, node: Node) -> Node {
    let mut region = JoinRegion::default();
    region.take(estimator, node);
    region.inline();
    region.finish(estimator)
}

impl JoinRegion {
    /// Takes a node apart; what does not belong to the region is ordered on its own and becomes a relation.
    fn take(&mut self, estimator: &Estimator<'_>, node: Node) {
        if !begins(&node) {
            self.relations.push(order(estimator, node));
            return;
        }
        match node {
            Node::Filter { input, predicates } => {
                self.take(estimator, *input);
                self.conditions.extend(predicates);
            }
            Node::Let { input, columns } => {
                self.take(estimator, *input);
                self.computed.extend(columns);
            }
            Node::Join(join) => {
                let Join { kind, left, right, on, residual, null_equals_null, null_aware, .. } = *join;
                self.take(estimator, left);
                if kind == JoinRows::Inner {
                    self.take(estimator, right);
                    self.equalities.extend(on);
                    self.conditions.extend(residual.into_iter().flat_map(conjuncts));
                } else {
                    let right = order(estimator, right);
                    self.reducers.push(Reducer { kind, right, on, residual, null_equals_null, null_aware });
                }
            }
            other => self.relations.push(other),
        }
    }

    /// Writes conditions over computed columns as ones over what these are computed from.
    fn inline(&mut self) {
        if self.computed.is_empty() {
            return;
        }
        let mut known: BTreeMap<ColumnId, Expr> = BTreeMap::new();
        for (column, expr) in &self.computed {
            let expr = substitute(expr, &|id| known.get(&id).cloned().unwrap_or(Expr::Slot(id)));
            known.insert(*column, expr);
        }
        let replace = |expr: &mut Expr| {
            *expr = substitute(expr, &|id| known.get(&id).cloned().unwrap_or(Expr::Slot(id)));
        };
        self.conditions.iter_mut().for_each(replace);
        for (left, right) in &mut self.equalities {
            replace(left);
            replace(right);
        }
        for reducer in &mut self.reducers {
            reducer.on.iter_mut().for_each(|(left, _)| replace(left));
            reducer.residual.iter_mut().for_each(replace);
        }
        for (_, expr) in &mut self.computed {
            replace(expr);
        }
    }

    /// Puts the region together in the cheapest order.
    fn finish(mut self, estimator: &Estimator<'_>) -> Node {
        let mut owner: BTreeMap<ColumnId, usize> = BTreeMap::new();
        for (index, relation) in self.relations.iter().enumerate() {
            owner.extend(estimator.produced(relation).into_iter().map(|column| (column, index)));
        }
        let owners = |expr: &Expr| -> BTreeSet<usize> {
            references(expr).iter().filter_map(|column| owner.get(column)).copied().collect()
        };

        // Equalities written as conditions are equalities; those within one relation are conditions.
        let mut conditions = Vec::new();
        let mut equalities = std::mem::take(&mut self.equalities);
        for condition in std::mem::take(&mut self.conditions) {
            match condition {
                Expr::Compare(Comparison::Equal, left, right) => equalities.push((*left, *right)),
                other => conditions.push(other),
            }
        }
        let mut classes = Classes::default();
        for (left, right) in equalities {
            match (single(&owners(&left)), single(&owners(&right))) {
                (Some(a), Some(b)) if a != b => classes.add((a, left), (b, right)),
                _ => conditions.push(Expr::Compare(Comparison::Equal, Box::new(left), Box::new(right))),
            }
        }

        let mut spanning: Vec<(BTreeSet<usize>, Expr)> = Vec::new();
        for condition in conditions {
            let on = owners(&condition);
            match single(&on) {
                Some(relation) => apply(&mut self.relations[relation], |node| node.filter(vec![condition])),
                None => spanning.push((on, condition)),
            }
        }
        let mut estimates: Vec<Estimate> = self.relations.iter().map(|relation| estimator.estimate(relation)).collect();
        let mut above = Vec::new();
        for reducer in std::mem::take(&mut self.reducers) {
            let mut on = BTreeSet::new();
            reducer.on.iter().for_each(|(left, _)| on.extend(owners(left)));
            reducer.residual.iter().for_each(|residual| on.extend(owners(residual)));
            let right = estimator.estimate(&reducer.right);
            let first = |relation: usize| {
                let kept = estimator.kept(&reducer.on, estimates[relation], right, reducer.kind);
                match self.relations.len() {
                    1 => false,
                    2..=EXHAUSTIVE => {
                        let graph = graph(estimator, &estimates, &classes, &spanning);
                        let (before, after) = before_or_after(&graph, relation, kept, right.rows);
                        before < after
                    }
                    _ => kept < WORTH_FIRST,
                }
            };
            match single(&on).filter(|relation| first(*relation)) {
                Some(relation) => {
                    apply(&mut self.relations[relation], |node| reducer.onto(estimator, node));
                    estimates[relation] = estimator.estimate(&self.relations[relation]);
                }
                None => {
                    let left = estimates[on.first().copied().unwrap_or_default()];
                    above.push((estimator.kept(&reducer.on, left, right, reducer.kind), reducer));
                }
            }
        }

        let mut node = self.assemble(estimator, &estimates, &classes, spanning);
        // What is thought to keep least comes first.
        above.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        for (_, reducer) in above {
            node = reducer.onto(estimator, node);
        }
        for (column, expr) in self.computed {
            node = match node {
                // All see only the input's columns: computed ones were inlined.
                Node::Let { input, mut columns } => {
                    columns.push((column, expr));
                    Node::Let { input, columns }
                }
                other => Node::Let { input: Box::new(other), columns: vec![(column, expr)] },
            };
        }
        node
    }

    /// Joins the relations, applying each condition as soon as its columns are there.
    fn assemble(
        &mut self,
        estimator: &Estimator<'_>,
        estimates: &[Estimate],
        classes: &Classes,
        mut spanning: Vec<(BTreeSet<usize>, Expr)>,
    ) -> Node {
        let mut relations: Vec<Option<Node>> = std::mem::take(&mut self.relations).into_iter().map(Some).collect();
        let node = if relations.len() > MOST_RELATIONS {
            let mut joined = BTreeSet::new();
            let mut node: Option<Node> = None;
            let graph = graph(estimator, estimates, classes, &spanning);
            for next in line(&graph.rows, &graph.classes) {
                let right = relations[next].take().expect("each relation is used once");
                let on = classes.between(|relation| joined.contains(&relation), |relation| relation == next);
                joined.insert(next);
                node = Some(match node {
                    None => right,
                    Some(left) => Node::Join(Box::new(choose_side(estimator, inner(left, right, on))))
                        .filter(covered(&mut spanning, |relation| joined.contains(&relation))),
                });
            }
            node.expect("a region has a relation")
        } else {
            let (tree, _) = cheapest(&graph(estimator, estimates, classes, &spanning));
            build(&tree, &mut relations, classes, &mut spanning)
        };
        node.filter(spanning.into_iter().map(|(_, condition)| condition).collect())
    }
}

/// Takes the conditions whose relations are all there.
fn covered(spanning: &mut Vec<(BTreeSet<usize>, Expr)>, is_there: impl Fn(usize) -> bool) -> Vec<Expr> {
    let is_covered = |on: &BTreeSet<usize>| !on.is_empty() && on.iter().all(|relation| is_there(*relation));
    let (now, later): (Vec<_>, Vec<_>) = std::mem::take(spanning).into_iter().partition(|(on, _)| is_covered(on));
    *spanning = later;
    now.into_iter().map(|(_, condition)| condition).collect()
}

/// Makes the graph of relations that are estimated; of more than it has room for, without the conditions.
fn graph(
    estimator: &Estimator<'_>,
    estimates: &[Estimate],
    classes: &Classes,
    spanning: &[(BTreeSet<usize>, Expr)],
) -> Graph {
    let domain = |(r, expr): &(usize, Expr)| (*r, estimator.distinct(expr, estimates[*r].base));
    let mask = |relations: &BTreeSet<usize>| relations.iter().fold(0, |mask, relation| mask | 1 << relation);
    let fits = estimates.len() <= MOST_RELATIONS;
    let conditions = spanning.iter().filter(|_| fits);
    Graph {
        rows: estimates.iter().map(|estimate| estimate.rows.max(1.0)).collect(),
        base: estimates.iter().map(|estimate| estimate.base).collect(),
        classes: classes.members().map(|class| class.iter().map(domain).collect()).collect(),
        conditions: conditions.map(|(on, condition)| (mask(on), estimator.selectivity(condition))).collect(),
    }
}

/// Builds the joins of a tree.
fn build(
    tree: &Tree,
    relations: &mut [Option<Node>],
    classes: &Classes,
    spanning: &mut Vec<(BTreeSet<usize>, Expr)>,
) -> Node {
    match tree {
        Tree::Leaf(relation) => relations[*relation].take().expect("each relation is used once"),
        Tree::Join { probe, build: other, rows } => {
            let left = build(probe, relations, classes, spanning);
            let right = build(other, relations, classes, spanning);
            let (probe, other) = (probe.mask(), other.mask());
            let on = classes.between(|relation| probe & (1 << relation) != 0, |relation| other & (1 << relation) != 0);
            let now = covered(spanning, |relation| (probe | other) & (1 << relation) != 0);
            let estimate = Some(Estimate { rows: *rows, base: rows.max(1.0) });
            Node::Join(Box::new(Join { estimate, ..inner(left, right, on) })).filter(now)
        }
    }
}

fn inner(left: Node, right: Node, on: Vec<(Expr, Expr)>) -> Join {
    Join {
        kind: JoinRows::Inner,
        left,
        right,
        on,
        residual: None,
        null_equals_null: false,
        null_aware: false,
        swap: false,
        estimate: None,
    }
}

impl Reducer {
    /// Puts the join above its left side.
    fn onto(self, estimator: &Estimator<'_>, left: Node) -> Node {
        let Reducer { kind, right, on, residual, null_equals_null, null_aware } = self;
        let join = Join { kind, left, right, on, residual, null_equals_null, null_aware, swap: false, estimate: None };
        Node::Join(Box::new(choose_side(estimator, join)))
    }
}

/// Classes of expressions that are equal to each other, each of one relation.
#[derive(Default)]
struct Classes {
    /// A class that was merged into another one is left empty.
    classes: Vec<Vec<(usize, Expr)>>,
    /// The expressions of each relation, and their classes: where an expression is looked for.
    known: BTreeMap<usize, Vec<(Expr, usize)>>,
}

impl Classes {
    /// Records that two expressions are equal.
    fn add(&mut self, a: (usize, Expr), b: (usize, Expr)) {
        let (kept, moved) = {
            let (a, b) = (self.class_of(a), self.class_of(b));
            (a.min(b), a.max(b))
        };
        if kept == moved {
            return;
        }
        let members = std::mem::take(&mut self.classes[moved]);
        for (relation, _) in &members {
            let known = self.known.get_mut(relation).into_iter().flatten();
            known.filter(|(_, class)| *class == moved).for_each(|(_, class)| *class = kept);
        }
        self.classes[kept].extend(members);
    }

    /// Returns the class of an expression: a new one if it has none.
    fn class_of(&mut self, (relation, expr): (usize, Expr)) -> usize {
        let known = self.known.entry(relation).or_default();
        if let Some((_, class)) = known.iter().find(|(other, _)| *other == expr) {
            return *class;
        }
        let class = self.classes.len();
        known.push((expr.clone(), class));
        self.classes.push(vec![(relation, expr)]);
        class
    }

    /// Returns the members of each class.
    fn members(&self) -> impl Iterator<Item = &Vec<(usize, Expr)>> {
        self.classes.iter().filter(|class| !class.is_empty())
    }

    /// Returns the equalities between two sets of relations: one of each class that has members in both, and all
    /// members of one relation that the other set does not make equal by itself.
    fn between(&self, in_left: impl Fn(usize) -> bool, in_right: impl Fn(usize) -> bool) -> Vec<(Expr, Expr)> {
        let mut on = Vec::new();
        for class in self.members() {
            let lefts: Vec<&(usize, Expr)> = class.iter().filter(|(relation, _)| in_left(*relation)).collect();
            let rights: Vec<&(usize, Expr)> = class.iter().filter(|(relation, _)| in_right(*relation)).collect();
            let (Some(first_left), Some(first_right)) = (lefts.first(), rights.first()) else { continue };
            on.push((first_left.1.clone(), first_right.1.clone()));
            // Two members of one relation are not equal by any join within its side: each is compared here.
            for member in duplicates(&lefts) {
                on.push((member.1.clone(), first_right.1.clone()));
            }
            for member in duplicates(&rights) {
                on.push((first_left.1.clone(), member.1.clone()));
            }
        }
        on
    }
}

/// Returns the members, after the first, of the relations that have several.
fn duplicates<'m>(members: &[&'m (usize, Expr)]) -> Vec<&'m (usize, Expr)> {
    let mut seen = BTreeSet::new();
    members.iter().copied().filter(|(relation, _)| !seen.insert(*relation)).collect()
}

fn single(relations: &BTreeSet<usize>) -> Option<usize> {
    if relations.len() == 1 { relations.first().copied() } else { None }
}

/// Replaces a node by what `f` makes of it.
fn apply(node: &mut Node, f: impl FnOnce(Node) -> Node) {
    let taken = std::mem::replace(node, Node::Values { columns: vec![], rows: vec![] });
    *node = f(taken);
}
