//! The built-in functions: types, and values from values.

use tandem_column::{Error, Result, Type};

use super::{
    arithmetic::zone,
    bits, compare, date, digest, fault, number,
    pattern::{Patterns, Replacement},
    text::{self, MOST_TEXT},
};
use crate::{DateField, Function, Value};

/// What a statement fails with whose subquery gives several rows where one value is asked for.
pub const SEVERAL_ROWS: &str =
    "a subquery that stands for a value gave more than one row; aggregate its rows, or add LIMIT 1";

/// Computes a built-in function of values whose types are given.
///
/// # Errors
/// If a value is outside the function's domain; if the function is not defined for the types.
pub fn function(function: Function, kind: &Type, types: &[Type], arguments: &[Value]) -> Result<Value> {
    function_with(&Patterns::default(), function, kind, types, arguments)
}

/// Computes a built-in function, keeping the patterns that it compiles.
///
/// # Errors
/// As [`function`].
pub fn function_with(
    patterns: &Patterns,
    function: Function,
    kind: &Type,
    types: &[Type],
    arguments: &[Value],
) -> Result<Value> {
    if let Some(value) = of_nulls(function, arguments) {
        return value;
    }
    if function.is_strict() && arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let (Some(first), Some(from)) = (arguments.first(), types.first()) else { return Err(arity(function, 0)) };
    match function {
        Function::Extract(field) => extract(field, first, from),
        Function::Truncate(field) => truncate(field, first, from),
        Function::Abs => number::abs(first, from, kind),
        Function::Sign => number::sign(first, from, kind),
        Function::Floor => number::floor(first, from, false, kind),
        Function::Ceil => number::floor(first, from, true, kind),
        Function::Round => {
            let digits = if arguments.len() > 1 { integer(arguments, 1)? } else { 0 };
            number::round(first, from, digits, kind)
        }
        Function::Power => {
            let [base, exponent] = arguments else { return Err(arity(function, arguments.len())) };
            let (base, exponent) = (number::to_float(base, from)?, number::to_float(exponent, &types[1])?);
            Ok(number::from_float(number::power(base, exponent)?, kind))
        }
        Function::ArcTan2 => {
            let [y, x] = arguments else { return Err(arity(function, arguments.len())) };
            let (y, x) = (number::to_float(y, from)?, number::to_float(x, &types[1])?);
            Ok(number::from_float(y.atan2(x), kind))
        }
        Function::BitAnd
        | Function::BitOr
        | Function::BitXor
        | Function::BitNot
        | Function::ShiftLeft
        | Function::ShiftRight => {
            let right = if function == Function::BitNot { first } else { arguments.get(1).unwrap_or(first) };
            let (Value::Integer(left), Value::Integer(right)) = (first, right) else {
                return Err(fault::misfit("a function of bits", right));
            };
            let found = bits::compute(function, *left, *right, kind);
            found.map(Value::Integer).ok_or_else(|| arity(function, arguments.len()))
        }
        Function::DateDiff(field) => {
            let [start, end] = arguments else { return Err(arity(function, arguments.len())) };
            Ok(Value::Integer((ordinal(field, end, from)? - ordinal(field, start, from)?).into()))
        }
        Function::ToDate => to_date(arguments),
        Function::SingleRow => match integer(arguments, 0)? {
            ..=1 => Ok(Value::Boolean(true)),
            _ => Err(Error::input(SEVERAL_ROWS)),
        },
        Function::Md5 | Function::Sha256 => {
            let bytes = match first {
                Value::Binary(bytes) => bytes,
                Value::String(text) => text.as_bytes(),
                other => return Err(fault::misfit("a digest", other)),
            };
            Ok(match function {
                Function::Md5 => Value::string(digest::md5(bytes)),
                _ => Value::Binary(digest::sha256(bytes).as_slice().into()),
            })
        }
        Function::OctetLength => match first {
            Value::Binary(bytes) => Ok(Value::Integer(text::octet_length(bytes).into())),
            Value::String(text) => Ok(Value::Integer(text::octet_length(text.as_bytes()).into())),
            other => Err(fault::misfit("octet_length", other)),
        },
        _ => match number::unary(function, 0.0) {
            Some(_) => {
                let value = number::unary(function, number::to_float(first, from)?).unwrap_or(f64::NAN);
                Ok(number::from_float(value, kind))
            }
            None => of_text(patterns, function, arguments),
        },
    }
}

