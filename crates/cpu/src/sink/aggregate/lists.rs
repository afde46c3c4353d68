//! The values of each group, for medians and quantiles: integers that compare as the values do.
//!
//! A worker has one list for all groups. Before groups are merged it is put in the order of buckets (`seal`): runs of neighbouring
//! groups, or single ones where they are few. Merging only notes whose buckets there are to read. The task that finishes some
//! groups then puts their values group by group, which fit the cache by then; large groups are read where they lie.

use std::{collections::HashMap, ops::Range, sync::Arc};

use tandem_column::Result;

use super::{
    accumulator::GroupOf,
    quantiles::Place,
    selection::{self, OrderKey},
    update::for_rows,
};
use crate::{parallel, settings::ParallelTasks};

/// From this many values on, a group is work for all workers.
const LARGE: usize = 1 << 16;
/// From this many values for each group on, they are not put next to each other once more.
const WORTH_LEAVING: usize = 1 << 10;
/// The number of a group that is not wanted.
const NONE: u32 = u32::MAX;

/// The values of all groups of a worker, or of some groups of all workers.
#[derive(Debug, Default)]
pub(super) struct ValueLists<K> {
    /// The group of each value; none where all are of the first.
    groups: Vec<u32>,
    values: Vec<K>,
    /// How many groups there are.
    size: usize,
    /// The values, once they are in order.
    sealed: Option<Arc<Sealed<K>>>,
    /// What others have of these groups.
    shares: Vec<OtherGroups<K>>,
    /// Of each group with values that lie where they are: the group, the share and the group's number there, ascending.
    sources: Vec<(u32, u32, u32)>,
    answers: HashMap<u32, Answer>,
}

/// Values in the order of buckets of groups.
#[derive(Debug)]
struct Sealed<K> {
    values: Vec<K>,
    /// The group of each value; none where a bucket is one group.
    groups: Vec<u32>,
    /// log2 of the groups of a bucket.
    shift: u32,
    /// The first value of each bucket, and the number of values.
    starts: Vec<usize>,
}

/// Some neighbouring groups of another list.
#[derive(Debug)]
struct OtherGroups<K> {
    of: Arc<Sealed<K>>,
    first: u32,
    /// What those groups are here.
    numbers: Vec<u32>,
}

/// What is known of a group: how many values it has, and those around the quantile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) count: usize,
    pub(super) low: i128,
    pub(super) high: i128,
}

impl<K: OrderKey> Sealed<K> {
    fn bucket(&self, group: u32) -> Range<usize> {
        let bucket = (group >> self.shift) as usize;
        self.starts[bucket]..self.starts[bucket + 1]
    }

    /// Puts values in the order of buckets of 2^`shift` groups.
    fn new(values: Vec<K>, groups: Vec<u32>, size: usize, shift: u32) -> Sealed<K> {
        let mut starts = vec![0usize; size.div_ceil(1 << shift) + 1];
        if groups.is_empty() {
            starts.iter_mut().skip(1).for_each(|start| *start = values.len());
            let groups = if shift == 0 { groups } else { vec![0; values.len()] };
            return Sealed { values, groups, shift, starts };
        }
        groups.iter().for_each(|group| starts[(group >> shift) as usize + 1] += 1);
        (1..starts.len()).for_each(|bucket| starts[bucket] += starts[bucket - 1]);
        if groups.is_sorted_by_key(|group| group >> shift) {
            let groups = if shift == 0 { Vec::new() } else { groups };
            return Sealed { values, groups, shift, starts };
        }
        let mut next = starts.clone();
        let mut ordered = vec![K::default(); values.len()];
        let mut of = vec![0; if shift == 0 { 0 } else { values.len() }];
        for (value, group) in values.into_iter().zip(groups) {
            let next = &mut next[(group >> shift) as usize];
            ordered[*next] = value;
            if shift > 0 {
                of[*next] = group;
            }
            *next += 1;
        }
        Sealed { values: ordered, groups: of, shift, starts }
    }

    fn byte_len(&self) -> usize {
        self.values.len() * size_of::<K>() + self.groups.len() * 4 + self.starts.len() * 8
    }
}

