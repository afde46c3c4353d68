//! Estimates of rows, from table statistics.
//!
//! The usual assumptions: values are spread evenly, conditions are independent, and the keys of the side with fewer
//! distinct values all occur on the other side.

use std::collections::BTreeSet;

use tandem_pipeline::{DateField, Expr, Function};

use crate::planning::tree::{
    Registry,
    node::{ColumnId, JoinRows, Node, references},
};

/// Rows assumed of what the host hands in.
const UNKNOWN_ROWS: f64 = 10_000.0;
/// The share of pairs assumed to fulfil a condition that nothing is known of.
pub(super) const UNKNOWN_CONDITION: f64 = 1.0 / 3.0;

/// Estimates rows of nodes of one tree.
pub(crate) struct Estimator<'a> {
    pub(super) registry: &'a Registry,
}

impl<'a> Estimator<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Self {
        Estimator { registry }
    }

    /// Returns the columns that exist above a node.
    pub(crate) fn produced(&self, node: &Node) -> BTreeSet<ColumnId> {
        match node {
            Node::Scan { scan, .. } => {
                let info = &self.registry.scans[*scan];
                (info.first..info.first + info.stats.fields.len()).collect()
            }
            Node::Input { input } => {
                let info = &self.registry.inputs[*input];
                (info.first..info.first + info.plan.schema().fields().len()).collect()
            }
            Node::Values { columns, .. } | Node::Union { columns, .. } => columns.iter().copied().collect(),
            Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } => self.produced(input),
            Node::Window { input, window } => {
                let mut produced = self.produced(input);
                produced.extend(window.functions.iter().map(|call| call.output));
                produced
            }
            Node::Let { input, columns } => {
                let mut produced = self.produced(input);
                produced.extend(columns.iter().map(|(column, _)| *column));
                produced
            }
            Node::Join(join) => {
                let mut produced = self.produced(&join.left);
                match join.kind {
                    JoinRows::Semi | JoinRows::Anti => {}
                    JoinRows::Mark(mark) => {
                        produced.insert(mark);
                    }
                    JoinRows::Inner | JoinRows::Left | JoinRows::Full => produced.extend(self.produced(&join.right)),
                }
                produced
            }
            Node::Aggregate { keys, aggregates, .. } => {
                keys.iter().copied().chain(aggregates.iter().map(|aggregate| aggregate.output)).collect()
            }
        }
    }

    /// Estimates the rows that a node gives.
    pub(crate) fn rows(&self, node: &Node) -> f64 {
        match node {
            Node::Scan { scan, filters } => self.registry.scans[*scan].stats.rows * self.conjunction(filters),
            Node::Input { .. } => UNKNOWN_ROWS,
            Node::Values { rows, .. } => rows.len() as f64,
            Node::Filter { input, predicates } => self.rows(input) * self.conjunction(predicates),
            Node::Let { input, .. } | Node::Window { input, .. } => self.rows(input),
            Node::Join(join) => {
                let (left, right) = (self.rows(&join.left), self.rows(&join.right));
                let condition = if join.residual.is_some() { UNKNOWN_CONDITION } else { 1.0 };
                let pairs = || left * right / self.key_domain(&join.on, &join.left, &join.right) * condition;
                match join.kind {
                    JoinRows::Inner => pairs(),
                    JoinRows::Left => pairs().max(left),
                    JoinRows::Full => pairs().max(left + right),
                    JoinRows::Mark(_) => left,
                    JoinRows::Semi | JoinRows::Anti => left * self.kept(&join.on, &join.left, &join.right, join.kind),
                }
            }
            Node::Aggregate { input, keys, .. } => {
                let rows = self.rows(input);
                let groups: f64 = keys.iter().map(|key| self.distinct(&Expr::Slot(*key), rows).min(rows)).product();
                if keys.is_empty() { 1.0 } else { groups.min(rows) }
            }
            Node::Sort { input, fetch, .. } | Node::Limit { input, fetch, .. } => {
                let rows = self.rows(input);
                fetch.map_or(rows, |fetch| rows.min(fetch as f64))
            }
            Node::Union { inputs, .. } => inputs.iter().map(|(input, _)| self.rows(input)).sum(),
        }
    }

    /// Estimates the rows of a node if nothing below it were filtered.
    pub(crate) fn base_rows(&self, node: &Node) -> f64 {
        match node {
            Node::Scan { scan, .. } => self.registry.scans[*scan].stats.rows,
            Node::Filter { input, .. } | Node::Let { input, .. } | Node::Sort { input, .. } => self.base_rows(input),
            Node::Join(join) if matches!(join.kind, JoinRows::Semi | JoinRows::Anti | JoinRows::Mark(_)) => {
                self.base_rows(&join.left)
            }
            other => self.rows(other),
        }
        .max(1.0)
    }

    /// Estimates how many distinct values an expression has, in a relation of so many rows.
    pub(crate) fn distinct(&self, expr: &Expr, rows: f64) -> f64 {
        let estimate = match expr {
            Expr::Slot(column) => self.column_distinct(*column),
            Expr::Cast { input, .. } => Some(self.distinct(input, rows)),
            Expr::Literal(..) => Some(1.0),
            Expr::Function { function: Function::Extract(field), .. } => Some(match field {
                DateField::Year => 10.0,
                DateField::Quarter => 4.0,
                DateField::Month => 12.0,
                DateField::Week => 53.0,
                DateField::Day => 31.0,
                DateField::DayOfWeek => 7.0,
                DateField::DayOfYear => 366.0,
                DateField::Hour => 24.0,
                DateField::Minute | DateField::Second => 60.0,
            }),
            Expr::Function { arguments, .. } => {
                let columns: BTreeSet<ColumnId> = arguments.iter().flat_map(references).collect();
                Some(columns.iter().map(|column| self.column_distinct(*column).unwrap_or(rows)).product())
            }
            Expr::Compare(..) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::IsNull(_) | Expr::Like { .. } => {
                Some(2.0)
            }
            _ => None,
        };
        estimate.unwrap_or(rows).min(rows).max(1.0)
    }

    /// Returns how many distinct values a table's column has.
    pub(super) fn column_distinct(&self, column: ColumnId) -> Option<f64> {
        let (scan, _) = self.registry.columns[column].origin?;
        let rows = self.registry.scans[scan].stats.rows;
        let statistics = self.registry.statistics(column)?;
        if statistics.unique {
            return Some(rows);
        }
        if let Some(distinct) = statistics.distinct {
            return Some(distinct.max(1.0));
        }
        if let Some(dictionary) = self.registry.dictionary(column) {
            return Some(dictionary.len() as f64);
        }
        let integer = self.registry.kind(column).is_ok_and(|kind| !kind.is_float());
        let (low, high) = statistics.range?;
        integer.then(|| (high as f64 - low as f64 + 1.0).min(rows))
    }

    /// Estimates how many distinct keys the side with more of them has: what the product of rows is divided by.
    fn key_domain(&self, on: &[(Expr, Expr)], left: &Node, right: &Node) -> f64 {
        let (left_rows, right_rows) = (self.base_rows(left), self.base_rows(right));
        let (mut left_keys, mut right_keys) = (1.0, 1.0);
        for (left, right) in on {
            left_keys *= self.distinct(left, left_rows);
            right_keys *= self.distinct(right, right_rows);
        }
        f64::max(f64::min(left_keys, left_rows), f64::min(right_keys, right_rows)).max(1.0)
    }

    /// Estimates the share of left rows that a semi or anti join keeps.
    pub(crate) fn kept(&self, on: &[(Expr, Expr)], left: &Node, right: &Node, kind: JoinRows) -> f64 {
        if on.is_empty() {
            return UNKNOWN_CONDITION;
        }
        let (left_rows, right_rows) = (self.base_rows(left), self.rows(right).max(1.0));
        let (mut left_keys, mut right_keys) = (1.0, 1.0);
        for (left, right) in on {
            left_keys *= self.distinct(left, left_rows);
            right_keys *= self.distinct(right, right_rows);
        }
        let matched = (f64::min(right_keys, right_rows) / f64::min(left_keys, left_rows).max(1.0)).min(1.0);
        match kind {
            // An anti join that seems to drop everything was written for the rows it keeps.
            JoinRows::Anti => (1.0 - matched).max(0.1),
            _ => matched,
        }
    }

    /// Tells whether no two rows of a node agree in all keys (nulls aside).
    pub(crate) fn unique(&self, node: &Node, keys: &[&Expr]) -> bool {
        let columns: BTreeSet<ColumnId> =
            keys.iter().filter_map(|key| if let Expr::Slot(column) = key { Some(*column) } else { None }).collect();
        self.unique_columns(node, &columns)
    }

    fn unique_columns(&self, node: &Node, columns: &BTreeSet<ColumnId>) -> bool {
        match node {
            Node::Scan { scan, .. } => columns.iter().any(|column| {
                self.registry.columns[*column].origin.is_some_and(|(origin, _)| origin == *scan)
                    && self.registry.statistics(*column).is_some_and(|statistics| statistics.unique)
            }),
            Node::Filter { input, .. }
            | Node::Let { input, .. }
            | Node::Sort { input, .. }
            | Node::Window { input, .. }
            | Node::Limit { input, .. } => self.unique_columns(input, columns),
            Node::Aggregate { keys, .. } => keys.iter().all(|key| columns.contains(key)),
            Node::Join(join) => {
                let lefts: Vec<&Expr> = join.on.iter().map(|(left, _)| left).collect();
                let rights: Vec<&Expr> = join.on.iter().map(|(_, right)| right).collect();
                match join.kind {
                    JoinRows::Semi | JoinRows::Anti | JoinRows::Mark(_) => self.unique_columns(&join.left, columns),
                    // Nulls may occur more than once in what is unique, and here they match.
                    JoinRows::Left | JoinRows::Inner if join.null_equals_null => false,
                    JoinRows::Left => self.unique_columns(&join.left, columns) && self.unique(&join.right, &rights),
                    JoinRows::Inner => {
                        (self.unique_columns(&join.left, columns) && self.unique(&join.right, &rights))
                            || (self.unique_columns(&join.right, columns) && self.unique(&join.left, &lefts))
                    }
                    JoinRows::Full => false,
                }
            }
            Node::Values { rows, .. } => rows.len() <= 1,
            Node::Input { .. } | Node::Union { .. } => false,
        }
    }
}
