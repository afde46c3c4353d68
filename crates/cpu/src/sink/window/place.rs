//! Functions that give the value of another row: its place.

use super::{aggregate::running, frame::Frames, marks::Marks};
use crate::{NO_MATCH, Vector};

/// Returns the values at places; where there is none, that of the same row of `default`, or null.
pub(super) fn at_places(vector: &Vector, places: &[u32], default: Option<&Vector>) -> Vector {
    if let Some(default) = default {
        // Both, one behind the other, so that one gathering is enough; text in plain bytes in every task, as one column has to be.
        let mut both = vector.clone();
        both.append(default);
        both.decode();
        let rows = vector.len() as u32;
        let places = places.iter().zip(0..).map(|(place, row)| if *place == NO_MATCH { rows + row } else { *place });
        return both.take(&places.collect::<Vec<u32>>());
    }
    if !places.contains(&NO_MATCH) {
        return vector.take(places);
    }
    let safe: Vec<u32> = places.iter().map(|place| if *place == NO_MATCH { 0 } else { *place }).collect();
    let mut taken = vector.take(&safe);
    let valid = taken.valid.get_or_insert_with(|| vec![1; places.len()]);
    valid.iter_mut().zip(places).for_each(|(valid, place)| *valid &= u8::from(*place != NO_MATCH));
    taken
}

/// Returns the place of the row so many rows before each.
pub(super) fn lag(marks: &Marks<'_>, offset: i64) -> Vec<u32> {
    let mut places = Vec::with_capacity(marks.rows());
    for partition in marks.partitions() {
        let within = partition.start as i128..partition.end as i128;
        places.extend(partition.map(|row| {
            let from = row as i128 - i128::from(offset);
            if within.contains(&from) { from as u32 } else { NO_MATCH }
        }));
    }
    places
}

/// Returns the place of the row so many rows before each, of those that are not null.
pub(super) fn lag_of_values(marks: &Marks<'_>, valid: &[u8], offset: i64) -> Vec<u32> {
    let mut places = Vec::with_capacity(marks.rows());
    let mut values: Vec<u32> = Vec::new();
    for partition in marks.partitions() {
        values.clear();
        values.extend(partition.clone().filter(|row| valid[*row] != 0).map(|row| row as u32));
        let mut before = 0;
        for row in partition {
            let has_value = valid[row] != 0;
            // Ahead, the first value behind this row is the next.
            let from = match offset > 0 {
                true => before as i128 - i128::from(offset),
                false => (before + usize::from(has_value)) as i128 - i128::from(offset) - 1,
            };
            let found = usize::try_from(from).ok().and_then(|from| values.get(from));
            places.push(found.copied().unwrap_or(NO_MATCH));
            before += usize::from(has_value);
        }
    }
    places
}

/// Returns the place of a row of each frame, counted among those that are not null.
pub(super) fn nth_of_values(frames: &Frames, valid: &[u8], place: i64) -> Vec<u32> {
    let values: Vec<u32> = (0..valid.len() as u32).filter(|row| valid[*row as usize] != 0).collect();
    let before = running(valid.len(), |row| valid[row].into());
    let found = nth(&frames.map(|end| before[end as usize]), place);
    found.into_iter().map(|at| if at == NO_MATCH { NO_MATCH } else { values[at as usize] }).collect()
}

/// Returns the place of a row of each frame, counted from 1, or from −1 at its end.
pub(super) fn nth(frames: &Frames, place: i64) -> Vec<u32> {
    let found = |row: usize| {
        let count: i128 = frames.of(row).map(|(start, end)| i128::from(end - start)).sum();
        let mut index = if place > 0 { i128::from(place) - 1 } else { count + i128::from(place) };
        for (start, end) in frames.of(row) {
            let rows = i128::from(end - start);
            if (0..rows).contains(&index) {
                return start + index as u32;
            }
            index -= rows;
        }
        NO_MATCH
    };
    (0..frames.rows()).map(found).collect()
}

/// Returns the bucket of each row of a partition.
pub(super) fn ntile(rows: u64, buckets: u64) -> impl Iterator<Item = i64> {
    let (size, larger) = (rows / buckets, rows % buckets);
    (0..buckets.min(rows.max(1))).flat_map(move |bucket| {
        let size = size + u64::from(bucket < larger);
        std::iter::repeat_n(bucket as i64 + 1, size as usize)
    })
}
