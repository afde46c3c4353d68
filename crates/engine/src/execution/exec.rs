//! `TandemExec`: a captured sub-plan as one node of DataFusion's physical plan.
//!
//! Its children are the sub-plans that the host runs for it; their rows become blocks of the query. The query itself runs
//! on the worker pool: a blocking thread loads the scans and waits for the pool, the host's threads only await it and
//! give out the result, batch by batch, in exactly the Arrow types that the plan promised.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, execute_stream,
};
use futures::{FutureExt, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tandem_column::{Reservation, Table};
use tandem_runtime::{Cancel, Execution, Outline, QueryInputs, QueryMetrics, RunOptions, Settings};

use crate::error::IntoHost;
use crate::explain::render::place_of;
use crate::planning::captured::Captured;
use crate::sql::statement::{ScanTable, Statement};
use crate::tables::load::{fields, load};
use crate::{Class, Error};

/// Runs a captured sub-plan on Tandem.
#[derive(Clone)]
pub(crate) struct TandemExec {
    captured: Captured,
    scans: Vec<ScanTable>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    statement: Arc<Statement>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: Arc<Mutex<Option<QueryMetrics>>>,
}

impl fmt::Debug for TandemExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TandemExec").field("pipelines", &self.captured.query.pipelines.len()).finish_non_exhaustive()
    }
}

impl TandemExec {
    /// Makes the node; the captured tables are those the statement saw while planning.
    ///
    /// # Errors
    /// Internal, if a scan names a table that planning never saw.
    pub(crate) fn new(
        captured: Captured,
        children: Vec<Arc<dyn ExecutionPlan>>,
        statement: Arc<Statement>,
    ) -> Result<TandemExec> {
        let scans = captured
            .scans
            .iter()
            .map(|scan| statement.scan_table(&scan.source, &scan.table))
            .collect::<Result<_, _>>()
            .into_host()?;
        let schema = captured.schema.inner().clone();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        Ok(TandemExec { captured, scans, children, statement, schema, properties, metrics: Arc::default() })
    }

    /// Returns what was captured.
    pub(crate) fn captured(&self) -> &Captured {
        &self.captured
    }

    /// Returns what the last run measured.
    pub(crate) fn measured(&self) -> Option<QueryMetrics> {
        self.metrics.lock().clone()
    }

    /// Says what planning decides about each pipeline, as far as that is known before anything has run.
    ///
    /// # Errors
    /// Unsupported, for what cannot run.
    pub(crate) fn outline(&self) -> Result<Vec<Option<Outline>>, Error> {
        let (mut inputs, mut holds) = (QueryInputs::default(), Vec::new());
        for (scan, table) in self.captured.scans.iter().zip(&self.scans) {
            if let Some((table, hold)) = table.resident(&scan.columns, &scan.predicates, &self.statement) {
                inputs.tables.insert(scan.name.clone(), table);
                holds.push(hold);
            }
        }
        let options = run_options(&self.statement, self.statement.stop.part());
        self.statement.runtime.outline(&self.captured.query, &inputs, &options)
    }

    /// Runs the query to its end, with blocks for the host's parts.
    fn run(
        &self,
        blocks: Vec<(Table, Reservation)>,
        cancel: Cancel,
    ) -> impl FnOnce() -> Result<Execution, Error> + Send + 'static {
        let captured = self.captured.clone();
        let (scans, statement, measured) = (self.scans.clone(), self.statement.clone(), self.metrics.clone());
        move || {
            let mut inputs = QueryInputs::default();
            // The memory of the inputs, until the query has ended.
            let (mut held, mut holds) = (Vec::new(), Vec::new());
            for (index, (block, memory)) in blocks.into_iter().enumerate() {
                inputs.blocks.insert(format!("input{index}"), Arc::new(block));
                held.push(memory);
            }
            for (scan, table) in captured.scans.iter().zip(&scans) {
                let (table, hold) = table.load(&scan.columns, &scan.predicates, &statement, &cancel)?;
                inputs.tables.insert(scan.name.clone(), table);
                holds.push(hold);
            }
            let options = run_options(&statement, cancel);
            let execution =
                statement.runtime.execute(&captured.query, &inputs, &options).map_err(|error| match error.class {
                    Class::Unsupported => Error::unsupported(format!(
                        "Tandem's executor cannot run this statement; use --mode host for it: {}",
                        error.message
                    )),
                    _ => error,
                })?;
            let reasons = execution.metrics.pipelines.iter().filter_map(|pipeline| pipeline.reason.as_deref());
            let reasons: Vec<&str> = reasons.collect();
            if statement.only_device && !reasons.is_empty() {
                return Err(Error::unsupported(format!(
                    "a part of the statement ran on the CPU; allow it with --on-fallback warn: {}",
                    reasons.join("; ")
                )));
            }
            statement.report.measured(execution.metrics.clone(), &captured.estimates);
            *measured.lock() = Some(execution.metrics.clone());
            Ok(execution)
        }
    }
}

/// Returns how the queries of a statement run.
fn run_options(statement: &Statement, cancel: Cancel) -> RunOptions {
    RunOptions {
        settings: Settings { switches: statement.switches, memory: statement.budget.clone(), cancel },
        progress: statement.report.counters().clone(),
        devices: statement.devices.clone(),
    }
}

/// Stops the query when its stream is dropped; harmless once it has ended.
struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Gives out a result in batches of exactly the given schema; its memory counts until the last.
fn batches(execution: Execution, schema: SchemaRef, step: usize) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    let pieces: Vec<(usize, std::ops::Range<usize>)> = execution
        .table
        .parts
        .iter()
        .enumerate()
        .flat_map(|(number, part)| {
            let rows = part.rows;
            (0..rows).step_by(step).map(move |start| (number, start..rows.min(start + step)))
        })
        .collect();
    pieces.into_iter().map(move |(part, range)| execution.table.batch(part, range, &schema).into_host())
}

impl DisplayAs for TandemExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.captured.query.pipelines.len();
        let measured = self.measured();
        let place = place_of(
            measured.as_ref().map(|metrics| metrics.pipelines.as_slice()),
            self.statement.device_names().as_deref(),
        );
        write!(f, "TandemExec: {count} pipeline{}, on {place}", if count == 1 { "" } else { "s" })
    }
}

impl ExecutionPlan for TandemExec {
    fn name(&self) -> &str {
        "TandemExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(TandemExec { children, ..self.as_ref().clone() }))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let step = context.session_config().batch_size().max(1);
        let cancel = self.statement.stop.part();
        let guard = StopOnDrop(cancel.clone());
        let schema = self.schema.clone();
        let this = self.clone();
        let result = async move {
            let mut blocks = Vec::with_capacity(this.children.len());
            for (index, child) in this.children.iter().enumerate() {
                let fields = fields(&child.schema()).into_host()?;
                let rows = execute_stream(child.clone(), context.clone())?;
                let name = format!("input{index}");
                let block = load(rows, fields, &name, &this.statement.runtime, &this.statement.budget).await?;
                blocks.push(block);
            }
            let running = tokio::task::spawn_blocking(this.run(blocks, cancel));
            let execution =
                running.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?.into_host()?;
            let schema = this.schema.clone();
            Ok::<_, DataFusionError>(futures::stream::iter(batches(execution, schema, step)))
        };
        let stream = futures::stream::once(result.boxed()).try_flatten().map(move |batch| {
            let _ = &guard;
            batch
        });
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, stream))))
    }
}
