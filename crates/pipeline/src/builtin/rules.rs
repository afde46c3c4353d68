//! The words of the table: what arguments may be, of what type a result is, and what nulls do.

use std::fmt;

use tandem_column::Type;

use super::Function;
use crate::{
    DateField,
    verify::{Check, same},
};

/// What an argument may be. An untyped null may stand for any.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentRule {
    Same,                          // of the result's type, whichever that is
    Text,
    TextOrBytes,
    Integer,                       // of any width
    Number,                        // an integer, decimal or float
    SameInteger,                   // an integer of the result's type
    Instant,                       // a date, timestamp or, where it has the function's field, a time
    PlainInstant,                  // a date or a timestamp without a zone
    AsFirst,                       // of the first argument's type
    Optional(&'static ArgumentRule),   // may be left out
    Repeated(&'static ArgumentRule),   // any number of them, none too
}

/// Of what type the result is.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    Boolean,
    Int32,
    Int64,
    Text,
    Bytes,
    Date,
    Float,                         // of either width, as the producer says
    First,                         // the first argument's type
    Rounded,                       // the first argument's type; of a decimal, a decimal of any digits
    SignOf,                        // as Rounded, or a float
}

/// What nulls do.
#[rustfmt::skip]
#[allow(missing_docs)] // documented beside each variant
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    Strict,                        // null if any argument is, and only then
    Partial,                       // null if any argument is; may be null of others too
    Skipped,                       // null arguments are skipped; null if all are
    Never,                         // null arguments are skipped; never null
    Special,                       // as the meaning says; may be null
}

impl fmt::Display for ArgumentRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentRule::Same => f.write_str("any"),
            ArgumentRule::Text => f.write_str("text"),
            ArgumentRule::TextOrBytes => f.write_str("text or bytes"),
            ArgumentRule::Integer => f.write_str("integer"),
            ArgumentRule::Number => f.write_str("number"),
            ArgumentRule::SameInteger => f.write_str("integer"),
            ArgumentRule::Instant => f.write_str("date or time"),
            ArgumentRule::PlainInstant => f.write_str("date or time"),
            ArgumentRule::AsFirst => f.write_str("same"),
            ArgumentRule::Optional(argument) => write!(f, "[{argument}]"),
            ArgumentRule::Repeated(argument) => write!(f, "{argument} …"),
        }
    }
}

impl fmt::Display for Gives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gives::Boolean => "boolean",
            Gives::Int32 => "int32",
            Gives::Int64 => "int64",
            Gives::Text => "text",
            Gives::Bytes => "bytes",
            Gives::Date => "date",
            Gives::Float => "float",
            Gives::First | Gives::Rounded => "same",
            Gives::SignOf => "same or float",
        })
    }
}

impl fmt::Display for Nulls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Nulls::Strict => "",
            Nulls::Partial => "or where it says",
            Nulls::Skipped => "only if all are",
            Nulls::Never => "never",
            Nulls::Special => "where it says",
        })
    }
}

impl ArgumentRule {
    /// Requires an argument to be what it should.
    fn check(self, function: Function, given: &Type, kind: &Type) -> Check {
        let is = |fits: bool, what: &str| match fits || *given == Type::Null {
            true => Ok(()),
            false => Err(format!("an argument must be {what}, not {given}")),
        };
        match self {
            ArgumentRule::Same => same(given, kind, "an argument"),
            ArgumentRule::Text => same(given, &Type::String, "an argument"),
            ArgumentRule::TextOrBytes => is(matches!(given, Type::String | Type::Binary), "text or bytes"),
            ArgumentRule::Integer => is(given.is_integer(), "an integer"),
            ArgumentRule::Number => is(given.is_numeric(), "a number"),
            ArgumentRule::SameInteger => match kind.is_integer() {
                true => same(given, kind, "an argument"),
                false => Err(format!("its result is an integer, not {kind}")),
            },
            ArgumentRule::AsFirst => Ok(()),
            ArgumentRule::PlainInstant => {
                is(matches!(given, Type::Date | Type::Timestamp(_, None)), "a date or a timestamp without a zone")
            }
            ArgumentRule::Instant => {
                let timed = matches!(function.field(), Some(DateField::Hour | DateField::Minute | DateField::Second));
                match given {
                    Type::Date | Type::Timestamp(..) | Type::Null => Ok(()),
                    Type::Time(_) if timed => Ok(()),
                    other => Err(format!("{other} has no {}", function.field().map_or("fields", DateField::name))),
                }
            }
            ArgumentRule::Optional(argument) | ArgumentRule::Repeated(argument) => {
                argument.check(function, given, kind)
            }
        }
    }
}

