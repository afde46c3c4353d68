//! Join order, from statistics.
//!
//! Regions of inner joins, with the filters, computed columns, semi and anti joins between them, are taken apart into
//! relations, equalities and conditions (`region`), put together again in the order of least cost (`enumerate`, `heuristic`,
//! `many`) by estimated cardinalities (`estimate`, `graph`). For every other join only the side to build is chosen. Then
//! inequalities between the sides of a join move into it (`inequality`).
//! A star query becomes one pipeline over the fact table that probes the most selective dimension first, for that order
//! costs least.

mod enumerate;
mod estimate;
mod graph;
mod heuristic;
mod inequality;
mod many;
mod region;
mod sample;
mod selectivity;
#[cfg(test)]
mod tests;

pub(crate) use estimate::Estimator;
pub(crate) use inequality::search_by_inequality;

use crate::planning::tree::node::{Join, JoinRows, Node};

/// How much more a row costs to put into a build than to look up in one: it is hashed, written and read again.
pub(crate) const BUILD_WEIGHT: f64 = 4.0;

/// Orders the joins of a tree and chooses the side that each builds; every join has an estimate then.
pub(crate) fn order(estimator: &Estimator<'_>, node: Node) -> Node {
    if region::begins(&node) {
        return region::order_region(estimator, node);
    }
    let below = |node: Box<Node>| Box::new(order(estimator, *node));
    match node {
        Node::Scan { .. } | Node::Input { .. } | Node::Values { .. } => node,
        Node::Filter { input, predicates } => Node::Filter { input: below(input), predicates },
        Node::Let { input, columns } => Node::Let { input: below(input), columns },
        Node::Aggregate { input, keys, aggregates } => Node::Aggregate { input: below(input), keys, aggregates },
        Node::GroupingSets { input, sets } => Node::GroupingSets { input: below(input), sets },
        Node::Sort { input, keys, skip, fetch } => Node::Sort { input: below(input), keys, skip, fetch },
        Node::Window { input, window } => Node::Window { input: below(input), window },
        Node::Limit { input, skip, fetch } => Node::Limit { input: below(input), skip, fetch },
        Node::Union { inputs, columns } => {
            let inputs = inputs.into_iter().map(|(node, from)| (order(estimator, node), from)).collect();
            Node::Union { inputs, columns }
        }
        Node::Shared(mut shared) => {
            shared.input = order(estimator, shared.input);
            Node::Shared(shared)
        }
        Node::Join(join) => {
            let mut join = *join;
            join.left = order(estimator, join.left);
            join.right = order(estimator, join.right);
            Node::Join(Box::new(choose_side(estimator, join)))
        }
    }
}

/// Chooses which side of a join is built: the one that costs less, where the kind leaves a choice.
pub(crate) fn choose_side(estimator: &Estimator<'_>, mut join: Join) -> Join {
    let (left, right) = (estimator.estimate(&join.left), estimator.estimate(&join.right));
    join.estimate = Some(estimator.join(&join, left, right));
    let (left, right) = (left.rows, right.rows);
    join.swap = match join.kind {
        // A null-aware join asks whether the other side has nulls, a mark join marks rows as they pass.
        _ if join.null_aware => false,
        JoinRows::Mark(_) => false,
        // The value of a subquery joins without keys: one row is built.
        _ if join.on.is_empty() => left < right && join.kind == JoinRows::Inner,
        JoinRows::Inner | JoinRows::Full => left < right,
        // The kept side carries all its columns through the build, so it should be clearly smaller.
        JoinRows::Left | JoinRows::Semi | JoinRows::Anti => left * 2.0 < right,
    };
    join
}
