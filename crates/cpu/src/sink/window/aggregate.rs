//! Aggregates over frames. Exact sums and counts are differences of running totals; what has no inverse (floats, extremes, variances,
//! pairs) is merged as frames slide; values that need an order, or of which repetitions do not count, are numbered by it (`ranked`). All
//! else is taken in row by row.

use std::{
    ops::{AddAssign, Sub},
    sync::Mutex,
};

use tandem_column::{Cancel, Repr, Reservation, Result, Type};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Value,
    scalar::{
        aggregate::{Accumulator, Moments},
        pairs::PairMoments,
        quantile,
    },
};

use super::{
    frame::Frames,
    place::at_places,
    ranked::{DistinctCount, DistinctStates, OrderedSet, Ranks},
    slide::{Watch, follow, slide},
};
use crate::{
    Error, NO_MATCH, Values, Vector,
    sink::{aggregate::floats, order::compare},
};

/// What an aggregate reads of the rows.
pub(super) struct Input<'i> {
    pub(super) of: &'i Aggregate,
    pub(super) argument: Option<(&'i Vector, &'i Type)>,
    /// The other side of pairs.
    pub(super) second: Option<(&'i Vector, &'i Type)>,
    /// What rows are ordered by for the aggregate.
    pub(super) order: Vec<(&'i Vector, &'i Type)>,
    pub(super) filter: Option<&'i Vector>,
    pub(super) rows: usize,
    pub(super) cancel: &'i Cancel,
    /// The memory of joined texts, which may be much larger than the rows.
    pub(super) texts: &'i Mutex<Reservation>,
}

impl Input<'_> {
    /// Tells whether the aggregate's filter lets a row contribute.
    fn passes(&self, row: usize) -> bool {
        self.filter.is_none_or(|filter| {
            filter.is_valid(row) && matches!(&filter.values, Values::Boolean(values) if values[row] != 0)
        })
    }

    /// Tells whether a row contributes.
    fn contributes(&self, row: usize) -> bool {
        let valid = |of: Option<(&Vector, &Type)>| of.is_none_or(|(vector, _)| vector.is_valid(row));
        self.passes(row) && valid(self.argument) && valid(self.second)
    }

    /// Brings the state of each frame's rows, or of their different values, to `emit`.
    fn fold<S: Copy>(
        &self,
        frames: &Frames,
        empty: S,
        leaf: impl Fn(usize) -> S,
        merge: impl Fn(S, S) -> S,
        mut emit: impl FnMut(S),
    ) -> Result<()> {
        let leaf = |row: usize| if self.contributes(row) { leaf(row) } else { empty };
        match self.argument {
            Some((vector, _)) if self.of.distinct && !self.of.function.ignores_repetition() => {
                let ranks = Ranks::new(vector, |row| self.contributes(row));
                let mut states = DistinctStates::new(&ranks, empty, leaf, merge);
                let emit = |states: &DistinctStates<'_, _, _, _>| {
                    emit(states.state());
                    Ok(())
                };
                follow(frames, &mut states, emit, self.cancel)
            }
            _ => slide(frames, empty, leaf, merge, emit, self.cancel),
        }
    }
}