impl<K: OrderKey> OtherGroups<K> {
    /// Calls `f` with runs of values and the group here that they belong to.
    fn each(&self, mut f: impl FnMut(u32, &[K])) {
        let of = &self.of;
        if of.shift == 0 {
            for (group, number) in (self.first..).zip(&self.numbers).filter(|(_, number)| **number != NONE) {
                f(*number, &of.values[of.bucket(group)]);
            }
            return;
        }
        let Some(last) = (self.numbers.len() as u32).checked_sub(1).map(|last| self.first + last) else { return };
        let range = of.bucket(self.first).start..of.bucket(last).end;
        for (value, group) in of.values[range.clone()].iter().zip(&of.groups[range]) {
            let number = self.numbers.get(group.wrapping_sub(self.first) as usize).copied().unwrap_or(NONE);
            if number != NONE {
                f(number, std::slice::from_ref(value));
            }
        }
    }
}

impl<K: OrderKey> ValueLists<K> {
    /// Makes room for so many groups.
    pub(super) fn resize(&mut self, groups: usize) {
        self.size = groups;
    }

    /// Adds values, of which those in the mask count.
    pub(super) fn push(
        &mut self,
        groups: GroupOf<'_>,
        rows: usize,
        mask: Option<&[u8]>,
        values: impl Iterator<Item = K>,
    ) {
        if let GroupOf::Each(of) = groups {
            self.groups.resize(self.values.len(), 0);
            match mask {
                None => self.groups.extend_from_slice(&of[..rows]),
                Some(_) => for_rows(rows, mask, |row| self.groups.push(of[row])),
            }
        }
        match mask {
            None => self.values.extend(values.take(rows)),
            Some(mask) => self.values.extend(values.zip(mask).filter(|(_, kept)| **kept != 0).map(|(value, _)| value)),
        }
        if matches!(groups, GroupOf::One) && !self.groups.is_empty() {
            self.groups.resize(self.values.len(), 0);
        }
    }

    /// Puts groups in another order, or keeps some: those of these numbers. No values can be added.
    pub(super) fn arrange(&mut self, groups: &[u32]) {
        let mut numbers = vec![0; self.size];
        groups.iter().enumerate().for_each(|(number, group)| numbers[*group as usize] = number as u32);
        self.groups.resize(self.values.len(), 0);
        self.groups.iter_mut().for_each(|group| *group = numbers[*group as usize]);
        self.size = groups.len();
        self.seal(0);
    }

    /// Puts values in the order of buckets of 2^`shift` groups; those of others, if there are some, group by group. No values can be
    /// added.
    pub(super) fn seal(&mut self, shift: u32) {
        if !self.shares.is_empty() {
            return self.gather();
        }
        if self.sealed.is_none() {
            let (values, groups) = (std::mem::take(&mut self.values), std::mem::take(&mut self.groups));
            self.sealed = Some(Arc::new(Sealed::new(values, groups, self.size, shift)));
        }
    }

    /// Notes what groups of another list, which is sealed, become here.
    pub(super) fn merge(&mut self, other: &ValueLists<K>, pairs: &[(u32, u32)]) {
        let froms = || pairs.iter().map(|(from, _)| *from);
        let (Some(of), Some(first), Some(last)) = (&other.sealed, froms().min(), froms().max()) else { return };
        let mut numbers = vec![NONE; (last - first) as usize + 1];
        for (from, to) in pairs.iter().filter(|(_, to)| !self.answers.contains_key(to)) {
            numbers[(from - first) as usize] = *to;
        }
        self.shares.push(OtherGroups { of: of.clone(), first, numbers });
    }

