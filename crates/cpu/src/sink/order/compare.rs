//! The order of single values, as sort keys have it.

use std::{cmp::Ordering, sync::Arc};

use tandem_column::float_order;
use tandem_pipeline::SortKey;

use crate::{Values, Vector};

/// Orders two rows by several keys, of which there is a vector each.
pub(crate) fn rows(keys: &[SortKey], vectors: &[&Vector], left: usize, right: usize) -> Ordering {
    let compare = |(key, vector): (&SortKey, &&Vector)| values(key, (vector, left), (vector, right));
    keys.iter().zip(vectors).map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Orders two values of one type by a key.
pub(crate) fn values(key: &SortKey, left: (&Vector, usize), right: (&Vector, usize)) -> Ordering {
    match (left.0.is_valid(left.1), right.0.is_valid(right.1)) {
        (true, true) if key.descending => plain(right, left),
        (true, true) => plain(left, right),
        (false, false) => Ordering::Equal,
        (left, _) if left == key.nulls_first => Ordering::Greater,
        _ => Ordering::Less,
    }
}

/// Orders two values that are not null, of one type, the smaller first.
pub(crate) fn plain((left, at): (&Vector, usize), (right, other): (&Vector, usize)) -> Ordering {
    match (&left.values, &right.values) {
        (Values::Boolean(left), Values::Boolean(right)) => left[at].cmp(&right[other]),
        (Values::Int(left), Values::Int(right)) => left[at].cmp(&right[other]),
        (Values::Wide(left), Values::Wide(right)) => left[at].cmp(&right[other]),
        (Values::Float(left), Values::Float(right)) => float_order(left[at]).cmp(&float_order(right[other])),
        (Values::Code { codes: left, dictionary }, Values::Code { codes: right, dictionary: same })
            if Arc::ptr_eq(dictionary, same) =>
        {
            left[at].cmp(&right[other])
        }
        (left, right) => left.bytes(at).cmp(right.bytes(other)),
    }
}
