//! What lowering knows while it goes down a plan: the tables it may scan, and what it has made so far.

use tandem_column::Type;

use crate::planning::{
    table_stats::TableResolver,
    tree::{Registry, node::ColumnId},
};

/// The state of lowering one plan.
pub(crate) struct LoweringContext<'a> {
    pub resolver: &'a dyn TableResolver,
    /// The columns, scans and inputs made so far.
    pub registry: Registry,
    /// How deeply the expression being lowered is nested.
    pub depth: usize,
    /// An operator is looked at without its children: their rows stand for them.
    pub alone: bool,
}

impl<'a> LoweringContext<'a> {
    pub(crate) fn new(resolver: &'a dyn TableResolver) -> Self {
        LoweringContext { resolver, registry: Registry::default(), depth: 0, alone: false }
    }

    /// Makes a column.
    pub(crate) fn column(&mut self, name: impl Into<String>, kind: Type, nullable: bool) -> ColumnId {
        self.registry.column(name, kind, nullable)
    }

    /// Returns a column's type, or why it cannot be used.
    pub(crate) fn kind(&self, column: ColumnId) -> Result<Type, String> {
        self.registry.kind(column)
    }
}
