//! What lowering knows while it goes down a plan: columns, scans and inputs made so far, and reasons.

use std::sync::Arc;

use datafusion::{
    common::TableReference,
    logical_expr::{LogicalPlan, TableSource},
};
use tandem_column::{ColumnStatistics, Dictionary, Type};

use super::node::ColumnId;
use crate::planning::{
    capture::{CaptureOptions, TableResolver, TableStats},
    reason::Reason,
};

/// A column of the tree.
#[derive(Clone, Debug)]
pub(crate) struct ColumnInfo {
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
}

/// A sub-plan that the host runs.
pub(crate) struct InputInfo {
    /// The plan, with what Tandem could take of it captured.
    pub plan: LogicalPlan,
    /// The id of its first column; the others follow.
    pub first: ColumnId,
}

/// The state of lowering one plan.
pub(crate) struct Context<'a> {
    pub resolver: &'a dyn TableResolver,
    pub options: &'a CaptureOptions,
    pub columns: Vec<ColumnInfo>,
    pub scans: Vec<ScanInfo>,
    pub inputs: Vec<InputInfo>,
    pub reasons: Vec<Reason>,
    /// How deeply the expression being lowered is nested.
    pub depth: usize,
}

/// A point to go back to when a child turns out not to be supported.
pub(crate) struct Mark {
    columns: usize,
    scans: usize,
    inputs: usize,
    reasons: usize,
}

impl<'a> Context<'a> {
    pub(crate) fn new(resolver: &'a dyn TableResolver, options: &'a CaptureOptions) -> Self {
        Context { resolver, options, columns: vec![], scans: vec![], inputs: vec![], reasons: vec![], depth: 0 }
    }

    /// Makes a column.
    pub(crate) fn column(&mut self, name: impl Into<String>, kind: Type, nullable: bool) -> ColumnId {
        self.columns.push(ColumnInfo { name: name.into(), kind: Ok(kind), nullable, origin: None });
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
        Mark {
            columns: self.columns.len(),
            scans: self.scans.len(),
            inputs: self.inputs.len(),
            reasons: self.reasons.len(),
        }
    }

    /// Forgets everything since a mark.
    pub(crate) fn rollback(&mut self, mark: Mark) {
        self.columns.truncate(mark.columns);
        self.scans.truncate(mark.scans);
        self.inputs.truncate(mark.inputs);
        self.reasons.truncate(mark.reasons);
    }
}
