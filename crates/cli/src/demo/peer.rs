//! DataFusion by itself, on the same rows: its own in-memory tables, its own optimiser, as many partitions as threads.

use std::sync::Arc;

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Field, Schema},
    record_batch::RecordBatch,
};
use datafusion::{
    datasource::MemTable,
    error::DataFusionError,
    prelude::{SessionConfig, SessionContext},
};
use tandem_column::Table;

use crate::failure::Failure;

/// Rows of a batch: DataFusion's own default, which its operators are tuned for.
const BATCH_ROWS: usize = 8192;

/// A plain DataFusion session.
pub struct DataFusion {
    context: SessionContext,
    threads: usize,
}

impl DataFusion {
    /// Makes a session with `threads` partitions.
    pub fn new(threads: usize) -> Self {
        DataFusion {
            context: SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads)),
            threads,
        }
    }

    /// Makes a table of the numbers and short texts of `table`, decoded to Arrow arrays.
    pub fn register(&self, name: &str, table: &Table) -> Result<(), Failure> {
        let mut partitions: Vec<Vec<RecordBatch>> = vec![Vec::new(); self.threads];
        let mut schema: Option<Arc<Schema>> = None;
        let mut next = 0;
        for part in &table.parts {
            let columns: Vec<ArrayRef> = part
                .columns
                .iter()
                .map(|column| column.to_arrow(0..part.rows))
                .collect::<Result<_, _>>()
                .map_err(|e| Failure::Statement(e.to_string()))?;
            let schema = schema.get_or_insert_with(|| {
                let fields = table.schema.iter().zip(&columns);
                let field = |(field, array): (&tandem_column::Field, &ArrayRef)| -> Field {
                    let kind: DataType = array.data_type().clone();
                    Field::new(field.name.clone(), kind, field.nullable)
                };
                Arc::new(Schema::new(fields.map(field).collect::<Vec<_>>()))
            });
            let batch =
                RecordBatch::try_new(Arc::clone(schema), columns).map_err(|e| Failure::Statement(e.to_string()))?;
            for start in (0..part.rows).step_by(BATCH_ROWS) {
                partitions[next].push(batch.slice(start, BATCH_ROWS.min(part.rows - start)));
                next = (next + 1) % self.threads;
            }
        }
        let schema = schema.ok_or_else(|| Failure::Statement(format!("the table {name} has no rows")))?;
        let provider = MemTable::try_new(schema, partitions).map_err(failure)?;
        self.context.register_table(name, Arc::new(provider)).map_err(failure)?;
        Ok(())
    }

    /// Runs one query.
    pub async fn run(&self, sql: &str) -> Result<Vec<RecordBatch>, Failure> {
        let frame = self.context.sql(sql.trim().trim_end_matches(';')).await.map_err(failure)?;
        frame.collect().await.map_err(failure)
    }
}

fn failure(error: DataFusionError) -> Failure {
    Failure::Statement(format!("DataFusion failed: {}", error.strip_backtrace()))
}
