//! Values in C: their text, their null flag, and the integers they can be.
//!
//! An integer is held in as few bits as its range needs: the text of a kernel depends on which, not on the range itself.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::range::Range;
use tandem_plan::Origin;

use crate::TextBase;

/// How many bits hold an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    /// 32.
    Narrow,
    /// 64.
    Long,
    /// 128, as two halves: see `wide` of the prelude.
    Wide,
}

impl Width {
    pub(crate) fn of(range: Range) -> Width {
        match (i64::try_from(range.low), i64::try_from(range.high)) {
            (Ok(low), Ok(high)) if i32::try_from(low).is_ok() && i32::try_from(high).is_ok() => Width::Narrow,
            (Ok(_), Ok(_)) => Width::Long,
            _ => Width::Wide,
        }
    }

    pub(crate) fn c(self) -> &'static str {
        match self {
            Width::Narrow => "i32",
            Width::Long => "i64",
            Width::Wide => "wide",
        }
    }

    /// Returns all integers of the width.
    pub(crate) fn range(self) -> Range {
        match self {
            Width::Narrow => Range::new(i32::MIN.into(), i32::MAX.into()),
            Width::Long => Range::new(i64::MIN.into(), i64::MAX.into()),
            Width::Wide => Range::new(i128::MIN, i128::MAX),
        }
    }
}

/// An integer in C: an expression without side effects, of the width of its range.
#[derive(Clone, Debug)]
pub(crate) struct Integer {
    pub(crate) value: String,
    pub(crate) range: Range,
    /// Where the exact value may not be in the range: the flag that it is not.
    pub(crate) left: Option<String>,
}

impl Integer {
    pub(crate) fn new(value: impl Into<String>, range: Range) -> Integer {
        Integer { value: value.into(), range, left: None }
    }

    /// Makes an integer that is part of the text.
    pub(crate) fn fixed(value: i128) -> Integer {
        let text = match Width::of(Range::only(value)) {
            Width::Narrow if value >= 0 => format!("{value}"),
            Width::Long if value >= 0 => format!("{value}L"),
            Width::Narrow => format!("({value})"),
            // The smallest integer has no literal: −2⁶³ is the negation of what does not fit.
            Width::Long => format!("({}L - 1)", value + 1),
            Width::Wide => format!("wide_from({}L, {:#x}UL)", value >> 64, value as u64),
        };
        Integer::new(text, Range::only(value))
    }

    pub(crate) fn width(&self) -> Width {
        Width::of(self.range)
    }

    /// Returns the lower 64 bits, or fewer where the value has fewer.
    pub(crate) fn bits(&self) -> String {
        match self.width() {
            Width::Wide => format!("(i64){}.low", self.value),
            _ => self.value.clone(),
        }
    }

    /// Returns the value, or its lower 64 bits, as exactly 64 bits.
    pub(crate) fn long(&self) -> String {
        match self.width() {
            Width::Narrow => format!("(i64){}", self.value),
            _ => self.bits(),
        }
    }

    /// Returns the value as 128 bits.
    pub(crate) fn wide(&self) -> String {
        match self.width() {
            Width::Wide => self.value.clone(),
            _ => format!("wide_of({})", self.value),
        }
    }

    /// Returns the value in a width that holds it.
    pub(crate) fn to(&self, width: Width) -> String {
        if width == Width::Wide { self.wide() } else { self.bits() }
    }
}

/// A value in C: an expression without side effects, and its null flag (0 or 1) where it may be null.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) value: String,
    pub(crate) null: Option<String>,
    pub(crate) kind: Type,
    /// The integers that it can be where it is not null; `None` for floats and codes of text.
    pub(crate) range: Option<Range>,
    /// Of codes: whose dictionary they are of.
    pub(crate) words: Option<Origin>,
    /// Of text itself: what it is a slice of; `None` for literals.
    pub(crate) base: Option<TextBase>,
}

impl Term {
    /// Makes a term that can be any value of its type.
    pub(crate) fn new(value: impl Into<String>, null: Option<String>, kind: Type) -> Term {
        Term { value: value.into(), null, range: Range::of_type(&kind), kind, words: None, base: None }
    }

    /// Makes a term of an integer that its type holds.
    pub(crate) fn of(integer: Integer, null: Option<String>, kind: Type) -> Term {
        Term { value: integer.value, null, kind, range: Some(integer.range), words: None, base: None }
    }

    /// Returns the term as an integer.
    pub(crate) fn integer(&self) -> Result<Integer> {
        match self.range {
            Some(range) => Ok(Integer::new(self.value.clone(), range)),
            None => unsupported(format!("computing with {}", self.kind)),
        }
    }

    /// Tells whether this is text itself, rather than its code.
    pub(crate) fn is_text(&self) -> bool {
        self.kind.repr() == Repr::Bytes && self.words.is_none()
    }
}

/// Returns the C type that computes values of a type within a range.
pub(crate) fn c_type(kind: &Type, range: Option<Range>) -> Result<&'static str> {
    match (kind.repr(), range) {
        (Repr::Boolean, _) => Ok("int"),
        (Repr::Float, _) => Ok("f64"),
        (Repr::Int | Repr::Wide, Some(range)) => Ok(Width::of(range).c()),
        _ => unsupported(format!("computing with {kind}")),
    }
}

pub(crate) fn unsupported<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(Error::unsupported(format!("{what} is not on the device yet")))
}

/// Ors null flags.
pub(crate) fn either(nulls: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let mut flags: Vec<String> = nulls.into_iter().flatten().collect();
    flags.dedup();
    (!flags.is_empty()).then(|| flags.join(" | "))
}

pub(crate) fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