/// Computes a function that has a value although some arguments are null; `None` for others.
fn of_nulls(function: Function, arguments: &[Value]) -> Option<Result<Value>> {
    let mut values = arguments.iter().filter(|value| !value.is_null());
    Some(match function {
        Function::Coalesce => Ok(values.next().cloned().unwrap_or(Value::Null)),
        Function::NullIf => match arguments {
            [first, second] => {
                let equal = compare::compare(first, second).is_some_and(|order| order.is_eq());
                Ok(if equal { Value::Null } else { first.clone() })
            }
            _ => Err(arity(function, arguments.len())),
        },
        Function::Greatest => {
            let greatest = values.max_by(|left, right| compare::order(left, right));
            Ok(greatest.cloned().unwrap_or(Value::Null))
        }
        Function::Least => {
            let least = values.min_by(|left, right| compare::order(left, right));
            Ok(least.cloned().unwrap_or(Value::Null))
        }
        Function::Concat => {
            let parts = values.map(|value| value.as_text().ok_or_else(|| fault::misfit("concat", value)));
            parts.collect::<Result<String>>().map(Value::string)
        }
        _ => return None,
    })
}

/// Computes a function of text.
fn of_text(patterns: &Patterns, function: Function, arguments: &[Value]) -> Result<Value> {
    let first = string(arguments, 0)?;
    let optional = |index: usize| arguments.get(index).map(|_| string(arguments, index)).transpose();
    Ok(match function {
        Function::Upper => Value::string(first.to_uppercase()),
        Function::Lower => Value::string(first.to_lowercase()),
        Function::Trim => Value::string(text::trim(first, optional(1)?, true, true)),
        Function::TrimStart => Value::string(text::trim(first, optional(1)?, true, false)),
        Function::TrimEnd => Value::string(text::trim(first, optional(1)?, false, true)),
        Function::CharLength => Value::Integer(text::char_length(first).into()),
        Function::Substring => {
            let length = if arguments.len() > 2 { Some(integer(arguments, 2)?) } else { None };
            Value::string(text::substring(first, integer(arguments, 1)?, length)?)
        }
        Function::Left => Value::string(text::left(first, integer(arguments, 1)?)),
        Function::Right => Value::string(text::right(first, integer(arguments, 1)?)),
        Function::Replace => {
            let (from, to) = (string(arguments, 1)?, string(arguments, 2)?);
            if text::most_replaced(first, from, to) > MOST_TEXT {
                return Err(Error::exhausted("REPLACE gives a text of more than 2 GB: replace less, or by less"));
            }
            Value::string(text::replace(first, from, to))
        }
        Function::Position => Value::Integer(text::position(first, string(arguments, 1)?).into()),
        Function::StartsWith => Value::Boolean(first.starts_with(string(arguments, 1)?)),
        Function::EndsWith => Value::Boolean(first.ends_with(string(arguments, 1)?)),
        Function::Contains => Value::Boolean(first.contains(string(arguments, 1)?)),
        Function::Reverse => Value::string(text::reverse(first)),
        Function::SplitPart => Value::string(text::split_part(first, string(arguments, 1)?, integer(arguments, 2)?)?),
        Function::PadStart | Function::PadEnd => {
            let fill = optional(2)?.unwrap_or(" ");
            Value::string(text::pad(first, integer(arguments, 1)?, fill, function == Function::PadStart)?)
        }
        Function::InitCap => Value::string(text::initcap(first)),
        Function::Repeat => Value::string(text::repeat(first, integer(arguments, 1)?)?),
        Function::Translate => Value::string(text::translate(first, string(arguments, 1)?, string(arguments, 2)?)),
        Function::RegexpLike => {
            let pattern = patterns.compile(string(arguments, 1)?, optional(2)?.unwrap_or_default())?;
            Value::Boolean(pattern.is_match(first))
        }
        Function::RegexpReplace => {
            let (flags, all) = Replacement::flags(optional(3)?.unwrap_or_default());
            let pattern = patterns.compile(string(arguments, 1)?, &flags)?;
            let replacement = Replacement::new(pattern, string(arguments, 2)?, all);
            if replacement.most(first) > MOST_TEXT {
                return Err(Error::exhausted(
                    "REGEXP_REPLACE gives a text of more than 2 GB: replace less, or by less",
                ));
            }
            Value::string(replacement.replace(first))
        }
        Function::RegexpMatch => {
            let pattern = patterns.compile(string(arguments, 1)?, optional(3)?.unwrap_or_default())?;
            pattern.group(first, integer(arguments, 2)?).map_or(Value::Null, Value::string)
        }
        other => return Err(Error::internal(format!("function {} is not one of text", other.name()))),
    })
}

