//! Rows put in the order of places of an array, on all workers: first into runs of neighbouring places, each small enough for
//! a core's cache, then each run by itself.

use tandem_column::Result;

use crate::{
    ParallelTasks,
    parallel::{PIECE, cut, each, map, pieces},
};

/// Places of one run, at least: their counters and rows stay in a core's cache.
const LEAST_PLACES: usize = 1 << 15;
/// Runs, at most: writing to more of them at once costs more than it saves.
const MOST_RUNS: usize = 256;

/// Rows by the places that they go to, run after run; in their order within a run.
pub(super) struct RowsByPlace {
    /// The rows.
    pub(super) rows: Vec<u32>,
    /// The place of each.
    pub(super) places: Vec<u32>,
    /// How many rows come before the end of each run.
    ends: Vec<usize>,
    /// How many places there are.
    domain: usize,
    /// How many places a run has, but for the last.
    width: usize,
}

impl RowsByPlace {
    /// Finds the place and the row of each of `count`, and divides them.
    pub(super) fn new(
        count: usize,
        domain: usize,
        place: impl Fn(usize) -> (u32, u32) + Sync,
        parallel: ParallelTasks<'_>,
    ) -> Result<RowsByPlace> {
        let width = match count <= PIECE {
            true => domain.max(1).next_power_of_two(),
            false => domain.div_ceil(MOST_RUNS).next_power_of_two().max(LEAST_PLACES),
        };
        let runs = domain.div_ceil(width).max(1);
        if runs == 1 {
            let (places, rows) = (0..count).map(place).unzip();
            return Ok(RowsByPlace { rows, places, ends: vec![count], domain, width });
        }
        let shift = width.trailing_zeros();
        let ranges: Vec<_> = pieces(count).collect();
        // Each piece by itself, in the order of runs, with where each run begins in it.
        let divided = map(parallel, ranges.len(), |piece| {
            let found: Vec<(u32, u32)> = ranges[piece].clone().map(&place).collect();
            let mut begins = vec![0usize; runs + 1];
            found.iter().for_each(|(place, _)| begins[(place >> shift) as usize + 1] += 1);
            (0..runs).for_each(|run| begins[run + 1] += begins[run]);
            let (mut next, mut sorted) = (begins.clone(), vec![(0, 0); found.len()]);
            for pair in found {
                let to = &mut next[(pair.0 >> shift) as usize];
                sorted[*to] = pair;
                *to += 1;
            }
            (begins, sorted)
        })?;
        let lengths: Vec<usize> =
            (0..runs).map(|run| divided.iter().map(|(begins, _)| begins[run + 1] - begins[run]).sum()).collect();
        let mut total = 0;
        let ends = lengths.iter().map(|length| {
            total += length;
            total
        });
        let ends = ends.collect();
        let (mut rows, mut places) = (vec![0; count], vec![0; count]);
        let slices = cut(&mut rows, lengths.iter().copied()).into_iter().zip(cut(&mut places, lengths.iter().copied()));
        each(parallel, slices.collect(), |run, (rows, places): (&mut [u32], &mut [u32])| {
            let pairs = divided.iter().flat_map(|(begins, sorted)| &sorted[begins[run]..begins[run + 1]]);
            for ((row, place), pair) in rows.iter_mut().zip(places).zip(pairs) {
                (*place, *row) = *pair;
            }
        })?;
        Ok(RowsByPlace { rows, places, ends, domain, width })
    }

    /// Returns the runs: where their rows begin and end, and their places.
    pub(super) fn runs(&self) -> impl Iterator<Item = (std::ops::Range<usize>, std::ops::Range<usize>)> + '_ {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .enumerate()
            .map(|(run, (begin, end))| (begin..*end, run * self.width..self.domain.min((run + 1) * self.width)))
    }

    /// Returns where the rows of each place begin, and the last end, with the rows in that order.
    pub(super) fn sort(&self, parallel: ParallelTasks<'_>) -> Result<(Vec<u32>, Vec<u32>)> {
        let (mut starts, mut order) = (vec![0u32; self.domain + 1], vec![0; self.rows.len()]);
        starts[self.domain] = self.rows.len() as u32;
        let widths = self.runs().map(|(_, places)| places.len());
        let lengths = self.runs().map(|(rows, _)| rows.len());
        let slices = cut(&mut starts, widths).into_iter().zip(cut(&mut order, lengths));
        let work = self.runs().zip(slices).collect();
        each(parallel, work, |_, ((rows, within), (starts, order)): (_, (&mut [u32], &mut [u32]))| {
            let (first, places): (_, &[u32]) = (rows.start as u32, &self.places[rows.clone()]);
            places.iter().for_each(|place| starts[*place as usize - within.start] += 1);
            let mut begin = 0;
            for start in starts.iter_mut() {
                begin += std::mem::replace(start, begin);
            }
            let mut next = starts.to_vec();
            for (row, place) in self.rows[rows].iter().zip(places) {
                let to = &mut next[*place as usize - within.start];
                order[*to as usize] = *row;
                *to += 1;
            }
            starts.iter_mut().for_each(|start| *start += first);
        })?;
        Ok((starts, order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::serially;

    #[test]
    fn rows_come_in_the_order_of_their_places() {
        for (count, domain) in
            [(0, 0), (0, 7), (1, 1), (1000, 90_000), (200_000, 10), (150_000, 100_001), (70_000, 1 << 20)]
        {
            let place = |i: usize| ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 30) as usize % domain.max(1);
            let places = RowsByPlace::new(count, domain, |i| (place(i) as u32, i as u32), &serially).expect("places");
            assert_eq!(places.runs().map(|(rows, _)| rows.len()).sum::<usize>(), count);
            let (starts, order) = places.sort(&serially).expect("an order");
            let mut expected: Vec<u32> = (0..count as u32).collect();
            expected.sort_by_key(|row| place(*row as usize));
            assert_eq!(order, expected, "{count} rows of {domain} places");
            for (at, ends) in starts.windows(2).enumerate() {
                assert!(order[ends[0] as usize..ends[1] as usize].iter().all(|row| place(*row as usize) == at));
            }
        }
    }
}
