//! Semi joins by what a build knows, far below the join it was made for.
//!
//! Of a join by equal keys, one side drops the other's rows without a partner; where these are first grouped, windowed, sorted
//! or put into a build of their own, that comes late. So the keys are followed down the other side (`Target`), and where
//! they begin a semi join with the same build drops the rows at once. The build is that of the join itself, or a smaller
//! one that the side's own keys went through (a part of it in `sources`); it is `Shared`, so that it is made once.
//!
//! Only sides whose rows without a partner are never given are reduced, and only by plain columns: nothing is computed of
//! more rows than before, so no error appears that was not there. One that only a dropped row would raise is gone.

use tandem_pipeline::Expr;

use crate::planning::{
    join_order::Estimator,
    tree::node::{ColumnId, Join, JoinRows, Node, Shared},
};

/// What looking a row up costs by one key, mostly a bit of a bitmap (measured: 0.7 to 1.6 ns), and by several, which are hashed
/// (measured: 18 ns); and what a row costs that is grouped, sorted or built (20 to 200 ns).
const LOOK_UP: f64 = 1.0;
const LOOK_UP_HASHED: f64 = 8.0;
const ROW: f64 = 10.0;
/// The share of the cost that must be left for a semi join to be worth it: estimates are not exact.
const WORTH: f64 = 0.7;

/// The nodes that a part may have to be put into a second place: a tree grows by no more than that for each side of a join.
const MOST_NODES: usize = 16;

/// Adds semi joins below the joins of a tree, from the lowest up. `next` is an id that no shared part has yet.
pub(crate) fn reduce(estimator: &Estimator<'_>, mut node: Node, next: &mut usize) -> Node {
    walk(estimator, &mut node, next);
    node
}

fn walk(estimator: &Estimator<'_>, node: &mut Node, next: &mut usize) {
    let mut child = 0;
    while let Some(below) = node.child_mut(child) {
        walk(estimator, below, next);
        child += 1;
    }
    if let Node::Join(join) = node {
        reduce_sides(estimator, join, next);
    }
}

/// Reduces the sides of a join that may be.
fn reduce_sides(estimator: &Estimator<'_>, join: &mut Join, next: &mut usize) {
    if join.null_equals_null || join.null_aware || join.on.is_empty() {
        return;
    }
    let (left, right) = match join.kind {
        JoinRows::Inner | JoinRows::Semi => (true, true),
        // The left side's rows without a partner are given.
        JoinRows::Left | JoinRows::Anti | JoinRows::Mark(_) => (false, true),
        JoinRows::Full => (false, false),
    };
    let built = join.swap;
    if right {
        let on: Vec<(Expr, Expr)> = join.on.iter().map(|(left, right)| (right.clone(), left.clone())).collect();
        reduce_side(estimator, &on, &mut join.right, &mut join.left, !built, next);
    }
    if left {
        let on = join.on.clone();
        reduce_side(estimator, &on, &mut join.left, &mut join.right, built, next);
    }
}

/// A build that may reduce: which part of the other side it is made of, and by which keys.
struct Candidate {
    /// The way from the other side down to it, by children; empty for all of it.
    path: Vec<usize>,
    /// Columns of the reduced side, and what they are equal to in the build.
    on: Vec<(ColumnId, Expr)>,
    /// What reducing by it would leave of the cost.
    cost: f64,
}

