//! What one worker keeps of the rows it has seen: groups that fit a core's cache, and runs of those that no longer did.
//!
//! Hashed groups grow up to a limit. Then they are put in the order of their partitions and set aside as a run, and new groups
//! begin. So looking a key up stays within the cache, whatever the number of groups, and in the end each partition is merged
//! from all runs on its own. The limit grows where larger tables meet their groups again more often; where groups hardly
//! repeat, or repeat only within a short run of rows (sorted input), small tables do as well.

use std::{rc::Rc, sync::Arc};

use tandem_column::Result;
use tandem_plan::sink::{AggregatePlan, DistinctPlan, GroupLayout, PlacedKey};

use super::{
    accumulator::{GroupAccumulators, GroupOf},
    partial::Partial,
    places::{Places, dense_groups, dense_groups_of},
    table::GroupTable,
};
use crate::{MemoryBudget, Reservation, Values, Vector, frame::Frame, rows::Chunk};

/// Groups that are set aside as a run: their table and states fit a core's L2 cache.
const SMALL_RUN: usize = 1 << 14;
/// Groups of a larger run: a few MB, which still lie in a shared cache.
const LARGE_RUN: usize = 1 << 17;
/// Rows for each group of a small run from which a larger one is tried: evenly spread groups of eight runs repeat so often.
const WORTH_TRYING: f64 = 1.06;
/// By how much more often groups of a larger run must repeat for it to stay.
const WORTH_KEEPING: f64 = 1.5;

/// Groups and what is kept of each.
#[derive(Debug)]
pub(super) struct GroupSet {
    pub(super) table: Option<GroupTable>,
    /// Which places of an array have met a row.
    pub(super) met: Vec<u8>,
    pub(super) accumulators: Vec<GroupAccumulators>,
}

/// Groups in the order of their partitions.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) set: GroupSet,
    /// The first group of each partition, and the number of groups.
    pub(super) starts: Vec<u32>,
}

/// The groups of some rows.
#[derive(Debug)]
pub struct Groups {
    plan: Arc<AggregatePlan>,
    pub(super) set: GroupSet,
    pub(super) runs: Vec<Run>,
    /// The distinct values of aggregates that are computed of such.
    pub(super) distinct: Vec<Groups>,
    /// Rows that came so far: runs do not begin anew.
    pub(super) seen: u64,
    size: RunSize,
    /// Bytes of the runs.
    set_aside: usize,
    reservation: Reservation,
}

/// How many groups a run has, and how it came to that.
#[derive(Debug)]
struct RunSize {
    groups: usize,
    /// Rows since the last run.
    rows: usize,
    /// How often groups of a small run repeated.
    small: Option<f64>,
    settled: bool,
}

impl RunSize {
    /// Learns from a run of so many groups.
    fn learn(&mut self, groups: usize) {
        let repeats = std::mem::take(&mut self.rows) as f64 / groups.max(1) as f64;
        match self.small {
            _ if self.settled => {}
            None if repeats >= WORTH_TRYING => (self.small, self.groups) = (Some(repeats), LARGE_RUN),
            Some(small) => {
                self.settled = true;
                if repeats < small * WORTH_KEEPING {
                    self.groups = SMALL_RUN.min(self.groups);
                }
            }
            None => {}
        }
    }
}

impl GroupSet {
    pub(super) fn new(plan: &AggregatePlan) -> GroupSet {
        let (places, table) = match &plan.layout {
            GroupLayout::One => (1, None),
            GroupLayout::Array { groups, .. } => (*groups, None),
            GroupLayout::Hash(packing) => {
                (0, Some(GroupTable::new(packing.clone(), plan.key_kinds.clone(), plan.collide)))
            }
        };
        let mut set = GroupSet { met: vec![0; places], ..GroupSet::empty(plan, table) };
        set.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(places));
        set
    }

    pub(super) fn empty(plan: &AggregatePlan, table: Option<GroupTable>) -> GroupSet {
        GroupSet { table, met: Vec::new(), accumulators: plan.aggregates.iter().map(GroupAccumulators::new).collect() }
    }

    /// Makes states for the groups that the table has by now.
    pub(super) fn follow(&mut self) {
        let Some(groups) = self.table.as_ref().map(GroupTable::len) else { return };
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(groups));
    }

    /// Returns how many hashed groups there are.
    pub(super) fn hashed(&self) -> usize {
        self.table.as_ref().map_or(0, GroupTable::len)
    }

    /// Puts hashed groups in the order of their partitions.
    pub(super) fn into_run(mut self) -> Run {
        let (order, starts) = self.table.as_mut().map(GroupTable::partition).unwrap_or_default();
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.arrange(&order));
        Run { set: self, starts }
    }

    /// Prepares groups for being merged, in tasks of 2^`shift` of them, or for results.
    pub(super) fn seal(&mut self, shift: u32) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.seal(shift));
    }

    fn byte_len(&self) -> usize {
        let accumulators = self.accumulators.iter().map(GroupAccumulators::byte_len).sum::<usize>();
        self.table.as_ref().map_or(0, GroupTable::byte_len) + self.met.len() + accumulators
    }
}

