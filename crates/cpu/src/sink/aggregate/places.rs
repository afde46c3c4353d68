//! Keys whose values have places: from values to places, which number groups in an array or pack into an integer, and back.

use std::rc::Rc;

use tandem_column::{Codes, Column, Result, Type};
use tandem_plan::{Origin, sink::PlacedKey};

use crate::{
    Values, Vector,
    evaluate::Slots,
    frame::Frame,
    kernel::{self, RowRun},
};

/// Turns the values of a key with places into places, and back.
pub(super) trait Places {
    /// Returns each active row's place, of less than 2^32.
    fn places(&self, frame: &Frame<'_>) -> Result<Vec<u32>>;
    /// Puts each active row's place into the bits of a number from `shift` on.
    fn pack(&self, frame: &Frame<'_>, shift: u32, packed: &mut [u64]) -> Result<()>;
    /// Returns the place of each value.
    fn places_of(&self, vector: &Vector) -> Vec<u64>;
    /// Turns places back into values.
    fn values(&self, places: impl Iterator<Item = u64>, count: usize) -> Vector;
}

impl Places for PlacedKey {
    fn places(&self, frame: &Frame<'_>) -> Result<Vec<u32>> {
        match direct(self, frame, |base, codes, rows| kernel::fetch_offsets(base, codes, rows, self.key.min))? {
            Some(places) => Ok(places),
            None => Ok(self.places_of(&*frame.vector(self.key.slot)?).into_iter().map(|place| place as u32).collect()),
        }
    }

    fn pack(&self, frame: &Frame<'_>, shift: u32, packed: &mut [u64]) -> Result<()> {
        let min = self.key.min;
        match self.key.bits() {
            0 => {}
            1..=32 => {
                let places = self.places(frame)?;
                packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= u64::from(place) << shift);
            }
            _ => match direct(self, frame, kernel::fetch_ints)? {
                Some(values) => {
                    let place = |value: i64| value.wrapping_sub(min) as u64;
                    packed.iter_mut().zip(values).for_each(|(packed, value)| *packed |= place(value) << shift);
                }
                None => {
                    let places = self.places_of(&*frame.vector(self.key.slot)?);
                    packed.iter_mut().zip(places).for_each(|(packed, place)| *packed |= place << shift);
                }
            },
        }
        Ok(())
    }

    fn places_of(&self, vector: &Vector) -> Vec<u64> {
        let place = |value: i64| value.wrapping_sub(self.key.min) as u64;
        let mut places: Vec<u64> = match &vector.values {
            Values::Int(values) => values.iter().map(|value| place(*value)).collect(),
            Values::Boolean(values) => values.iter().map(|value| place((*value).into())).collect(),
            Values::Code { codes, .. } => codes.iter().map(|code| place((*code).into())).collect(),
            // Not as codes where a part of the input is held without a dictionary, and in the nulls of a side of a join
            // that has no row.
            Values::Bytes(values) => {
                let null = |row: usize| vector.valid.as_ref().is_some_and(|valid| valid[row] == 0);
                let find = |row: usize| match self.dictionary.as_ref().map(|known| known.find(values.get(row))) {
                    Some(Ok(code)) => place(code.into()),
                    _ if null(row) => 0,
                    _ => unreachable!("the dictionary of a coded group key has all of its values"),
                };
                (0..vector.len()).map(find).collect()
            }
            _ => unreachable!("a coded group key has codes"),
        };
        if let Some(valid) = &vector.valid {
            places.iter_mut().zip(valid).filter(|(_, valid)| **valid == 0).for_each(|(place, _)| {
                *place = self.key.size - 1;
            });
        }
        places
    }

    fn values(&self, places: impl Iterator<Item = u64>, count: usize) -> Vector {
        let null = if self.key.nullable { self.key.size - 1 } else { u64::MAX };
        let mut valid = Vec::with_capacity(count);
        let ints: Vec<i64> = places
            .map(|place| {
                valid.push((place != null) as u8);
                if place == null { self.key.min } else { self.key.min.wrapping_add(place as i64) }
            })
            .collect();
        let values = match &self.dictionary {
            Some(dictionary) => {
                Values::Code { codes: ints.iter().map(|v| *v as u32).collect(), dictionary: dictionary.clone() }
            }
            None if self.kind == Type::Boolean => Values::Boolean(ints.iter().map(|v| *v as u8).collect()),
            None => Values::Int(ints),
        };
        Vector { values, valid: valid.contains(&0).then_some(valid) }
    }
}

/// Fetches a key straight from the codes of a column, if it has no nulls and comes from one.
fn direct<T>(
    key: &PlacedKey,
    frame: &Frame<'_>,
    fetch: impl Fn(i64, &Codes, RowRun<'_>) -> Vec<T>,
) -> Result<Option<Vec<T>>> {
    if key.key.nullable {
        return Ok(None);
    }
    let listed;
    let (column, rows): (&Column, RowRun<'_>) = match frame.layout.body().origins[key.key.slot] {
        Origin::Column(_) => match frame.source_column(key.key.slot) {
            Some(column) => (column, frame.rows()),
            None => return Ok(None),
        },
        Origin::Payload { lookup, payload } => {
            listed = frame.build_rows(lookup)?;
            (&frame.layout.physical.builds[lookup].payload[payload], RowRun::List(&listed))
        }
        Origin::Computed => return Ok(None),
    };
    Ok(kernel::encoded(column).map(|(base, codes)| fetch(base, codes, rows)))
}

/// Computes `Σ place × stride` for each active row.
pub(super) fn dense_groups(keys: &[PlacedKey], frame: &Frame<'_>) -> Result<Vec<u32>> {
    let mut groups: Option<Vec<u32>> = None;
    for key in keys {
        let places = key.places(frame)?;
        match &mut groups {
            None => groups = Some(places),
            Some(groups) => {
                let size = key.key.size as u32;
                groups.iter_mut().zip(&places).for_each(|(group, place)| *group = *group * size + *place);
            }
        }
    }
    Ok(groups.unwrap_or_else(|| vec![0; frame.count()]))
}

/// Computes the same from values.
pub(super) fn dense_groups_of(keys: &[PlacedKey], vectors: &[Rc<Vector>], rows: usize) -> Vec<u32> {
    let mut groups = vec![0; rows];
    for (key, vector) in keys.iter().zip(vectors) {
        let size = key.key.size as u32;
        groups.iter_mut().zip(key.places_of(vector)).for_each(|(group, place)| *group = *group * size + place as u32);
    }
    groups
}

/// Turns dense group numbers back into key values.
pub(super) fn dense_values(keys: &[PlacedKey], groups: &[u32]) -> Vec<Vector> {
    let mut stride = 1u64;
    let mut out: Vec<Vector> = Vec::with_capacity(keys.len());
    for key in keys.iter().rev() {
        let places = groups.iter().map(|group| u64::from(*group) / stride % key.key.size);
        out.push(key.values(places, groups.len()));
        stride *= key.key.size;
    }
    out.reverse();
    out
}
