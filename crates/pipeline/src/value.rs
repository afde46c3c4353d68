//! A single value, as literals carry it and the interpreter computes with it.
//!
//! Equality and hashing are those of literals and of grouping: floats by their bits, so that NaN equals itself and
//! −0.0 differs from 0.0, as in the total order that comparisons use; null equals null. SQL's comparison, where null
//! is unknown, is [`crate::scalar::compare`].

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use tandem_column::Type;

/// A value without its type: what holds it follows [`tandem_column::Type::repr`].
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i128), // every integer, date, time, timestamp, and decimal (scaled)
    Float(f64),    // float32 too, already rounded
    String(Arc<str>),
    Binary(Arc<[u8]>),
    Interval { months: i32, days: i32, nanoseconds: i64 },
    List(Arc<[Value]>),
}

impl Value {
    /// Makes a text value.
    pub fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// Tells whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Tells whether this is true; null and every non-boolean are not.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Boolean(true))
    }

    /// Returns the integer that is held, if one is.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Value::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the float that is held, if one is.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the text that is held, if one is.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::String(value) => Some(value),
            _ => None,
        }
    }

    /// Tells whether this can be a value of the type: of its representation and, for numbers, within its range.
    pub fn fits(&self, kind: &Type) -> bool {
        match (self, kind) {
            (Value::Null, _) => true,
            (Value::Boolean(_), Type::Boolean) => true,
            (Value::Integer(value), Type::Decimal { precision, .. }) => {
                crate::scalar::decimal::fits(*value, *precision)
            }
            (Value::Integer(value), Type::Date) => i32::try_from(*value).is_ok(),
            (Value::Integer(value), Type::Time(_) | Type::Timestamp(..)) => i64::try_from(*value).is_ok(),
            (Value::Integer(value), kind) if kind.is_integer() => {
                kind.integer_range().is_some_and(|(low, high)| (low..=high).contains(value))
            }
            (Value::Float(_), Type::Float64) => true,
            (Value::Float(value), Type::Float32) => f64::from(*value as f32).to_bits() == value.to_bits(),
            (Value::String(_), Type::String) | (Value::Binary(_), Type::Binary) => true,
            (Value::Interval { .. }, Type::Interval) => true,
            (Value::List(values), Type::List(of)) => values.iter().all(|value| value.fits(of)),
            _ => false,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Boolean(left), Value::Boolean(right)) => left == right,
            (Value::Integer(left), Value::Integer(right)) => left == right,
            (Value::Float(left), Value::Float(right)) => left.to_bits() == right.to_bits(),
            (Value::String(left), Value::String(right)) => left == right,
            (Value::Binary(left), Value::Binary(right)) => left == right,
            (
                Value::Interval { months, days, nanoseconds },
                Value::Interval { months: months2, days: days2, nanoseconds: nanoseconds2 },
            ) => (months, days, nanoseconds) == (months2, days2, nanoseconds2),
            (Value::List(left), Value::List(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Null => {}
            Value::Boolean(value) => value.hash(state),
            Value::Integer(value) => value.hash(state),
            Value::Float(value) => value.to_bits().hash(state),
            Value::String(value) => value.hash(state),
            Value::Binary(value) => value.hash(state),
            Value::Interval { months, days, nanoseconds } => (months, days, nanoseconds).hash(state),
            Value::List(values) => values.hash(state),
        }
    }
}

/// Writes the value in the text form of literals (see [`crate::print`]): integers as held, whatever they mean.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Float(value) => write_float(f, *value),
            Value::String(value) => write_quoted(f, value, '\''),
            Value::Binary(value) => {
                f.write_str("x'")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Value::Interval { months, days, nanoseconds } => write!(f, "interval({months}, {days}, {nanoseconds})"),
            Value::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Writes a float so that reading it back gives the same bits: the shortest digits, or the bits of an unusual NaN.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
        write!(f, "nan({:#x})", value.to_bits())
    } else if value.is_nan() {
        f.write_str("nan")
    } else {
        write!(f, "{value:?}")
    }
}

/// Writes text between quotes, with the quote, the backslash and control characters escaped.
pub(crate) fn write_quoted(f: &mut impl fmt::Write, text: &str, quote: char) -> fmt::Result {
    f.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c == quote => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char(quote)
}