impl Groups {
    /// Makes no groups yet, for vectors of so many rows: tests take small ones, and have small runs then.
    pub(in crate::sink) fn new(plan: &Arc<AggregatePlan>, memory: &Arc<MemoryBudget>, vector_rows: usize) -> Groups {
        let distinct = plan.distinct.iter().map(|distinct| Groups::new(&distinct.rows, memory, vector_rows));
        Groups {
            plan: plan.clone(),
            set: GroupSet::new(plan),
            runs: Vec::new(),
            distinct: distinct.collect(),
            seen: 0,
            size: RunSize { groups: SMALL_RUN.min(4 * vector_rows), rows: 0, small: None, settled: false },
            set_aside: 0,
            reservation: Reservation::new(memory, "the groups of an aggregation"),
        }
    }

    /// Returns the group of each active row; `None` where there is one group.
    pub(in crate::sink) fn groups(&mut self, frame: &Frame<'_>) -> Result<Option<Vec<u32>>> {
        let numbers = match (&self.plan.layout, &mut self.set.table) {
            (GroupLayout::Array { keys, .. }, _) => {
                let numbers = dense_groups(keys, frame)?;
                numbers.iter().for_each(|group| self.set.met[*group as usize] = 1);
                numbers
            }
            (_, Some(table)) => table.groups(frame)?,
            (_, None) => {
                self.set.met[0] = 1;
                return Ok(None);
            }
        };
        self.set.follow();
        Ok(Some(numbers))
    }

    /// Ends a vector of rows: takes memory, and sets groups aside that no longer fit the cache.
    pub(super) fn end_vector(&mut self, rows: usize) -> Result<()> {
        self.size.rows += rows;
        if self.set.hashed() >= self.size.groups {
            self.size.learn(self.set.hashed());
            let fresh = self.set.table.as_ref().map(GroupTable::fresh);
            let full = std::mem::replace(&mut self.set, GroupSet::empty(&self.plan, fresh));
            let run = full.into_run();
            self.set_aside += run.set.byte_len();
            self.runs.push(run);
        }
        self.reserve()
    }

    /// Takes the memory of the groups. When a table or a list grows, it is there once more in its new size.
    ///
    /// # Errors
    /// Exhausted if the memory budget is used up.
    pub fn reserve(&mut self) -> Result<()> {
        self.set.accumulators.iter().try_for_each(GroupAccumulators::check)?;
        self.reservation.grow_to(self.set_aside + 2 * self.set.byte_len())
    }

    /// Takes the memory of the groups out, to hold it while something is made of them.
    pub(crate) fn hand_over(&mut self) -> Reservation {
        self.reservation.split_off(usize::MAX)
    }

    /// Notes that a place of an array of groups has met a row: it is the group's number.
    pub fn meet(&mut self, place: usize) {
        self.set.met[place] = 1;
    }

    /// Returns the number of each group by its key values, making new ones as needed.
    pub fn number(&mut self, keys: &[Rc<Vector>], rows: usize) -> Vec<u32> {
        let numbers = match (&self.plan.layout, &mut self.set.table) {
            (GroupLayout::Array { keys: placed, .. }, _) => dense_groups_of(placed, keys, rows),
            (_, Some(table)) => table.groups_of(keys, rows),
            (_, None) => vec![0; rows],
        };
        match self.set.table {
            Some(_) => self.set.follow(),
            None => numbers.iter().for_each(|group| self.set.met[*group as usize] = 1),
        }
        numbers
    }

    /// Adds what others computed of one aggregate over some rows of a group.
    pub fn add(&mut self, aggregate: usize, group: usize, partial: Partial<'_>) {
        self.set.accumulators[aggregate].add(group, partial);
    }

    /// Returns the groups of distinct values: those of one of [`AggregatePlan::distinct`].
    pub fn distinct(&mut self, at: usize) -> &mut Groups {
        &mut self.distinct[at]
    }

    /// Adds distinct values to the aggregates that are computed of them.
    pub(super) fn add_distinct(&mut self, distinct: &DistinctPlan, chunk: Chunk) -> Result<()> {
        let keys = self.plan.keys.len();
        let vectors: Vec<Rc<Vector>> = chunk.vectors.into_iter().map(Rc::new).collect();
        let numbers = self.number(&vectors[..keys], chunk.rows);
        let filter = vectors.get(keys + 1).filter(|_| distinct.filtered);
        let mask = filter.map(|filter| truth(filter, chunk.rows));
        for aggregate in &distinct.aggregates {
            let accumulator = &mut self.set.accumulators[*aggregate];
            // Distinct values are ordered by nothing but themselves.
            let arguments = vec![vectors[keys].clone(); 1 + accumulator.aggregate.order.len()];
            accumulator.update(GroupOf::Each(&numbers), chunk.rows, &arguments, mask.as_deref(), 0);
        }
        self.end_vector(chunk.rows)
    }

    /// Returns the key values that stand at some places of a key.
    pub fn key_values(key: &PlacedKey, places: impl Iterator<Item = u64>, count: usize) -> Vector {
        key.values(places, count)
    }
}

/// Returns a byte for each row, set where a boolean is true.
pub(super) fn truth(vector: &Vector, rows: usize) -> Vec<u8> {
    let Values::Boolean(values) = &vector.values else { return vec![0; rows] };
    let valid = vector.valid.as_ref();
    (0..rows).map(|row| values[row] & valid.map_or(1, |valid| valid[row])).collect()
}
