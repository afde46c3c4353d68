//! What others computed of some of a group's rows, added to its state: devices' groups, and states of a partial aggregation.

use std::rc::Rc;

use arrow_buffer::i256;
use tandem_column::{Error, Result};
use tandem_pipeline::{
    AggregateFunction,
    scalar::{aggregate::Moments, pairs::PairMoments},
};

use super::{
    accumulator::{GroupAccumulators, GroupOf, State, combine},
    update::{both, for_rows},
};
use crate::{Values, Vector};

/// What others computed of one aggregate over some rows of one group.
#[derive(Clone, Copy, Debug)]
pub enum Partial<'p> {
    /// How many rows contributed.
    Count(i64),
    /// An exact sum.
    Sum {
        /// The sum.
        sum: i256,
        /// How many rows contributed.
        count: i64,
    },
    /// A sum of floats.
    FloatSum {
        /// The sum.
        sum: f64,
        /// How many rows contributed.
        count: i64,
    },
    /// The smallest or largest value.
    Best {
        /// The value; any, if no row contributed.
        best: Best<'p>,
        /// How many rows contributed.
        count: i64,
    },
    /// Count, mean and squared distances from it.
    Moments(Moments),
    /// The same of pairs.
    Pairs(PairMoments),
    /// Combined bits.
    Bits {
        /// The bits; any, if no row contributed.
        bits: i128,
        /// How many rows contributed.
        count: i64,
    },
    /// The only values that a median or quantile is of, as integers in the values' order.
    Values(&'p [i128]),
}

/// A smallest or largest value, by representation.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug)]
pub enum Best<'p> {
    Integer(i64),
    Wide(i128),
    Float(f64),
    Bytes(&'p [u8]),
}

impl Partial<'_> {
    fn count(&self) -> i64 {
        match self {
            Partial::Count(count)
            | Partial::Sum { count, .. }
            | Partial::FloatSum { count, .. }
            | Partial::Best { count, .. }
            | Partial::Bits { count, .. } => *count,
            Partial::Moments(moments) => moments.count,
            Partial::Pairs(pairs) => pairs.count,
            Partial::Values(values) => values.len() as i64,
        }
    }
}

impl GroupAccumulators {
    /// Adds what others computed of some of a group's rows.
    pub(super) fn add(&mut self, group: usize, partial: Partial<'_>) {
        let smallest = self.smallest();
        if self.counted {
            self.counts[group] += partial.count();
        }
        match (&mut self.state, partial) {
            (State::Int(sums), Partial::Sum { sum, .. }) => sums[group] += sum.as_i128() as i64,
            (State::Wide(sums), Partial::Sum { sum, .. }) => sums[group] = sums[group].wrapping_add(sum),
            (State::Float(sums), Partial::FloatSum { sum, .. }) => sums[group] += sum,
            (State::Spread(spread), Partial::Moments(moments)) => spread[group].merge(moments),
            (State::Pairs(pairs), Partial::Pairs(more)) => pairs[group].merge(more),
            (State::Quantiles(quantiles), Partial::Values(values)) => quantiles.add(group as u32, values),
            // A group that no value reached holds none.
            (_, Partial::Best { count: 0, .. } | Partial::Bits { count: 0, .. }) => {}
            (State::Bits(bits), Partial::Bits { bits: more, .. }) => {
                combine(self.aggregate.function, &mut bits[group], more);
            }
            (State::Best(best), Partial::Best { best: Best::Integer(value), .. }) => {
                best[group] = if smallest { best[group].min(value) } else { best[group].max(value) };
            }
            (State::BestWide(best), Partial::Best { best: Best::Wide(value), .. }) => {
                best[group] = if smallest { best[group].min(value) } else { best[group].max(value) };
            }
            (State::BestFloat(best), Partial::Best { best: Best::Float(value), .. }) => {
                let order = value.total_cmp(&best[group]);
                if if smallest { order.is_lt() } else { order.is_gt() } {
                    best[group] = value;
                }
            }
            (State::BestBytes(best), Partial::Best { best: Best::Bytes(value), count }) => {
                let better = if smallest { value < best[group].as_slice() } else { value > best[group].as_slice() };
                if self.counts[group] == count || better {
                    let before = best[group].capacity();
                    best[group].clear();
                    best[group].extend_from_slice(value);
                    self.text += best[group].capacity() - before;
                }
            }
            // Counts are all there is to count.
            _ => debug_assert!(matches!(self.state, State::Count), "others keep what is kept here"),
        }
    }

    /// Adds states of a partial aggregation, laid out as [`AggregateFunction::state`] says; only rows with `mask` set
    /// contribute.
    pub(super) fn update_states(
        &mut self,
        groups: GroupOf<'_>,
        rows: usize,
        states: &[Rc<Vector>],
        mask: Option<&[u8]>,
    ) -> Result<()> {
        let integers = |vector: &Vector| match &vector.values {
            Values::Int(values) => Ok(values.clone()),
            _ => Err(Error::internal("the count of a partial aggregation is an integer")),
        };
        match (self.aggregate.function, states) {
            (AggregateFunction::CountRows | AggregateFunction::Count, [counts]) => {
                let (counted, mask) = (integers(counts)?, both(counts, mask));
                for_rows(rows, mask.as_deref(), |row| self.counts[groups.of(row)] += counted[row]);
            }
            (AggregateFunction::Average, [sums, counts]) => {
                self.add_values(groups, rows, Some(sums), both(sums, mask).as_deref());
                let (counted, mask) = (integers(counts)?, both(counts, mask));
                for_rows(rows, mask.as_deref(), |row| self.counts[groups.of(row)] += counted[row]);
            }
            (AggregateFunction::First, [values]) => {
                self.keep_first(groups, rows, values, both(values, mask).as_deref());
            }
            (_, [counts, means, squares]) => {
                let (State::Spread(spread), Values::Float(means), Values::Float(squares)) =
                    (&mut self.state, &means.values, &squares.values)
                else {
                    return Err(Error::internal("the moments of a partial aggregation are floats"));
                };
                let (counted, mask) = (integers(counts)?, both(counts, mask));
                for_rows(rows, mask.as_deref(), |row| {
                    let (count, mean, squares) = (counted[row], means[row], squares[row]);
                    spread[groups.of(row)].merge(Moments { count, mean, squares });
                });
            }
            (_, [counts, floats @ ..]) if floats.len() == 5 => {
                let State::Pairs(pairs) = &mut self.state else {
                    return Err(Error::internal("the moments of pairs belong to an aggregate of pairs"));
                };
                let float = |of: usize, row: usize| match &floats[of].values {
                    Values::Float(values) => values[row],
                    _ => 0.0,
                };
                let (counted, mask) = (integers(counts)?, both(counts, mask));
                for_rows(rows, mask.as_deref(), |row| {
                    pairs[groups.of(row)].merge(PairMoments {
                        count: counted[row],
                        mean_y: float(0, row),
                        mean_x: float(1, row),
                        squares_y: float(2, row),
                        squares_x: float(3, row),
                        products: float(4, row),
                    });
                });
            }
            // A sum of sums, the smallest of the smallest, and so on.
            (_, [_]) => self.update(groups, rows, states, mask, 0),
            _ => return Err(Error::internal("an aggregate has the states that its function says")),
        }
        Ok(())
    }
}
