//! Planning: which parts of the host's optimised plan run on Tandem, and as which pipelines.
//!
//! Subqueries become joins before the host optimises a plan ([`unnest`]).
//! [`planner`] is the entry: it has the plan captured, and DataFusion plan what is around it. [`capture`] finds the parts,
//! [`lower`] makes pipelines of each, after [`rewrite`] has made it read less, in the order of joins that [`join_order`] chooses,
//! over the relational [`tree`]: each of these calls only those after it. A part is a [`captured`] node; what stays on the
//! host has a [`reason`].

pub(crate) mod capture;
pub(crate) mod captured;
pub(crate) mod cross_joins;
pub(crate) mod join_order;
pub(crate) mod lower;
pub(crate) mod optimize;
pub(crate) mod options;
pub(crate) mod overflow;
pub(crate) mod planner;
pub(crate) mod reason;
pub(crate) mod rewrite;
pub(crate) mod table_stats;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
pub(crate) mod unnest;