/// Reduces one side of a join by what the other one knows. `on` has this side's keys first; `built` tells that this side is the
/// one that the join builds.
fn reduce_side(
    estimator: &Estimator<'_>,
    on: &[(Expr, Expr)],
    side: &mut Node,
    other: &mut Node,
    built: bool,
    next: &mut usize,
) {
    let plain = |key: &Expr| if let Expr::Slot(column) = key { Some(*column) } else { None };
    let mut candidates: Vec<Candidate> = Vec::new();
    let all: Option<Vec<(ColumnId, Expr)>> = on.iter().map(|(key, of)| Some((plain(key)?, of.clone()))).collect();
    // The other side is a build only if this one is not.
    if let Some(keys) = all.filter(|_| !built)
        && let Some(target) = Target::find(estimator, side, &keys, built)
        // With nothing in between, the join itself is what drops the row.
        && target.crossed
        && is_small(other)
    {
        let cost = target.cost(estimator, &keys, other, ROW);
        candidates.push(Candidate { path: vec![], on: keys, cost });
    }
    let mut asked = Vec::new();
    side.walk(&mut |node| {
        if let Node::Shared(shared) = node {
            asked.push(shared.id);
        }
    });
    let look_up = if on.len() > 1 { LOOK_UP_HASHED } else { LOOK_UP };
    for (key, of) in on {
        let (Some(key), Some(of)) = (plain(key), plain(of)) else { continue };
        let Some(target) = Target::find(estimator, side, &[(key, Expr::Slot(of))], built) else { continue };
        let beyond = if target.crossed { ROW } else { look_up };
        if beyond <= LOOK_UP {
            continue;
        }
        sources(estimator, other, of, &mut vec![], &mut |path, build, by| {
            // What asks a build already is not asked again.
            if matches!(build, Node::Shared(shared) if asked.contains(&shared.id)) || !is_small(build) {
                return;
            }
            let on = vec![(key, Expr::Slot(by))];
            let cost = target.cost(estimator, &on, build, beyond);
            candidates.push(Candidate { path: path.to_vec(), on, cost });
        });
    }
    let best = candidates.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
    let Some(Candidate { path, on, .. }) = best.filter(|best| best.cost < WORTH) else { return };
    let mut part = other;
    for child in path {
        match part.child_mut(child) {
            Some(below) => part = below,
            None => return,
        }
    }
    let shared = make_shared(part, next);
    let (columns, keys): (Vec<ColumnId>, Vec<Expr>) = on.into_iter().unzip();
    insert(estimator, side, &columns, &|node, columns| {
        let on = columns.iter().map(|column| Expr::Slot(*column)).zip(keys.iter().cloned()).collect();
        semi(estimator, node, Node::Shared(Box::new(shared.clone())), on)
    });
}

/// Calls `f` for the builds in a tree that a column's values went through: each value is one of a column of that build. Gives the
/// way to each, by children.
fn sources(
    estimator: &Estimator<'_>,
    node: &Node,
    column: ColumnId,
    path: &mut Vec<usize>,
    f: &mut dyn FnMut(&[usize], &Node, ColumnId),
) {
    match node {
        Node::Filter { input, .. }
        | Node::Window { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Let { input, .. } => step(path, 0, |path| sources(estimator, input, column, path, f)),
        Node::Aggregate { input, keys, .. } if keys.contains(&column) => {
            step(path, 0, |path| sources(estimator, input, column, path, f));
        }
        Node::Join(join) => sources_of_join(estimator, join, column, path, f),
        _ => {}
    }
}

fn sources_of_join(
    estimator: &Estimator<'_>,
    join: &Join,
    column: ColumnId,
    path: &mut Vec<usize>,
    f: &mut dyn FnMut(&[usize], &Node, ColumnId),
) {
    let in_left = estimator.produces(&join.left, column);
    let (own, other) = if in_left { (&join.left, &join.right) } else { (&join.right, &join.left) };
    let (own_child, other_child) = (usize::from(!in_left), usize::from(in_left));
    let reduced = match join.kind {
        JoinRows::Inner => true,
        JoinRows::Semi if in_left => true,
        JoinRows::Left | JoinRows::Anti | JoinRows::Mark(_) if in_left => false,
        // Of what may be null instead of a value nothing is known.
        _ => return,
    };
    step(path, own_child, |path| sources(estimator, own, column, path, f));
    let own_built = join.swap == in_left;
    for (left, right) in &join.on {
        let (own_key, key) = if in_left { (left, right) } else { (right, left) };
        if *own_key != Expr::Slot(column) || join.null_equals_null {
            continue;
        }
        // A build by several keys cannot be asked for one of them.
        let alone = join.on.len() == 1;
        if alone && own_built {
            step(path, own_child, |path| f(path, own, column));
        }
        if let Expr::Slot(key) = key
            && reduced
        {
            if alone && !own_built {
                step(path, other_child, |path| f(path, other, *key));
            }
            step(path, other_child, |path| sources(estimator, other, *key, path, f));
        }
    }
}

/// Goes down to a child and back.
fn step(path: &mut Vec<usize>, child: usize, below: impl FnOnce(&mut Vec<usize>)) {
    path.push(child);
    below(path);
    path.pop();
}

/// Tells whether a part may stand in a second place.
fn is_small(node: &Node) -> bool {
    let mut nodes = 0;
    node.walk(&mut |_| nodes += 1);
    nodes <= MOST_NODES
}

/// Makes a node shared, if it is not, and returns it for another place.
fn make_shared(node: &mut Node, next: &mut usize) -> Shared {
    if let Node::Shared(shared) = node {
        return (**shared).clone();
    }
    let input = std::mem::replace(node, Node::Values { columns: vec![], rows: vec![] });
    let shared = Shared { id: *next, input, renamed: vec![] };
    *next += 1;
    *node = Node::Shared(Box::new(shared.clone()));
    shared
}

/// Keeps the rows of a node that have a partner in a build.
fn semi(estimator: &Estimator<'_>, left: Node, right: Node, on: Vec<(Expr, Expr)>) -> Node {
    let (kind, residual, estimate) = (JoinRows::Semi, None, None);
    let (null_equals_null, null_aware, swap) = (false, false, false);
    let mut join = Join { kind, left, right, on, residual, null_equals_null, null_aware, swap, estimate };
    join.estimate = Some(estimator.join(&join, estimator.estimate(&join.left), estimator.estimate(&join.right)));
    Node::Join(Box::new(join))
}

/// Where rows of a side begin whose keys are followed down.
struct Target<'n> {
    node: &'n Node,
    /// The keys there.
    columns: Vec<ColumnId>,
    /// Something more expensive than a look-up lies in between.
    crossed: bool,
}

