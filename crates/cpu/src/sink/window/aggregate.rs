//! Aggregates over frames. Frames only move forward, so each row is taken in once: exact sums and counts are differences of running
//! totals; what has no inverse (floats, extremes, variances) is kept in two halves, of which the older is added up from its end.

use std::ops::{AddAssign, Sub};

use tandem_column::{Result, Type};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Value,
    scalar::aggregate::{Accumulator, Moments},
};

use super::place::at_places;
use crate::{Error, NO_MATCH, Values, Vector, sink::order::compare};

/// What an aggregate reads of the rows.
struct Input<'i> {
    of: &'i Aggregate,
    argument: Option<(&'i Vector, &'i Type)>,
    filter: Option<&'i Vector>,
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
        self.passes(row) && self.argument.is_none_or(|(vector, _)| vector.is_valid(row))
    }
}

/// Computes an aggregate over each row's frame.
///
/// # Errors
/// Overflow of a sum.
pub(super) fn aggregate(
    of: &Aggregate,
    argument: Option<(&Vector, &Type)>,
    filter: Option<&Vector>,
    rows: usize,
    frames: &[(u32, u32)],
) -> Result<Vector> {
    use AggregateFunction::*;
    let input = Input { of, argument, filter };
    if of.distinct && !matches!(of.function, Min | Max | BoolAnd | BoolOr) {
        return one_by_one(&input, frames);
    }
    let (function, kind) = (of.function, &of.kind);
    match (function, argument.map(|(vector, kind)| (&vector.values, vector, kind))) {
        (CountRows, _) if filter.is_none() => {
            Ok(Vector::new(Values::Int(frames.iter().map(|(start, end)| i64::from(end - start)).collect())))
        }
        (CountRows, _) => {
            let counts = running(rows, |row| u32::from(input.passes(row)));
            Ok(Vector::new(Values::Int(differences(&counts, frames).collect())))
        }
        (Count, Some(_)) => {
            let counts = running(rows, |row| u32::from(input.contributes(row)));
            Ok(Vector::new(Values::Int(differences(&counts, frames).collect())))
        }
        (Sum, Some((Values::Int(values), ..))) if !kind.is_float() && is_narrow(values) => {
            exact(&input, frames, rows, |row| values[row])
        }
        (Sum, Some((Values::Int(values), ..))) if !kind.is_float() => {
            exact(&input, frames, rows, |row| i128::from(values[row]))
        }
        (Sum, Some((Values::Wide(values), ..))) if !kind.is_float() && fits(values) => {
            exact(&input, frames, rows, |row| values[row])
        }
        (Average, Some((Values::Wide(values), _, Type::Decimal { .. }))) if !kind.is_float() && fits(values) => {
            exact(&input, frames, rows, |row| values[row])
        }
        (Average, Some((Values::Int(values), _, Type::Decimal { .. }))) if !kind.is_float() => {
            exact(&input, frames, rows, |row| i128::from(values[row]))
        }
        (Sum | Average, Some((Values::Float(values), ..))) => Ok(float_sums(&input, frames, values)),
        (Min | Max | BoolAnd | BoolOr, Some((_, vector, _))) => Ok(extremes(&input, frames, vector)),
        (First, Some((_, vector, _))) => {
            let leaf = |row: usize| if input.passes(row) { row as u32 } else { NO_MATCH };
            let mut places = Vec::with_capacity(frames.len());
            let first = |left: u32, right: u32| if left == NO_MATCH { right } else { left };
            slide(frames, NO_MATCH, leaf, first, |place| places.push(place));
            Ok(at_places(vector, &places, None))
        }
        (
            VarianceSample | VariancePopulation | DeviationSample | DeviationPopulation,
            Some((Values::Float(values), ..)),
        ) => Ok(variances(&input, frames, values)),
        _ => one_by_one(&input, frames),
    }
}

/// Adds floats up within each frame; an average divides by their count.
fn float_sums(input: &Input<'_>, frames: &[(u32, u32)], values: &[f64]) -> Vector {
    let leaf = |row: usize| if input.contributes(row) { (values[row], 1u32) } else { (0.0, 0) };
    let mut out = Floats::new(&input.of.kind, frames.len());
    let both = |left: (f64, u32), right: (f64, u32)| (left.0 + right.0, left.1 + right.1);
    slide(frames, (0.0, 0), leaf, both, |(sum, count)| {
        let value = if input.of.function == AggregateFunction::Sum { sum } else { sum / f64::from(count) };
        out.push((count > 0).then_some(value));
    });
    out.finish()
}

/// Finds the smallest or largest value of each frame.
fn extremes(input: &Input<'_>, frames: &[(u32, u32)], vector: &Vector) -> Vector {
    let smallest = matches!(input.of.function, AggregateFunction::Min | AggregateFunction::BoolAnd);
    let leaf = |row: usize| if input.contributes(row) { row as u32 } else { NO_MATCH };
    let better = |left: u32, right: u32| match (left, right) {
        (NO_MATCH, other) | (other, NO_MATCH) => other,
        _ => {
            let order = compare::plain((vector, left as usize), (vector, right as usize));
            let keeps = if smallest { order.is_le() } else { order.is_ge() };
            if keeps { left } else { right }
        }
    };
    let mut places = Vec::with_capacity(frames.len());
    slide(frames, NO_MATCH, leaf, better, |place| places.push(place));
    at_places(vector, &places, None)
}