/// Computes an aggregate over each row's frame.
///
/// # Errors
/// Overflow of a sum, cancellation, or an exhausted memory budget.
pub(super) fn aggregate(input: &Input<'_>, frames: &Frames) -> Result<Vector> {
    use AggregateFunction::*;
    let (function, kind, rows) = (input.of.function, &input.of.kind, input.rows);
    let distinct = input.of.distinct && !function.ignores_repetition();
    match (function, input.argument.map(|(vector, kind)| (&vector.values, vector, kind))) {
        (CountRows, _) => Ok(counts(frames, &running(rows, |row| u32::from(input.passes(row))))),
        (Count, Some((_, vector, _))) if distinct => {
            let ranks = Ranks::new(vector, |row| input.contributes(row));
            let mut counted = Vec::with_capacity(rows);
            let emit = |count: &DistinctCount<'_>| {
                counted.push(count.values);
                Ok(())
            };
            follow(frames, &mut DistinctCount::new(&ranks), emit, input.cancel)?;
            Ok(Vector::new(Values::Int(counted)))
        }
        (Count, Some(_)) => Ok(counts(frames, &running(rows, |row| u32::from(input.contributes(row))))),
        (Sum, Some((Values::Int(values), ..))) if !kind.is_float() && is_narrow(values) => {
            exact(input, frames, |row| values[row])
        }
        (Sum, Some((Values::Int(values), ..))) if !kind.is_float() => {
            exact(input, frames, |row| i128::from(values[row]))
        }
        (Sum, Some((Values::Wide(values), ..))) if !kind.is_float() && fits(values) => {
            exact(input, frames, |row| values[row])
        }
        (Average, Some((Values::Wide(values), _, Type::Decimal { .. }))) if !kind.is_float() && fits(values) => {
            exact(input, frames, |row| values[row])
        }
        (Average, Some((Values::Int(values), _, Type::Decimal { .. }))) if !kind.is_float() => {
            exact(input, frames, |row| i128::from(values[row]))
        }
        (Sum | Average, Some((_, vector, from))) if kind.is_float() => float_sums(input, frames, &floats(vector, from)),
        (Min | Max | BoolAnd | BoolOr, Some((_, vector, _))) => extremes(input, frames, vector),
        (First, Some((_, vector, _))) => {
            let leaf = |row: usize| if input.passes(row) { row as u32 } else { NO_MATCH };
            let mut places = Vec::with_capacity(rows);
            let first = |left: u32, right: u32| if left == NO_MATCH { right } else { left };
            slide(frames, NO_MATCH, leaf, first, |place| places.push(place), input.cancel)?;
            Ok(at_places(vector, &places, None))
        }
        (BitAnd | BitOr | BitXor, Some((Values::Int(values), ..))) => bits(input, frames, |row| values[row].into()),
        (BitAnd | BitOr | BitXor, Some((Values::Wide(values), ..))) => bits(input, frames, |row| values[row]),
        (function, Some((_, vector, from))) if function.is_spread() => variances(input, frames, &floats(vector, from)),
        (function, Some((_, y, from))) if function.is_of_pairs() => match input.second {
            Some((x, of)) => pairs(input, frames, &floats(y, from), &floats(x, of)),
            None => Err(Error::internal("pairs have two sides")),
        },
        (Median | Quantile | QuantileDiscrete, Some((_, vector, _))) => quantiles(input, frames, vector),
        _ => one_by_one(input, frames),
    }
}

/// Counts rows of each frame, of which there are running totals.
fn counts(frames: &Frames, totals: &[u32]) -> Vector {
    Vector::new(Values::Int((0..frames.rows()).map(|row| grown(frames, totals, row).into()).collect()))
}

/// Returns how much running totals grow over a row's frame.
fn grown(frames: &Frames, totals: &[u32], row: usize) -> u32 {
    frames.of(row).map(|(start, end)| totals[end as usize] - totals[start as usize]).sum()
}

/// Adds floats up within each frame; an average divides by their count.
fn float_sums(input: &Input<'_>, frames: &Frames, values: &[f64]) -> Result<Vector> {
    let mut out = Floats::new(&input.of.kind, frames.rows());
    let both = |left: (f64, u32), right: (f64, u32)| (left.0 + right.0, left.1 + right.1);
    let emit = |(sum, count): (f64, u32)| {
        let value = if input.of.function == AggregateFunction::Sum { sum } else { sum / f64::from(count) };
        out.push((count > 0).then_some(value));
    };
    input.fold(frames, (0.0, 0), |row| (values[row], 1), both, emit)?;
    Ok(out.finish())
}

/// Finds the smallest or largest value of each frame.
fn extremes(input: &Input<'_>, frames: &Frames, vector: &Vector) -> Result<Vector> {
    let smallest = matches!(input.of.function, AggregateFunction::Min | AggregateFunction::BoolAnd);
    let better = |left: u32, right: u32| match (left, right) {
        (NO_MATCH, other) | (other, NO_MATCH) => other,
        _ => {
            let order = compare::plain((vector, left as usize), (vector, right as usize));
            let keeps = if smallest { order.is_le() } else { order.is_ge() };
            if keeps { left } else { right }
        }
    };
    let mut places = Vec::with_capacity(frames.rows());
    input.fold(frames, NO_MATCH, |row| row as u32, better, |place| places.push(place))?;
    Ok(at_places(vector, &places, None))
}

/// Combines the bits of each frame's integers.
fn bits(input: &Input<'_>, frames: &Frames, value: impl Fn(usize) -> i128) -> Result<Vector> {
    let both = |left: Option<i128>, right: Option<i128>| match (left, right, input.of.function) {
        (None, other, _) | (other, None, _) => other,
        (Some(left), Some(right), AggregateFunction::BitAnd) => Some(left & right),
        (Some(left), Some(right), AggregateFunction::BitOr) => Some(left | right),
        (Some(left), Some(right), _) => Some(left ^ right),
    };
    let mut out = Vector::empty(&input.of.kind);
    out.reserve(frames.rows());
    let emit = |found: Option<i128>| out.push(&found.map_or(Value::Null, Value::Integer));
    input.fold(frames, None, |row| Some(value(row)), both, emit)?;
    Ok(out)
}

