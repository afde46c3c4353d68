//! Window functions: for each row, something of the rows around it.

use std::cmp::Ordering;

use hashbrown::HashMap;
use tandem_column::Result;

use super::{
    Row,
    sink::{accumulate, accumulator, compare_rows},
};
use crate::{
    FrameBound, FrameExclusion, FrameUnit, Phase, Slot, SlotId, SortKey, Value, Window, WindowFrame, WindowFunction,
    scalar::order_nulls,
};

/// Computes the functions for every row, in the order of rows.
pub(super) fn window(
    slots: &[Slot],
    partition: &[SlotId],
    order: &[SortKey],
    functions: &[Window],
    rows: &[Row],
) -> Result<Vec<Row>> {
    let mut partitions: HashMap<Row, Vec<usize>> = HashMap::new();
    for (position, row) in rows.iter().enumerate() {
        let key = partition.iter().map(|slot| row[*slot].clone()).collect();
        partitions.entry(key).or_default().push(position);
    }
    let mut computed = vec![Row::new(); rows.len()];
    for mut members in partitions.into_values() {
        members.sort_by(|left, right| compare_rows(&rows[*left], &rows[*right], order));
        let members = Members::new(&members, rows, order);
        for window in functions {
            for (at, position) in members.members.iter().enumerate() {
                computed[*position].push(members.value(slots, &window.function, at)?);
            }
        }
    }
    Ok(computed)
}

/// The rows of one partition, in order.
struct Members<'r> {
    members: &'r [usize],
    rows: &'r [Row],
    order: &'r [SortKey],
    /// The number of each row's group of peers.
    groups: Vec<i128>,
}

