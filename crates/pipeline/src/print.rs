//! The text form.
use crate::{Expr, Slot};
use std::fmt;

/// An expression for people.
pub struct DisplayExpr<'a>(&'a Expr, &'a [Slot]);

impl Expr {
    /// Shows the expression with the names of slots.
    pub fn display<'a>(&'a self, slots: &'a [Slot]) -> DisplayExpr<'a> {
        DisplayExpr(self, slots)
    }
}

impl fmt::Display for DisplayExpr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.0, self.1.len())
    }
}