/// Computes the variance of each frame, or the deviation, its root.
fn variances(input: &Input<'_>, frames: &Frames, values: &[f64]) -> Result<Vector> {
    use AggregateFunction::*;
    let merge = |mut left: Moments, right: Moments| {
        left.merge(right);
        left
    };
    let sample = matches!(input.of.function, VarianceSample | DeviationSample);
    let root = matches!(input.of.function, DeviationSample | DeviationPopulation);
    let mut out = Floats::new(&input.of.kind, frames.rows());
    let emit = |moments: Moments| {
        let variance = moments.variance(sample);
        out.push(if root { variance.map(f64::sqrt) } else { variance });
    };
    let leaf = |row: usize| Moments { count: 1, mean: values[row], squares: 0.0 };
    input.fold(frames, Moments::default(), leaf, merge, emit)?;
    Ok(out.finish())
}

/// Computes a function of the pairs of each frame.
fn pairs(input: &Input<'_>, frames: &Frames, y: &[f64], x: &[f64]) -> Result<Vector> {
    let merge = |mut left: PairMoments, right: PairMoments| {
        left.merge(right);
        left
    };
    let mut out = Floats::new(&input.of.kind, frames.rows());
    let leaf = |row: usize| PairMoments { count: 1, mean_y: y[row], mean_x: x[row], ..PairMoments::default() };
    let emit = |moments: PairMoments| out.push(moments.finish(input.of.function));
    input.fold(frames, PairMoments::default(), leaf, merge, emit)?;
    Ok(out.finish())
}

/// Finds the median or another quantile of each frame.
fn quantiles(input: &Input<'_>, frames: &Frames, vector: &Vector) -> Result<Vector> {
    let kind = &input.of.kind;
    let ranks = Ranks::new(vector, |row| input.contributes(row));
    let mut out = Vector::empty(kind);
    out.reserve(frames.rows());
    let emit = |set: &OrderedSet<'_>| {
        let at = |place: usize| vector.value(set.row_at(place), kind);
        let count = set.count();
        let found = match (input.of.function, &input.of.parameter) {
            (AggregateFunction::Quantile, Value::Float(fraction)) => quantile::quantile_at(count, *fraction, kind, at),
            (AggregateFunction::QuantileDiscrete, Value::Float(fraction)) => {
                quantile::discrete_place(count, *fraction).map_or(Value::Null, at)
            }
            _ => quantile::median_at(count, kind, at),
        };
        out.push(&found);
        Ok(())
    };
    follow(frames, &mut OrderedSet::new(&ranks, input.of.distinct), emit, input.cancel)?;
    Ok(out)
}

/// Floats that may be null, rounded to their type.
struct Floats {
    single: bool,
    values: Vec<f64>,
    valid: Vec<u8>,
}

impl Floats {
    fn new(kind: &Type, rows: usize) -> Floats {
        Floats { single: *kind == Type::Float32, values: Vec::with_capacity(rows), valid: Vec::with_capacity(rows) }
    }

    fn push(&mut self, value: Option<f64>) {
        self.valid.push(value.is_some().into());
        let value = value.unwrap_or(0.0);
        self.values.push(if self.single { f64::from(value as f32) } else { value });
    }

    fn finish(self) -> Vector {
        let valid = self.valid.contains(&0).then_some(self.valid);
        Vector { values: Values::Float(self.values), valid }
    }
}

/// Returns totals before each row, and behind the last.
pub(super) fn running(rows: usize, of: impl Fn(usize) -> u32) -> Vec<u32> {
    let mut total = 0;
    let mut totals = Vec::with_capacity(rows + 1);
    totals.push(0);
    totals.extend((0..rows).map(|row| {
        total += of(row);
        total
    }));
    totals
}

/// Tells whether no sum of these values leaves 128 bits.
fn fits(values: &[i128]) -> bool {
    let largest = values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
    largest.checked_mul(values.len() as u128).is_some_and(|sum| sum < 1 << 126)
}

/// Tells whether no sum of these values leaves 64 bits.
fn is_narrow(values: &[i64]) -> bool {
    let largest = values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
    largest.checked_mul(values.len() as u64).is_some_and(|sum| sum < 1 << 62)
}

