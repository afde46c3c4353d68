//! Expressions as text, with no more parentheses than reading them back needs.

use std::{
    fmt::{self, Write},
    sync::Arc,
};

use tandem_column::Type;

use super::{Writer, overflow_text, write_list, write_name, write_type};
use crate::{
    Arithmetic, ArithmeticOperator, Expr, Failure, Slot, UserFunction, Value,
    scalar::{cast::describe, date, decimal},
    value::write_quoted,
};

/// How tightly an expression binds; an operand that binds less than its place asks for is put in parentheses.
pub(crate) mod level {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const COMPARE: u8 = 3;
    pub const ADD: u8 = 4;
    pub const MULTIPLY: u8 = 5;
    pub const PRIMARY: u8 = 6;
}

/// An expression with the names of its slots, for people.
pub struct DisplayExpr<'a> {
    expr: &'a Expr,
    slots: &'a [Slot],
    functions: &'a [Arc<UserFunction>],
}

impl Expr {
    /// Shows the expression with the names of slots (`$i` for those without).
    pub fn display<'a>(&'a self, slots: &'a [Slot]) -> DisplayExpr<'a> {
        DisplayExpr { expr: self, slots, functions: &[] }
    }

    /// Shows the expression with the names of slots and user functions.
    pub fn display_with<'a>(&'a self, slots: &'a [Slot], functions: &'a [Arc<UserFunction>]) -> DisplayExpr<'a> {
        DisplayExpr { expr: self, slots, functions }
    }
}

impl fmt::Display for DisplayExpr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Writer { slots: self.slots, functions: self.functions, exact: false }.expr(f, self.expr, 0)
    }
}

/// Shows the expression with its slots by number.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Writer { slots: &[], functions: &[], exact: false }.expr(f, self, 0)
    }
}

/// Returns the type that a literal has unless another is written behind it.
pub(crate) fn natural_type(value: &Value) -> Option<Type> {
    Some(match value {
        Value::Null => Type::Null,
        Value::Boolean(_) => Type::Boolean,
        Value::Integer(_) => Type::Int64,
        Value::Float(_) => Type::Float64,
        Value::String(_) => Type::String,
        Value::Binary(_) => Type::Binary,
        Value::Interval { .. } => Type::Interval,
        Value::List(_) => return None,
    })
}

/// Returns how tightly an expression binds when written.
fn binding(expr: &Expr) -> u8 {
    match expr {
        Expr::Or(inputs) if inputs.len() > 1 => level::OR,
        Expr::And(inputs) if inputs.len() > 1 => level::AND,
        Expr::Compare(..) | Expr::Distinct(..) | Expr::IsNull(_) | Expr::In { .. } | Expr::Like { .. } => {
            level::COMPARE
        }
        Expr::Arithmetic(arithmetic) => match arithmetic.operator {
            ArithmeticOperator::Add | ArithmeticOperator::Subtract => level::ADD,
            _ => level::MULTIPLY,
        },
        _ => level::PRIMARY,
    }
}

