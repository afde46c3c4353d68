//! What each scalar operation means, one value at a time.
//!
//! Every semantic rule of the language is written once, here: the interpreter computes with it, and executors call it
//! wherever speed does not matter. Results match Arrow's kernels and DataFusion's functions, rounding and errors
//! included. Null arguments give null before an operation is reached, except where a function says otherwise.

pub mod aggregate;
pub mod arithmetic;
pub mod arrow;
pub mod bits;
pub mod cast;
pub mod compare;
pub mod date;
pub mod decimal;
pub mod digest;
pub mod fault;
pub mod function;
pub mod like;
pub mod number;
pub mod pairs;
pub mod pattern;
pub mod quantile;
pub mod sketch;
pub mod text;

pub use arithmetic::{arithmetic, negate};
pub use cast::cast;
pub use compare::{compare, holds, order, order_nulls};
pub use function::{SEVERAL_ROWS, function, function_with};

#[cfg(test)]
mod tests;
