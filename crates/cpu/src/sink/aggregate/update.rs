//! How rows change the aggregates of their groups.

use std::{borrow::Cow, ops::AddAssign, rc::Rc};

use arrow_buffer::i256;
use tandem_column::Type;
use tandem_pipeline::AggregateFunction;

use super::{
    accumulator::{GroupAccumulators, GroupOf, State, combine},
    sketches,
};
use crate::{Values, Vector};

impl GroupAccumulators {
    /// Adds rows, of which these are the arguments, and of which the first came at a time; only those with `mask` set contribute, nulls
    /// never do.
    pub(super) fn update(
        &mut self,
        groups: GroupOf<'_>,
        rows: usize,
        vectors: &[Rc<Vector>],
        mask: Option<&[u8]>,
        came: u64,
    ) {
        let vector = vectors.first().map(Rc::as_ref);
        match (&mut self.state, vector) {
            // Nulls count, too.
            (State::First(_), Some(vector)) => return self.keep_first(groups, rows, vector, mask),
            (State::Collected(collected), Some(vector)) => {
                let nulls_count = self.aggregate.function == AggregateFunction::Nth;
                let mask = if nulls_count { mask.map(Cow::Borrowed) } else { both(vector, mask) };
                return collected.push(&self.aggregate, groups, rows, vectors, mask.as_deref(), came);
            }
            (State::Quantiles(quantiles), Some(vector)) => {
                return quantiles.push(groups, rows, vector, both(vector, mask).as_deref());
            }
            (State::Pairs(pairs), Some(y)) => {
                let [_, x] = vectors else { return };
                let mask = both(y, mask);
                let mask = both(x, mask.as_deref());
                let (y, x) = (floats(y, &self.argument), floats(x, &self.second));
                return for_rows(rows, mask.as_deref(), |row| pairs[groups.of(row)].update(y[row], x[row]));
            }
            _ => {}
        }
        let mask = match vector {
            Some(vector) => both(vector, mask),
            None => mask.map(Cow::Borrowed),
        };
        let mask = mask.as_deref();
        let counts = match &self.state {
            // They look at counts while they grow, or count otherwise.
            State::BestBytes(_) | State::Spread(_) => false,
            _ => self.counted,
        };
        self.add_values(groups, rows, vector, mask);
        if counts {
            match (groups, mask) {
                (GroupOf::One, None) => self.counts[0] += rows as i64,
                _ => add_each(&mut self.counts, groups, rows, mask, |_| 1),
            }
        }
    }

    /// Keeps the first value of each group.
    pub(super) fn keep_first(&mut self, groups: GroupOf<'_>, rows: usize, vector: &Vector, mask: Option<&[u8]>) {
        let State::First(first) = &mut self.state else { return };
        for_rows(rows, mask, |row| {
            let slot = &mut first[groups.of(row)];
            if slot.is_none() {
                self.text += vector.values.bytes(row).len();
                *slot = Some(vector.value(row, &self.argument));
            }
        });
    }

    /// Adds values to the state, without counting them.
    pub(super) fn add_values(
        &mut self,
        groups: GroupOf<'_>,
        rows: usize,
        vector: Option<&Vector>,
        mask: Option<&[u8]>,
    ) {
        if let State::Spread(spread) = &mut self.state {
            let Some(vector) = vector else { return };
            let values = floats(vector, &self.argument);
            for_rows(rows, mask, |row| spread[groups.of(row)].update(values[row]));
            return;
        }
        match (&mut self.state, vector.map(|v| &v.values)) {
            (State::Count, _) => {}
            (State::Sketches(sketches), Some(_)) => {
                self.text += sketches::add(sketches, &mut self.words, groups, rows, vector, mask);
            }
            (State::Bits(bits), Some(Values::Int(values))) => {
                let function = self.aggregate.function;
                for_rows(rows, mask, |row| combine(function, &mut bits[groups.of(row)], values[row].into()));
            }
            (State::Bits(bits), Some(Values::Wide(values))) => {
                let function = self.aggregate.function;
                for_rows(rows, mask, |row| combine(function, &mut bits[groups.of(row)], values[row]));
            }
            (State::Int(sums), Some(Values::Int(values))) => match (groups, mask) {
                (GroupOf::One, None) => sums[0] += values.iter().sum::<i64>(),
                _ => add_each(sums, groups, rows, mask, |row| values[row]),
            },
            (State::Wide(sums), Some(Values::Int(values))) => {
                for_rows(rows, mask, |row| {
                    let sum = &mut sums[groups.of(row)];
                    *sum = sum.wrapping_add(i256::from_i128(values[row].into()));
                });
            }
            (State::Wide(sums), Some(Values::Wide(values))) => for_rows(rows, mask, |row| {
                let sum = &mut sums[groups.of(row)];
                *sum = sum.wrapping_add(i256::from_i128(values[row]));
            }),
            (State::Float(sums), Some(Values::Float(values))) => match (groups, mask) {
                (GroupOf::One, None) => add_all(&mut sums[0], values, |value| value),
                _ => add_each(sums, groups, rows, mask, |row| values[row]),
            },
            (State::Float(sums), Some(Values::Int(values))) => {
                let unit = unit(&self.argument);
                match (groups, mask) {
                    (GroupOf::One, None) => add_all(&mut sums[0], values, |value| value as f64 / unit),
                    _ => add_each(sums, groups, rows, mask, |row| values[row] as f64 / unit),
                }
            }
            (State::Float(sums), Some(Values::Wide(values))) => {
                let unit = unit(&self.argument);
                add_each(sums, groups, rows, mask, |row| values[row] as f64 / unit);
            }
            (_, Some(values)) => self.keep_best(groups, rows, values, mask),
            _ => debug_assert!(false, "an aggregate's argument has the representation it was planned for"),
        }
    }

