//! LIKE: a pattern becomes a range of dictionary codes, a comparison or a text search wherever it amounts to one.

use memchr::memmem::Finder;
use tandem_column::Result;
use tandem_pipeline::{
    Expr, Value,
    scalar::like::{Matcher, PatternShape},
};

use super::operand::Operand;
use super::text::{measure, search, text};
use super::{Evaluator, compare};
use crate::vector::{Values, Vector, bytes};

/// Computes `input LIKE pattern`.
pub(super) fn like(
    evaluator: &Evaluator<'_>,
    input: &Expr,
    pattern: &str,
    escape: Option<char>,
    ignore_case: bool,
) -> Result<Operand> {
    let matcher = Matcher::new(pattern, escape, ignore_case);
    Ok(match evaluator.operand(input)? {
        Operand::Constant(Value::Null) => Operand::Constant(Value::Null),
        Operand::Constant(value) => Operand::Constant(Value::Boolean(matcher.matches(text(bytes(&value))))),
        Operand::Vector(vector) => {
            let mask = matches(&vector.values, &matcher, pattern, escape, ignore_case);
            Vector { values: Values::Boolean(mask), valid: vector.valid.clone() }.into()
        }
    })
}

fn matches(values: &Values, matcher: &Matcher, pattern: &str, escape: Option<char>, ignore_case: bool) -> Vec<u8> {
    match (matcher.shape(), values) {
        (PatternShape::Equal(wanted), Values::Code { codes, dictionary }) => {
            let within = match dictionary.find(wanted.as_bytes()) {
                Ok(code) => code..code + 1,
                Err(_) => 0..0,
            };
            compare::code_range(codes, within, false)
        }
        (PatternShape::StartsWith(wanted), Values::Code { codes, dictionary }) => {
            compare::code_range(codes, dictionary.prefix_range(wanted.as_bytes()), false)
        }
        (PatternShape::Equal(wanted), _) => measure(values, |value| u8::from(value == wanted.as_bytes())),
        (PatternShape::StartsWith(wanted), _) => {
            measure(values, |value| u8::from(value.starts_with(wanted.as_bytes())))
        }
        (PatternShape::EndsWith(wanted), _) => measure(values, |value| u8::from(value.ends_with(wanted.as_bytes()))),
        (PatternShape::Contains(wanted), _) => search(values, &Finder::new(wanted.as_bytes()), |_| true),
        (PatternShape::General, _) => match Sequence::new(pattern, escape).filter(|_| !ignore_case) {
            Some(sequence) => match sequence.middle.first() {
                Some(finder) => search(values, finder, |value| sequence.matches(value)),
                None => measure(values, |value| u8::from(sequence.matches(value))),
            },
            None => measure(values, |value| u8::from(matcher.matches(text(value)))),
        },
    }
}

/// A pattern of plain texts with `%` between them: the first at the start, the last at the end, the others in order.
struct Sequence {
    first: Vec<u8>,
    middle: Vec<Finder<'static>>,
    last: Vec<u8>,
}

impl Sequence {
    /// Reads a pattern; `None` if it has `_` or no `%`.
    fn new(pattern: &str, escape: Option<char>) -> Option<Sequence> {
        let escape = escape.unwrap_or('\\');
        let mut parts = vec![String::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let part = parts.last_mut().expect("there is always a last part");
            match character {
                _ if character == escape => part.push(characters.next().unwrap_or(escape)),
                '%' => parts.push(String::new()),
                '_' => return None,
                _ => part.push(character),
            }
        }
        let last = parts.pop().filter(|_| !parts.is_empty())?;
        let mut parts = parts.into_iter();
        let first = parts.next()?;
        let middle = parts.filter(|part| !part.is_empty()).map(|part| Finder::new(part.as_bytes()).into_owned());
        Some(Sequence { first: first.into_bytes(), middle: middle.collect(), last: last.into_bytes() })
    }

    fn matches(&self, value: &[u8]) -> bool {
        // An empty text has no address: where processors compare vectors under a mask, asking for it costs a fault.
        if value.len() < self.first.len() + self.last.len()
            || !(self.first.is_empty() || value.starts_with(&self.first))
            || !(self.last.is_empty() || value.ends_with(&self.last))
        {
            return false;
        }
        let mut rest = &value[self.first.len()..value.len() - self.last.len()];
        self.middle.iter().all(|finder| match finder.find(rest) {
            Some(at) => {
                rest = &rest[at + finder.needle().len()..];
                true
            }
            None => false,
        })
    }
}
