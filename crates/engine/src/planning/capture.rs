//! Capture: replaces the largest supported sub-plans of an optimised logical plan by [`Captured`] nodes.
//!
//! Going down from the root, each operator is lowered together with everything below it (`crate::planning::lower`); an operator that
//! cannot be is left to the host, with a [`Reason`], and its children are tried in its place. Within a captured sub-plan a
//! child that cannot be lowered becomes an input: the host runs it and hands its rows in as a block. So every operator is
//! either in a captured query or has a reason. A plan that reads no table has nothing to gain and stays where it is.

use std::{cmp::Ordering, fmt, hash, sync::Arc};

use datafusion::{
    common::{
        DFSchemaRef, Result, TableReference,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    logical_expr::{Expr, Extension, LogicalPlan, TableSource, UserDefinedLogicalNodeCore},
};
use tandem_column::{ColumnStatistics, Data, Dictionary, Field, Table};
use tandem_pipeline::Query;

use crate::planning::{lower, reason::Reason};

#[cfg(test)]
pub(crate) mod tests;

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
}

impl TableStats {
    /// Returns what a resident table knows of itself.
    pub fn of(table: &Table) -> TableStats {
        let dictionary = |position: usize| match &table.parts.first()?.columns[position].data {
            Data::Dictionary { dictionary, .. } => Some(dictionary.clone()),
            _ => None,
        };
        TableStats {
            rows: table.parts.iter().map(|part| part.rows as f64).sum(),
            fields: table.schema.clone(),
            columns: table.statistics.to_vec(),
            dictionaries: (0..table.schema.len()).map(dictionary).collect(),
        }
    }
}

/// Tells which tables Tandem can scan. Called while planning, from one thread.
pub trait TableResolver {
    /// Returns what is known of a table, or nothing if only the host can read it.
    fn resolve(&self, source: &Arc<dyn TableSource>, name: &TableReference) -> Option<TableStats>;
}

/// How deeply operators may be nested: lowering descends by recursion, on a thread's usual stack.
const DEPTH_LIMIT: usize = 200;

/// Returns how deeply a plan is nested, without recursion.
fn depth(plan: &LogicalPlan) -> usize {
    let mut deepest = 0;
    let mut left = vec![(plan, 1)];
    while let Some((plan, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(plan.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    deepest
}

/// What capture may do.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Take sub-plans that read no table, too (`SELECT 1`); for tests.
    pub tableless: bool,
    /// Order joins by cost; otherwise they stay as the host's optimiser left them.
    pub order_joins: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { tableless: false, order_joins: true }
    }
}

/// One table scan of a captured query.
#[derive(Clone)]
pub struct Scan {
    /// The name of the `Source::Table` in the query, unique within it, such as `lineorder#0`.
    pub name: String,
    /// The table's name in the catalogue.
    pub table: TableReference,
    /// The table.
    pub source: Arc<dyn TableSource>,
    /// The columns to load, by position in the table's schema; `Source::Table` counts in this list.
    pub columns: Vec<usize>,
    /// Conditions that every row the query keeps fulfils, over positions in `columns`: a hint for pruning, the query
    /// applies them itself.
    pub predicates: Vec<tandem_pipeline::Expr>,
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("name", &self.name).field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// A sub-plan that Tandem runs: a logical node without expressions of its own.
#[derive(Clone, Debug)]
pub struct Captured {
    /// What runs; its result has the columns of `schema`, in order.
    pub query: Arc<Query>,
    /// The tables it scans.
    pub scans: Vec<Scan>,
    /// The host's schema of the result.
    pub schema: DFSchemaRef,
    /// Sub-plans that the host runs; input `i` is the query's `Source::Block` named `input<i>`.
    pub inputs: Vec<LogicalPlan>,
    /// A remark for each pipeline of the query, such as its estimated rows.
    pub notes: Vec<String>,
}

/// Replaces the largest supported sub-plans of an optimised logical plan by [`Captured`] nodes; everything not taken has
/// a reason.
///
/// # Errors
/// Only if the host's plan cannot be rebuilt around the captured parts.
pub fn capture(
    plan: LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
) -> Result<(LogicalPlan, Vec<Reason>)> {
    let mut reasons = Vec::new();
    if depth(&plan) > DEPTH_LIMIT {
        reasons.push(Reason::new("Plan", format!("plans nested more than {DEPTH_LIMIT} deep run on the host")));
        return Ok((plan, reasons));
    }
    let plan = capture_into(plan, resolver, options, &mut reasons)?;
    let mut seen = std::collections::HashSet::new();
    reasons.retain(|reason| seen.insert(reason.clone()));
    Ok((plan, reasons))
}

/// Captures what it can of `plan` and adds reasons for the rest.
pub(crate) fn capture_into(
    plan: LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
    reasons: &mut Vec<Reason>,
) -> Result<LogicalPlan> {
    if is_statement(&plan) {
        return capture_children(plan, resolver, options, reasons);
    }
    if !options.tableless && !reads_table(&plan) {
        return Ok(plan);
    }
    match lower::lower(&plan, resolver, options) {
        Ok((captured, inner)) => {
            reasons.extend(inner);
            Ok(LogicalPlan::Extension(Extension { node: Arc::new(captured) }))
        }
        Err(reason) => {
            reasons.extend(reason);
            capture_children(plan, resolver, options, reasons)
        }
    }
}

/// Captures within the children of a node that stays on the host, and within its subqueries.
pub(crate) fn capture_children(
    plan: LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
    reasons: &mut Vec<Reason>,
) -> Result<LogicalPlan> {
    let plan = plan.map_children(|child| capture_into(child, resolver, options, reasons).map(Transformed::yes))?.data;
    let plan = plan.map_subqueries(|subquery| match subquery {
        LogicalPlan::Subquery(mut subquery) if subquery.outer_ref_columns.is_empty() => {
            let inner = Arc::unwrap_or_clone(subquery.subquery);
            subquery.subquery = Arc::new(capture_into(inner, resolver, options, reasons)?);
            Ok(Transformed::yes(LogicalPlan::Subquery(subquery)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

/// Tells whether a node is a statement around a query rather than part of one: it runs on the host, and that needs no
/// reason.
fn is_statement(plan: &LogicalPlan) -> bool {
    matches!(
        plan,
        LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_)
    )
}

/// Tells whether any table is read below, in subqueries too.
fn reads_table(plan: &LogicalPlan) -> bool {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::TableScan(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .is_ok_and(|_| found)
}

// Two captured nodes are the same only if they share their query: plans are compared while planning, never for meaning.
impl PartialEq for Captured {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.query, &other.query) && self.inputs == other.inputs
    }
}

impl Eq for Captured {}

impl hash::Hash for Captured {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.query).hash(state);
        self.inputs.hash(state);
    }
}

impl PartialOrd for Captured {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Captured {
    fn name(&self) -> &str {
        "Tandem"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tandem: pipelines={}", self.query.pipelines.len())?;
        for scan in &self.scans {
            write!(f, ", {}", scan.name)?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        Ok(Captured { inputs, ..self.clone() })
    }
}
