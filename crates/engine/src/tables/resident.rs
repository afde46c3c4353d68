//! Resident tables in DataFusion's catalogue.
//!
//! A [`ResidentTable`] holds an immutable [`Table`] behind a lock: a statement takes a snapshot, INSERT makes a new table
//! that shares the old parts and puts it in place at its end. The host engine reads a snapshot through
//! [`ResidentExec`], as Arrow batches made on the fly; Tandem's own queries read the columns directly.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraints, Statistics};
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use parking_lot::{Mutex, RwLock};
use tandem_column::{Field, Reservation, Table};
use tandem_runtime::{MemoryBudget, Runtime};

use crate::Error;
use crate::error::IntoHost;
use crate::tables::load::load;
use crate::tables::provider_future::{PlanFuture, ready};
use crate::tables::resident_exec::{ResidentExec, statistics};

/// A table of resident columns.
#[derive(Debug)]
pub(crate) struct ResidentTable {
    shared: Arc<TableState>,
    constraints: Constraints,
    defaults: HashMap<String, Expr>,
}

/// What the table shares with a statement that inserts into it.
#[derive(Debug)]
struct TableState {
    name: String,
    schema: SchemaRef,
    table: RwLock<Arc<Table>>,
    /// The table's bytes in the budget; locked while rows are put in, so that insertions follow each other.
    holding: Mutex<Reservation>,
    budget: Arc<MemoryBudget>,
    runtime: RuntimeHandle,
}

struct RuntimeHandle(Arc<Runtime>);

impl fmt::Debug for RuntimeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Runtime({} threads)", self.0.threads())
    }
}

impl ResidentTable {
    /// Makes a table whose rows the host sees with the given schema.
    ///
    /// # Errors
    /// Exhausted, if the table's columns exceed the memory limit.
    pub(crate) fn new(
        name: &str,
        schema: SchemaRef,
        table: Arc<Table>,
        runtime: &Arc<Runtime>,
        budget: &Arc<MemoryBudget>,
    ) -> tandem_column::Result<ResidentTable> {
        let holding = Reservation::take(budget, format!("the table '{name}'"), table.byte_len())?;
        Ok(ResidentTable {
            shared: Arc::new(TableState {
                name: name.to_string(),
                schema,
                table: RwLock::new(table),
                holding: Mutex::new(holding),
                budget: budget.clone(),
                runtime: RuntimeHandle(runtime.clone()),
            }),
            constraints: Constraints::default(),
            defaults: HashMap::new(),
        })
    }

    /// Adds what CREATE TABLE declared: keys and default values.
    pub(crate) fn declare(mut self, constraints: Constraints, defaults: HashMap<String, Expr>) -> ResidentTable {
        self.constraints = constraints;
        self.defaults = defaults;
        self
    }

    /// Returns the rows as they are now.
    pub(crate) fn snapshot(&self) -> Arc<Table> {
        self.shared.table.read().clone()
    }

    fn exec(
        &self,
        projection: Option<&Vec<usize>>,
        partitions: usize,
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = self.snapshot();
        let (table, schema) = match projection {
            Some(columns) => (Arc::new(table.project(columns)), Arc::new(self.shared.schema.project(columns)?)),
            None => (table, self.shared.schema.clone()),
        };
        Ok(Arc::new(ResidentExec::new(self.shared.name.clone(), table, schema, partitions, limit)))
    }
}

impl TableState {
    /// Puts new rows behind the old ones, or in their place; all of them or none.
    fn insert(&self, (rows, held): (Table, Reservation), operation: InsertOp) -> tandem_column::Result<()> {
        let mut holding = self.holding.lock();
        let table = match operation {
            InsertOp::Append => self.table.read().clone().append(&rows)?,
            InsertOp::Overwrite | InsertOp::Replace => rows,
        };
        // The new rows count with the table from here on.
        drop(held);
        holding.resize(table.byte_len())?;
        *self.table.write() = Arc::new(table);
        Ok(())
    }
}

impl TableProvider for ResidentTable {
    fn schema(&self) -> SchemaRef {
        self.shared.schema.clone()
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    fn scan<'s: 'a, 'c: 'a, 'p: 'a, 'f: 'a, 'a>(
        &'s self,
        state: &'c dyn Session,
        projection: Option<&'p Vec<usize>>,
        _filters: &'f [Expr],
        limit: Option<usize>,
    ) -> PlanFuture<'a> {
        ready(self.exec(projection, state.config().target_partitions(), limit))
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(statistics(&self.snapshot(), &self.shared.schema))
    }

    fn insert_into<'s: 'a, 'c: 'a, 'a>(
        &'s self,
        _state: &'c dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> PlanFuture<'a> {
        let fields = self.snapshot().schema.clone();
        let sink = ResidentSink { shared: self.shared.clone(), fields, operation };
        ready(Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None))))
    }

    fn delete_from<'s: 'a, 'c: 'a, 'a>(&'s self, _state: &'c dyn Session, filters: Vec<Expr>) -> PlanFuture<'a> {
        let name = &self.shared.name;
        let advice = if filters.is_empty() { "DROP TABLE and create it again" } else { "CREATE TABLE … AS SELECT" };
        ready(Err(Error::unsupported(format!(
            "DELETE is not supported; keep the other rows by {advice}: table '{name}'"
        ))
        .into_host()))
    }

    fn update<'s: 'a, 'c: 'a, 'a>(
        &'s self,
        _state: &'c dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> PlanFuture<'a> {
        let name = &self.shared.name;
        ready(Err(Error::unsupported(format!(
            "UPDATE is not supported; make the new rows by CREATE TABLE … AS SELECT: table '{name}'"
        ))
        .into_host()))
    }
}

/// Takes the rows of an INSERT.
#[derive(Debug)]
struct ResidentSink {
    shared: Arc<TableState>,
    fields: Arc<[Field]>,
    operation: InsertOp,
}

impl DisplayAs for ResidentSink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resident table '{}'", self.shared.name)
    }
}

#[async_trait]
impl DataSink for ResidentSink {
    fn schema(&self) -> &SchemaRef {
        &self.shared.schema
    }

    async fn write_all(&self, data: SendableRecordBatchStream, _context: &Arc<TaskContext>) -> Result<u64> {
        let shared = self.shared.clone();
        let rows = load(data, self.fields.clone(), &shared.name, &shared.runtime.0, &shared.budget).await?;
        let count = rows.0.rows() as u64;
        let operation = self.operation;
        let inserted = tokio::task::spawn_blocking(move || shared.insert(rows, operation));
        inserted.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?.into_host()?;
        Ok(count)
    }
}
