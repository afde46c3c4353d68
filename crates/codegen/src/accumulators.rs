//! What a group holds: the numbers that each aggregate takes, and what they are before the first row.

use tandem_column::{Error, Repr, Result};
use tandem_pipeline::{Aggregate, AggregateFunction};
use tandem_plan::{Body, sink::PlannedAggregate};

use crate::{AccumulatorWords, BitOperation, ROWS_COUNT, sink::PAIR_NUMBERS};

/// How work-items add to groups.
#[derive(Clone, Copy)]
pub(crate) struct Sharing {
    /// They have one table; what takes more than one atomic operation is computed elsewhere then.
    pub(crate) shared: bool,
    /// They have no operations on more than 32 bits for it.
    pub(crate) words: bool,
}

impl Sharing {
    fn check(self, what: &str) -> Result<()> {
        match self.words {
            false => Ok(()),
            true => Err(Error::unsupported(format!("the device has no atomic operations on 64 bits, for {what}"))),
        }
    }
}

/// Lays out what a group holds; returns it with the width of a group.
pub(crate) fn lay_out(
    body: &Body,
    aggregates: &[PlannedAggregate],
    sharing: Sharing,
) -> Result<(Vec<AccumulatorWords>, usize)> {
    let mut width = ROWS_COUNT + 1;
    let mut take = |numbers: usize| {
        width += numbers;
        width - numbers
    };
    let all = aggregates.iter().map(|planned| accumulator(body, planned, sharing, &mut take));
    let all = all.collect::<Result<Vec<_>>>()?;
    Ok((all, width))
}

/// Lays out one aggregate, taking as many numbers as it needs.
fn accumulator(
    body: &Body,
    planned: &PlannedAggregate,
    sharing: Sharing,
    take: &mut dyn FnMut(usize) -> usize,
) -> Result<AccumulatorWords> {
    use AggregateFunction as F;
    let PlannedAggregate { aggregate, narrow, .. } = planned;
    let function = aggregate.function;
    let repr = aggregate.argument.map_or(Repr::Int, |slot| body.slots[slot].kind.repr());
    let in_order = matches!(function, F::Median | F::Quantile)
        || sharing.shared && repr == Repr::Wide && matches!(function, F::Min | F::Max);
    if planned.of_distinct() || in_order {
        return Ok(AccumulatorWords::Elsewhere);
    }
    // States come with counts of their own.
    let counts = planned.of_states && matches!(function, F::CountRows | F::Count | F::Average);
    let moments = function.is_spread() || function.is_of_pairs();
    let mut arguments = aggregate.argument.into_iter().chain(aggregate.second);
    let everyone = aggregate.filter.is_none() && arguments.all(|slot| !body.slots[slot].nullable);
    let count = if everyone && !moments && !counts { ROWS_COUNT } else { take(1) };
    let known = aggregate.argument.is_some_and(|slot| body.range(slot).is_some());
    let integers = aggregate.argument.is_some_and(|slot| body.slots[slot].kind.is_integer());
    Ok(match (function, repr) {
        (F::CountRows | F::Count, _) => AccumulatorWords::Count(count),
        (F::Sum | F::Average, Repr::Float) => {
            sharing.check("a sum of floats")?;
            AccumulatorWords::FloatSum { sum: take(1), count }
        }
        (F::Average, Repr::Int | Repr::Wide) if integers => {
            sharing.check("a sum of floats")?;
            AccumulatorWords::FloatSum { sum: take(1), count }
        }
        (F::Sum | F::Average, Repr::Int | Repr::Wide) if *narrow => AccumulatorWords::Sum { sum: take(1), count },
        (F::Sum | F::Average, Repr::Int) => AccumulatorWords::WideSum { low: take(1), high: take(1), count },
        // A known range is one of 64 bits.
        (F::Sum | F::Average, Repr::Wide) if known => AccumulatorWords::WideSum { low: take(1), high: take(1), count },
        (F::Sum | F::Average, Repr::Wide) => AccumulatorWords::LimbSum { first: take(4), count },
        (F::Min | F::Max, Repr::Wide) => {
            AccumulatorWords::WideBest { low: take(1), high: take(1), count, smallest: function == F::Min }
        }
        (F::BitAnd | F::BitOr | F::BitXor, Repr::Int | Repr::Wide) => {
            let by = match function {
                F::BitAnd => BitOperation::And,
                F::BitOr => BitOperation::Or,
                _ => BitOperation::Xor,
            };
            let low = take(1);
            AccumulatorWords::Bits { low, high: (repr == Repr::Wide).then(|| take(1)), count, by }
        }
        (function, Repr::Float | Repr::Int | Repr::Wide) if function.is_spread() => {
            sharing.check("a variance")?;
            AccumulatorWords::Spread { center: take(1), sum: take(1), squares: take(1), count }
        }
        (function, Repr::Float | Repr::Int | Repr::Wide) if function.is_of_pairs() => {
            sharing.check("the moments of pairs")?;
            AccumulatorWords::Pairs { first: take(PAIR_NUMBERS), count }
        }
        // Codes of a sorted dictionary are in the order of its words.
        (F::Min | F::Max, Repr::Int | Repr::Boolean | Repr::Float | Repr::Bytes)
        | (F::BoolAnd | F::BoolOr, Repr::Boolean) => {
            let smallest = matches!(function, F::Min | F::BoolAnd);
            AccumulatorWords::Best { best: take(1), count, smallest, from: lowest(body, aggregate, repr, sharing)? }
        }
        (function, _) => {
            return Err(Error::unsupported(format!("the aggregate {} is not on the device yet", function.name())));
        }
    })
}

/// Returns what values are counted from where there are only words of 32 bits: the lowest of a small range.
fn lowest(body: &Body, aggregate: &Aggregate, repr: Repr, sharing: Sharing) -> Result<Option<i64>> {
    match repr {
        _ if !sharing.words => Ok(None),
        Repr::Boolean | Repr::Bytes => Ok(Some(0)),
        _ => {
            let range = aggregate.argument.and_then(|slot| body.range(slot));
            let small = range.filter(|(low, high)| i128::from(*high) - i128::from(*low) <= u32::MAX.into());
            match small {
                Some((low, _)) => Ok(Some(low)),
                None => sharing.check("the smallest or largest value of a large range").map(|()| None),
            }
        }
    }
}
