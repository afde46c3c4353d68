//! The relational tree between the host's logical plan and pipelines.
//!
//! Every column that any operator makes has an id of its own, valid in the whole tree, and expressions name columns by it
//! (`Expr::Slot(id)`). So projections of plain columns vanish, predicates and joins move without renaming, and liveness
//! is a set of ids. Ids become slots of a pipeline only when the tree is emitted (`lower::emit`).

use std::collections::BTreeSet;

use tandem_column::Type;
use tandem_pipeline::{AggregateFunction, Comparison, Expr, Overflow, Value, Window, WindowFunction};

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
    GroupingSets { input: Box<Node>, sets: Box<GroupingSets> }, // groups by each of several sets of keys
    Sort { input: Box<Node>, keys: Vec<OrderBy>, skip: usize, fetch: Option<usize> },
    Limit { input: Box<Node>, skip: usize, fetch: Option<usize> },
    Window { input: Box<Node>, window: Box<WindowNode> }, // adds a column for each function
    Union { inputs: Vec<(Node, Vec<ColumnId>)>, columns: Vec<ColumnId> }, // one after the other, column by column
    Shared(Box<Shared>),                                  // rows that several parts of the tree read
}

/// A part of the tree that stands in several places and runs once: places with one id have equal inputs.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub id: usize,
    pub input: Node,
    /// The input's columns that have another id in this place: here, in the input. The others keep theirs.
    pub renamed: Vec<(ColumnId, ColumnId)>,
}

impl Shared {
    /// Returns the input's column that a column of this place is.
    pub(crate) fn inner(&self, column: ColumnId) -> ColumnId {
        self.renamed.iter().find(|(here, _)| *here == column).map_or(column, |(_, inner)| *inner)
    }

    /// Returns the column that one of the input's is in this place.
    pub(crate) fn here(&self, column: ColumnId) -> ColumnId {
        self.renamed.iter().find(|(_, inner)| *inner == column).map_or(column, |(here, _)| *here)
    }
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
    pub second: Option<ColumnId>,
    pub parameter: Value,
    pub order: Vec<OrderBy>,
    pub distinct: bool,
    pub filter: Option<ColumnId>,
    pub kind: Type,
    pub overflow: Overflow,
}

impl AggregateCall {
    /// Returns the columns that it reads.
    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnId> {
        let order = self.order.iter().map(|key| key.column);
        self.argument.into_iter().chain(self.second).chain(order).chain(self.filter)
    }
}

/// Several sets of keys by which the same rows are grouped.
#[derive(Clone, Debug)]
pub(crate) struct GroupingSets {
    /// The keys of all sets.
    pub keys: Vec<ColumnId>,
    /// What they are in the groups: null in those of a set without the key.
    pub outputs: Vec<ColumnId>,
    /// The positions of each set's keys, and the number that tells it apart.
    pub sets: Vec<(Vec<usize>, i128)>,
    /// The column of that number.
    pub number: ColumnId,
    /// What is computed of each group; at least one.
    pub aggregates: Vec<AggregateCall>,
}

/// Window functions over one partition and one order.
#[derive(Clone, Debug)]
pub(crate) struct WindowNode {
    pub partition: Vec<ColumnId>,
    pub order: Vec<OrderBy>,
    pub functions: Vec<WindowCall>,
    /// Only rows whose first function, a row number or a rank, is at most that.
    pub fetch: Option<usize>,
}

/// One window function, whose slots are columns.
#[derive(Clone, Debug)]
pub(crate) struct WindowCall {
    pub output: ColumnId,
    pub window: Window,
}

impl WindowNode {
    /// Takes the conditions that a row number or a rank is at most a constant, once; returns those that are left.
    fn take_first(&mut self, predicates: Vec<Expr>) -> Vec<Expr> {
        let mut left = Vec::new();
        for predicate in predicates {
            match self.at_most(&predicate) {
                Some((position, most)) if self.fetch.is_none() => {
                    self.functions.swap(0, position);
                    self.fetch = Some(most);
                }
                _ => left.push(predicate),
            }
        }
        left
    }

    /// Finds the row number or rank that a condition wants to be at most a constant.
    fn at_most(&self, predicate: &Expr) -> Option<(usize, usize)> {
        let Expr::Compare(comparison, left, right) = predicate else { return None };
        let (comparison, column, limit) = match (&**left, &**right) {
            (Expr::Slot(column), Expr::Literal(Value::Integer(limit), _)) => (*comparison, column, *limit),
            (Expr::Literal(Value::Integer(limit), _), Expr::Slot(column)) => (comparison.mirrored(), column, *limit),
            _ => return None,
        };
        let most = match comparison {
            Comparison::LessOrEqual => limit,
            Comparison::Less => limit - 1,
            // There is none below the first.
            Comparison::Equal if limit == 1 => 1,
            _ => return None,
        };
        let ranks = |call: &WindowCall| {
            call.output == *column && matches!(call.window.function, WindowFunction::RowNumber | WindowFunction::Rank)
        };
        Some((self.functions.iter().position(ranks)?, usize::try_from(most).ok()?))
    }
}

/// One ordering key.
#[derive(Clone, Copy, Debug, PartialEq)]
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
            Node::Window { input, mut window } => {
                let mut known = Vec::new();
                add(&mut known, window.take_first(predicates));
                let node = Node::Window { input, window };
                if known.is_empty() { node } else { Node::Filter { input: Box::new(node), predicates: known } }
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

    /// Returns the nodes right below this one, in the order of [`Node::child_mut`].
    pub(crate) fn children(&self) -> Vec<&Node> {
        match self {
            Node::Scan { .. } | Node::Input { .. } | Node::Values { .. } => vec![],
            Node::Filter { input, .. }
            | Node::Let { input, .. }
            | Node::Aggregate { input, .. }
            | Node::GroupingSets { input, .. }
            | Node::Sort { input, .. }
            | Node::Window { input, .. }
            | Node::Limit { input, .. } => vec![input],
            Node::Join(join) => vec![&join.left, &join.right],
            Node::Union { inputs, .. } => inputs.iter().map(|(input, _)| input).collect(),
            Node::Shared(shared) => vec![&shared.input],
        }
    }

    /// Returns one of the nodes right below this one, to be changed.
    pub(crate) fn child_mut(&mut self, child: usize) -> Option<&mut Node> {
        match self {
            Node::Scan { .. } | Node::Input { .. } | Node::Values { .. } => None,
            Node::Filter { input, .. }
            | Node::Let { input, .. }
            | Node::Aggregate { input, .. }
            | Node::GroupingSets { input, .. }
            | Node::Sort { input, .. }
            | Node::Window { input, .. }
            | Node::Limit { input, .. } => (child == 0).then_some(&mut **input),
            Node::Join(join) => match child {
                0 => Some(&mut join.left),
                1 => Some(&mut join.right),
                _ => None,
            },
            Node::Union { inputs, .. } => inputs.get_mut(child).map(|(input, _)| input),
            Node::Shared(shared) => (child == 0).then_some(&mut shared.input),
        }
    }

    /// Calls `f` on each node below and on this one; children first.
    pub(crate) fn walk(&self, f: &mut dyn FnMut(&Node)) {
        self.children().into_iter().for_each(|child| child.walk(f));
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
