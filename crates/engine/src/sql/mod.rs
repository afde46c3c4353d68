//! Statements: their text, what kind each is, and those that define tables or write files.
//!
//! [`run`] dispatches a statement by what it is; [`statement`] is what it carries through planning and execution.

pub(crate) mod asof;
pub(crate) mod balance;
pub(crate) mod copy;
pub(crate) mod ddl;
pub(crate) mod exclusion;
pub(crate) mod nesting;
pub(crate) mod parameters;
pub(crate) mod run;
pub(crate) mod statement;
pub(crate) mod syntax;
