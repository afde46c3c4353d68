//! The sentences in which scalar operations fail.

use tandem_column::{Error, Type};

use crate::{ArithmeticOperator, Value};

/// Makes the error of a division or remainder by zero; `expression` is the text of the division.
pub fn division_by_zero(expression: &str, divisor: &str) -> Error {
    Error::input(format!("division by zero in {expression}: guard it with NULLIF({divisor}, 0)"))
}

/// Makes the error of an arithmetic result that does not fit its type.
pub fn overflow(operator: ArithmeticOperator, left: &str, right: &str, kind: &Type) -> Error {
    let name = match operator {
        ArithmeticOperator::Add => "addition",
        ArithmeticOperator::Subtract => "subtraction",
        ArithmeticOperator::Multiply => "multiplication",
        ArithmeticOperator::Divide => "division",
        ArithmeticOperator::Remainder => "remainder",
    };
    let (class, remedy) = remedy(kind);
    Error::input(format!("{class} overflow in {kind} {name} {left} {} {right}: {remedy}", operator.symbol()))
}

/// Makes the error of a function or negation whose result does not fit its type.
pub fn overflow_of(what: &str, argument: &str, kind: &Type) -> Error {
    let (class, remedy) = remedy(kind);
    Error::input(format!("{class} overflow in {kind} {what} of {argument}: {remedy}"))
}

/// Makes the error of a sum that does not fit its type.
pub fn sum_overflow(kind: &Type) -> Error {
    let (class, remedy) = remedy(kind);
    Error::input(format!("{class} overflow in {kind} sum: {remedy}"))
}

/// Makes the error of a cast without a value.
pub fn cast(value: &str, to: &Type) -> Error {
    Error::input(format!("cannot cast {value} to {to}: use TRY_CAST to get NULL instead"))
}

/// Makes the error of an operation that is not defined for its argument's type.
pub fn unsupported(what: &str, kind: &Type) -> Error {
    Error::unsupported(format!("{what} is not defined for {kind}: cast the argument to another type"))
}

/// Makes the error of a value that does not have the representation its type promises.
pub fn misfit(what: &str, value: &Value) -> Error {
    Error::internal(format!("{what} met a value of another type: {value}"))
}

/// Names the class of numbers that overflowed, and what to do about it.
fn remedy(kind: &Type) -> (&'static str, &'static str) {
    match kind {
        Type::Decimal { .. } => ("decimal", "cast an operand to fewer digits or to DOUBLE"),
        Type::Date | Type::Time(_) | Type::Timestamp(..) | Type::Interval => {
            ("time", "keep results within the type's range")
        }
        _ => ("integer", "cast an operand to a wider type such as DECIMAL(38, 0)"),
    }
}
