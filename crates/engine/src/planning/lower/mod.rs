//! Lowering: from the host's optimised logical plan to a pipeline query.
//!
//! Four stages: the plan becomes a relational tree (`plan`, `expression`, `function`, `aggregate`, `literal`, into
//! `crate::planning::tree`); joins are ordered on that tree (`crate::planning::join_order`); it is rewritten to read less
//! (`crate::planning::rewrite`); the tree is emitted as
//! pipelines, with only live columns (`emit`). The verifier and the executor have the last word: what they reject is left
//! to the host, with their reason.

mod aggregate;
mod aggregate_function;
mod context;
mod emit;
mod expression;
mod frame;
mod function;
mod literal;
mod plan;
mod typed;
mod window;

use datafusion::logical_expr::LogicalPlan;
use tandem_pipeline::Query;

use crate::planning::{
    captured::Scan,
    join_order::{Estimator, order, search_by_inequality},
    options::CaptureOptions,
    reason::Reason,
    rewrite::{reduce, share},
    table_stats::TableResolver,
    tree::{InputInfo, node::Node},
};
use context::LoweringContext;

/// A plan as a query, and what it needs around it.
pub(crate) struct Lowered {
    /// What runs.
    pub query: Query,
    /// The tables it scans.
    pub scans: Vec<Scan>,
    /// The children that could not be lowered, which the host runs, in the order of the plan.
    pub inputs: Vec<InputInfo>,
    /// The query's blocks; block `i` is its `Source::Block` named `input<i>`.
    pub blocks: Vec<Block>,
    /// The rows that each pipeline of the query is estimated to give.
    pub estimates: Vec<f64>,
    /// How many nodes estimating looked at, for tests.
    #[cfg(test)]
    pub looked: usize,
}

/// Rows that the host hands in.
pub(crate) struct Block {
    /// Which of the inputs they are rows of.
    pub input: usize,
    /// The input's columns that the query reads, by position.
    pub columns: Vec<usize>,
}

/// Lowers a plan as a whole. Its children that cannot be lowered become inputs, each with a reason.
///
/// # Errors
/// Why the root of the plan must run on the host.
pub(crate) fn lower(
    plan: &LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
) -> Result<Lowered, Reason> {
    let name = plan::name(plan);
    let reject = |reason: String| Reason::new(name.clone(), reason);

    let mut context = LoweringContext::new(resolver);
    let lowered = context.plan(plan)?;
    if !worthwhile(&lowered.node, options) {
        return Err(reject("its input runs on the host".to_string()));
    }
    let mut registry = context.registry;
    for column in &lowered.columns {
        registry.kind(*column).map_err(reject)?;
    }
    let mut node = lowered.node;
    #[cfg(test)]
    let mut looked = 0;
    if options.order_joins {
        let estimator = Estimator::new(&registry);
        node = order(&estimator, node);
        #[cfg(test)]
        {
            looked += estimator.looked();
        }
        let added = search_by_inequality(&registry, &mut node);
        registry.columns.extend(added);
    }
    let estimator = Estimator::new(&registry);
    if options.order_joins {
        let mut next = 0;
        node = reduce(&estimator, node, &mut next);
        node = share(&registry, &estimator, node, &mut next);
    }
    let emitted = emit::emit(&registry, &estimator, &node, &lowered.columns).map_err(reject)?;
    #[cfg(test)]
    {
        looked += estimator.looked();
    }
    tandem_pipeline::verify(&emitted.query).map_err(|error| reject(error.to_string()))?;
    tandem_cpu::supports(&emitted.query).map_err(|error| reject(error.to_string()))?;

    Ok(Lowered {
        query: emitted.query,
        scans: emitted.scans,
        inputs: registry.inputs,
        blocks: emitted.blocks,
        estimates: emitted.estimates,
        #[cfg(test)]
        looked,
    })
}

/// Tells whether running a tree on Tandem gains anything: it reads a table, or does real work on what the host hands in.
fn worthwhile(node: &Node, options: &CaptureOptions) -> bool {
    let mut found = options.tableless;
    node.walk(&mut |node| {
        found |= matches!(
            node,
            Node::Scan { .. }
                | Node::Join(_)
                | Node::Aggregate { .. }
                | Node::GroupingSets { .. }
                | Node::Sort { .. }
                | Node::Window { .. }
        );
    });
    found
}
