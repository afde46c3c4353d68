//! User functions: typed bodies with locals, branches, loops and arrays.
//!
//! A body is a list of statements over locals; parameters are the first locals. Expressions in it are the same
//! [`Expr`] as in pipelines, where `Slot(i)` names local `i`. A function sees nothing but its arguments,
//! and calls only functions before it in the query, so that none recurses.

use tandem_column::Type;

use crate::{Expr, SlotId};

/// A user function.
#[derive(Clone, Debug, PartialEq)]
pub struct UserFunction {
    /// Its name, for people and the text form.
    pub name: String,
    /// How many of `locals` are parameters.
    pub parameters: usize,
    /// The parameters, then the other locals, which start as null (lists: empty).
    pub locals: Vec<Local>,
    /// The result's type.
    pub returns: Type,
    /// What it does; falling off the end returns null.
    pub body: Vec<Statement>,
}

/// A parameter or local of a user function.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
}

/// A statement of a body.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Assign(SlotId, Expr),                              // local = value
    Resize { list: SlotId, length: Expr, fill: Expr }, // list = [fill; length]
    Store { list: SlotId, index: Expr, value: Expr },  // list[index] = value; out of range is an error
    If { condition: Expr, then: Vec<Statement>, otherwise: Vec<Statement> }, // null counts as false
    While { condition: Expr, body: Vec<Statement> },   // bounded by the caller's step limit
    For { variable: SlotId, from: Expr, to: Expr, body: Vec<Statement> }, // from ≤ variable < to, by one
    Break,
    Continue,
    Return(Expr),
}