impl Function {
    /// Returns what the argument at a place may be; `None` if there may be none.
    pub fn argument(self, place: usize) -> Option<ArgumentRule> {
        let arguments = self.entry().arguments;
        match (arguments.get(place), arguments.last()) {
            (Some(ArgumentRule::Optional(argument) | ArgumentRule::Repeated(argument)), _) => Some(**argument),
            (Some(argument), _) => Some(*argument),
            (None, Some(ArgumentRule::Repeated(argument))) => Some(**argument),
            (None, _) => None,
        }
    }

    /// Tells whether the argument at a place may be of a type where the result is of type `kind`.
    pub fn takes(self, place: usize, given: &Type, kind: &Type) -> bool {
        self.argument(place).is_some_and(|argument| argument.check(self, given, kind).is_ok())
    }

    /// Tells whether the result may be of a type.
    pub fn can_give(self, kind: &Type) -> bool {
        match self.entry().gives {
            Gives::Float => kind.is_float(),
            Gives::First | Gives::Rounded | Gives::SignOf => *kind != Type::Null && self.takes(0, kind, kind),
            _ => self.natural_type(&[]) == *kind,
        }
    }

    /// Returns the least and the most number of arguments.
    pub fn arity(self) -> (usize, usize) {
        let arguments = self.entry().arguments;
        let required =
            |argument: &&ArgumentRule| !matches!(argument, ArgumentRule::Optional(_) | ArgumentRule::Repeated(_));
        let repeats = matches!(arguments.last(), Some(ArgumentRule::Repeated(_)));
        let least = arguments.iter().filter(required).count();
        (least, if repeats { usize::MAX } else { arguments.len() })
    }

    /// Checks the types of arguments and result.
    ///
    /// # Errors
    /// If they do not fit, says why.
    pub fn check(self, arguments: &[Type], kind: &Type) -> Check {
        let (least, most) = self.arity();
        match arguments.len() {
            given if given < least => return Err(format!("it takes at least {least} arguments, not {given}")),
            given if given > most => return Err(format!("it takes at most {most} arguments, not {given}")),
            _ => {}
        }
        for (place, given) in arguments.iter().enumerate() {
            self.argument(place).map_or(Ok(()), |argument| argument.check(self, given, kind))?;
        }
        let first = arguments.first().unwrap_or(&Type::Null);
        for (place, given) in arguments.iter().enumerate().filter(|_| *first != Type::Null) {
            if self.argument(place) == Some(ArgumentRule::AsFirst) {
                same(given, first, "an argument")?;
            }
        }
        let decimals = matches!((first, kind), (Type::Decimal { .. }, Type::Decimal { .. }));
        match self.entry().gives {
            Gives::Float if kind.is_float() => Ok(()),
            Gives::Float => Err(format!("its result is a float, not {kind}")),
            Gives::Rounded | Gives::SignOf if decimals => Ok(()),
            Gives::SignOf if kind.is_float() => Ok(()),
            Gives::First | Gives::Rounded | Gives::SignOf => same(first, kind, "the argument"),
            _ => match self.natural_type(arguments) {
                wanted if *kind == wanted => Ok(()),
                wanted => Err(format!("its result is of type {wanted}, not {kind}")),
            },
        }
    }

    /// Returns the type that a result has unless another is asked for.
    pub fn natural_type(self, arguments: &[Type]) -> Type {
        match self.entry().gives {
            Gives::Boolean => Type::Boolean,
            Gives::Int32 => Type::Int32,
            Gives::Int64 => Type::Int64,
            Gives::Text => Type::String,
            Gives::Bytes => Type::Binary,
            Gives::Date => Type::Date,
            Gives::Float => Type::Float64,
            Gives::First | Gives::Rounded | Gives::SignOf => arguments.first().cloned().unwrap_or(Type::Null),
        }
    }

    /// Tells whether the result may be null, given which arguments may be.
    pub fn nullable(self, arguments: impl IntoIterator<Item = bool>) -> bool {
        let mut arguments = arguments.into_iter();
        match self.entry().nulls {
            Nulls::Strict => arguments.any(|nullable| nullable),
            Nulls::Skipped => arguments.all(|nullable| nullable),
            Nulls::Never => false,
            Nulls::Partial | Nulls::Special => true,
        }
    }

    /// Tells whether a null argument makes the result null.
    pub fn is_strict(self) -> bool {
        matches!(self.entry().nulls, Nulls::Strict | Nulls::Partial)
    }
}
