//! The pipeline language: the intermediate representation that producers write and executors run.
//!
//! Start with [`Query`]: the enums of `ir`, [`Expr`] and [`Statement`] are the language. [`scalar`] says what each
//! operation on values means, [`mod@interpret`] what a query means.

#![forbid(unsafe_code)]

pub mod builtin;
mod expr;
mod fallible;
mod function;
pub mod interpret;
mod ir;
mod kind;
mod names;
pub mod parse;
pub mod partition;
pub mod print;
pub mod proto;
#[cfg(any(test, feature = "random"))]
pub mod random;
pub mod range;
pub mod scalar;
mod schema;
mod swap;
mod value;
pub mod verify;
mod walk;

pub use builtin::Function;
pub use expr::*;
pub use function::*;
pub use interpret::{evaluate, interpret};
pub use ir::*;
pub use parse::parse;
pub use swap::Swapped;
pub use tandem_column::{Class, Error, Result, Type};
pub use value::Value;
pub use verify::verify;
