//! The relational tree between the host's logical plan and pipelines.
//!
//! Every column that any operator makes has an id of its own, valid in the whole tree, and expressions name columns by it
//! (`Expr::Slot(id)`). So projections of plain columns vanish, predicates and joins move without renaming, and liveness
//! is a set of ids. Ids become slots of a pipeline only when the tree is emitted (`lower::emit`).

use std::collections::BTreeSet;

use tandem_column::Type;
use tandem_pipeline::{AggregateFunction, Expr, Overflow, Value};

use super::may_fail;

/// The id of a column in the whole tree.
pub(crate) type ColumnId = usize;

/// A relational operator.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Scan { scan: usize, filters: Vec<Expr> }, // a table of the context, filtered
    Input { input: usize },                   // rows the host computes
    Values { columns: Vec<ColumnId>, rows: Vec<Vec<Value>> }, // literal rows
    Filter { input: Box<Node>, predicates: Vec<Expr> }, // rows where all are true
    Let { input: Box<Node>, columns: Vec<(ColumnId, Expr)> }, // adds columns; all see only the input's
    Join(Box<Join>),                          // two inputs
    Aggregate { input: Box<Node>, keys: Vec<ColumnId>, aggregates: Vec<AggregateCall> }, // keys keep their ids
    Sort { input: Box<Node>, keys: Vec<OrderBy>, skip: usize, fetch: Option<usize> },
    Limit { input: Box<Node>, skip: usize, fetch: Option<usize> },
    Union { inputs: Vec<(Node, Vec<ColumnId>)>, columns: Vec<ColumnId> }, // one after the other, column by column
}

/// A join; the left side's rows are those that outer, semi, anti and mark joins keep.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub kind: JoinRows,
    pub left: Node,
    pub right: Node,
    /// Equal expressions: of the left side, of the right side.
    pub on: Vec<(Expr, Expr)>,
    /// A further condition on a pair.
    pub residual: Option<Expr>,
    pub null_equals_null: bool,
    pub null_aware: bool,
    /// The left side is built and the right side probes.
    pub swap: bool,
    /// What is estimated of its rows, from when joins are ordered: nothing below changes any more.
    pub estimate: Option<Estimate>,
}

/// What is estimated of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The rows that it gives.
    pub rows: f64,
    /// The rows that it would give if nothing below were filtered; at least one.
    pub base: f64,
}

/// Which rows a join gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinRows {
    Inner,
    Left,
    Full,
    Semi,
    Anti,
    Mark(ColumnId), // the left side's rows, and whether they have a match
}

/// One aggregate; the meaning of each field is that of [`tandem_pipeline::Aggregate`].
#[derive(Clone, Debug)]
pub(crate) struct AggregateCall {
    pub output: ColumnId,
    pub function: AggregateFunction,
    pub argument: Option<ColumnId>,
    pub distinct: bool,
    pub filter: Option<ColumnId>,
    pub kind: Type,
    pub overflow: Overflow,
}

/// One ordering key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderBy {
    pub column: ColumnId,
    pub descending: bool,
    pub nulls_first: bool,
}

impl Node {
    /// Filters a node, merging with filters it already has and leaving out what is already known to hold.
    pub(crate) fn filter(self, predicates: Vec<Expr>) -> Node {
        if predicates.is_empty() {
            return self;
        }
        fn add(to: &mut Vec<Expr>, predicates: Vec<Expr>) {
            for predicate in predicates {
                if !to.contains(&predicate) {
                    to.push(predicate);
                }
            }
        }
        match self {
            Node::Scan { scan, mut filters } => {
                add(&mut filters, predicates);
                Node::Scan { scan, filters }
            }
            Node::Filter { input, predicates: mut known } => {
                add(&mut known, predicates);
                Node::Filter { input, predicates: known }
            }
            other => {
                let mut known = Vec::new();
                add(&mut known, predicates);
                Node::Filter { input: Box::new(other), predicates: known }
            }
        }
    }

    /// Adds computed columns. They are computed before a sort, so that it comes last, unless it keeps rows from them on
    /// which they could fail.
    pub(crate) fn extend(self, columns: Vec<(ColumnId, Expr)>) -> Node {
        if columns.is_empty() {
            return self;
        }
        match self {
            Node::Sort { input, keys, skip, fetch }
                if fetch.is_none() || !columns.iter().any(|(_, expr)| may_fail(expr)) =>
            {
                Node::Sort { input: Box::new(input.extend(columns)), keys, skip, fetch }
            }
            other => Node::Let { input: Box::new(other), columns },
        }
    }

    /// Keeps `fetch` rows after the first `skip`, merging with a sort or limit below.
    pub(crate) fn limit(self, skip: usize, fetch: Option<usize>) -> Node {
        // Of the rows [below.0, below.0 + below.1) those at [skip, skip + fetch).
        let merge = |below_skip: usize, below_fetch: Option<usize>| {
            let left = below_fetch.map(|below| below.saturating_sub(skip));
            let fetch = match (left, fetch) {
                (Some(left), Some(fetch)) => Some(left.min(fetch)),
                (left, fetch) => left.or(fetch),
            };
            (below_skip.saturating_add(skip), fetch)
        };
        match self {
            Node::Sort { input, keys, skip, fetch } => {
                let (skip, fetch) = merge(skip, fetch);
                Node::Sort { input, keys, skip, fetch }
            }
            Node::Limit { input, skip, fetch } => {
                let (skip, fetch) = merge(skip, fetch);
                Node::Limit { input, skip, fetch }
            }
            other => Node::Limit { input: Box::new(other), skip, fetch },
        }
    }

    /// Calls `f` on each node below and on this one; children first.
    pub(crate) fn walk(&self, f: &mut dyn FnMut(&Node)) {
        match self {
            Node::Scan { .. } | Node::Input { .. } | Node::Values { .. } => {}
            Node::Filter { input, .. }
            | Node::Let { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Sort { input, .. }
            | Node::Limit { input, .. } => input.walk(f),
            Node::Join(join) => {
                join.left.walk(f);
                join.right.walk(f);
            }
            Node::Union { inputs, .. } => inputs.iter().for_each(|(input, _)| input.walk(f)),
        }
        f(self);
    }
}

/// Returns the columns an expression reads.
pub(crate) fn references(expr: &Expr) -> BTreeSet<ColumnId> {
    expr.slots()
}

/// Splits a condition at its ANDs.
pub(crate) fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}
