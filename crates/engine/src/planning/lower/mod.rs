//! Lowering: from the host's optimised logical plan to a pipeline query.
//!
//! Three stages, each in files of its own: the plan becomes a tree of relational nodes whose columns have ids
//! (`plan`, `expression`, `function`, `aggregate`, `literal` → `node`); joins are ordered on that tree
//! (`crate::planning::join_order`); the tree is emitted as pipelines, with only live columns (`emit`). The verifier and the
//! executor have the last word: what they reject is left to the host, with their reason.

mod aggregate;
mod context;
mod emit;
mod expression;
mod function;
mod literal;
pub(crate) mod node;
mod plan;
#[cfg(test)]
mod tests;
mod typed;
mod visit;

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;

pub(crate) use context::Context;
pub(crate) use visit::{may_fail, substitute, visit};

use crate::planning::{
    capture::{CaptureOptions, Captured, TableResolver},
    join_order,
    reason::Reason,
};
use node::Node;

/// Lowers a plan as a whole. Its children that cannot be lowered become inputs, each with a reason, which are returned.
///
/// # Errors
/// Why the root of the plan must run on the host.
pub(crate) fn lower(
    plan: &LogicalPlan,
    resolver: &dyn TableResolver,
    options: &CaptureOptions,
) -> Result<(Captured, Vec<Reason>), Vec<Reason>> {
    let name = plan::name(plan);
    let reject = |reason: String| vec![Reason::new(name.clone(), reason)];

    let mut context = Context::new(resolver, options);
    let lowered = context.plan(plan).map_err(|reason| vec![reason])?;
    if !worthwhile(&lowered.node, options) {
        return Err(reject("its input runs on the host".to_string()));
    }
    for column in &lowered.columns {
        context.kind(*column).map_err(reject)?;
    }
    let node = if options.order_joins { join_order::order(&context, lowered.node) } else { lowered.node };
    let emitted = emit::emit(&context, &node, &lowered.columns).map_err(reject)?;
    tandem_pipeline::verify(&emitted.query).map_err(|error| reject(error.to_string()))?;
    tandem_cpu::supports(&emitted.query).map_err(|error| reject(error.to_string()))?;

    let captured = Captured {
        query: Arc::new(emitted.query),
        scans: emitted.scans,
        schema: plan.schema().clone(),
        inputs: emitted.inputs,
        notes: emitted.notes,
    };
    Ok((captured, context.reasons))
}

/// Tells whether running a tree on Tandem gains anything: it reads a table, or does real work on what the host hands in.
fn worthwhile(node: &Node, options: &CaptureOptions) -> bool {
    let mut found = options.tableless;
    node.walk(&mut |node| {
        found |= matches!(node, Node::Scan { .. } | Node::Join(_) | Node::Aggregate { .. } | Node::Sort { .. });
    });
    found
}
