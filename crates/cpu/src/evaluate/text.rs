//! Text functions of one varying argument: over all rows, or over a dictionary's distinct values where these are fewer.

use tandem_column::Type;
use tandem_pipeline::{Function, Value, scalar};

use super::operand::Operand;
use crate::vector::{BytesVector, Values, Vector, bytes, integer, word};

/// Tells whether it pays to compute all of a dictionary rather than each row.
fn pays(distinct: usize, rows: usize) -> bool {
    distinct <= rows
}

/// Computes a small value of each text; 0 for representations without text.
pub(super) fn measure<R: Copy + Default>(values: &Values, f: impl Fn(&[u8]) -> R) -> Vec<R> {
    match values {
        Values::Bytes(values) => values.iter().map(f).collect(),
        Values::Code { codes, dictionary } if dictionary.is_empty() => vec![R::default(); codes.len()],
        Values::Code { codes, dictionary } if pays(dictionary.len(), codes.len()) => {
            let table: Vec<R> = dictionary.iter().map(f).collect();
            codes.iter().map(|&code| table[code as usize]).collect()
        }
        Values::Code { codes, dictionary } => codes.iter().map(|&code| f(dictionary.get(code))).collect(),
        other => vec![R::default(); other.len()],
    }
}

/// Computes a text of each text, which `f` appends.
fn rewrite(values: &Values, f: impl Fn(&str, &mut Vec<u8>)) -> Values {
    let f = |value: &[u8], out: &mut Vec<u8>| f(text(value), out);
    let mut out = BytesVector::with_capacity(values.len(), 0);
    match values {
        Values::Code { codes, dictionary } if pays(dictionary.len(), codes.len()) => {
            let mut table = BytesVector::with_capacity(dictionary.len(), 0);
            dictionary.iter().for_each(|value| table.push_with(|out| f(value, out)));
            for &code in codes {
                out.push(if table.is_empty() { &[] } else { table.get(code as usize) });
            }
        }
        Values::Code { codes, dictionary } => {
            codes.iter().for_each(|&code| out.push_with(|out| f(word(dictionary, code), out)));
        }
        Values::Bytes(values) => values.iter().for_each(|value| out.push_with(|out| f(value, out))),
        other => return other.clone(),
    }
    Values::Bytes(out)
}

/// Reads bytes that are known to be text.
#[inline]
pub(super) fn text(bytes: &[u8]) -> &str {
    debug_assert!(std::str::from_utf8(bytes).is_ok());
    // SAFETY: vectors of text hold only UTF-8: columns check it when loaded, and functions make it of text.
    unsafe { std::str::from_utf8_unchecked(bytes) }
}

/// Computes a function whose first argument is a vector of text and whose others are constants that are not null;
/// `None` where there is no loop for it.
pub(super) fn fast(function: Function, operands: &[Operand], kinds: &[Type], kind: &Type) -> Option<Vector> {
    use Function::*;
    let (Operand::Vector(vector), Some(Type::String)) = (operands.first()?, kinds.first()) else { return None };
    let mut rest = Vec::with_capacity(2);
    for operand in &operands[1..] {
        match operand {
            Operand::Constant(value) => rest.push(value),
            Operand::Vector(_) => return None,
        }
    }
    let values = &vector.values;
    let out = match (function, &rest[..]) {
        (CharLength, []) if *kind == Type::Int32 => {
            Values::Int(measure(values, |value| i64::from(scalar::text::char_length(text(value)))))
        }
        (OctetLength, []) if *kind == Type::Int32 => {
            Values::Int(measure(values, |value| i64::from(scalar::text::octet_length(value))))
        }
        (Position, [Value::String(part)]) if *kind == Type::Int32 => {
            Values::Int(measure(values, |value| i64::from(scalar::text::position(text(value), part))))
        }
        (StartsWith, [Value::String(part)]) => {
            Values::Boolean(measure(values, |value| u8::from(value.starts_with(part.as_bytes()))))
        }
        (EndsWith, [Value::String(part)]) => {
            Values::Boolean(measure(values, |value| u8::from(value.ends_with(part.as_bytes()))))
        }
        (Contains, [Value::String(part)]) => {
            let finder = memchr::memmem::Finder::new(part.as_bytes());
            Values::Boolean(measure(values, |value| u8::from(finder.find(value).is_some())))
        }
        (Upper, []) => rewrite(values, |value, out| {
            if value.is_ascii() {
                out.extend(value.bytes().map(|byte| byte.to_ascii_uppercase()));
            } else {
                out.extend_from_slice(value.to_uppercase().as_bytes());
            }
        }),
        (Lower, []) => rewrite(values, |value, out| {
            if value.is_ascii() {
                out.extend(value.bytes().map(|byte| byte.to_ascii_lowercase()));
            } else {
                out.extend_from_slice(value.to_lowercase().as_bytes());
            }
        }),
        (Trim | TrimStart | TrimEnd, []) => {
            let (start, end) = (function != TrimEnd, function != TrimStart);
            slice(values, |value| scalar::text::trim(value, None, start, end))
        }
        (Left, [Value::Integer(count)]) => {
            let count = i64::try_from(*count).ok()?;
            slice(values, |value| scalar::text::left(value, count))
        }
        (Right, [Value::Integer(count)]) => {
            let count = i64::try_from(*count).ok()?;
            slice(values, |value| scalar::text::right(value, count))
        }
        (Substring, [Value::Integer(start), length @ ..]) if length.len() <= 1 => {
            let start = i64::try_from(*start).ok()?;
            let length = match length {
                [value] => Some(i64::try_from(integer(value)).ok().filter(|length| *length >= 0)?),
                _ => None,
            };
            slice(values, |value| substring(value, start, length))
        }
        (Reverse, []) => rewrite(values, |value, out| out.extend_from_slice(scalar::text::reverse(value).as_bytes())),
        (Replace, [Value::String(from), Value::String(to)]) => {
            rewrite(values, |value, out| out.extend_from_slice(scalar::text::replace(value, from, to).as_bytes()))
        }
        _ => return None,
    };
    Some(Vector { values: out, valid: vector.valid.clone() })
}

fn slice(values: &Values, f: impl Fn(&str) -> &str) -> Values {
    rewrite(values, |value, out| out.extend_from_slice(f(value).as_bytes()))
}

/// Returns part of a text; the length is not negative. Characters of ASCII text are bytes.
fn substring(value: &str, start: i64, length: Option<i64>) -> &str {
    if !value.is_ascii() {
        return scalar::text::substring(value, start, length).unwrap_or_default();
    }
    let size = value.len() as i64;
    let start = start.saturating_sub(1);
    let end = length.map_or(size, |length| start.saturating_add(length));
    let (start, end) = (start.clamp(0, size), end.clamp(0, size));
    &value[start as usize..end.max(start) as usize]
}

/// Concatenates text; nulls are skipped.
pub(super) fn concat(operands: &[Operand], rows: usize) -> Vector {
    let mut out = BytesVector::with_capacity(rows, 0);
    for row in 0..rows {
        out.push_with(|out| {
            for operand in operands {
                match operand {
                    Operand::Constant(value) => out.extend_from_slice(bytes(value)),
                    Operand::Vector(vector) if vector.is_valid(row) => {
                        out.extend_from_slice(vector.values.bytes(row));
                    }
                    Operand::Vector(_) => {}
                }
            }
        });
    }
    Vector::new(Values::Bytes(out))
}