impl<'n> Target<'n> {
    /// Follows keys down a node as far as they go; `None` where rows are read that others read, too.
    fn find(estimator: &Estimator<'_>, node: &'n Node, keys: &[(ColumnId, Expr)], crossed: bool) -> Option<Target<'n>> {
        let columns = keys.iter().map(|(column, _)| *column).collect();
        let mut target = Target { node, columns, crossed };
        loop {
            let (child, crossed) = match target.node {
                Node::Shared(_) => return None,
                Node::Union { inputs, columns } => {
                    // Every branch is reduced; the largest one decides.
                    let rows = |input: &(Node, Vec<ColumnId>)| estimator.rows(&input.0);
                    let (input, from) = inputs.iter().max_by(|a, b| rows(a).total_cmp(&rows(b)))?;
                    target.columns = through(&target.columns, columns, from)?;
                    (input, true)
                }
                node => match below(estimator, node, &target.columns) {
                    Some((child, crossed)) => (node.children()[child], crossed),
                    None => return Some(target),
                },
            };
            target = Target { node: child, crossed: target.crossed || crossed, ..target };
        }
    }

    /// Estimates what a semi join here leaves of the cost of the rows, of which each costs `beyond` further on.
    fn cost(&self, estimator: &Estimator<'_>, keys: &[(ColumnId, Expr)], build: &Node, beyond: f64) -> f64 {
        let pairs: Vec<(Expr, Expr)> =
            self.columns.iter().zip(keys).map(|(column, (_, key))| (Expr::Slot(*column), key.clone())).collect();
        let kept = estimator.kept(&pairs, estimator.estimate(self.node), estimator.estimate(build), JoinRows::Semi);
        let look_up = if keys.len() > 1 { LOOK_UP_HASHED } else { LOOK_UP };
        look_up / beyond + kept
    }
}

/// Returns the columns of a union's input that are some of its own.
fn through(columns: &[ColumnId], union: &[ColumnId], input: &[ColumnId]) -> Option<Vec<ColumnId>> {
    columns.iter().map(|column| union.iter().position(|of| of == column).map(|position| input[position])).collect()
}

/// Goes one step down, where dropping rows by these columns below gives the same as dropping them above: tells which child,
/// and whether something more expensive than a look-up lies in between.
fn below(estimator: &Estimator<'_>, node: &Node, columns: &[ColumnId]) -> Option<(usize, bool)> {
    let within = |of: &[ColumnId]| columns.iter().all(|column| of.contains(column));
    match node {
        Node::Filter { .. } => Some((0, false)),
        Node::Let { columns: made, .. } => {
            (!made.iter().any(|(column, _)| columns.contains(column))).then_some((0, false))
        }
        Node::Aggregate { keys, .. } => within(keys).then_some((0, true)),
        Node::Window { window, .. } => within(&window.partition).then_some((0, true)),
        Node::Sort { skip: 0, fetch: None, .. } => Some((0, true)),
        Node::Join(join) => {
            let of = |side: &Node| columns.iter().all(|column| estimator.produces(side, *column));
            match join.kind {
                JoinRows::Full => None,
                _ if of(&join.left) => Some((0, join.swap)),
                JoinRows::Inner if of(&join.right) => Some((1, !join.swap)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Puts something on top of where columns begin, in every branch: goes as [`Target::find`] does.
fn insert(estimator: &Estimator<'_>, node: &mut Node, columns: &[ColumnId], put: &dyn Fn(Node, &[ColumnId]) -> Node) {
    if let Node::Union { inputs, columns: union } = node {
        for (input, from) in inputs {
            if let Some(columns) = through(columns, union, from) {
                insert(estimator, input, &columns, put);
            }
        }
        return;
    }
    match below(estimator, node, columns).and_then(|(child, _)| node.child_mut(child)) {
        Some(child) => insert(estimator, child, columns, put),
        None => {
            let taken = std::mem::replace(node, Node::Values { columns: vec![], rows: vec![] });
            *node = put(taken, columns);
        }
    }
}
