//! EXPLAIN and EXPLAIN ANALYZE: what runs where, and why.
//!
//! The result has DataFusion's two columns, a row per line. Each captured sub-plan begins with "pipelines"; what the host
//! runs around them with "host plan"; the reasons for that with "reasons".

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use futures::TryStreamExt;

use crate::error::IntoHost;
use crate::execution::exec::TandemExec;
use crate::explain::render::render;
use crate::planning::planner::{Planned, plan, visit_exec};
use crate::sql::statement::Statement;
use crate::{Error, OnFallback};

/// Returns the rows of EXPLAIN.
pub(crate) async fn explain(
    inner: &LogicalPlan,
    verbose: bool,
    state: &SessionState,
    statement: &Arc<Statement>,
) -> Result<RecordBatch> {
    let planned = plan(inner, state, statement, OnFallback::Silent).await?;
    to_batch(describe(&planned, statement, verbose, false)?)
}

/// Runs a query to its end, without its rows, and returns the rows of EXPLAIN ANALYZE.
pub(crate) async fn explain_analyze(
    inner: &LogicalPlan,
    verbose: bool,
    state: &SessionState,
    statement: &Arc<Statement>,
) -> Result<RecordBatch> {
    let planned = plan(inner, state, statement, OnFallback::Silent).await?;
    let start = Instant::now();
    let mut stream = planned.start(state)?;
    let mut count = 0;
    while let Some(batch) = stream.try_next().await? {
        count += batch.num_rows();
    }
    let elapsed = start.elapsed();
    let mut rows = describe(&planned, statement, verbose, true)?;
    rows.push(("result".to_string(), format!("{count} rows in {:.3} ms", elapsed.as_secs_f64() * 1e3)));
    to_batch(rows)
}

/// Runs a query to its end and returns the kernels that its pipelines ran as.
pub(crate) async fn explain_kernel(
    inner: &LogicalPlan,
    state: &SessionState,
    statement: &Arc<Statement>,
) -> Result<RecordBatch> {
    let Some(devices) = statement.device_names() else {
        return Err(Error::input("EXPLAIN KERNEL needs a device; choose one with --mode gpu").into_host());
    };
    let planned = plan(inner, state, statement, OnFallback::Silent).await?;
    let mut stream = planned.start(state)?;
    while stream.try_next().await?.is_some() {}
    let mut rows = vec![("device".to_string(), devices)];
    visit_exec(&planned.physical, &mut |exec: &TandemExec| {
        for (id, pipeline) in exec.measured().into_iter().flat_map(|metrics| metrics.pipelines).enumerate() {
            let text = match (pipeline.device, pipeline.reason) {
                (Some(device), _) if device.texts.is_empty() => "no rows, no launch".to_string(),
                (Some(device), _) => device.texts.join("\n"),
                (None, reason) => format!("on the CPU: {}", reason.unwrap_or_default()),
            };
            rows.push((format!("pipeline {id}"), text));
        }
    })?;
    let reasons = statement.report.reasons();
    if !reasons.is_empty() {
        rows.push(("reasons".to_string(), reasons.join("\n")));
    }
    to_batch(rows)
}

/// Returns a row for each captured sub-plan, then the host's plan and the reasons for it; verbosely, the logical plan first.
fn describe(planned: &Planned, statement: &Statement, verbose: bool, measured: bool) -> Result<Vec<(String, String)>> {
    let mut rows = Vec::new();
    if verbose {
        rows.push(("logical plan".to_string(), planned.logical.display_indent().to_string()));
    }
    let mut failed = None;
    visit_exec(&planned.physical, &mut |exec: &TandemExec| {
        let metrics = if measured { exec.measured() } else { None };
        let outlines = match &metrics {
            Some(metrics) => metrics.pipelines.iter().map(|pipeline| Some(pipeline.outline.clone())).collect(),
            None => exec.outline().unwrap_or_else(|error| {
                failed = Some(error);
                Vec::new()
            }),
        };
        let text = render(exec.captured(), &outlines, metrics.as_ref(), statement.device_names().as_deref());
        rows.push(("pipelines".to_string(), text.trim_end().to_string()));
    })?;
    if let Some(error) = failed {
        return Err(error.into_host());
    }
    if !planned.physical.is::<TandemExec>() || !planned.physical.children().is_empty() {
        let display = if measured {
            DisplayableExecutionPlan::with_metrics(planned.physical.as_ref())
        } else {
            DisplayableExecutionPlan::new(planned.physical.as_ref())
        };
        rows.push(("host plan".to_string(), display.indent(false).to_string().trim_end().to_string()));
    }
    let reasons = statement.report.reasons();
    if !reasons.is_empty() {
        rows.push(("reasons".to_string(), reasons.join("\n")));
    }
    Ok(rows)
}

fn to_batch(rows: Vec<(String, String)>) -> Result<RecordBatch> {
    let (mut kinds, mut plans) = (Vec::new(), Vec::new());
    for (kind, text) in &rows {
        for (position, line) in text.lines().enumerate() {
            kinds.push(if position == 0 { kind.as_str() } else { "" });
            plans.push(line);
        }
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(kinds)), Arc::new(StringArray::from(plans))];
    Ok(RecordBatch::try_new(schema(), columns)?)
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("plan_type", DataType::Utf8, false),
        Field::new("plan", DataType::Utf8, false),
    ]))
}