    /// Puts the values of all shares group by group, or notes where they lie.
    fn gather(&mut self) {
        let mut starts = vec![0usize; self.size + 1];
        self.shares.iter().for_each(|share| share.each(|group, run| starts[group as usize + 1] += run.len()));
        (0..self.size).for_each(|group| starts[group + 1] += starts[group]);
        let count = starts[self.size];
        if count >= self.size * WORTH_LEAVING && self.shares.iter().all(|share| share.of.shift == 0) {
            self.sources = Vec::new();
            for (at, share) in (0..).zip(&self.shares) {
                let wanted = share.numbers.iter().zip(share.first..).filter(|(number, _)| **number != NONE);
                self.sources.extend(wanted.map(|(number, group)| (*number, at, group)));
            }
            self.sources.sort_unstable();
            return;
        }
        let (mut next, mut values) = (starts.clone(), vec![K::default(); count]);
        for share in self.shares.drain(..) {
            share.each(|group, run| {
                let next = &mut next[group as usize];
                values[*next..*next + run.len()].copy_from_slice(run);
                *next += run.len();
            });
        }
        self.sealed = Some(Arc::new(Sealed { values, groups: Vec::new(), shift: 0, starts }));
    }

    /// Returns where the values of a group lie.
    fn slices(&self, group: u32) -> Vec<&[K]> {
        if let Some(sealed) = &self.sealed {
            return vec![&sealed.values[sealed.bucket(group)]];
        }
        let from = self.sources.partition_point(|(of, ..)| *of < group);
        let sources = self.sources[from..].iter().take_while(|(of, ..)| *of == group);
        let slice = |(_, share, number): &(u32, u32, u32)| {
            let of = &self.shares[*share as usize].of;
            &of.values[of.bucket(*number)]
        };
        sources.map(slice).collect()
    }

    /// Takes what is known of a group, whose values are then left out.
    pub(super) fn answer(&mut self, group: u32, answer: Answer) {
        self.answers.insert(group, answer);
    }

    /// Returns, of each of some groups, how many values it has, and those around a quantile.
    pub(super) fn finish(&self, place: Place, groups: &[u32]) -> Result<Vec<Answer>> {
        let mut scratch = Vec::new();
        let answer = |group: &u32| match self.answers.get(group) {
            Some(answer) => Ok(*answer),
            None => answer(&self.slices(*group), place, &mut scratch, &parallel::serially),
        };
        groups.iter().map(answer).collect()
    }

    pub(super) fn byte_len(&self) -> usize {
        let sealed = self.sealed.as_ref().map_or(0, |sealed| sealed.byte_len());
        self.values.len() * size_of::<K>() + self.groups.len() * 4 + sealed
    }
}

/// Answers for large groups of several lists, of the same groups, with all workers.
///
/// # Errors
/// Cancellation.
pub(super) fn answer_large<K: OrderKey>(
    lists: &[&ValueLists<K>],
    place: Place,
    parallel: ParallelTasks<'_>,
) -> Result<Vec<(u32, Answer)>> {
    let sealed: Vec<&Sealed<K>> = lists.iter().filter_map(|list| list.sealed.as_deref()).collect();
    let values: usize = sealed.iter().map(|sealed| sealed.values.len()).sum();
    if values < LARGE || sealed.iter().any(|sealed| sealed.shift > 0) {
        return Ok(Vec::new());
    }
    let size = lists.iter().map(|list| list.size).max().unwrap_or(0);
    let mut answers = Vec::new();
    for group in 0..size as u32 {
        let slices: Vec<&[K]> = sealed.iter().map(|sealed| &sealed.values[sealed.bucket(group)]).collect();
        if slices.iter().map(|slice| slice.len()).sum::<usize>() >= LARGE {
            answers.push((group, answer(&slices, place, &mut Vec::new(), parallel)?));
        }
    }
    Ok(answers)
}

/// Returns how many values there are, and those around a place.
fn answer<K: OrderKey>(
    slices: &[&[K]],
    place: Place,
    scratch: &mut Vec<K>,
    parallel: ParallelTasks<'_>,
) -> Result<Answer> {
    let count = slices.iter().map(|slice| slice.len()).sum();
    let Some((first, second, _)) = place.of(count) else { return Ok(Answer { count, low: 0, high: 0 }) };
    let (low, high) = selection::two(slices, (first, second), scratch, parallel)?;
    Ok(Answer { count, low: low.into(), high: high.into() })
}
