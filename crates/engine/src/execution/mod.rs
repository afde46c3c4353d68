//! Execution: a captured sub-plan as a node of the host's plan, the host's threads and memory, and files that appear whole
//! or not at all.

pub(crate) mod exec;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod staging;
