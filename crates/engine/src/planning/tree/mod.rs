//! The relational tree that lowering makes of a plan, on which joins are ordered, and from which pipelines are emitted.
//!
//! [`node`] holds the operators. Columns, scans and inputs are numbered, and the [`Registry`] tells what each number stands
//! for. This module knows neither the stages that make and change trees (`lower`, `join_order`) nor `capture`.

pub(crate) mod node;
mod visit;

use std::cell::RefCell;
use std::sync::Arc;

use datafusion::{
    common::TableReference,
    logical_expr::{LogicalPlan, TableSource},
};
use tandem_column::{ColumnStatistics, Dictionary, Type};
use tandem_pipeline::Expr;

use crate::planning::{reason::Reason, table_stats::TableStats};
use node::ColumnId;
pub(crate) use visit::{may_fail, substitute, visit};

/// A column of the tree.
#[derive(Clone, Debug)]
pub(crate) struct TreeColumn {
    /// A name for people.
    pub name: String,
    /// Its type, or why Tandem cannot compute with it.
    pub kind: Result<Type, String>,
    /// Whether it may be null anywhere in the tree.
    pub nullable: bool,
    /// The scan and the table's column it comes from unchanged.
    pub origin: Option<(usize, usize)>,
}

/// A table scan of the tree.
pub(crate) struct ScanInfo {
    /// The table's name.
    pub table: TableReference,
    /// The table.
    pub source: Arc<dyn TableSource>,
    /// What is known of it.
    pub stats: TableStats,
    /// The id of its first column; the others follow.
    pub first: ColumnId,
    /// The conditions that were tried on some of its rows, and the share that passed: asked again and again while
    /// planning.
    pub tried: RefCell<Vec<(Vec<Expr>, Option<f64>)>>,
}

/// A sub-plan that the host runs.
pub(crate) struct InputInfo {
    /// The plan, as the host's optimiser left it.
    pub plan: LogicalPlan,
    /// Why its root is left to the host.
    pub reason: Reason,
    /// The id of its first column; the others follow.
    pub first: ColumnId,
}

/// What the numbers in a tree stand for.
#[derive(Default)]
pub(crate) struct Registry {
    pub columns: Vec<TreeColumn>,
    pub scans: Vec<ScanInfo>,
    pub inputs: Vec<InputInfo>,
}

/// A point to go back to when a child turns out not to be supported.
pub(crate) struct Mark {
    columns: usize,
    scans: usize,
    inputs: usize,
}

impl Registry {
    /// Makes a column.
    pub(crate) fn column(&mut self, name: impl Into<String>, kind: Type, nullable: bool) -> ColumnId {
        self.columns.push(TreeColumn { name: name.into(), kind: Ok(kind), nullable, origin: None });
        self.columns.len() - 1
    }

    /// Returns a column's type, or why it cannot be used.
    pub(crate) fn kind(&self, column: ColumnId) -> Result<Type, String> {
        let info = &self.columns[column];
        info.kind.clone().map_err(|reason| format!("column {}: {reason}", info.name))
    }

    /// Returns the statistics of a column that comes unchanged from a table.
    pub(crate) fn statistics(&self, column: ColumnId) -> Option<&ColumnStatistics> {
        let (scan, position) = self.columns[column].origin?;
        self.scans[scan].stats.columns.get(position)
    }

    /// Returns the dictionary of a column that comes unchanged from a table.
    pub(crate) fn dictionary(&self, column: ColumnId) -> Option<&Arc<Dictionary>> {
        let (scan, position) = self.columns[column].origin?;
        self.scans[scan].stats.dictionaries.get(position)?.as_ref()
    }

    /// Returns the point reached.
    pub(crate) fn mark(&self) -> Mark {
        Mark { columns: self.columns.len(), scans: self.scans.len(), inputs: self.inputs.len() }
    }

    /// Forgets everything since a mark.
    pub(crate) fn rollback(&mut self, mark: Mark) {
        self.columns.truncate(mark.columns);
        self.scans.truncate(mark.scans);
        self.inputs.truncate(mark.inputs);
    }
}
