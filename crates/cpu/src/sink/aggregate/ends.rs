//! The first or last row of each group in an order: rows that cannot be it are left out as they come.
//!
//! Of each group the place of the best row so far is known, an integer that compares as the order's first key. A row behind it is
//! dropped; one at the same place is kept, unless it is sure to come later. What is kept of random rows is a few of each group.

use std::{cmp::Ordering, rc::Rc};

use tandem_pipeline::{Aggregate, AggregateFunction, Value};

use super::accumulator::GroupOf;
use crate::{
    Vector,
    sink::order::place::{NO_PLACE, OWN, PlaceOf},
};

/// What is known of the rows at one end of groups.
#[derive(Debug)]
pub(super) struct Ends {
    /// The last row is wanted.
    last: bool,
    /// The best place of each group so far.
    places: Vec<u64>,
    place_of: PlaceOf,
    /// When the newest rows came.
    newest: u64,
    /// How many rows are kept before it is looked at which of them are still wanted.
    pub(super) next_cut: usize,
}

impl Ends {
    /// The least rows that are looked at again.
    pub(super) const CUT_FROM: usize = 1 << 14;

    /// Makes none yet, where an aggregate wants one end of groups.
    pub(super) fn new(aggregate: &Aggregate) -> Option<Ends> {
        let last = match (aggregate.function, &aggregate.parameter) {
            (AggregateFunction::Nth, Value::Integer(1)) => false,
            (AggregateFunction::Nth, Value::Integer(-1)) => true,
            _ => return None,
        };
        let (places, place_of) = (Vec::new(), PlaceOf::default());
        Some(Ends { last, places, place_of, newest: 0, next_cut: Ends::CUT_FROM })
    }

    /// Returns which rows, of all or of those chosen, may be wanted, given the first key and when they came; `None` if there is
    /// no telling.
    pub(super) fn select(
        &mut self,
        aggregate: &Aggregate,
        groups: GroupOf<'_>,
        rows: usize,
        chosen: Option<&[u32]>,
        (key, came): (Option<&Rc<Vector>>, u64),
    ) -> Option<Vec<u32>> {
        let (mut places, own) = match (aggregate.order.first(), key) {
            (Some(order), Some(vector)) => self.place_of.rows(order, vector)?,
            // Rows are ordered by when they came.
            _ => (vec![OWN.start; rows], true),
        };
        if self.last {
            places.iter_mut().for_each(|place| *place = !*place);
        }
        // Rows of an earlier morsel come before those of a later one, whichever a worker meets first.
        let newest = came >= self.newest;
        self.newest = self.newest.max(came);
        let drop_equal = own && aggregate.order.len() <= 1 && !self.last && newest;
        let mut selected = Vec::new();
        let mut look = |row: u32| {
            let (place, group) = (places[row as usize], groups.of(row as usize));
            if group >= self.places.len() {
                self.places.resize(group + 1, NO_PLACE);
            }
            let best = &mut self.places[group];
            let keeps = match place.cmp(best) {
                Ordering::Less => true,
                Ordering::Equal => !drop_equal || !OWN.contains(&place),
                Ordering::Greater => false,
            };
            if keeps {
                *best = place;
                selected.push(row);
            }
        };
        match chosen {
            Some(chosen) => chosen.iter().for_each(|row| look(*row)),
            None => (0..rows as u32).for_each(look),
        }
        Some(selected)
    }

    pub(super) fn byte_len(&self) -> usize {
        self.places.len() * size_of::<u64>()
    }
}
