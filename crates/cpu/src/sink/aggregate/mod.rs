//! Groups: an array of them where keys have few places, a hash table otherwise.

mod accumulator;
mod groups;
mod partial;

use std::{
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use accumulator::{Accumulator, Groups as GroupOf};
use groups::{GroupTable, Places, dense_groups, dense_values};
use tandem_column::{Result, Table};
use tandem_pipeline::{AggregateFunction, Phase, SlotId};
use tandem_plan::sink::{AggregatePlan, GroupLayout, PlannedAggregate};

pub use partial::{Best, Partial};

use super::{Finishing, SinkOperator};
use crate::{
    Contents, Error, MemoryBudget, PipelineOutput, Reservation, Values, Vector,
    evaluate::Slots,
    frame::Frame,
    rows::{Chunk, to_table},
    settings::ParallelTasks,
};

/// From this many groups on, workers' tables are merged in parallel shares of the key space.
const PARALLEL_GROUPS: usize = 1 << 14;

pub(super) struct AggregateSink {
    pub(super) plan: Arc<AggregatePlan>,
    pub(super) memory: Arc<MemoryBudget>,
}

/// The groups of some rows.
#[derive(Debug)]
pub struct Groups {
    table: Option<GroupTable>,
    /// Which places of an array have met a row.
    met: Vec<u8>,
    accumulators: Vec<Accumulator>,
    reservation: Reservation,
}

impl Groups {
    fn new(plan: &Arc<AggregatePlan>, memory: &Arc<MemoryBudget>) -> Groups {
        let (places, table) = match &plan.layout {
            GroupLayout::One => (1, None),
            GroupLayout::Array { groups, .. } => (*groups, None),
            GroupLayout::Hash(packing) => {
                (0, Some(GroupTable::new(packing.clone(), plan.key_kinds.clone(), plan.collide)))
            }
        };
        let mut groups = Groups::empty(plan, memory, table);
        groups.met = vec![0; places];
        groups.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(places));
        groups
    }

    fn empty(plan: &Arc<AggregatePlan>, memory: &Arc<MemoryBudget>, table: Option<GroupTable>) -> Groups {
        let accumulators = plan.aggregates.iter().map(|planned| {
            Accumulator::new(&planned.aggregate, planned.argument.clone(), planned.narrow, planned.total)
        });
        let reservation = Reservation::new(memory, "the groups of an aggregation");
        Groups { table, met: Vec::new(), accumulators: accumulators.collect(), reservation }
    }

    /// Takes the memory of the groups. When a table or a list grows, it is there once more in its new size.
    ///
    /// # Errors
    /// Exhausted if the memory budget is used up.
    pub fn reserve(&mut self) -> Result<()> {
        let accumulators = self.accumulators.iter().map(Accumulator::byte_len).sum::<usize>();
        let bytes = self.table.as_ref().map_or(0, GroupTable::byte_len) + accumulators;
        self.reservation.grow_to(2 * bytes)
    }

    /// Takes the memory of the groups out, to hold it while something is made of them.
    pub(crate) fn hand_over(&mut self) -> Reservation {
        self.reservation.split_off(usize::MAX)
    }

    /// Notes that a place of an array of groups has met a row: it is the group's number.
    pub fn meet(&mut self, place: usize) {
        self.met[place] = 1;
    }

    /// Returns the number of each hashed group by its key values, making new ones as needed.
    ///
    /// # Errors
    /// Internal if groups are not hashed.
    pub fn number(&mut self, keys: &[Rc<Vector>], rows: usize) -> Result<Vec<u32>> {
        let table = self.table.as_mut().ok_or_else(|| Error::internal("groups that are not hashed have places"))?;
        let numbers = table.groups_of(keys, rows);
        let groups = table.len();
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(groups));
        Ok(numbers)
    }

    /// Adds what others computed of one aggregate over some rows of a group.
    pub fn add(&mut self, aggregate: usize, group: usize, partial: Partial<'_>) {
        self.accumulators[aggregate].add(group, partial);
    }

    /// Returns the key values that stand at some places of a key.
    pub fn key_values(key: &tandem_plan::sink::PlacedKey, places: impl Iterator<Item = u64>, count: usize) -> Vector {
        key.values(places, count)
    }
}

impl SinkOperator for AggregateSink {
    fn state(&self) -> Contents {
        Contents::Groups(Box::new(Groups::new(&self.plan, &self.memory)))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, _: usize) -> Result<()> {
        let state = contents.groups()?;
        let rows = frame.count();
        let numbers;
        let groups = match &self.plan.layout {
            GroupLayout::One => {
                state.met[0] = 1;
                GroupOf::One
            }
            GroupLayout::Array { keys, .. } => {
                numbers = dense_groups(keys, frame)?;
                numbers.iter().for_each(|group| state.met[*group as usize] = 1);
                GroupOf::Each(&numbers)
            }
            GroupLayout::Hash(_) => {
                let table = state.table.as_mut().expect("hashed groups have a table");
                numbers = table.groups(frame)?;
                let groups = table.len();
                state.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(groups));
                GroupOf::Each(&numbers)
            }
        };
        for (planned, accumulator) in self.plan.aggregates.iter().zip(&mut state.accumulators) {
            let mask = planned.aggregate.filter.map(|slot| mask(slot, frame)).transpose()?;
            let vectors = arguments(planned, self.plan.phase).map(|slot| frame.vector(slot));
            let vectors = vectors.collect::<Result<Vec<_>>>()?;
            match self.plan.phase {
                Phase::Final => accumulator.update_states(groups, rows, &vectors, mask.as_deref())?,
                _ => accumulator.update(groups, rows, vectors.first().map(Rc::as_ref), mask.as_deref()),
            }
        }
        state.reserve()
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let groups = contents.into_iter().map(|contents| match contents {
            Contents::Groups(groups) => Ok(*groups),
            _ => Err(Error::internal("a contribution to another sink")),
        });
        Ok(PipelineOutput::Rows(self.merge(groups.collect::<Result<Vec<_>>>()?, finishing)?))
    }
}

