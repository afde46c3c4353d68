//! The running state of one aggregate for every group, as arrays indexed by group.

use std::borrow::Cow;

use arrow_buffer::i256;
use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Value,
    scalar::{
        aggregate::{Accumulator as Scalar, Moments},
        decimal::power_of_ten,
    },
};
use tandem_plan::sink::PlannedAggregate;

use crate::{BytesVector, Values, Vector};

/// Which group each row belongs to.
#[derive(Clone, Copy)]
pub(super) enum GroupOf<'a> {
    /// All rows to group 0.
    One,
    /// A group per row.
    Each(&'a [u32]),
}

impl GroupOf<'_> {
    #[inline(always)]
    pub(super) fn of(&self, row: usize) -> usize {
        match self {
            GroupOf::One => 0,
            GroupOf::Each(groups) => groups[row] as usize,
        }
    }
}

/// The state of one aggregate.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) aggregate: Aggregate,
    pub(super) argument: Type,
    pub(super) state: State,
    /// How many rows contributed to each group; not kept where every row does (see `counted`).
    pub(super) counts: Vec<i64>,
    pub(super) counted: bool,
    /// Bytes of the texts that are kept.
    pub(super) text: usize,
}

#[derive(Debug)]
pub(super) enum State {
    /// Only `counts` matter.
    Count,
    /// Sums that statistics prove to fit 64 bits.
    Int(Vec<i64>),
    /// Exact sums.
    Wide(Vec<i256>),
    Float(Vec<f64>),
    /// Smallest or largest integer (booleans and sums of flags too).
    Best(Vec<i64>),
    BestWide(Vec<i128>),
    BestFloat(Vec<f64>),
    BestBytes(Vec<Vec<u8>>),
    /// Count, mean and squared distances from it.
    Spread(Vec<Moments>),
    First(Vec<Option<Value>>),
}

impl Accumulator {
    /// Makes the state of no group.
    pub(super) fn new(planned: &PlannedAggregate) -> Accumulator {
        use AggregateFunction as F;
        let PlannedAggregate { aggregate, argument, narrow, total, counted_by, .. } = planned;
        let counted = match aggregate.function {
            F::CountRows | F::Count | F::Average => counted_by.is_none(),
            F::VarianceSample | F::VariancePopulation | F::DeviationSample | F::DeviationPopulation | F::First => false,
            F::Min | F::Max if argument.repr() == Repr::Bytes => true,
            _ => !total,
        };
        let state = match (aggregate.function, argument.repr()) {
            (F::CountRows | F::Count, _) => State::Count,
            (F::Sum | F::Average, Repr::Float) => State::Float(Vec::new()),
            (F::Average, _) if aggregate.kind.is_float() => State::Float(Vec::new()),
            (F::Sum | F::Average, Repr::Int) if *narrow => State::Int(Vec::new()),
            (F::Sum | F::Average, _) => State::Wide(Vec::new()),
            (F::Min | F::Max | F::BoolAnd | F::BoolOr, Repr::Int | Repr::Boolean) => State::Best(Vec::new()),
            (F::Min | F::Max, Repr::Wide) => State::BestWide(Vec::new()),
            (F::Min | F::Max, Repr::Float) => State::BestFloat(Vec::new()),
            (F::Min | F::Max, _) => State::BestBytes(Vec::new()),
            (F::First, _) => State::First(Vec::new()),
            _ => State::Spread(Vec::new()),
        };
        let (aggregate, argument) = (aggregate.clone(), argument.clone());
        Accumulator { aggregate, argument, state, counts: Vec::new(), counted, text: 0 }
    }

    pub(super) fn smallest(&self) -> bool {
        matches!(self.aggregate.function, AggregateFunction::Min | AggregateFunction::BoolAnd)
    }

    /// Makes room for `groups` groups.
    pub(super) fn resize(&mut self, groups: usize) {
        if self.counted {
            self.counts.resize(groups, 0);
        }
        let smallest = self.smallest();
        match &mut self.state {
            State::Count => {}
            State::Int(sums) => sums.resize(groups, 0),
            State::Wide(sums) => sums.resize(groups, i256::ZERO),
            State::Float(sums) => sums.resize(groups, 0.0),
            State::Best(best) => best.resize(groups, if smallest { i64::MAX } else { i64::MIN }),
            State::BestWide(best) => best.resize(groups, if smallest { i128::MAX } else { i128::MIN }),
            State::BestFloat(best) => best.resize(groups, worst(smallest)),
            State::BestBytes(best) => best.resize(groups, Vec::new()),
            State::Spread(spread) => spread.resize(groups, Moments::default()),
            State::First(first) => first.resize(groups, None),
        }
    }

