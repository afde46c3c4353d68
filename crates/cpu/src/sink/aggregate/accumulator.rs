//! The running state of one aggregate for every group, as arrays indexed by group.

use arrow_buffer::i256;
use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{
    Aggregate, AggregateFunction, Value,
    scalar::{aggregate::Moments, pairs::PairMoments, sketch::Sketch},
};
use tandem_plan::sink::PlannedAggregate;

use super::{collected::Collected, lists::Answer, quantiles::Quantiles, sketches::Words};

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
pub(super) struct GroupAccumulators {
    pub(super) aggregate: Aggregate,
    pub(super) argument: Type,
    /// The type of the second of a pair.
    pub(super) second: Type,
    pub(super) state: State,
    /// How many rows contributed to each group; not kept where every row does (see `counted`).
    pub(super) counts: Vec<i64>,
    pub(super) counted: bool,
    /// Bytes of the texts and sketches that are kept.
    pub(super) text: usize,
    /// The hashes of a dictionary's words, for sketches.
    pub(super) words: Words,
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
    /// Counts, means, squared distances and products of them.
    Pairs(Vec<PairMoments>),
    /// Combined bits of integers.
    Bits(Vec<i128>),
    Sketches(Vec<Sketch>),
    /// All values, for places of their order.
    Quantiles(Quantiles),
    /// All values, and what they are ordered by.
    Collected(Collected),
    First(Vec<Option<Value>>),
}

impl GroupAccumulators {
    /// Makes the state of no group.
    pub(super) fn new(planned: &PlannedAggregate) -> GroupAccumulators {
        use AggregateFunction as F;
        let PlannedAggregate { aggregate, argument, second, narrow, total, counted_by, .. } = planned;
        let counted = match aggregate.function {
            F::CountRows | F::Count | F::Average => counted_by.is_none(),
            F::VarianceSample | F::VariancePopulation | F::DeviationSample | F::DeviationPopulation | F::First => false,
            F::Min | F::Max if argument.repr() == Repr::Bytes => true,
            F::CountApproximate => false,
            function if function.is_of_pairs() || function.is_holistic() => false,
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
            (F::BitAnd | F::BitOr | F::BitXor, _) => State::Bits(Vec::new()),
            (F::CountApproximate, _) => State::Sketches(Vec::new()),
            (function, _) if function.is_of_pairs() => State::Pairs(Vec::new()),
            (F::QuantileDiscrete, Repr::Bytes | Repr::Boolean) => State::Collected(Collected::new(aggregate, argument)),
            (F::Median | F::Quantile | F::QuantileDiscrete, _) => State::Quantiles(Quantiles::new(aggregate, argument)),
            (function, _) if function.is_holistic() => State::Collected(Collected::new(aggregate, argument)),
            _ => State::Spread(Vec::new()),
        };
        let (aggregate, argument, second) = (aggregate.clone(), argument.clone(), second.clone());
        GroupAccumulators {
            aggregate,
            argument,
            second,
            state,
            counts: Vec::new(),
            counted,
            text: 0,
            words: Words::default(),
        }
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
            State::Pairs(pairs) => pairs.resize(groups, PairMoments::default()),
            State::Bits(bits) => bits.resize(groups, no_bits(self.aggregate.function)),
            State::Sketches(sketches) => sketches.resize(groups, Sketch::default()),
            State::Quantiles(quantiles) => quantiles.resize(groups),
            State::Collected(collected) => collected.resize(groups),
            State::First(first) => first.resize(groups, None),
        }
    }

    /// Adds another worker's state: its group `from` becomes group `to` for each pair.
    pub(super) fn merge(&mut self, other: &GroupAccumulators, pairs: &[(u32, u32)]) {
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
            (State::Pairs(a), State::Pairs(b)) => each(&mut |from, to| a[to].merge(b[from])),
            (State::Bits(a), State::Bits(b)) => {
                let function = self.aggregate.function;
                each(&mut |from, to| combine(function, &mut a[to], b[from]));
            }
            (State::Sketches(a), State::Sketches(b)) => each(&mut |from, to| a[to].merge(&b[from])),
            (State::Quantiles(a), State::Quantiles(b)) => a.merge(b, pairs),
            (State::Collected(a), State::Collected(b)) => a.merge(b, pairs),
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
            State::Pairs(pairs) => pick(pairs, groups),
            State::Bits(bits) => pick(bits, groups),
            State::Sketches(sketches) => pick(sketches, groups),
            State::Quantiles(quantiles) => quantiles.arrange(groups),
            State::Collected(collected) => collected.arrange(groups),
            State::First(first) => pick(first, groups),
        }
    }

    /// Prepares for being merged, in tasks of 2^`shift` groups, or for results.
    pub(super) fn seal(&mut self, shift: u32) {
        match &mut self.state {
            State::Quantiles(quantiles) => quantiles.seal(shift),
            State::Collected(collected) => collected.seal(),
            _ => {}
        }
    }

    /// Takes what is known of a group's quantile.
    pub(super) fn answer(&mut self, group: u32, answer: Answer) {
        if let State::Quantiles(quantiles) = &mut self.state {
            quantiles.answer(group, answer);
        }
    }

    /// Checks that no group has more values than can be kept.
    ///
    /// # Errors
    /// Exhausted.
    pub(super) fn check(&self) -> Result<()> {
        if let State::Collected(collected) = &self.state { collected.check() } else { Ok(()) }
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
            State::Pairs(v) => v.len(),
            State::Bits(v) => v.len(),
            State::Sketches(v) => v.len(),
            State::Quantiles(_) | State::Collected(_) => 0,
            State::First(v) => v.len(),
        }
    }

    /// Returns about how many bytes the state takes.
    pub(super) fn byte_len(&self) -> usize {
        let each = match &self.state {
            State::Count => 0,
            State::Int(_) | State::Float(_) | State::Best(_) | State::BestFloat(_) => 8,
            State::BestWide(_) | State::Bits(_) => 16,
            State::Spread(_) => size_of::<Moments>(),
            State::Wide(_) | State::Sketches(_) => 32,
            State::BestBytes(_) | State::First(_) | State::Pairs(_) => 48,
            State::Quantiles(quantiles) => return quantiles.byte_len(),
            State::Collected(collected) => return collected.byte_len(),
        };
        self.size() * each + self.counts.len() * 8 + self.text
    }
}

/// Returns the bits that change none they are combined with.
fn no_bits(function: AggregateFunction) -> i128 {
    if function == AggregateFunction::BitAnd { -1 } else { 0 }
}

/// Combines bits with those of one more value.
#[inline(always)]
pub(super) fn combine(function: AggregateFunction, bits: &mut i128, value: i128) {
    match function {
        AggregateFunction::BitAnd => *bits &= value,
        AggregateFunction::BitOr => *bits |= value,
        _ => *bits ^= value,
    }
}

fn worst(smallest: bool) -> f64 {
    // The ends of the total order: a NaN with all bits set of either sign.
    f64::from_bits(if smallest { u64::MAX >> 1 } else { u64::MAX })
}