/// Sums or averages integers and decimals, in an integer that holds every sum of them.
fn exact<T>(input: &Input<'_>, frames: &Frames, value: impl Fn(usize) -> T) -> Result<Vector>
where
    T: Copy + Default + AddAssign + Sub<Output = T> + Into<i128>,
{
    let mut out = Totals::new(input, frames.rows())?;
    if input.of.distinct {
        let both = |left: (i128, u32), right: (i128, u32)| (left.0 + right.0, left.1 + right.1);
        let mut failed = Ok(());
        let emit = |(total, count)| {
            if failed.is_ok() {
                failed = out.push(total, count);
            }
        };
        input.fold(frames, (0, 0), |row| (value(row).into(), 1), both, emit)?;
        failed?;
        return Ok(out.finish());
    }
    let counts = running(input.rows, |row| u32::from(input.contributes(row)));
    let mut totals = Vec::with_capacity(input.rows + 1);
    let mut total = T::default();
    totals.push(total);
    for row in 0..input.rows {
        if counts[row + 1] > counts[row] {
            total += value(row);
        }
        totals.push(total);
    }
    for row in 0..frames.rows() {
        let difference = |(start, end): (u32, u32)| -> i128 { (totals[end as usize] - totals[start as usize]).into() };
        let total: i128 = frames.of(row).map(difference).sum();
        out.push(total, grown(frames, &counts, row))?;
    }
    Ok(out.finish())
}

/// Exact sums, brought to the type of the result.
struct Totals<'t> {
    of: &'t Aggregate,
    argument: &'t Type,
    /// What is the sum's type as it stands; all else is brought to it by the reference.
    plain: Option<(i128, i128)>,
    values: Values,
    valid: Vec<u8>,
}

impl<'t> Totals<'t> {
    fn new(input: &Input<'t>, rows: usize) -> Result<Totals<'t>> {
        let Some((_, argument)) = input.argument else { return Err(Error::internal("a sum has an argument")) };
        let of = input.of;
        let plain = match (of.function, argument, &of.kind) {
            (AggregateFunction::Sum, Type::Decimal { scale: from, .. }, Type::Decimal { scale, precision })
                if from == scale =>
            {
                10i128.checked_pow(u32::from(*precision)).map(|limit| (1 - limit, limit - 1))
            }
            (AggregateFunction::Sum, argument, kind) if argument.is_integer() => kind.integer_range(),
            _ => None,
        };
        let values = match of.kind.repr() {
            Repr::Wide => Values::Wide(Vec::with_capacity(rows)),
            _ => Values::Int(Vec::with_capacity(rows)),
        };
        Ok(Totals { of, argument, plain, values, valid: Vec::with_capacity(rows) })
    }

    fn push(&mut self, total: i128, count: u32) -> Result<()> {
        let found = match self.plain {
            _ if count == 0 => None,
            Some((low, high)) if (low..=high).contains(&total) => Some(total),
            _ => Accumulator::of_total(self.of, self.argument, total, count.into()).finish()?.as_integer(),
        };
        match &mut self.values {
            Values::Wide(out) => out.push(found.unwrap_or(0)),
            Values::Int(out) => out.push(found.unwrap_or(0) as i64),
            _ => return Err(Error::internal("a sum of integers is one")),
        }
        self.valid.push(u8::from(found.is_some()));
        Ok(())
    }

    fn finish(self) -> Vector {
        Vector { values: self.values, valid: self.valid.contains(&0).then_some(self.valid) }
    }
}

/// Takes the rows of each frame into the reference's accumulator, again from the beginning where a frame does not go on.
fn one_by_one(input: &Input<'_>, frames: &Frames) -> Result<Vector> {
    let fresh = || Accumulator::new(input.of, input.argument.map(|(_, kind)| kind));
    let mut out = Vector::empty(&input.of.kind);
    let (mut watch, mut reserved) = (Watch::new(input.cancel), 0);
    let (mut state, mut from, mut to) = (fresh(), 0, 0);
    for row in 0..frames.rows() {
        for (piece, (start, end)) in frames.of(row).enumerate() {
            if frames.pieces.len() > 1 {
                if piece == 0 {
                    state = fresh();
                }
                to = start;
            } else if start != from || end < to {
                (state, from, to) = (fresh(), start, start);
            }
            for row in to..end {
                input.take(&mut state, row as usize)?;
            }
            watch.work((end - to) as usize)?;
            to = end;
        }
        out.push(&state.finish()?);
        let bytes = out.byte_len();
        if bytes - reserved >= RESERVED_TEXT {
            let mut texts = input.texts.lock().map_err(|_| Error::internal("another task failed"))?;
            texts.add(bytes - reserved)?;
            reserved = bytes;
            // What joins texts does not take rows in but writes them.
            input.cancel.check()?;
        }
    }
    Ok(out)
}

/// Bytes of joined texts that are reserved at a time.
const RESERVED_TEXT: usize = 1 << 20;

impl Input<'_> {
    /// Takes a row into the reference's accumulator, if it contributes.
    fn take(&self, state: &mut Accumulator, row: usize) -> Result<()> {
        if !self.passes(row) {
            return Ok(());
        }
        let value = |(vector, kind): (&Vector, &Type)| vector.value(row, kind);
        let argument = self.argument.map_or(Value::Null, value);
        match self.second {
            Some(second) => state.update_pair(&argument, &value(second), second.1),
            None => state.update_ordered(&argument, self.order.iter().map(|of| value(*of)).collect()),
        }
    }
}
