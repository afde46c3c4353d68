//! Medians and quantiles of groups: from values to integers in their order, and back.

use tandem_column::{Repr, Result, Type, float_order, from_float_order};
use tandem_pipeline::{Aggregate, AggregateFunction, scalar::quantile};

use super::{
    accumulator::GroupOf,
    lists::{Answer, ValueLists, answer_large},
};
use crate::{Values, Vector, settings::ParallelTasks};

/// The values of all groups.
#[derive(Debug)]
pub(super) struct Quantiles {
    place: Place,
    repr: Repr,
    lists: Lists,
}

/// Which values of a group are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Those in the middle.
    Middle,
    /// Those that a quantile of this fraction lies between.
    Between(f64),
    /// The one at a fraction.
    At(f64),
}

impl Place {
    fn new(aggregate: &Aggregate) -> Place {
        match (aggregate.function, aggregate.parameter.as_float()) {
            (AggregateFunction::QuantileDiscrete, Some(fraction)) => Place::At(fraction),
            (_, Some(fraction)) => Place::Between(fraction),
            (_, None) => Place::Middle,
        }
    }

    /// Returns the places, of so many values in order, and how far the result is from the first to the second.
    pub(super) fn of(self, count: usize) -> Option<(usize, usize, f64)> {
        match self {
            Place::Middle => quantile::middle(count).map(|(low, high)| (low, high, 0.5)),
            Place::Between(fraction) => quantile::place(count, fraction),
            Place::At(fraction) => quantile::discrete_place(count, fraction).map(|place| (place, place, 0.0)),
        }
    }
}

#[derive(Debug)]
enum Lists {
    Narrow(ValueLists<i64>),
    Wide(ValueLists<i128>),
}

/// Does the same with either kind of lists.
macro_rules! either {
    ($lists:expr, $list:ident => $does:expr) => {
        match $lists {
            Lists::Narrow($list) => $does,
            Lists::Wide($list) => $does,
        }
    };
}

impl Quantiles {
    pub(super) fn new(aggregate: &Aggregate, argument: &Type) -> Quantiles {
        let lists = match argument.repr() {
            Repr::Wide => Lists::Wide(ValueLists::default()),
            _ => Lists::Narrow(ValueLists::default()),
        };
        Quantiles { place: Place::new(aggregate), repr: argument.repr(), lists }
    }

    /// Makes room for so many groups.
    pub(super) fn resize(&mut self, groups: usize) {
        either!(&mut self.lists, lists => lists.resize(groups));
    }

    /// Adds values, of which those in the mask count.
    pub(super) fn push(&mut self, groups: GroupOf<'_>, rows: usize, vector: &Vector, mask: Option<&[u8]>) {
        match (&mut self.lists, &vector.values) {
            (Lists::Narrow(lists), Values::Float(values)) => {
                lists.push(groups, rows, mask, values.iter().map(|value| float_order(*value)));
            }
            (Lists::Narrow(lists), Values::Int(values)) => lists.push(groups, rows, mask, values.iter().copied()),
            (Lists::Wide(lists), Values::Wide(values)) => lists.push(groups, rows, mask, values.iter().copied()),
            // No other type has values between its values; all of these are null.
            _ => {}
        }
    }

    /// Adds values of one group, as integers in their order.
    pub(super) fn add(&mut self, group: u32, values: &[i128]) {
        let groups = vec![group; values.len()];
        match &mut self.lists {
            Lists::Narrow(lists) => {
                lists.push(GroupOf::Each(&groups), values.len(), None, values.iter().map(|value| *value as i64));
            }
            Lists::Wide(lists) => lists.push(GroupOf::Each(&groups), values.len(), None, values.iter().copied()),
        }
    }

    /// Puts groups in another order, or keeps some: those of these numbers.
    pub(super) fn arrange(&mut self, groups: &[u32]) {
        either!(&mut self.lists, lists => lists.arrange(groups));
    }

    /// Prepares for being merged, in tasks of 2^`shift` groups, or for results.
    pub(super) fn seal(&mut self, shift: u32) {
        either!(&mut self.lists, lists => lists.seal(shift));
    }

    /// Adds the values of groups of others: the group `from` becomes group `to` for each pair.
    pub(super) fn merge(&mut self, other: &Quantiles, pairs: &[(u32, u32)]) {
        match (&mut self.lists, &other.lists) {
            (Lists::Narrow(lists), Lists::Narrow(others)) => lists.merge(others, pairs),
            (Lists::Wide(lists), Lists::Wide(others)) => lists.merge(others, pairs),
            _ => {}
        }
    }

    /// Answers for large groups, which are work for all workers.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn answer_large(of: &[&Quantiles], parallel: ParallelTasks<'_>) -> Result<Vec<(u32, Answer)>> {
        let place = of.first().map_or(Place::Middle, |first| first.place);
        let (mut narrow, mut wide) = (Vec::new(), Vec::new());
        for quantiles in of {
            match &quantiles.lists {
                Lists::Narrow(lists) => narrow.push(lists),
                Lists::Wide(lists) => wide.push(lists),
            }
        }
        // All are of one kind.
        if wide.is_empty() { answer_large(&narrow, place, parallel) } else { answer_large(&wide, place, parallel) }
    }

    /// Takes the answer for a group, whose values are then left out.
    pub(super) fn answer(&mut self, group: u32, answer: Answer) {
        either!(&mut self.lists, lists => lists.answer(group, answer));
    }

    /// Returns the results of some groups, of a type.
    ///
    /// # Errors
    /// Cancellation.
    pub(super) fn finish(&self, kind: &Type, groups: &[u32]) -> Result<Vector> {
        let answers = either!(&self.lists, lists => lists.finish(self.place, groups))?;
        let valid: Vec<u8> = answers.iter().map(|answer| u8::from(answer.count > 0)).collect();
        let values = match self.repr {
            Repr::Float => Values::Float(answers.iter().map(|answer| self.float(answer, kind)).collect()),
            Repr::Wide => Values::Wide(answers.iter().map(|answer| self.integer(answer)).collect()),
            Repr::Int => Values::Int(answers.iter().map(|answer| self.integer(answer) as i64).collect()),
            _ => return Ok(Vector::nulls(kind, groups.len())),
        };
        Ok(Vector { values, valid: valid.contains(&0).then_some(valid) })
    }

    fn float(&self, answer: &Answer, kind: &Type) -> f64 {
        if answer.count == 0 {
            return 0.0;
        }
        let (low, high) = (from_float_order(answer.low as i64), from_float_order(answer.high as i64));
        match (self.place.of(answer.count), self.place) {
            (Some((first, second, weight)), Place::Between(_)) if first < second => {
                quantile::between(low, high, weight, kind)
            }
            (Some((first, second, _)), Place::Middle) if first < second => quantile::half_of_floats(low, high, kind),
            _ => low,
        }
    }

    /// Returns an integer: half of the two in the middle, or the one at a fraction; what lies between others are floats.
    fn integer(&self, answer: &Answer) -> i128 {
        quantile::half_of_integers(answer.low, answer.high)
    }

    pub(super) fn byte_len(&self) -> usize {
        either!(&self.lists, lists => lists.byte_len())
    }
}
