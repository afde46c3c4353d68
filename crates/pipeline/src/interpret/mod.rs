//! The reference interpreter: what a query means, row by row.
//!
//! Slow and obvious on purpose: it is the oracle that every executor is tested against, and holds all rows as
//! [`crate::Value`]s.

mod call;
mod evaluate;

pub use evaluate::{Evaluator, STEP_LIMIT, evaluate};
