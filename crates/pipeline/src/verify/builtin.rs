//! What the built-in functions take and give.

use tandem_column::Type;

use super::{Check, same};
use crate::{DateField, Function};

/// Checks the types of a function's arguments and result.
pub(super) fn check(function: Function, arguments: &[Type], kind: &Type) -> Check {
    use Function::*;
    match function {
        Coalesce | Greatest | Least => {
            count(arguments, 1, usize::MAX)?;
            all(arguments, kind)
        }
        NullIf => {
            count(arguments, 2, 2)?;
            same(&arguments[0], kind, "the first argument")?;
            if arguments[0] != Type::Null {
                same(&arguments[1], &arguments[0], "the second argument")?;
            }
            Ok(())
        }
        Extract(field) => {
            count(arguments, 1, 1)?;
            instant(&arguments[0], field)?;
            result(kind, &Type::Int32)
        }
        Truncate(field) => {
            count(arguments, 1, 1)?;
            instant(&arguments[0], field)?;
            same(&arguments[0], kind, "the argument")
        }
        Upper | Lower | Reverse => texts(arguments, 1, 1, kind, &Type::String),
        Trim | TrimStart | TrimEnd => texts(arguments, 1, 2, kind, &Type::String),
        Replace => texts(arguments, 3, 3, kind, &Type::String),
        Concat => texts(arguments, 0, usize::MAX, kind, &Type::String),
        CharLength => texts(arguments, 1, 1, kind, &Type::Int32),
        Position => texts(arguments, 2, 2, kind, &Type::Int32),
        StartsWith | EndsWith | Contains => texts(arguments, 2, 2, kind, &Type::Boolean),
        OctetLength => {
            count(arguments, 1, 1)?;
            if arguments[0] != Type::Binary {
                same(&arguments[0], &Type::String, "the argument")?;
            }
            result(kind, &Type::Int32)
        }
        Substring | Left | Right => {
            count(arguments, 2, if function == Substring { 3 } else { 2 })?;
            same(&arguments[0], &Type::String, "the first argument")?;
            integers(&arguments[1..])?;
            result(kind, &Type::String)
        }
        Abs => {
            count(arguments, 1, 1)?;
            numbers(arguments)?;
            same(&arguments[0], kind, "the argument")
        }
        Round | Floor | Ceil | Sign => {
            count(arguments, 1, if function == Round { 2 } else { 1 })?;
            numbers(&arguments[..1])?;
            integers(&arguments[1..])?;
            match (&arguments[0], kind) {
                (Type::Decimal { .. }, Type::Decimal { .. }) => Ok(()),
                (_, kind) if function == Sign && kind.is_float() => Ok(()),
                (given, kind) => same(given, kind, "the argument"),
            }
        }
        SquareRoot | Exp | Ln | Log10 | Log2 | Sin | Cos | Tan | ArcTan | Power => {
            let wanted = if function == Power { 2 } else { 1 };
            count(arguments, wanted, wanted)?;
            numbers(arguments)?;
            if kind.is_float() { Ok(()) } else { Err(format!("its result is a float, not {kind}")) }
        }
    }
}

/// Requires a number of arguments.
fn count(arguments: &[Type], least: usize, most: usize) -> Check {
    match arguments.len() {
        given if given < least => Err(format!("it takes at least {least} arguments, not {given}")),
        given if given > most => Err(format!("it takes at most {most} arguments, not {given}")),
        _ => Ok(()),
    }
}

/// Requires the result's type.
fn result(kind: &Type, wanted: &Type) -> Check {
    if kind == wanted { Ok(()) } else { Err(format!("its result is of type {wanted}, not {kind}")) }
}

/// Requires every argument to be of one type.
fn all(arguments: &[Type], kind: &Type) -> Check {
    arguments.iter().try_for_each(|argument| same(argument, kind, "an argument"))
}

/// Requires arguments of text, and a type for the result.
fn texts(arguments: &[Type], least: usize, most: usize, kind: &Type, wanted: &Type) -> Check {
    count(arguments, least, most)?;
    all(arguments, &Type::String)?;
    result(kind, wanted)
}

/// Requires integers.
fn integers(arguments: &[Type]) -> Check {
    let wrong = arguments.iter().find(|kind| !kind.is_integer() && **kind != Type::Null);
    wrong.map_or(Ok(()), |kind| Err(format!("an argument must be an integer, not {kind}")))
}

/// Requires numbers.
fn numbers(arguments: &[Type]) -> Check {
    let wrong = arguments.iter().find(|kind| !kind.is_numeric() && **kind != Type::Null);
    wrong.map_or(Ok(()), |kind| Err(format!("an argument must be a number, not {kind}")))
}

/// Requires a date, timestamp or, where it has the field, a time.
fn instant(kind: &Type, field: DateField) -> Check {
    match (kind, field) {
        (Type::Date | Type::Timestamp(..) | Type::Null, _) => Ok(()),
        (Type::Time(_), DateField::Hour | DateField::Minute | DateField::Second) => Ok(()),
        (other, field) => Err(format!("{other} has no {}", field.name())),
    }
}
