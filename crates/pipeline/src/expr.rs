//! Expressions: typed, with SQL null semantics; what hosts do differently is written in the operation itself.

use std::sync::Arc;

use tandem_column::Type;

use crate::{Function, Overflow, SlotId, Value};

/// An expression over the slots of a pipeline (or the locals of a user function).
#[rustfmt::skip]
#[allow(missing_docs)] // the comment beside each variant is its documentation, so that the language fits one screen
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Slot(SlotId),                                               // a slot's value
    Literal(Value, Type),                                       // a constant
    Arithmetic(Box<Arithmetic>),                                // + - * / %, null if either side is
    Negate(Box<Expr>, Overflow),                                // −x
    Compare(Comparison, Box<Expr>, Box<Expr>),                  // null if either side is
    Distinct(Box<Expr>, Box<Expr>),                             // IS DISTINCT FROM: never null
    And(Vec<Expr>),                                             // three-valued; of none: true
    Or(Vec<Expr>),                                              // three-valued; of none: false
    Not(Box<Expr>),                                             // null stays null
    IsNull(Box<Expr>),                                          // never null
    Case { branches: Vec<(Expr, Expr)>, otherwise: Option<Box<Expr>>, kind: Type }, // first true branch; lazily
    Cast { input: Box<Expr>, kind: Type, failure: Failure },    // see `crate::scalar::cast`
    In { input: Box<Expr>, list: Vec<Value> },                  // literals of the input's type; null as in SQL
    Like { input: Box<Expr>, pattern: Arc<str>, escape: Option<char>, ignore_case: bool }, // % and _; escape: \ unless given
    Function { function: Function, arguments: Vec<Expr>, kind: Type }, // see `crate::builtin`
    Call { function: usize, arguments: Vec<Expr>, kind: Type }, // a user function of the query
    Element(Box<Expr>, Box<Expr>),                              // list[index from 0]; user functions only
    ListLength(Box<Expr>),                                      // user functions only
}

/// An arithmetic operation; both sides and the result are of one representation class.
#[derive(Clone, Debug, PartialEq)]
pub struct Arithmetic {
    /// Which one.
    pub operator: ArithmeticOperator,
    /// Left operand.
    pub left: Expr,
    /// Right operand.
    pub right: Expr,
    /// The result's type. Integers and floats: that of both sides. Decimals: any decimal; the exact result is brought to
    /// its scale (division truncates toward zero, as Arrow does; all else rounds half away) and must fit its precision.
    /// Date − Date gives Int64 days; Timestamp − Timestamp an Interval; Date or Timestamp ± Interval the left type
    /// (Interval + Date too); Interval ± Interval an Interval.
    pub kind: Type,
    /// What happens when the result does not fit `kind`.
    pub overflow: Overflow,
    /// What integer and decimal division (and remainder) by zero does; floats follow IEEE.
    pub zero: Failure,
}

/// The arithmetic operators.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithmeticOperator {
    Add,
    Subtract,
    Multiply,
    Divide,    // integers: toward zero
    Remainder, // sign of the left side
}

/// The comparison operators. Floats compare by total order, as Arrow does: NaN equals NaN and is largest, −0.0 < 0.0.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Returns the comparison that holds with its sides exchanged.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

/// What an operation without a value does.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    Error, // the query fails
    Null,  // the value is null
}

/// A part of a date or time.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateField {
    Year,
    Quarter,
    Month,
    Week, // ISO
    Day,
    DayOfWeek, // 0 = Sunday
    DayOfYear,
    Hour,
    Minute,
    Second,
}
