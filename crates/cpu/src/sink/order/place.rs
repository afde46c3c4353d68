//! Places of rows by the first key of an order: integers of 64 bits that compare as the key does, but need not tell all of its
//! values apart. A row behind another by its place is behind it in the order.

use std::{ops::Range, sync::Arc};

use tandem_column::{Dictionary, float_order};
use tandem_pipeline::SortKey;

use super::bound::prefix;
use crate::{Values, Vector};

/// The place of no row yet, which all rows may take.
pub(crate) const NO_PLACE: u64 = u64::MAX;
/// Places that one value of the key has for itself: nulls and the values next to the ends share those beyond.
pub(crate) const OWN: Range<u64> = 2..u64::MAX - 1;

/// Gives rows their places.
#[derive(Debug, Default)]
pub(crate) struct PlaceOf {
    /// What text looked like first: codes of a dictionary, or bytes.
    text: Option<Option<Arc<Dictionary>>>,
}

impl PlaceOf {
    /// Returns the place of each row by a key, and whether those of [`OWN`] stand for one value each; `None` if text comes in several
    /// ways.
    pub(crate) fn rows(&mut self, key: &SortKey, vector: &Vector) -> Option<(Vec<u64>, bool)> {
        let (mut places, own) = match &vector.values {
            Values::Boolean(values) => (values.iter().map(|value| ordinal((*value).into())).collect(), true),
            Values::Int(values) => (values.iter().map(|value| ordinal(*value)).collect(), true),
            Values::Float(values) => (values.iter().map(|value| ordinal(float_order(*value))).collect(), true),
            Values::Wide(values) => (values.iter().map(|value| ordinal((*value >> 64) as i64)).collect(), false),
            Values::Bytes(values) => match self.text.get_or_insert(None) {
                None => {
                    ((0..values.len()).map(|row| prefix(values.get(row), 0, values.get(row).len())).collect(), false)
                }
                Some(_) => return None,
            },
            Values::Code { codes, dictionary } => match self.text.get_or_insert_with(|| Some(dictionary.clone())) {
                Some(known) if Arc::ptr_eq(known, dictionary) => {
                    (codes.iter().map(|code| ordinal((*code).into())).collect::<Vec<u64>>(), true)
                }
                _ => return None,
            },
        };
        arrange(key, vector, &mut places);
        Some((places, own))
    }
}

/// Puts places in the order of a key.
fn arrange(key: &SortKey, vector: &Vector, places: &mut [u64]) {
    if key.descending {
        places.iter_mut().for_each(|place| *place = !*place);
    }
    places.iter_mut().for_each(|place| *place = (*place).clamp(1, u64::MAX - 1));
    if let Some(valid) = &vector.valid {
        let null = if key.nulls_first { 0 } else { u64::MAX };
        places.iter_mut().zip(valid).filter(|(_, valid)| **valid == 0).for_each(|(place, _)| *place = null);
    }
}

/// Returns an integer without sign that compares as one with.
fn ordinal(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}
