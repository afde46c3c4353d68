//! Estimates of rows, from table statistics.
//!
//! The usual assumptions: values are spread evenly, conditions are independent, and the keys of the side with fewer
//! distinct values all occur on the other side.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

use tandem_pipeline::{DateField, Expr, Function};

use crate::planning::tree::{
    Registry,
    node::{ColumnId, Estimate, Join, JoinRows, Node, references},
};

/// Rows assumed of what the host hands in.
const UNKNOWN_ROWS: f64 = 10_000.0;
/// The share of pairs assumed to fulfil a condition that nothing is known of.
pub(super) const UNKNOWN_CONDITION: f64 = 1.0 / 3.0;

/// Estimates rows of nodes of one tree.
pub(crate) struct Estimator<'a> {
    pub(super) registry: &'a Registry,
    /// How many nodes were looked at, for tests: time is never asserted.
    looked: Cell<usize>,
}

impl<'a> Estimator<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Self {
        Estimator { registry, looked: Cell::new(0) }
    }

    /// Returns how many nodes were looked at so far.
    #[cfg(test)]
    pub(crate) fn looked(&self) -> usize {
        self.looked.get()
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
            Node::Shared(shared) => {
                let mut produced = self.produced(&shared.input);
                produced.retain(|column| shared.renamed.iter().all(|(_, inner)| inner != column));
                produced.extend(shared.renamed.iter().map(|(here, _)| *here));
                produced
            }
            Node::GroupingSets { sets, .. } => {
                let made = sets.aggregates.iter().map(|aggregate| aggregate.output);
                sets.outputs.iter().copied().chain([sets.number]).chain(made).collect()
            }
        }
    }

    /// Tells whether a column exists above a node.
    pub(crate) fn produces(&self, node: &Node, column: ColumnId) -> bool {
        match node {
            Node::Scan { scan, .. } => {
                let info = &self.registry.scans[*scan];
                (info.first..info.first + info.stats.fields.len()).contains(&column)
            }
            Node::Input { input } => {
                let info = &self.registry.inputs[*input];
                (info.first..info.first + info.plan.schema().fields().len()).contains(&column)
            }
            Node::Values { columns, .. } | Node::Union { columns, .. } => columns.contains(&column),
            Node::Filter { input, .. } | Node::Sort { input, .. } | Node::Limit { input, .. } => {
                self.produces(input, column)
            }
            Node::Window { input, window } => {
                window.functions.iter().any(|call| call.output == column) || self.produces(input, column)
            }
            Node::Let { input, columns } => {
                columns.iter().any(|(made, _)| *made == column) || self.produces(input, column)
            }
            Node::Join(join) => {
                self.produces(&join.left, column)
                    || match join.kind {
                        JoinRows::Semi | JoinRows::Anti => false,
                        JoinRows::Mark(mark) => mark == column,
                        JoinRows::Inner | JoinRows::Left | JoinRows::Full => self.produces(&join.right, column),
                    }
            }
            Node::Aggregate { keys, aggregates, .. } => {
                keys.contains(&column) || aggregates.iter().any(|aggregate| aggregate.output == column)
            }
            Node::GroupingSets { .. } => self.produced(node).contains(&column),
            Node::Shared(shared) => {
                // A column that has another id here is not known by its own.
                let hidden = shared.renamed.iter().any(|(_, inner)| *inner == column);
                let renamed = shared.renamed.iter().any(|(here, _)| *here == column);
                (renamed || !hidden) && self.produces(&shared.input, shared.inner(column))
            }
        }
    }

    /// Estimates the rows that a node gives.
    pub(crate) fn rows(&self, node: &Node) -> f64 {
        self.estimate(node).rows
    }

    /// Estimates a node, from what is known of the joins below it: every node is looked at once at most.
    pub(crate) fn estimate(&self, node: &Node) -> Estimate {
        self.looked.set(self.looked.get() + 1);
        // What is not filtered from a table has no rows before filters.
        let made = |rows: f64| Estimate { rows, base: rows.max(1.0) };
        match node {
            Node::Scan { scan, filters } => {
                let rows = self.registry.scans[*scan].stats.rows;
                Estimate { rows: rows * self.filtered(*scan, filters), base: rows.max(1.0) }
            }
            Node::Input { .. } => made(UNKNOWN_ROWS),
            Node::Values { rows, .. } => made(rows.len() as f64),
            Node::Filter { input, predicates } => {
                let input = self.estimate(input);
                Estimate { rows: input.rows * self.conjunction(predicates), ..input }
            }
            Node::Let { input, .. } | Node::Window { input, .. } => self.estimate(input),
            Node::Join(join) => match join.estimate {
                Some(known) => known,
                None => self.join(join, self.estimate(&join.left), self.estimate(&join.right)),
            },
            Node::Aggregate { input, keys, .. } => made(self.groups(keys.iter().copied(), self.rows(input))),
            Node::GroupingSets { input, sets } => {
                let rows = self.rows(input);
                let keys = |set: &[usize]| set.iter().map(|key| sets.keys[*key]).collect::<Vec<_>>();
                made(sets.sets.iter().map(|(set, _)| self.groups(keys(set).into_iter(), rows)).sum())
            }
            Node::Sort { input, fetch, .. } => {
                let input = self.estimate(input);
                Estimate { rows: fetch.map_or(input.rows, |fetch| input.rows.min(fetch as f64)), ..input }
            }
            Node::Limit { input, fetch, .. } => {
                let rows = self.rows(input);
                made(fetch.map_or(rows, |fetch| rows.min(fetch as f64)))
            }
            Node::Union { inputs, .. } => made(inputs.iter().map(|(input, _)| self.rows(input)).sum()),
            Node::Shared(shared) => self.estimate(&shared.input),
        }
    }

    /// Estimates the groups of rows by some keys.
    pub(crate) fn groups(&self, keys: impl ExactSizeIterator<Item = ColumnId>, rows: f64) -> f64 {
        if keys.len() == 0 {
            return 1.0;
        }
        keys.map(|key| self.distinct(&Expr::Slot(key), rows).min(rows)).product::<f64>().min(rows)
    }

    /// Estimates a join of sides that are estimated.
    pub(crate) fn join(&self, join: &Join, left: Estimate, right: Estimate) -> Estimate {
        let condition = if join.residual.is_some() { UNKNOWN_CONDITION } else { 1.0 };
        let pairs = || left.rows * right.rows / self.key_domain(&join.on, left.base, right.base) * condition;
        let rows = match join.kind {
            JoinRows::Inner => pairs(),
            JoinRows::Left => pairs().max(left.rows),
            JoinRows::Full => pairs().max(left.rows + right.rows),
            JoinRows::Mark(_) => left.rows,
            JoinRows::Semi | JoinRows::Anti => left.rows * self.kept(&join.on, left, right, join.kind),
        };
        let base = match join.kind {
            JoinRows::Semi | JoinRows::Anti | JoinRows::Mark(_) => left.base,
            JoinRows::Inner | JoinRows::Left | JoinRows::Full => rows.max(1.0),
        };
        Estimate { rows, base }
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
    fn key_domain(&self, on: &[(Expr, Expr)], left_rows: f64, right_rows: f64) -> f64 {
        let (mut left_keys, mut right_keys) = (1.0, 1.0);
        for (left, right) in on {
            left_keys *= self.distinct(left, left_rows);
            right_keys *= self.distinct(right, right_rows);
        }
        f64::max(f64::min(left_keys, left_rows), f64::min(right_keys, right_rows)).max(1.0)
    }

    /// Estimates the share of left rows that a semi or anti join keeps.
    pub(crate) fn kept(&self, on: &[(Expr, Expr)], left: Estimate, right: Estimate, kind: JoinRows) -> f64 {
        if on.is_empty() {
            return UNKNOWN_CONDITION;
        }
        let (left_rows, right_rows) = (left.base, right.rows.max(1.0));
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
        Uniqueness { estimator: self, known: HashMap::new() }.of(node, &slots(keys.iter().copied()))
    }
}