    /// Adds rows; only those with `mask` set contribute, nulls never do.
    pub(super) fn update(&mut self, groups: GroupOf<'_>, rows: usize, vector: Option<&Vector>, mask: Option<&[u8]>) {
        if let (State::First(_), Some(vector)) = (&self.state, vector) {
            // Nulls count, too.
            return self.keep_first(groups, rows, vector, mask);
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
                _ => for_rows(rows, mask, |row| self.counts[groups.of(row)] += 1),
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
            let scale = unit(&self.argument);
            let value = |row: usize| match &vector.values {
                Values::Float(values) => values[row],
                Values::Int(values) => values[row] as f64 / scale,
                Values::Wide(values) => values[row] as f64 / scale,
                _ => 0.0,
            };
            for_rows(rows, mask, |row| spread[groups.of(row)].update(value(row)));
            return;
        }
        // The first contribution decides an empty `BestBytes`, so it looks at counts before they grow.
        let smallest = self.smallest();
        match (&mut self.state, vector.map(|v| &v.values)) {
            (State::BestBytes(best), Some(values)) => for_rows(rows, mask, |row| {
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
            (State::Count, _) => {}
            (State::Int(sums), Some(Values::Int(values))) => match (groups, mask) {
                (GroupOf::One, None) => sums[0] += values.iter().sum::<i64>(),
                _ => for_rows(rows, mask, |row| sums[groups.of(row)] += values[row]),
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
            (State::Float(sums), Some(Values::Float(values))) => {
                for_rows(rows, mask, |row| sums[groups.of(row)] += values[row]);
            }
            (State::Float(sums), Some(Values::Int(values))) => {
                let unit = unit(&self.argument);
                for_rows(rows, mask, |row| sums[groups.of(row)] += values[row] as f64 / unit);
            }
            (State::Float(sums), Some(Values::Wide(values))) => {
                let unit = unit(&self.argument);
                for_rows(rows, mask, |row| sums[groups.of(row)] += values[row] as f64 / unit);
            }
            (State::Best(best), Some(Values::Int(values))) => for_rows(rows, mask, |row| {
                let best = &mut best[groups.of(row)];
                *best = if smallest { values[row].min(*best) } else { values[row].max(*best) };
            }),
            (State::Best(best), Some(Values::Boolean(values))) => for_rows(rows, mask, |row| {
                let (best, value) = (&mut best[groups.of(row)], i64::from(values[row]));
                *best = if smallest { value.min(*best) } else { value.max(*best) };
            }),
            (State::BestWide(best), Some(Values::Wide(values))) => for_rows(rows, mask, |row| {
                let best = &mut best[groups.of(row)];
                *best = if smallest { values[row].min(*best) } else { values[row].max(*best) };
            }),
            (State::BestFloat(best), Some(Values::Float(values))) => for_rows(rows, mask, |row| {
                let best = &mut best[groups.of(row)];
                let order = values[row].total_cmp(best);
                if if smallest { order.is_lt() } else { order.is_gt() } {
                    *best = values[row];
                }
            }),
            _ => debug_assert!(false, "an aggregate's argument has the representation it was planned for"),
        }
    }

    /// Adds another worker's state: its group `from` becomes group `to` for each pair.
    pub(super) fn merge(&mut self, other: &Accumulator, pairs: &[(u32, u32)]) {
        let smallest = self.smallest();
        let each = |f: &mut dyn FnMut(usize, usize)| pairs.iter().for_each(|(a, b)| f(*a as usize, *b as usize));
        match (&mut self.state, &other.state) {
            (State::Int(a), State::Int(b)) => each(&mut |from, to| a[to] += b[from]),
            (State::Wide(a), State::Wide(b)) => each(&mut |from, to| a[to] = a[to].wrapping_add(b[from])),
            (State::Float(a), State::Float(b)) => each(&mut |from, to| a[to] += b[from]),
            (State::Best(a), State::Best(b)) => {
                each(&mut |from, to| a[to] = if smallest { a[to].min(b[from]) } else { a[to].max(b[from]) });
            }
            (State::BestWide(a), State::BestWide(b)) => {
                each(&mut |from, to| a[to] = if smallest { a[to].min(b[from]) } else { a[to].max(b[from]) });
            }
            (State::BestFloat(a), State::BestFloat(b)) => each(&mut |from, to| {
                let order = b[from].total_cmp(&a[to]);
                if if smallest { order.is_lt() } else { order.is_gt() } {
                    a[to] = b[from];
                }
            }),
            (State::BestBytes(a), State::BestBytes(b)) => each(&mut |from, to| {
                let better = if smallest { b[from] < a[to] } else { b[from] > a[to] };
                if other.counts[from] > 0 && (self.counts[to] == 0 || better) {
                    a[to].clone_from(&b[from]);
                }
            }),
            (State::Spread(a), State::Spread(b)) => each(&mut |from, to| a[to].merge(b[from])),
            (State::First(a), State::First(b)) => each(&mut |from, to| {
                if a[to].is_none() {
                    a[to].clone_from(&b[from]);
                }
            }),
            _ => {}
        }
        if self.counted {
            pairs.iter().for_each(|(from, to)| self.counts[*to as usize] += other.counts[*from as usize]);
        }
    }

    /// Returns the results of some groups; `counts` are those of the accumulator that counts the same rows, or its own.
    pub(super) fn finish(&self, counts: &[i64], groups: &[u32]) -> Result<Vector> {
        self.finish_as(self.aggregate.function, &self.aggregate.kind, counts, groups)
    }

    /// Returns the results of some groups as those of a function, of a type.
    fn finish_as(&self, function: AggregateFunction, kind: &Type, counts: &[i64], groups: &[u32]) -> Result<Vector> {
        use AggregateFunction as F;
        let pick = groups.iter().map(|g| *g as usize);
        let count = |g: usize| counts.get(g).copied().unwrap_or(1);
        let valid: Vec<u8> = pick.clone().map(|g| (count(g) > 0) as u8).collect();
        let values = match (&self.state, function) {
            (State::Count, _) => return Ok(Vector::new(Values::Int(pick.map(|g| counts[g]).collect()))),
            (State::First(first), _) => {
                let values: Vec<Value> = pick.map(|g| first[g].clone().unwrap_or(Value::Null)).collect();
                return Ok(Vector::from_values(kind, &values));
            }
            (State::Float(sums), F::Average) => {
                Values::Float(pick.map(|g| sums[g] / counts[g] as f64).map(|v| round(v, kind)).collect())
            }
            (State::Float(sums), _) => Values::Float(pick.map(|g| round(sums[g], kind)).collect()),
            (State::Best(best), _) if *kind == Type::Boolean => {
                Values::Boolean(pick.map(|g| (best[g] == 1) as u8).collect())
            }
            (State::Best(best), _) => Values::Int(pick.map(|g| if count(g) > 0 { best[g] } else { 0 }).collect()),
            (State::BestWide(best), _) => Values::Wide(pick.map(|g| best[g]).collect()),
            (State::BestFloat(best), _) => Values::Float(pick.map(|g| best[g]).collect()),
            (State::BestBytes(best), _) => Values::Bytes(pick.map(|g| best[g].as_slice()).collect::<BytesVector>()),
            (State::Spread(spread), _) => {
                let result = |g: usize| Scalar::of_moments(&self.aggregate, &self.argument, spread[g]).finish();
                return Ok(Vector::from_values(kind, &pick.map(result).collect::<Result<Vec<_>>>()?));
            }
            (State::Int(_) | State::Wide(_), _) => {
                let sum = |g: usize| match &self.state {
                    State::Int(sums) => i128::from(sums[g]),
                    // No type holds what leaves 128 bits.
                    State::Wide(sums) => sums[g].to_i128().unwrap_or(i128::MAX),
                    _ => 0,
                };
                if function == F::Sum
                    && let Some(values) = plain_sums(pick.clone().map(sum), &self.argument, kind)
                {
                    return Ok(Vector { values, valid: valid.contains(&0).then_some(valid) });
                }
                let aggregate = Aggregate { function, kind: kind.clone(), ..self.aggregate.clone() };
                // A sum without counts contributed at least once.
                let result = |g: usize| Scalar::of_total(&aggregate, &self.argument, sum(g), count(g)).finish();
                let values = pick.map(result).collect::<Result<Vec<Value>>>()?;
                return Ok(Vector::from_values(kind, &values));
            }
        };
        Ok(Vector { values, valid: valid.contains(&0).then_some(valid) })
    }

    /// Returns the states of some groups, as [`AggregateFunction::state`] lays them out for a final aggregation.
    pub(super) fn states(&self, counts: &[i64], groups: &[u32]) -> Result<Vec<Vector>> {
        let pick = groups.iter().map(|g| *g as usize);
        match (&self.state, self.aggregate.function) {
            (State::Spread(spread), _) => Ok(vec![
                Vector::new(Values::Int(pick.clone().map(|g| spread[g].count).collect())),
                Vector::new(Values::Float(pick.clone().map(|g| spread[g].mean).collect())),
                Vector::new(Values::Float(pick.map(|g| spread[g].squares).collect())),
            ]),
            (_, AggregateFunction::Average) => {
                // The state of an average is a sum of its own type, and the count.
                let kind = self.aggregate.function.state(&self.argument, &self.aggregate.kind).swap_remove(0);
                let counted = pick.map(|g| counts[g]).collect();
                let sums = self.finish_as(AggregateFunction::Sum, &kind, counts, groups)?;
                Ok(vec![sums, Vector::new(Values::Int(counted))])
            }
            // All others are their own state.
            _ => Ok(vec![self.finish(counts, groups)?]),
        }
    }

    /// Puts groups in another order, or keeps some: those of these numbers.
    pub(super) fn arrange(&mut self, groups: &[u32]) {
        fn pick<T: Clone>(of: &mut Vec<T>, groups: &[u32]) {
            *of = groups.iter().map(|group| of[*group as usize].clone()).collect();
        }
        if self.counted {
            pick(&mut self.counts, groups);
        }
        match &mut self.state {
            State::Count => {}
            State::Int(sums) => pick(sums, groups),
            State::Wide(sums) => pick(sums, groups),
            State::Float(sums) => pick(sums, groups),
            State::Best(best) => pick(best, groups),
            State::BestWide(best) => pick(best, groups),
            State::BestFloat(best) => pick(best, groups),
            State::BestBytes(best) => pick(best, groups),
            State::Spread(spread) => pick(spread, groups),
            State::First(first) => pick(first, groups),
        }
    }

    /// Returns how many groups there is room for.
    fn size(&self) -> usize {
        match &self.state {
            State::Count => self.counts.len(),
            State::Int(v) => v.len(),
            State::Wide(v) => v.len(),
            State::Float(v) => v.len(),
            State::Best(v) => v.len(),
            State::BestWide(v) => v.len(),
            State::BestFloat(v) => v.len(),
            State::BestBytes(v) => v.len(),
            State::Spread(v) => v.len(),
            State::First(v) => v.len(),
        }
    }

    /// Returns about how many bytes the state takes.
    pub(super) fn byte_len(&self) -> usize {
        let each = match &self.state {
            State::Count => 0,
            State::Int(_) | State::Float(_) | State::Best(_) | State::BestFloat(_) => 8,
            State::Wide(_) | State::BestWide(_) | State::Spread(_) => 16,
            State::BestBytes(_) | State::First(_) => 48,
        };
        self.size() * each + self.counts.len() * 8 + self.text
    }
}

/// Returns sums of an argument as values of a type, if they need no other scale and all lie within its limits.
fn plain_sums(sums: impl Iterator<Item = i128> + Clone, argument: &Type, kind: &Type) -> Option<Values> {
    let (low, high) = match (argument, kind) {
        (Type::Decimal { scale: from, .. }, Type::Decimal { precision, scale }) if from == scale => {
            let limit = power_of_ten((*precision).into())? - 1;
            (-limit, limit)
        }
        (_, kind) => kind.integer_range()?,
    };
    let fits = sums.clone().all(|sum| low <= sum && sum <= high);
    match kind.repr() {
        _ if !fits => None,
        Repr::Int => Some(Values::Int(sums.map(|sum| sum as i64).collect())),
        Repr::Wide => Some(Values::Wide(sums.collect())),
        _ => None,
    }
}

/// What a decimal's scaled integer is divided by to be its value.
fn unit(kind: &Type) -> f64 {
    match kind {
        Type::Decimal { scale, .. } => 10f64.powi((*scale).into()),
        _ => 1.0,
    }
}

fn worst(smallest: bool) -> f64 {
    // The ends of the total order: a NaN with all bits set of either sign.
    f64::from_bits(if smallest { u64::MAX >> 1 } else { u64::MAX })
}

fn round(value: f64, kind: &Type) -> f64 {
    if *kind == Type::Float32 { f64::from(value as f32) } else { value }
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
