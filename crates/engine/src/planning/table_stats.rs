//! What planning knows of tables: which of them Tandem can scan, their columns and statistics.

use std::sync::Arc;

use datafusion::{common::TableReference, logical_expr::TableSource};
use tandem_column::{ColumnStatistics, Data, Dictionary, Field, Table};

/// What is known of a table that Tandem can scan.
#[derive(Clone, Debug)]
pub struct TableStats {
    /// How many rows it has, or about how many.
    pub rows: f64,
    /// The columns' names and types as Tandem holds them, in the order of the source's schema.
    pub fields: Arc<[Field]>,
    /// Statistics of each column; may be shorter than `fields` where nothing is known.
    pub columns: Vec<ColumnStatistics>,
    /// The dictionary of each dictionary column; may be shorter than `fields` where nothing is known.
    pub dictionaries: Vec<Option<Arc<Dictionary>>>,
    /// Its rows, where they are in memory: conditions can be tried on some.
    pub rows_at_hand: Option<Arc<Table>>,
}

impl TableStats {
    /// Returns what a resident table knows of itself.
    pub fn of(table: &Arc<Table>) -> TableStats {
        let dictionary = |position: usize| match &table.parts.first()?.columns[position].data {
            Data::Dictionary { dictionary, .. } => Some(dictionary.clone()),
            _ => None,
        };
        TableStats {
            rows: table.parts.iter().map(|part| part.rows as f64).sum(),
            fields: table.schema.clone(),
            columns: table.statistics.to_vec(),
            dictionaries: (0..table.schema.len()).map(dictionary).collect(),
            rows_at_hand: Some(table.clone()),
        }
    }
}

/// Tells which tables Tandem can scan. Called while planning, from one thread.
pub trait TableResolver {
    /// Returns what is known of a table, or nothing if only the host can read it.
    fn resolve(&self, source: &Arc<dyn TableSource>, name: &TableReference) -> Option<TableStats>;
}