impl Writer<'_> {
    /// Writes an expression where an operand of at least this level may stand bare.
    pub fn expr(&self, out: &mut dyn Write, expr: &Expr, needed: u8) -> fmt::Result {
        if binding(expr) < needed {
            out.write_str("(")?;
            self.expr(out, expr, 0)?;
            return out.write_str(")");
        }
        match expr {
            Expr::Slot(slot) => self.slot(out, *slot),
            Expr::Literal(value, kind) => self.literal(out, value, kind),
            Expr::Arithmetic(arithmetic) => self.arithmetic(out, arithmetic),
            Expr::Negate(input, overflow) => {
                out.write_str("negate(")?;
                self.expr(out, input, 0)?;
                write!(out, "{})", if self.exact { overflow_text(*overflow) } else { "" })
            }
            Expr::Compare(comparison, left, right) => self.infix(out, left, comparison.symbol(), right),
            Expr::Distinct(left, right) => self.infix(out, left, "is distinct from", right),
            Expr::And(inputs) => self.connected(out, inputs, "and", level::COMPARE),
            Expr::Or(inputs) => self.connected(out, inputs, "or", level::AND),
            Expr::Not(input) => self.named(out, "not", std::slice::from_ref(input)),
            Expr::IsNull(input) => {
                self.expr(out, input, level::ADD)?;
                out.write_str(" is null")
            }
            Expr::Case { branches, otherwise, kind } => self.case(out, branches, otherwise.as_deref(), kind),
            Expr::Cast { input, kind, failure } => {
                out.write_str(if *failure == Failure::Error { "cast(" } else { "try_cast(" })?;
                self.expr(out, input, 0)?;
                out.write_str(" as ")?;
                write_type(out, kind)?;
                out.write_str(")")
            }
            Expr::In { input, list } => {
                self.expr(out, input, level::ADD)?;
                out.write_str(" in ")?;
                let kind = input.kind(self.slots);
                write_list(out, list, |out, value| match self.exact {
                    true => write!(out, "{value}"),
                    false => out.write_str(&describe(value, &kind)),
                })
            }
            Expr::Like { input, pattern, escape, ignore_case } => {
                self.expr(out, input, level::ADD)?;
                out.write_str(if *ignore_case { " ilike " } else { " like " })?;
                let mut text = String::new();
                write_quoted(&mut text, pattern, '\'')?;
                if let Some(escape) = escape {
                    text.push_str(" escape ");
                    write_quoted(&mut text, &escape.to_string(), '\'')?;
                }
                out.write_str(&text)
            }
            Expr::Function { function, arguments, kind } => {
                self.named(out, &function.name(), arguments)?;
                let types: Vec<Type> = arguments.iter().map(|argument| argument.kind(self.slots)).collect();
                self.type_unless(out, kind, &function.natural_type(&types))
            }
            Expr::Call { function, arguments, kind } => self.call(out, *function, arguments, kind),
            Expr::Element(list, index) => {
                out.write_str("element(")?;
                self.expr(out, list, 0)?;
                out.write_str(", ")?;
                self.expr(out, index, 0)?;
                out.write_str(")")
            }
            Expr::ListLength(list) => self.named(out, "list_length", std::slice::from_ref(list)),
        }
    }

    /// Writes a case.
    fn case(
        &self,
        out: &mut dyn Write,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        kind: &Type,
    ) -> fmt::Result {
        out.write_str("case ")?;
        if self.exact {
            write_type(out, kind)?;
            out.write_str(" ")?;
        }
        for (condition, value) in branches {
            out.write_str("when ")?;
            self.expr(out, condition, 0)?;
            out.write_str(" then ")?;
            self.expr(out, value, 0)?;
            out.write_str(" ")?;
        }
        if let Some(value) = otherwise {
            out.write_str("else ")?;
            self.expr(out, value, 0)?;
            out.write_str(" ")?;
        }
        out.write_str("end")
    }

    /// Writes a call of a user function.
    fn call(&self, out: &mut dyn Write, function: usize, arguments: &[Expr], kind: &Type) -> fmt::Result {
        let known = self.functions.get(function);
        match (known, self.exact) {
            (Some(known), true) => write_name(out, &known.name)?,
            (Some(known), false) => out.write_str(&known.name)?,
            (None, _) => {}
        }
        if self.exact || known.is_none() {
            write!(out, "@{function}")?;
        }
        self.named(out, "", arguments)?;
        self.type_unless(out, kind, known.map_or(&Type::Null, |known| &known.returns))
    }

    /// Writes a call with arguments.
    fn named<E: std::borrow::Borrow<Expr>>(&self, out: &mut dyn Write, name: &str, arguments: &[E]) -> fmt::Result {
        out.write_str(name)?;
        write_list(out, arguments, |out, argument| self.expr(out, argument.borrow(), 0))
    }

    /// Writes a comparison.
    fn infix(&self, out: &mut dyn Write, left: &Expr, operator: &str, right: &Expr) -> fmt::Result {
        self.expr(out, left, level::ADD)?;
        write!(out, " {operator} ")?;
        self.expr(out, right, level::ADD)
    }

    /// Writes a conjunction or disjunction; of fewer than two operands as a call.
    fn connected(&self, out: &mut dyn Write, inputs: &[Expr], word: &str, needed: u8) -> fmt::Result {
        if inputs.len() < 2 {
            return self.named(out, word, inputs);
        }
        for (index, input) in inputs.iter().enumerate() {
            if index > 0 {
                write!(out, " {word} ")?;
            }
            self.expr(out, input, needed)?;
        }
        Ok(())
    }

    /// Writes arithmetic and, between brackets, whatever of it is not usual.
    fn arithmetic(&self, out: &mut dyn Write, arithmetic: &Arithmetic) -> fmt::Result {
        let own = match arithmetic.operator {
            ArithmeticOperator::Add | ArithmeticOperator::Subtract => level::ADD,
            _ => level::MULTIPLY,
        };
        // What stands between brackets belongs to the operator before it, so exact operands are kept apart.
        let (left, right) = if self.exact { (level::PRIMARY, level::PRIMARY) } else { (own, own + 1) };
        self.expr(out, &arithmetic.left, left)?;
        write!(out, " {} ", arithmetic.operator.symbol())?;
        self.expr(out, &arithmetic.right, right)?;
        if !self.exact {
            return Ok(());
        }
        let mut notes = String::new();
        if arithmetic.kind != arithmetic.left.kind(self.slots) {
            write_type(&mut notes, &arithmetic.kind)?;
        }
        notes.push_str(overflow_text(arithmetic.overflow));
        notes.push_str(if arithmetic.zero == Failure::Null { " zero null" } else { "" });
        match notes.trim_start() {
            "" => Ok(()),
            notes => write!(out, " [{notes}]"),
        }
    }

    /// Writes a type behind an expression, unless it is the one expected.
    fn type_unless(&self, out: &mut dyn Write, kind: &Type, expected: &Type) -> fmt::Result {
        if !self.exact || kind == expected {
            return Ok(());
        }
        out.write_str(":")?;
        write_type(out, kind)
    }

    /// Writes a constant.
    fn literal(&self, out: &mut dyn Write, value: &Value, kind: &Type) -> fmt::Result {
        if !self.exact {
            return out.write_str(&describe(value, kind));
        }
        match (value, kind) {
            (Value::Integer(integer), Type::Decimal { scale, .. }) => {
                out.write_str(&decimal::format(*integer, *scale))?;
            }
            (Value::Integer(days), Type::Date) if (-719_528..=2_932_896).contains(days) => {
                // 0000-01-01 to 9999-12-31, which four digits of a year can show.
                let (year, month, day) = date::civil_from_days(*days as i64);
                return write!(out, "date '{year:04}-{month:02}-{day:02}'");
            }
            _ => write!(out, "{value}")?,
        }
        if natural_type(value).as_ref() == Some(kind) {
            return Ok(());
        }
        out.write_str(":")?;
        write_type(out, kind)
    }
}
