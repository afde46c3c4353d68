//! What runs where, and why: EXPLAIN in its forms, and the report of a statement.

pub(crate) mod analyze;
pub(crate) mod render;
pub(crate) mod report;