/// Returns the slots that an aggregate reads of each row: in the final phase all of its states.
fn arguments(planned: &PlannedAggregate, phase: Phase) -> impl Iterator<Item = SlotId> {
    let function = planned.aggregate.function;
    let states = if phase == Phase::Final { function.state_names().len() } else { 1 };
    let first = planned.aggregate.argument;
    let first = first.filter(|_| phase == Phase::Final || function != AggregateFunction::CountRows);
    first.into_iter().flat_map(move |first| first..first + states)
}

/// Returns a byte for each row, set where an aggregate's filter is true.
fn mask(slot: SlotId, frame: &Frame<'_>) -> Result<Vec<u8>> {
    let filter = frame.vector(slot)?;
    let Values::Boolean(values) = &filter.values else {
        return Err(Error::internal("an aggregate's filter is a boolean slot"));
    };
    let valid = filter.valid.as_ref();
    let keep = |row: usize| values[row] & valid.map_or(1, |valid| valid[row]);
    Ok((0..frame.count()).map(keep).collect())
}

impl AggregateSink {
    /// Merges groups into rows.
    fn merge(&self, mut states: Vec<Groups>, finishing: &Finishing<'_>) -> Result<Table> {
        if states.is_empty() {
            states.push(Groups::new(&self.plan, &self.memory));
        }
        let chunks = match &self.plan.layout {
            GroupLayout::Hash(_) => self.merge_hashed(states, finishing.parallel)?,
            _ => {
                let mut states = states.into_iter();
                let mut all = states.next().expect("at least one state");
                for state in states {
                    let met = state.met.iter().enumerate().filter(|(_, met)| **met != 0);
                    let pairs: Vec<(u32, u32)> = met.map(|(g, _)| (g as u32, g as u32)).collect();
                    pairs.iter().for_each(|(g, _)| all.met[*g as usize] = 1);
                    all.accumulators.iter_mut().zip(&state.accumulators).for_each(|(a, b)| a.merge(b, &pairs));
                }
                let met = all.met.iter().enumerate().filter(|(_, met)| **met != 0 || self.plan.keys.is_empty());
                let groups: Vec<u32> = met.map(|(group, _)| group as u32).collect();
                let keys = match &self.plan.layout {
                    GroupLayout::Array { keys, .. } => dense_values(keys, &groups),
                    _ => Vec::new(),
                };
                vec![self.chunk(0, keys, &all.accumulators, &groups)?]
            }
        };
        Ok(to_table(finishing.schema.clone(), chunks))
    }

    fn merge_hashed(&self, states: Vec<Groups>, parallel: ParallelTasks<'_>) -> Result<Vec<Chunk>> {
        let tables: Vec<&GroupTable> = states.iter().filter_map(|s| s.table.as_ref()).collect();
        let groups: usize = tables.iter().map(|t| t.len()).sum();
        if let [state] = states.as_slice() {
            let table = tables[0];
            let all: Vec<u32> = (0..table.len() as u32).collect();
            return Ok(vec![self.chunk(0, table.values(), &state.accumulators, &all)?]);
        }
        let parts = if groups >= PARALLEL_GROUPS { 16 } else { 1 };
        let shares: Vec<Vec<u32>> = tables.iter().map(|table| table.shares(parts)).collect();
        let chunks = Mutex::new(Vec::with_capacity(parts));
        parallel(parts, &|part| {
            let mut merged = Groups::empty(&self.plan, &self.memory, Some(tables[0].fresh()));
            for ((state, table), shares) in states.iter().zip(&tables).zip(&shares) {
                let theirs: Vec<u32> =
                    (0..table.len() as u32).filter(|group| shares[*group as usize] as usize == part).collect();
                let ours = merged.table.as_mut().expect("made with a table");
                let pairs = ours.absorb(table, &theirs);
                let groups = ours.len();
                for (a, b) in merged.accumulators.iter_mut().zip(&state.accumulators) {
                    a.resize(groups);
                    a.merge(b, &pairs);
                }
            }
            let table = merged.table.as_ref().expect("made with a table");
            let all: Vec<u32> = (0..table.len() as u32).collect();
            let chunk = self.chunk(part, table.values(), &merged.accumulators, &all)?;
            chunks.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
            Ok(())
        })?;
        let mut chunks = chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
        chunks.sort_by_key(|chunk: &Chunk| chunk.morsel);
        Ok(chunks)
    }

    fn chunk(&self, part: usize, keys: Vec<Vector>, accumulators: &[Accumulator], groups: &[u32]) -> Result<Chunk> {
        let mut vectors = keys;
        for accumulator in accumulators {
            match self.plan.phase {
                Phase::Partial => vectors.extend(accumulator.states(groups)?),
                Phase::Single | Phase::Final => vectors.push(accumulator.finish(groups)?),
            }
        }
        Ok(Chunk { morsel: part, rows: groups.len(), vectors })
    }
}