/// Returns a field of a date, time or timestamp.
fn extract(field: DateField, value: &Value, kind: &Type) -> Result<Value> {
    let number = instant(value)?;
    let found = match kind {
        Type::Date => date::extract(field, number),
        Type::Time(unit) => date::extract_time(field, number, *unit),
        Type::Timestamp(unit, None) => date::extract_timestamp(field, number, *unit, None),
        Type::Timestamp(unit, Some(_)) => date::extract_timestamp(field, number, *unit, Some(zone(kind)?)),
        other => return Err(fault::unsupported("extract", other)),
    };
    Ok(found.map_or(Value::Null, |found| Value::Integer(found.into())))
}

/// Truncates a date, time or timestamp to the start of a field.
fn truncate(field: DateField, value: &Value, kind: &Type) -> Result<Value> {
    let number = instant(value)?;
    let found = match kind {
        Type::Date => Some(date::truncate(field, number)),
        Type::Time(unit) => Some(date::truncate_time(field, number, *unit)),
        Type::Timestamp(unit, None) => date::truncate_timestamp(field, number, *unit, None),
        Type::Timestamp(unit, Some(_)) => date::truncate_timestamp(field, number, *unit, Some(zone(kind)?)),
        other => return Err(fault::unsupported("date_trunc", other)),
    };
    let found = found.map(|found| Value::Integer(found.into())).filter(|found| found.fits(kind));
    found.ok_or_else(|| fault::overflow_of("truncation", &value.to_string(), kind))
}

/// Returns how many fields have begun before a date or timestamp without a zone.
fn ordinal(field: DateField, value: &Value, kind: &Type) -> Result<i64> {
    let number = instant(value)?;
    match kind {
        Type::Date => Ok(date::ordinal(field, number)),
        Type::Timestamp(unit, None) => Ok(date::ordinal_timestamp(field, number, *unit)),
        other => Err(fault::unsupported("date_diff", other)),
    }
}

/// Reads a date by the first of some formats that fits.
fn to_date(arguments: &[Value]) -> Result<Value> {
    let text = string(arguments, 0)?;
    let mut found = Err(arity(Function::ToDate, arguments.len()));
    for place in 1..arguments.len() {
        found = date::parse_date(text, string(arguments, place)?);
        if found.is_ok() {
            break;
        }
    }
    found.map(|days| Value::Integer(days.into()))
}

/// Reads a date, time or timestamp.
fn instant(value: &Value) -> Result<i64> {
    value.as_integer().and_then(|value| value.try_into().ok()).ok_or_else(|| fault::misfit("a date function", value))
}

/// Reads an integer argument; what 64 bits do not hold saturates.
fn integer(arguments: &[Value], index: usize) -> Result<i64> {
    let value = arguments.get(index).ok_or_else(|| Error::internal("a function lacks an argument"))?;
    let integer = value.as_integer().ok_or_else(|| fault::misfit("a function of integers", value))?;
    Ok(integer.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// Reads a text argument.
fn string(arguments: &[Value], index: usize) -> Result<&str> {
    let value = arguments.get(index).ok_or_else(|| Error::internal("a function lacks an argument"))?;
    value.as_text().ok_or_else(|| fault::misfit("a function of text", value))
}

/// Makes the error of a wrong number of arguments, which the verifier finds first.
fn arity(function: Function, count: usize) -> Error {
    Error::internal(format!("function {} got {count} arguments", function.name()))
}
