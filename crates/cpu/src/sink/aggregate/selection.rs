//! The values at two places of an order, without sorting, and without moving most of the values.
//!
//! A sample tells two values that the wanted ones lie between, nearly always. One look at all values then counts those below and
//! keeps the few between, of which the wanted ones are selected. Values are integers that compare as what they stand for.

use tandem_column::Result;

use crate::{
    parallel::{self, PIECE},
    settings::ParallelTasks,
};

/// Up to so many values, selecting from all of them is as fast.
const FEW: usize = 1 << 13;
/// By how many standard deviations of its place a value of the sample is taken further out.
const DEVIATIONS: f64 = 4.0;

/// An integer that compares as the value it stands for.
pub(super) trait OrderKey: Copy + Ord + Default + Send + Sync + std::fmt::Debug + Into<i128> {}

impl OrderKey for i64 {}

impl OrderKey for i128 {}

/// What one piece of the values has on either side of two bounds.
#[derive(Default)]
struct Divided<K> {
    below: usize,
    at_low: usize,
    between: Vec<K>,
    at_high: usize,
}

/// Returns the values at two places, the second the first's or the next, of some values in order; there are that many.
///
/// # Errors
/// Cancellation.
pub(super) fn two<K: OrderKey>(
    slices: &[&[K]],
    (first, second): (usize, usize),
    scratch: &mut Vec<K>,
    parallel: ParallelTasks<'_>,
) -> Result<(K, K)> {
    let count: usize = slices.iter().map(|slice| slice.len()).sum();
    if count > FEW
        && let Some(found) = two_of_many(slices, count, (first, second), parallel)?
    {
        return Ok(found);
    }
    scratch.clear();
    slices.iter().for_each(|slice| scratch.extend_from_slice(slice));
    Ok(two_of_all(scratch, (first, second)))
}

/// Selects from all values, which it puts in another order.
fn two_of_all<K: OrderKey>(values: &mut [K], (first, second): (usize, usize)) -> (K, K) {
    let (_, low, behind) = values.select_nth_unstable(first);
    let high = if second > first { behind.iter().min() } else { None };
    (*low, *high.unwrap_or(low))
}

/// Selects by the bounds that a sample tells; `None` where they were wrong.
fn two_of_many<K: OrderKey>(
    slices: &[&[K]],
    count: usize,
    (first, second): (usize, usize),
    parallel: ParallelTasks<'_>,
) -> Result<Option<(K, K)>> {
    let mut sample = sample(slices, count);
    sample.sort_unstable();
    let place = |at: usize| at as f64 / count as f64 * sample.len() as f64;
    // The place of a value in the sample deviates by at most half the root of the sample's size.
    let distance = DEVIATIONS * 0.5 * (sample.len() as f64).sqrt();
    let last = sample.len() - 1;
    let low = sample[((place(first) - distance).max(0.0) as usize).min(last)];
    let high = sample[((place(second) + distance) as usize).min(last)];
    let pieces: Vec<&[K]> = slices.iter().flat_map(|slice| slice.chunks(PIECE)).collect();
    let divided = parallel::map(parallel, pieces.len(), |piece| divide(pieces[piece], low, high))?;
    let below: usize = divided.iter().map(|piece| piece.below).sum();
    let at_low: usize = divided.iter().map(|piece| piece.at_low).sum();
    let at_high: usize = divided.iter().map(|piece| piece.at_high).sum();
    let mut between: Vec<K> = divided.into_iter().flat_map(|piece| piece.between).collect();
    let (behind_low, at_end) = (below + at_low, below + at_low + between.len());
    if first < below || second >= at_end + at_high {
        return Ok(None);
    }
    Ok(Some(match (first < behind_low, second < behind_low, first >= at_end, second >= at_end) {
        (_, true, ..) => (low, low),
        (_, _, true, _) => (high, high),
        (true, _, _, true) => (low, high),
        (true, ..) => (low, between.iter().min().copied().unwrap_or(high)),
        (_, _, _, true) => (between.iter().max().copied().unwrap_or(low), high),
        _ => two_of_all(&mut between, (first - behind_low, second - behind_low)),
    }))
}

/// Takes values here and there, more of more values.
fn sample<K: OrderKey>(slices: &[&[K]], count: usize) -> Vec<K> {
    let share = (count as f64).powf(2.0 / 3.0) / count as f64;
    // Places that look random: values may repeat in any rhythm.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(state) * below as u128) >> 64) as usize
    };
    let mut sample = Vec::with_capacity((count as f64 * share) as usize + slices.len());
    for slice in slices.iter().filter(|slice| !slice.is_empty()) {
        let taken = (slice.len() as f64 * share).ceil() as usize;
        sample.extend((0..taken).map(|_| slice[next(slice.len())]));
    }
    sample
}

/// Counts the values below and at two bounds, and keeps those between.
fn divide<K: OrderKey>(values: &[K], low: K, high: K) -> Divided<K> {
    let mut divided = Divided::<K>::default();
    // Written whether it stays or not, so that no branch is guessed.
    let mut between = [K::default(); 256];
    for chunk in values.chunks(between.len()) {
        let mut kept = 0;
        for value in chunk {
            divided.below += usize::from(*value < low);
            divided.at_low += usize::from(*value == low);
            divided.at_high += usize::from(*value == high);
            between[kept] = *value;
            kept += usize::from(low < *value && *value < high);
        }
        divided.between.extend_from_slice(&between[..kept]);
    }
    if low == high {
        divided.at_high = 0;
    }
    divided
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_places_are_those_of_a_sort() {
        let seed = 20_261_118_u64;
        println!("seed {seed}");
        let mut state = seed;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for count in [1usize, 2, 100, FEW, FEW + 1, 40_000, 150_000] {
            for spread in [1u64, 2, 10, 1000, 1 << 31] {
                let mut values: Vec<i64> = (0..count).map(|_| random(spread) as i64 - 5).collect();
                if spread == 1000 {
                    // In order, and with the extremes.
                    values.sort_unstable();
                    (values[0], values[count - 1]) = (i64::MIN, i64::MAX);
                }
                let mut sorted = values.clone();
                sorted.sort_unstable();
                let (left, right) = values.split_at(count / 3);
                for _ in 0..8 {
                    let first = random(count as u64) as usize;
                    let second = (first + random(2) as usize).min(count - 1);
                    let found = two(&[left, right, &[]], (first, second), &mut Vec::new(), &parallel::serially);
                    assert_eq!(found.expect("nothing fails"), (sorted[first], sorted[second]), "{count} {spread}");
                }
                for place in [(0, 0), (count - 1, count - 1)] {
                    let found = two(&[left, right], place, &mut Vec::new(), &parallel::serially);
                    assert_eq!(found.expect("nothing fails"), (sorted[place.0], sorted[place.1]), "{count} {spread}");
                }
            }
        }
    }
}