/// Returns the columns among expressions.
fn slots<'e>(keys: impl Iterator<Item = &'e Expr>) -> BTreeSet<ColumnId> {
    keys.filter_map(|key| if let Expr::Slot(column) = key { Some(*column) } else { None }).collect()
}

/// Finds out what is unique in a tree. An inner join asks both sides about two sets of columns, and so do those below it:
/// what is known of a node, which does not move meanwhile, is not asked again.
struct Uniqueness<'a> {
    estimator: &'a Estimator<'a>,
    known: HashMap<(*const Join, BTreeSet<ColumnId>), bool>,
}

impl Uniqueness<'_> {
    fn of(&mut self, node: &Node, columns: &BTreeSet<ColumnId>) -> bool {
        let registry = self.estimator.registry;
        self.estimator.looked.set(self.estimator.looked.get() + 1);
        match node {
            Node::Scan { scan, .. } => columns.iter().any(|column| {
                registry.columns[*column].origin.is_some_and(|(origin, _)| origin == *scan)
                    && registry.statistics(*column).is_some_and(|statistics| statistics.unique)
            }),
            Node::Filter { input, .. }
            | Node::Let { input, .. }
            | Node::Sort { input, .. }
            | Node::Window { input, .. }
            | Node::Limit { input, .. } => self.of(input, columns),
            Node::Aggregate { keys, .. } => keys.iter().all(|key| columns.contains(key)),
            Node::Join(join) => {
                let key = (&raw const **join, columns.clone());
                if let Some(known) = self.known.get(&key) {
                    return *known;
                }
                let found = self.of_join(join, columns);
                self.known.insert(key, found);
                found
            }
            Node::Values { rows, .. } => rows.len() <= 1,
            Node::Shared(shared) => {
                self.of(&shared.input, &columns.iter().map(|column| shared.inner(*column)).collect())
            }
            Node::Input { .. } | Node::Union { .. } | Node::GroupingSets { .. } => false,
        }
    }

    fn of_join(&mut self, join: &Join, columns: &BTreeSet<ColumnId>) -> bool {
        let lefts = || slots(join.on.iter().map(|(left, _)| left));
        let rights = || slots(join.on.iter().map(|(_, right)| right));
        match join.kind {
            JoinRows::Semi | JoinRows::Anti | JoinRows::Mark(_) => self.of(&join.left, columns),
            // Nulls may occur more than once in what is unique, and here they match.
            JoinRows::Left | JoinRows::Inner if join.null_equals_null => false,
            JoinRows::Left => self.of(&join.left, columns) && self.of(&join.right, &rights()),
            JoinRows::Inner => {
                (self.of(&join.left, columns) && self.of(&join.right, &rights()))
                    || (self.of(&join.right, columns) && self.of(&join.left, &lefts()))
            }
            JoinRows::Full => false,
        }
    }
}
