//! Text that is computed without being written: a slice of text that lies somewhere already.
//!
//! A part of a column's text (its first characters, what is left without spaces) is a slice of the column's bytes. What an
//! expression makes of each word of a dictionary is written once, by the host, and a row's text is one of these. A slice is a
//! number of 64 bits, where it begins and how long it is, from which the host fetches the text.

use tandem_pipeline::{Expr, Function};
use tandem_plan::{Action, Body, Origin};

use crate::{Mapping, mapping::is_closed};

/// Bits of a slice that say where it begins.
const BEGINS: u32 = 40;
/// More bytes than a slice has.
pub const MOST_SLICE: u64 = 1 << (63 - BEGINS);

/// The bytes that slices are of.
#[derive(Clone, Debug, PartialEq)]
pub enum TextBase {
    /// Those of a source column, or of a payload column.
    Stored(Origin),
    /// What an expression gives for each word of a dictionary.
    Mapped(Mapping),
}

impl TextBase {
    /// Finds the bytes that all values of an expression of text are slices of, as far as statistics tell; `None` where they
    /// are none, or of several.
    pub fn of(expr: &Expr, body: &Body) -> Option<TextBase> {
        let has_words = |slot: usize| {
            let domain = body.domains.get(slot).filter(|_| body.origins[slot] != Origin::Computed);
            domain.is_some_and(|domain| domain.dictionary.is_some())
        };
        if let Expr::Slot(slot) = expr {
            return match body.origins[*slot] {
                Origin::Computed => TextBase::of(defined(body, *slot)?, body),
                _ if has_words(*slot) => None,
                origin => Some(TextBase::Stored(origin)),
            };
        }
        let slots: Vec<usize> = expr.slots().into_iter().collect();
        match (slots.as_slice(), expr) {
            ([slot], _) if has_words(*slot) && is_closed(expr) => {
                Some(TextBase::Mapped(Mapping::of(expr, body.origins[*slot], &body.slots[*slot].kind)))
            }
            (_, Expr::Function { function, arguments, .. }) if is_slice(*function) => {
                TextBase::of(arguments.first()?, body)
            }
            _ => None,
        }
    }
}

/// Returns the expression that defines a slot.
fn defined(body: &Body, slot: usize) -> Option<&Expr> {
    body.steps.iter().find_map(|step| match &step.action {
        Action::Let { first, exprs } => exprs.get(slot.checked_sub(*first)?),
        _ => None,
    })
}

/// Tells whether what a function gives is a part of its first argument.
pub(crate) fn is_slice(function: Function) -> bool {
    matches!(function, Function::Substring | Function::Left | Function::Right)
}

/// Returns where a slice begins and how many bytes it has.
pub fn slice_bounds(slice: u64) -> (usize, usize) {
    ((slice & ((1 << BEGINS) - 1)) as usize, (slice >> BEGINS) as usize)
}
