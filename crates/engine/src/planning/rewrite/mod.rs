//! Rewrites of a tree whose joins are ordered, so that it reads less; one file for each.
//!
//! `reduce.rs` takes what one side of a join knows of the keys to where the other side's rows begin, and `share.rs` finds parts
//! of the tree that are equal, which then run once. Both only add nodes that the tree already means: a row that a rewrite drops
//! is one that the result does not depend on.

mod reduce;
mod share;

pub(crate) use reduce::reduce;
pub(crate) use share::share;