impl<'r> Members<'r> {
    fn new(members: &'r [usize], rows: &'r [Row], order: &'r [SortKey]) -> Members<'r> {
        let mut group = 0;
        let number = |at: usize| {
            let new = at > 0 && compare_rows(&rows[members[at - 1]], &rows[members[at]], order).is_ne();
            group += i128::from(new);
            group
        };
        Members { members, rows, order, groups: (0..members.len()).map(number).collect() }
    }

    fn row(&self, at: usize) -> &Row {
        &self.rows[self.members[at]]
    }

    fn count(&self) -> usize {
        self.members.len()
    }

    /// Tells whether the rows at two places are equal in the order's keys.
    fn peers(&self, left: usize, right: usize) -> bool {
        self.groups[left] == self.groups[right]
    }

    /// Returns how many rows are before the first peer.
    fn before_peers(&self, at: usize) -> usize {
        (0..=at).find(|place| self.peers(*place, at)).unwrap_or(at)
    }

    /// Computes a function for the row at place `at`.
    fn value(&self, slots: &[Slot], function: &WindowFunction, at: usize) -> Result<Value> {
        let (place, count) = (|at: usize| Value::Integer(at as i128 + 1), self.count());
        Ok(match function {
            WindowFunction::RowNumber => place(at),
            WindowFunction::Rank => place(self.before_peers(at)),
            WindowFunction::DenseRank => place(self.groups[at] as usize),
            WindowFunction::PercentRank if count == 1 => Value::Float(0.0),
            WindowFunction::PercentRank => Value::Float(self.before_peers(at) as f64 / (count - 1) as f64),
            WindowFunction::CumeDist => {
                let up_to = (at..count).take_while(|place| self.peers(*place, at)).count() + at;
                Value::Float(up_to as f64 / count as f64)
            }
            WindowFunction::Ntile { buckets } => {
                let (size, larger) = (count as u64 / buckets, count as u64 % buckets);
                let sizes = (0..*buckets).map(|bucket| size + u64::from(bucket < larger));
                let mut end = 0;
                let holds = |size: u64| {
                    end += size;
                    (at as u64) < end
                };
                place(sizes.map(holds).position(|holds| holds).unwrap_or(0))
            }
            WindowFunction::Lag { slot, offset, default, ignore_nulls } => {
                let from = if *ignore_nulls && *offset != 0 {
                    let has_value = |other: &usize| !self.row(*other)[*slot].is_null();
                    let skipped = usize::try_from(offset.unsigned_abs() - 1).unwrap_or(usize::MAX);
                    match *offset > 0 {
                        true => (0..at).rev().filter(has_value).nth(skipped),
                        false => (at + 1..count).filter(has_value).nth(skipped),
                    }
                } else {
                    usize::try_from(at as i128 - i128::from(*offset)).ok().filter(|from| *from < count)
                };
                match (from, default) {
                    (Some(from), _) => self.row(from)[*slot].clone(),
                    (None, Some(default)) => self.row(at)[*default].clone(),
                    (None, None) => Value::Null,
                }
            }
            WindowFunction::Nth { slot, place, frame, ignore_nulls } => {
                let counts = |other: &usize| !ignore_nulls || !self.row(*other)[*slot].is_null();
                let framed = (0..count).filter(|other| self.within(frame, at, *other)).filter(counts);
                let framed: Vec<usize> = framed.collect();
                let index = if *place > 0 { i128::from(*place) - 1 } else { framed.len() as i128 + i128::from(*place) };
                let found = usize::try_from(index).ok().and_then(|index| framed.get(index));
                found.map_or(Value::Null, |found| self.row(*found)[*slot].clone())
            }
            WindowFunction::Aggregate { aggregate, frame } => {
                let mut into = accumulator(aggregate, slots);
                for other in (0..count).filter(|other| self.within(frame, at, *other)) {
                    accumulate(&mut into, aggregate, slots, self.row(other), Phase::Single)?;
                }
                into.finish()?
            }
        })
    }

    /// Tells whether the row at `other` is in the frame of the row at `at`.
    fn within(&self, frame: &WindowFrame, at: usize, other: usize) -> bool {
        let excluded = match frame.exclusion {
            FrameExclusion::NoOthers => false,
            FrameExclusion::CurrentRow => at == other,
            FrameExclusion::Group => self.peers(at, other),
            FrameExclusion::Ties => self.peers(at, other) && at != other,
        };
        !excluded
            && self.place(frame.unit, frame.start, at, other).is_none_or(Ordering::is_ge)
            && self.place(frame.unit, frame.end, at, other).is_none_or(Ordering::is_le)
    }

    /// Tells whether the row at `other` is before, at or behind one end of the frame of the row at `at`, if it has an end.
    fn place(&self, unit: FrameUnit, bound: FrameBound, at: usize, other: usize) -> Option<Ordering> {
        match (bound, self.order) {
            (FrameBound::Unbounded, _) => None,
            (FrameBound::Value(slot), [key]) => {
                let (found, wanted) = (&self.row(other)[key.slot], &self.row(at)[slot]);
                Some(order_nulls(found, wanted, key.descending, key.nulls_first))
            }
            (FrameBound::Value(_), _) => None,
            (FrameBound::At(_), [key])
                if unit == FrameUnit::Range && [at, other].iter().all(|at| self.row(*at)[key.slot].is_null()) =>
            {
                Some(Ordering::Equal)
            }
            (FrameBound::At(distance), _) => Some(self.distance(unit, at, other).cmp(&distance.into())),
        }
    }

    /// Returns how far a row is behind another: rows, groups of peers, or the difference of the only key.
    fn distance(&self, unit: FrameUnit, at: usize, other: usize) -> i128 {
        let key = |at: usize| self.order.first().and_then(|key| self.row(at)[key.slot].as_integer());
        let descending = self.order.first().is_some_and(|key| key.descending);
        match (unit, key(at), key(other)) {
            (FrameUnit::Rows, ..) => other as i128 - at as i128,
            (FrameUnit::Groups, ..) => self.groups[other] - self.groups[at],
            (FrameUnit::Range, ..) if self.peers(at, other) => 0,
            (FrameUnit::Range, Some(from), Some(to)) if self.order.len() == 1 => {
                if descending {
                    from - to
                } else {
                    to - from
                }
            }
            // Nulls, and keys that have no difference, are infinitely far from others.
            (FrameUnit::Range, ..) if other < at => i128::MIN,
            (FrameUnit::Range, ..) => i128::MAX,
        }
    }
}
