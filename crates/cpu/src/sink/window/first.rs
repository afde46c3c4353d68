//! The first rows of each partition: what cannot be among them is dropped before its other columns are fetched.
//!
//! A worker numbers the partitions that it meets, and knows of each the places of its first rows so far: integers that compare as the
//! first key of the order, but need not tell all of its values apart. A row behind the last of them is dropped. What is left is
//! a little more than what is wanted; the sink sorts it. Where partitions have hardly more rows than are wanted, it gives up.

use std::sync::Arc;

use tandem_column::Result;
use tandem_pipeline::WindowFunction;
use tandem_plan::sink::{AggregatePlan, WindowPlan};

use crate::{
    Groups, MemoryBudget, Reservation,
    evaluate::Slots,
    frame::Frame,
    sink::order::place::{NO_PLACE, OWN, PlaceOf},
};

/// The most places that a worker keeps: 64 MB.
const MOST_PLACES: usize = 1 << 23;
/// Rows after which it is looked at whether partitions are large enough: a few for each of as many as a table finds quickly.
const FIRST_CHECK: usize = 1 << 20;

/// What one worker knows of the first rows of partitions.
#[derive(Debug)]
pub(crate) struct FirstRows {
    partitions: Groups,
    /// How many rows of each partition are wanted.
    wanted: usize,
    /// So many places of each partition, ascending.
    places: Vec<u64>,
    /// The partition and the place of each row that is kept.
    kept: Vec<(u32, u64)>,
    place_of: PlaceOf,
    seen: usize,
    met: usize,
    next_check: usize,
    reservation: Reservation,
}

impl FirstRows {
    /// Makes no rows yet, of partitions numbered as planned.
    pub(super) fn new(numbering: &Arc<AggregatePlan>, wanted: usize, memory: &Arc<MemoryBudget>) -> FirstRows {
        FirstRows {
            // Numbers are never set aside, so the size of vectors does not matter.
            partitions: Groups::new(numbering, memory, 1),
            wanted,
            places: Vec::new(),
            kept: Vec::new(),
            place_of: PlaceOf::default(),
            seen: 0,
            met: 0,
            next_check: FIRST_CHECK,
            reservation: Reservation::new(memory, "the first rows of partitions"),
        }
    }

    /// Returns which active rows may be among the first of their partition; `None` if there is no use in asking.
    ///
    /// # Errors
    /// An exhausted memory budget.
    pub(super) fn select(&mut self, plan: &WindowPlan, frame: &Frame<'_>) -> Result<Option<Vec<u32>>> {
        self.seen += frame.count();
        if self.seen >= self.next_check {
            self.next_check *= 2;
            if self.met.saturating_mul(2 * self.wanted) > self.seen {
                return Ok(None);
            }
        }
        let Some((places, own)) = self.places_of(plan, frame)? else { return Ok(None) };
        let numbers = self.partitions.groups(frame)?.unwrap_or_else(|| vec![0; frame.count()]);
        let partitions = numbers.iter().max().map_or(0, |last| *last as usize + 1);
        let length = partitions.saturating_mul(self.wanted);
        if length > MOST_PLACES {
            return Ok(None);
        }
        if self.places.len() < length {
            self.places.resize(length, NO_PLACE);
        }
        // Of rows that are equal in all keys, any are the first by number; by rank, they are so together.
        let equal_too = !own || !matches!(plan.functions[0].function, WindowFunction::RowNumber);
        let mut selected = Vec::new();
        for (row, (partition, place)) in (0..).zip(numbers.into_iter().zip(places)) {
            let first = &mut self.places[partition as usize * self.wanted..][..self.wanted];
            let last = first[self.wanted - 1];
            if place > last || place == last && !equal_too && OWN.contains(&place) {
                continue;
            }
            self.met += usize::from(first[0] == NO_PLACE);
            let mut at = self.wanted - 1;
            while at > 0 && first[at - 1] > place {
                first[at] = first[at - 1];
                at -= 1;
            }
            first[at] = place;
            selected.push(row);
            self.kept.push((partition, place));
        }
        self.partitions.reserve()?;
        self.reservation
            .grow_to(size_of::<u64>() * self.places.capacity() + size_of::<(u32, u64)>() * self.kept.capacity())?;
        Ok(Some(selected))
    }

    /// Returns which of the rows that are kept still may be among the first of their partition.
    pub(super) fn left(&self) -> Vec<u32> {
        let last = |partition: u32| self.places[(partition as usize + 1) * self.wanted - 1];
        let left = self.kept.iter().zip(0..).filter(|((partition, place), _)| *place <= last(*partition));
        left.map(|(_, row)| row).collect()
    }

    /// Keeps only some of the rows.
    pub(super) fn retain(&mut self, rows: &[u32]) {
        self.kept = rows.iter().map(|row| self.kept[*row as usize]).collect();
    }

    /// Returns the place of each active row, and whether each stands for one value of all keys; `None` if text comes in several ways.
    fn places_of(&mut self, plan: &WindowPlan, frame: &Frame<'_>) -> Result<Option<(Vec<u64>, bool)>> {
        let Some(key) = plan.order.first() else { return Ok(Some((vec![OWN.start; frame.count()], true))) };
        let vector = frame.vector(key.slot)?;
        let places = self.place_of.rows(key, &vector);
        Ok(places.map(|(places, own)| (places, own && plan.order.len() == 1)))
    }
}
