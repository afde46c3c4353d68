//! A captured sub-plan: the logical node that stands for what Tandem runs.

use std::{cmp::Ordering, fmt, hash, sync::Arc};

use datafusion::{
    common::{DFSchemaRef, Result, TableReference},
    logical_expr::{Expr, LogicalPlan, TableSource, UserDefinedLogicalNodeCore},
};
use tandem_pipeline::Query;

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
    /// The rows that each pipeline of the query is estimated to give.
    pub estimates: Vec<f64>,
    /// How many nodes estimating looked at while the query was planned, for tests.
    #[cfg(test)]
    pub looked: usize,
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