/// Computes the variance of each frame, or the deviation, its root.
fn variances(input: &Input<'_>, frames: &[(u32, u32)], values: &[f64]) -> Vector {
    use AggregateFunction::*;
    let leaf = |row: usize| match input.contributes(row) {
        true => Moments { count: 1, mean: values[row], squares: 0.0 },
        false => Moments::default(),
    };
    let merge = |mut left: Moments, right: Moments| {
        left.merge(right);
        left
    };
    let sample = matches!(input.of.function, VarianceSample | DeviationSample);
    let root = matches!(input.of.function, DeviationSample | DeviationPopulation);
    let mut out = Floats::new(&input.of.kind, frames.len());
    slide(frames, Moments::default(), leaf, merge, |moments| {
        let variance = moments.variance(sample);
        out.push(if root { variance.map(f64::sqrt) } else { variance });
    });
    out.finish()
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

/// Returns how much running totals grow over each frame.
fn differences<'t>(totals: &'t [u32], frames: &'t [(u32, u32)]) -> impl Iterator<Item = i64> + 't {
    frames.iter().map(|(start, end)| i64::from(totals[*end as usize] - totals[*start as usize]))
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
fn exact<T>(input: &Input<'_>, frames: &[(u32, u32)], rows: usize, value: impl Fn(usize) -> T) -> Result<Vector>
where
    T: Copy + Default + AddAssign + Sub<Output = T> + Into<i128>,
{
    let Some((_, argument)) = input.argument else { return one_by_one(input, frames) };
    let counts = running(rows, |row| u32::from(input.contributes(row)));
    let mut totals = Vec::with_capacity(rows + 1);
    let mut total = T::default();
    totals.push(total);
    for row in 0..rows {
        if counts[row + 1] > counts[row] {
            total += value(row);
        }
        totals.push(total);
    }
    let (of, kind) = (input.of, &input.of.kind);
    // What is the sum's type as it stands; all else is brought to it by the reference.
    let plain = match (of.function, argument, kind) {
        (AggregateFunction::Sum, Type::Decimal { scale: from, .. }, Type::Decimal { scale, precision })
            if from == scale =>
        {
            10i128.checked_pow(u32::from(*precision)).map(|limit| (1 - limit, limit - 1))
        }
        (AggregateFunction::Sum, argument, kind) if argument.is_integer() => kind.integer_range(),
        _ => None,
    };
    let mut out = Values::empty(kind.repr());
    let mut valid = Vec::with_capacity(frames.len());
    match &mut out {
        Values::Wide(out) => out.reserve(frames.len()),
        Values::Int(out) => out.reserve(frames.len()),
        _ => {}
    }
    for (start, end) in frames {
        let total: i128 = (totals[*end as usize] - totals[*start as usize]).into();
        let count = counts[*end as usize] - counts[*start as usize];
        let found = match plain {
            _ if count == 0 => None,
            Some((low, high)) if (low..=high).contains(&total) => Some(total),
            _ => Accumulator::of_total(of, argument, total, count.into()).finish()?.as_integer(),
        };
        match &mut out {
            Values::Wide(out) => out.push(found.unwrap_or(0)),
            Values::Int(out) => out.push(found.unwrap_or(0) as i64),
            _ => return Err(Error::internal("a sum of integers is one")),
        }
        valid.push(u8::from(found.is_some()));
    }
    Ok(Vector { values: out, valid: valid.contains(&0).then_some(valid) })
}

/// Brings the state of each frame to `emit`. Rows from `split` on are in `running`; of those before, `older` has the states from each to
/// `split`, the nearest first.
fn slide<S: Copy>(
    frames: &[(u32, u32)],
    empty: S,
    leaf: impl Fn(usize) -> S,
    merge: impl Fn(S, S) -> S,
    mut emit: impl FnMut(S),
) {
    let (mut split, mut behind) = (0, 0);
    let (mut older, mut running) = (Vec::new(), empty);
    for (start, end) in frames.iter().map(|(start, end)| (*start as usize, *end as usize)) {
        if start >= end {
            emit(empty);
            continue;
        }
        while behind < end {
            running = merge(running, leaf(behind));
            behind += 1;
        }
        if start > split {
            older.clear();
            let mut state = empty;
            for row in (start..behind).rev() {
                state = merge(leaf(row), state);
                older.push(state);
            }
            (split, running) = (behind, empty);
        }
        emit(if start < split { merge(older[split - 1 - start], running) } else { running });
    }
}

/// Takes the rows of each frame into the reference's accumulator, again from the beginning where a frame begins later.
fn one_by_one(input: &Input<'_>, frames: &[(u32, u32)]) -> Result<Vector> {
    let fresh = || Accumulator::new(input.of, input.argument.map(|(_, kind)| kind));
    let mut out = Vector::empty(&input.of.kind);
    let (mut state, mut from, mut to) = (fresh(), 0, 0);
    for (start, end) in frames {
        if *start != from || *end < to {
            (state, from, to) = (fresh(), *start, *start);
        }
        for row in to..*end {
            let row = row as usize;
            if input.passes(row) {
                state.update(&input.argument.map_or(Value::Null, |(vector, kind)| vector.value(row, kind)))?;
            }
        }
        to = *end;
        out.push(&state.finish()?);
    }
    Ok(out)
}