    /// Keeps the smallest or largest value of each group.
    fn keep_best(&mut self, groups: GroupOf<'_>, rows: usize, values: &Values, mask: Option<&[u8]>) {
        let smallest = self.smallest();
        match (&mut self.state, values) {
            (State::Best(best), Values::Int(values)) => for_rows(rows, mask, |row| {
                let best = &mut best[groups.of(row)];
                *best = if smallest { values[row].min(*best) } else { values[row].max(*best) };
            }),
            (State::Best(best), Values::Boolean(values)) => for_rows(rows, mask, |row| {
                let (best, value) = (&mut best[groups.of(row)], i64::from(values[row]));
                *best = if smallest { value.min(*best) } else { value.max(*best) };
            }),
            (State::BestWide(best), Values::Wide(values)) => for_rows(rows, mask, |row| {
                let best = &mut best[groups.of(row)];
                *best = if smallest { values[row].min(*best) } else { values[row].max(*best) };
            }),
            (State::BestFloat(best), Values::Float(values)) => for_rows(rows, mask, |row| {
                let best = &mut best[groups.of(row)];
                let order = values[row].total_cmp(best);
                if if smallest { order.is_lt() } else { order.is_gt() } {
                    *best = values[row];
                }
            }),
            // The first contribution decides an empty group, so this looks at counts before they grow.
            (State::BestBytes(best), values) => for_rows(rows, mask, |row| {
                let group = groups.of(row);
                let value = values.bytes(row);
                let better = if smallest { value < best[group].as_slice() } else { value > best[group].as_slice() };
                if self.counts[group] == 0 || better {
                    let before = best[group].capacity();
                    best[group].clear();
                    best[group].extend_from_slice(value);
                    self.text += best[group].capacity() - before;
                }
                self.counts[group] += 1;
            }),
            _ => debug_assert!(false, "an aggregate's argument has the representation it was planned for"),
        }
    }
}

/// So many groups have sums side by side: four of each are 2 KB, cleared and added up once for each vector.
const FEW_GROUPS: usize = 64;

/// Adds a value of each row to the sum of its group.
///
/// Of few groups, a row mostly meets one that a row just before it has met, and waits until that sum is written. So neighbouring rows
/// have sums of their own, which are added up in the end.
#[inline(always)]
fn add_each<T: Copy + Default + AddAssign>(
    sums: &mut [T],
    groups: GroupOf<'_>,
    rows: usize,
    mask: Option<&[u8]>,
    value: impl Fn(usize) -> T,
) {
    let (GroupOf::Each(groups), None, true) = (groups, mask, sums.len() <= FEW_GROUPS && rows >= FEW_GROUPS) else {
        return for_rows(rows, mask, |row| sums[groups.of(row)] += value(row));
    };
    let mut lanes = [[T::default(); FEW_GROUPS]; 4];
    let (quads, rest) = groups[..rows].as_chunks::<4>();
    for (at, quad) in quads.iter().enumerate() {
        for (lane, group) in quad.iter().enumerate() {
            lanes[lane][*group as usize % FEW_GROUPS] += value(at * 4 + lane);
        }
    }
    for (at, group) in rest.iter().enumerate() {
        sums[*group as usize] += value(quads.len() * 4 + at);
    }
    for lane in &lanes {
        sums.iter_mut().zip(lane).for_each(|(sum, of_lane)| *sum += *of_lane);
    }
}

/// Adds all values to a sum. Each addition waits for the one before, so that many are made in several sums side by side.
fn add_all<T: Copy>(sum: &mut f64, values: &[T], float: impl Fn(T) -> f64) {
    const LANES: usize = 16;
    let (groups, rest) = values.as_chunks::<LANES>();
    if groups.len() > 1 {
        let mut lanes = [0.0; LANES];
        for group in groups {
            lanes.iter_mut().zip(group).for_each(|(lane, value)| *lane += float(*value));
        }
        lanes.iter().for_each(|lane| *sum += lane);
    } else {
        groups.iter().flatten().for_each(|value| *sum += float(*value));
    }
    rest.iter().for_each(|value| *sum += float(*value));
}

/// What a decimal's scaled integer is divided by to be its value.
fn unit(kind: &Type) -> f64 {
    match kind {
        Type::Decimal { scale, .. } => 10f64.powi((*scale).into()),
        _ => 1.0,
    }
}

/// Returns numbers as floats.
pub(in crate::sink) fn floats<'v>(vector: &'v Vector, kind: &Type) -> Cow<'v, [f64]> {
    let unit = unit(kind);
    match &vector.values {
        Values::Float(values) => Cow::Borrowed(values),
        Values::Int(values) => values.iter().map(|value| *value as f64 / unit).collect(),
        Values::Wide(values) => values.iter().map(|value| *value as f64 / unit).collect(),
        _ => Cow::Owned(vec![0.0; vector.len()]),
    }
}

/// Returns which rows contribute: those in the mask whose value is not null.
pub(super) fn both<'m>(vector: &'m Vector, mask: Option<&'m [u8]>) -> Option<Cow<'m, [u8]>> {
    match (vector.valid.as_deref(), mask) {
        (Some(valid), Some(mask)) => Some(valid.iter().zip(mask).map(|(a, b)| a & b).collect()),
        (Some(one), None) | (None, Some(one)) => Some(Cow::Borrowed(one)),
        (None, None) => None,
    }
}

#[inline(always)]
pub(super) fn for_rows(rows: usize, mask: Option<&[u8]>, mut f: impl FnMut(usize)) {
    match mask {
        None => (0..rows).for_each(f),
        Some(mask) => (0..rows).filter(|row| mask[*row] != 0).for_each(&mut f),
    }
}
