//! User functions as text: a header, then indented statements up to `end`.

use std::{
    fmt::{self, Write},
    sync::Arc,
};

use super::{Writer, write_list, write_name, write_type};
use crate::{Expr, Local, Slot, Statement, UserFunction};

/// Writes a whole function.
pub(super) fn write_function(
    out: &mut dyn Write,
    index: usize,
    function: &UserFunction,
    functions: &[Arc<UserFunction>],
) -> fmt::Result {
    write!(out, "function {index} ")?;
    write_name(out, &function.name)?;
    let local = |out: &mut dyn Write, local: &Local| {
        write_name(out, &local.name)?;
        out.write_str(": ")?;
        write_type(out, &local.kind)
    };
    let (parameters, locals) = function.locals.split_at(function.parameters.min(function.locals.len()));
    write_list(out, parameters, local)?;
    out.write_str(" returns ")?;
    write_type(out, &function.returns)?;
    if !locals.is_empty() {
        out.write_str(" locals ")?;
        write_list(out, locals, local)?;
    }
    out.write_str("\n")?;
    let slots = function.slots();
    Writer { slots: &slots, functions, exact: true }.block(out, &function.body, 1)?;
    out.write_str("end\n")
}

impl UserFunction {
    /// Returns the locals as slots, for expressions that name them.
    pub fn slots(&self) -> Vec<Slot> {
        let slot = |local: &Local| Slot { name: local.name.clone(), kind: local.kind.clone(), nullable: true };
        self.locals.iter().map(slot).collect()
    }
}

impl Writer<'_> {
    /// Writes statements, one per line.
    fn block(&self, out: &mut dyn Write, body: &[Statement], depth: usize) -> fmt::Result {
        body.iter().try_for_each(|statement| self.statement(out, statement, depth))
    }

    /// Writes words and expressions in turn.
    fn line(&self, out: &mut dyn Write, depth: usize, parts: &[(&str, Option<&Expr>)]) -> fmt::Result {
        write!(out, "{:width$}", "", width = depth * 2)?;
        for (word, expr) in parts {
            out.write_str(word)?;
            if let Some(expr) = expr {
                self.expr(out, expr, 0)?;
            }
        }
        out.write_str("\n")
    }

    /// Writes one statement.
    fn statement(&self, out: &mut dyn Write, statement: &Statement, depth: usize) -> fmt::Result {
        match statement {
            Statement::Assign(local, value) => self.line(out, depth, &[(&format!("set ${local} = "), Some(value))]),
            Statement::Resize { list, length, fill } => {
                self.line(out, depth, &[(&format!("resize ${list}, "), Some(length)), (", ", Some(fill))])
            }
            Statement::Store { list, index, value } => {
                self.line(out, depth, &[(&format!("store ${list}, "), Some(index)), (", ", Some(value))])
            }
            Statement::If { condition, then, otherwise } => {
                self.line(out, depth, &[("if ", Some(condition))])?;
                self.block(out, then, depth + 1)?;
                if !otherwise.is_empty() {
                    self.line(out, depth, &[("else", None)])?;
                    self.block(out, otherwise, depth + 1)?;
                }
                self.line(out, depth, &[("end", None)])
            }
            Statement::While { condition, body } => {
                self.line(out, depth, &[("while ", Some(condition))])?;
                self.block(out, body, depth + 1)?;
                self.line(out, depth, &[("end", None)])
            }
            Statement::For { variable, from, to, body } => {
                let header = format!("for ${variable} from ");
                self.line(out, depth, &[(&header, Some(from)), (" to ", Some(to))])?;
                self.block(out, body, depth + 1)?;
                self.line(out, depth, &[("end", None)])
            }
            Statement::Break => self.line(out, depth, &[("break", None)]),
            Statement::Continue => self.line(out, depth, &[("continue", None)]),
            Statement::Return(value) => self.line(out, depth, &[("return ", Some(value))]),
        }
    }
}
