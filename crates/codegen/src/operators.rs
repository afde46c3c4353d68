//! Operators that are the same for every pipeline: prefix sums, sorting, laying builds out. Their text is a real file.

use crate::{
    Target, Traits,
    kernel::{Uses, prelude},
};

/// Returns the text of all of them; `prelude/operators.h` says what each does.
pub fn operators(traits: Traits, target: Target) -> String {
    let mut text = prelude(target, Uses { chunked: traits.chunked, ..Uses::default() });
    text.push_str(include_str!("prelude/operators.h"));
    text
}
