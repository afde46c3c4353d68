//! From an optimised logical plan to one that runs: capture, then DataFusion's physical planner around what was captured.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use tandem_pipeline::Sink;

use crate::error::IntoHost;
use crate::execution::exec::TandemExec;
use crate::planning::capture::capture;
use crate::planning::captured::Captured;
use crate::planning::optimize::optimize;
use crate::planning::options::CaptureOptions;
use crate::planning::reason::Reason;
use crate::sql::copy::Redirected;
use crate::sql::statement::{Statement, provider};
use crate::tables::files::FileProvider;
use crate::{Error, Mode, OnFallback};

/// A plan that runs, and what it was made of.
pub(crate) struct Planned {
    /// The logical plan with captured nodes in it.
    pub(crate) logical: LogicalPlan,
    /// What runs.
    pub(crate) physical: Arc<dyn ExecutionPlan>,
}

impl Planned {
    /// Starts to run the plan.
    pub(crate) fn start(&self, state: &SessionState) -> Result<SendableRecordBatchStream> {
        execute_stream(self.physical.clone(), self.context(state))
    }

    /// Returns what operators find in the session. The tables of all functions are copied only for the host's operators:
    /// a captured plan calls none of them by name.
    fn context(&self, state: &SessionState) -> Arc<TaskContext> {
        if whole(&self.logical).is_none() {
            return state.task_ctx();
        }
        let (session, config, runtime) =
            (state.session_id().to_string(), state.config().clone(), state.runtime_env().clone());
        let (scalar, nested, aggregate, window) = Default::default();
        Arc::new(TaskContext::new(None, session, config, scalar, nested, aggregate, window, runtime))
    }
}

/// Optimises and plans a statement for its mode; its report learns what was captured and why the rest was not.
pub(crate) async fn plan(
    logical: &LogicalPlan,
    state: &SessionState,
    statement: &Arc<Statement>,
    on_fallback: OnFallback,
) -> Result<Planned> {
    let mut logical = optimize(logical, state)?;
    let redirected = match &mut logical {
        LogicalPlan::Copy(copy) => Some(Redirected::new(copy).into_host()?),
        _ => None,
    };
    let mut sorted = false;
    if statement.config.mode != Mode::Host {
        let reads = reads_user_table(&logical);
        // Rows that the host reads bit by bit would have to be there as a whole for a pipeline above it.
        let mut reasons = refused_scans(&logical, statement);
        if reasons.is_empty() {
            (logical, reasons) = capture(logical, statement.as_ref(), &CaptureOptions::default())?;
        }
        let mut captured = 0;
        visit_captured(&logical, &mut |node| {
            captured += 1;
            sorted |= matches!(node.query.pipelines.last().map(|pipeline| &pipeline.sink), Some(Sink::Sort { .. }));
        })?;
        let reasons: Vec<String> = if reads { reasons.iter().map(ToString::to_string).collect() } else { Vec::new() };
        if on_fallback == OnFallback::Error && !reasons.is_empty() {
            return Err(Error::unsupported(format!(
                "a part of the statement would run on the host engine; allow it with --on-fallback warn: {}",
                reasons.join("; ")
            ))
            .into_host());
        }
        statement.report.planned(captured, reasons);
    }
    let physical = match whole(&logical) {
        // Nothing is left for the host to plan or optimise.
        Some(captured) => Arc::new(TandemExec::new(captured.clone(), Vec::new(), statement.clone())?),
        None => plan_around(&logical, state, statement, sorted).await?,
    };
    let physical = match redirected {
        Some(redirected) => redirected.above(physical),
        None => physical,
    };
    Ok(Planned { logical, physical })
}

/// Returns what was captured if it is the whole plan.
fn whole(plan: &LogicalPlan) -> Option<&Captured> {
    let LogicalPlan::Extension(extension) = plan else { return None };
    extension.node.as_any().downcast_ref::<Captured>().filter(|captured| captured.inputs.is_empty())
}

/// Has DataFusion plan what is around the captured nodes.
async fn plan_around(
    logical: &LogicalPlan,
    state: &SessionState,
    statement: &Arc<Statement>,
    sorted: bool,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(Extensions(statement.clone()))]);
    if !sorted {
        return planner.create_physical_plan(logical, state).await;
    }
    // The host does not know that these rows are in order, and would deal them out to parallel projections.
    let mut state = state.clone();
    state.config_mut().options_mut().optimizer.enable_round_robin_repartition = false;
    planner.create_physical_plan(logical, &state).await
}

/// Calls `f` for each captured node of a plan, in subqueries too.
pub(crate) fn visit_captured(plan: &LogicalPlan, f: &mut dyn FnMut(&Captured)) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Extension(extension) = node
            && let Some(captured) = extension.node.as_any().downcast_ref::<Captured>()
        {
            f(captured);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Tells whether a plan reads a table of the user's, rather than constants or the catalogue.
pub(crate) fn reads_user_table(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            // Table functions such as generate_series make their rows up.
            let made_up = scan.table_name.table().ends_with("()");
            found |= !made_up && scan.table_name.schema() != Some("information_schema");
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_ok() && found
}

/// Returns the scans of a plan whose columns do not fit the memory limit.
fn refused_scans(plan: &LogicalPlan, statement: &Statement) -> Vec<Reason> {
    let mut refused = Vec::new();
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            refused.extend(statement.refuses(scan));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    debug_assert!(visited.is_ok(), "looking at scans cannot fail");
    refused
}

/// Returns the files that a plan reads, for messages.
pub(crate) fn files(plan: &LogicalPlan) -> Vec<String> {
    let mut files = Vec::new();
    // Failing to collect only makes messages poorer.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = provider(&scan.source).and_then(|table| table.downcast_ref::<FileProvider>())
        {
            files.extend(table.paths());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    files.dedup();
    files
}

/// Calls `f` for each captured node of a physical plan.
pub(crate) fn visit_exec(plan: &Arc<dyn ExecutionPlan>, f: &mut dyn FnMut(&TandemExec)) -> Result<()> {
    plan.apply(|node| {
        if let Some(exec) = node.downcast_ref::<TandemExec>() {
            f(exec);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Plans captured nodes of one statement.
struct Extensions(Arc<Statement>);

#[async_trait]
impl ExtensionPlanner for Extensions {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(captured) = node.as_any().downcast_ref::<Captured>() else { return Ok(None) };
        let exec = TandemExec::new(captured.clone(), physical_inputs.to_vec(), self.0.clone())?;
        Ok(Some(Arc::new(exec)))
    }
}
