//! The pipeline language.

mod expr;
mod function;
mod ir;
mod value;

pub use expr::*;
pub use function::*;
pub use ir::*;
pub use value::Value;
