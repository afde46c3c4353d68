//! The end of an aggregation: the groups of all workers become rows, each partition or run of places on its own.

use std::sync::{Mutex, PoisonError};

use tandem_column::Result;
use tandem_pipeline::Phase;
use tandem_plan::sink::GroupLayout;

use super::{
    AggregateSink, Groups,
    accumulator::{GroupAccumulators, State},
    groups::{GroupSet, Run},
    lists::Answer,
    places::dense_values,
    quantiles::Quantiles,
    table::{GroupTable, PARTITIONS},
};
use crate::{Vector, parallel, rows::Chunk, settings::ParallelTasks};

/// From this many groups on, they are merged in parallel.
const PARALLEL_GROUPS: usize = 1 << 14;
/// Where few groups may have many values each, an array of them is cut into so many tasks.
const HOLISTIC_TASKS: usize = 64;
/// Up to so many groups of an array, their values are kept apart; those of more only by the task that merges them.
const SEPARATE_GROUPS: usize = 1 << 12;

impl AggregateSink {
    /// Merges groups into rows.
    pub(super) fn merge(&self, mut states: Vec<Groups>, workers: ParallelTasks<'_>) -> Result<Vec<Chunk>> {
        if states.is_empty() {
            states.push(Groups::new(&self.plan, &self.memory, self.vector_rows));
        }
        states = self.merge_distinct(states, workers)?;
        let places = match &self.plan.layout {
            GroupLayout::Hash(_) => return self.merge_hashed(states, workers),
            GroupLayout::One => 1,
            GroupLayout::Array { groups, .. } => *groups,
        };
        let shift = self.task_groups(places);
        let sealed = parallel::map_each(workers, states, |mut state| {
            state.set.seal(if places <= SEPARATE_GROUPS { 0 } else { shift });
            state
        });
        self.merge_places(&sealed?, places, shift, workers)
    }

    /// Returns log2 of how many places of an array one task merges.
    fn task_groups(&self, places: usize) -> u32 {
        let groups = match places {
            _ if self.holistic() => places.div_ceil(HOLISTIC_TASKS).min(PARALLEL_GROUPS),
            places if places >= 2 * PARALLEL_GROUPS => PARALLEL_GROUPS,
            places => places,
        };
        groups.max(1).next_power_of_two().trailing_zeros()
    }

    /// Tells whether few groups may be much work in the end.
    fn holistic(&self) -> bool {
        self.plan.aggregates.iter().any(|planned| planned.aggregate.function.is_holistic())
    }

    /// Merges the distinct values of all workers, and adds them to the groups.
    fn merge_distinct(&self, mut states: Vec<Groups>, workers: ParallelTasks<'_>) -> Result<Vec<Groups>> {
        if self.plan.distinct.is_empty() {
            return Ok(states);
        }
        let mut of_each: Vec<Vec<Groups>> = self.plan.distinct.iter().map(|_| Vec::new()).collect();
        for state in &mut states {
            let distinct = std::mem::take(&mut state.distinct);
            of_each.iter_mut().zip(distinct).for_each(|(all, groups)| all.push(groups));
        }
        let states: Vec<Mutex<Groups>> = states.into_iter().map(Mutex::new).collect();
        for (distinct, groups) in self.plan.distinct.iter().zip(of_each) {
            let rows = AggregateSink { plan: distinct.rows.clone(), memory: self.memory.clone(), ..*self };
            let chunks = rows.merge(groups, workers)?;
            let next = Mutex::new(chunks.into_iter());
            let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
            workers(states.len(), &|worker| {
                let mut state = states[worker].lock().unwrap_or_else(PoisonError::into_inner);
                while let Some(chunk) = take() {
                    state.add_distinct(distinct, chunk)?;
                }
                Ok(())
            })?;
        }
        Ok(states.into_iter().map(|state| state.into_inner().unwrap_or_else(PoisonError::into_inner)).collect())
    }

    /// Merges arrays of groups, a run of places at a time.
    fn merge_places(
        &self,
        states: &[Groups],
        places: usize,
        shift: u32,
        workers: ParallelTasks<'_>,
    ) -> Result<Vec<Chunk>> {
        let length = 1 << shift;
        let answers = self.answer_large(states, workers)?;
        let runs = parallel::map(workers, places.div_ceil(length), |run| {
            let (first, end) = (run * length, ((run + 1) * length).min(places));
            let mut all = GroupSet::empty(&self.plan, None);
            all.accumulators.iter_mut().for_each(|accumulator| accumulator.resize(end - first));
            for (aggregate, group, answer) in answers.iter().filter(|(_, group, _)| (first..end).contains(group)) {
                all.accumulators[*aggregate].answer((group - first) as u32, *answer);
            }
            let mut met = vec![0; end - first];
            for state in states {
                let of = &state.set.met[first..end];
                let pairs = of.iter().enumerate().filter(|(_, met)| **met != 0);
                let pairs: Vec<(u32, u32)> = pairs.map(|(at, _)| ((first + at) as u32, at as u32)).collect();
                pairs.iter().for_each(|(_, at)| met[*at as usize] = 1);
                merge_states(&mut all.accumulators, &state.set.accumulators, &pairs);
            }
            all.seal(0);
            let met = met.iter().enumerate().filter(|(_, met)| **met != 0 || self.plan.keys.is_empty());
            let groups: Vec<u32> = met.map(|(group, _)| group as u32).collect();
            let keys = match &self.plan.layout {
                GroupLayout::Array { keys, .. } => {
                    dense_values(keys, &groups.iter().map(|group| first as u32 + group).collect::<Vec<_>>())
                }
                _ => Vec::new(),
            };
            self.chunk(run, keys, &all.accumulators, &groups)
        });
        runs?.into_iter().collect()
    }

    /// Answers for groups of so many values that all workers have to do with them.
    fn answer_large(&self, states: &[Groups], workers: ParallelTasks<'_>) -> Result<Vec<(usize, usize, Answer)>> {
        let mut answers = Vec::new();
        for aggregate in 0..self.plan.aggregates.len() {
            let quantiles = states.iter().filter_map(|state| match &state.set.accumulators[aggregate].state {
                State::Quantiles(quantiles) => Some(quantiles),
                _ => None,
            });
            let large = Quantiles::answer_large(&quantiles.collect::<Vec<_>>(), workers)?;
            answers.extend(large.into_iter().map(|(group, answer)| (aggregate, group as usize, answer)));
        }
        Ok(answers)
    }

    /// Merges hashed groups, a partition at a time if there are many.
    fn merge_hashed(&self, states: Vec<Groups>, workers: ParallelTasks<'_>) -> Result<Vec<Chunk>> {
        let (mut runs, mut sets) = (Vec::new(), Vec::new());
        for mut state in states {
            runs.append(&mut state.runs);
            sets.push(state.set);
        }
        let groups: usize = sets.iter().map(GroupSet::hashed).sum();
        let few = runs.is_empty() && !self.holistic();
        if few && sets.len() == 1 {
            let set = sets.pop().expect("there is one");
            return Ok(vec![self.finish_set(0, set)?]);
        }
        if few && groups < PARALLEL_GROUPS {
            let mut sets = sets.into_iter();
            let mut all = sets.next().expect("there is at least one worker's");
            for set in sets {
                all.absorb(&set, 0..set.hashed() as u32);
            }
            return Ok(vec![self.finish_set(0, all)?]);
        }
        runs.extend(parallel::map_each(workers, sets, GroupSet::into_run)?);
        let partitions = parallel::map(workers, PARTITIONS, |partition| {
            let range = |run: &Run| run.starts[partition]..run.starts[partition + 1];
            let most = runs.iter().map(|run| range(run).len()).max().unwrap_or(0);
            let table = runs.iter().find_map(|run| run.set.table.as_ref().map(GroupTable::fresh));
            let mut all = GroupSet::empty(&self.plan, table);
            all.table.iter_mut().for_each(|table| table.reserve(most));
            runs.iter().for_each(|run| all.absorb(&run.set, range(run)));
            self.finish_set(partition, all)
        });
        partitions?.into_iter().collect()
    }

    /// Makes rows of all groups of a hash table.
    fn finish_set(&self, part: usize, mut set: GroupSet) -> Result<Chunk> {
        set.seal(0);
        let all: Vec<u32> = (0..set.hashed() as u32).collect();
        let keys = set.table.map_or_else(Vec::new, GroupTable::into_values);
        self.chunk(part, keys, &set.accumulators, &all)
    }

    fn chunk(
        &self,
        part: usize,
        keys: Vec<Vector>,
        accumulators: &[GroupAccumulators],
        groups: &[u32],
    ) -> Result<Chunk> {
        let mut vectors = keys;
        for (planned, accumulator) in self.plan.aggregates.iter().zip(accumulators) {
            let counts = &planned.counted_by.map_or(accumulator, |by| &accumulators[by]).counts;
            match self.plan.phase {
                Phase::Partial => vectors.extend(accumulator.states(counts, groups)?),
                Phase::Single | Phase::Final => vectors.push(accumulator.finish(counts, groups)?),
            }
        }
        Ok(Chunk { morsel: part, rows: groups.len(), vectors })
    }
}

impl GroupSet {
    /// Adds a run of hashed groups of another set.
    fn absorb(&mut self, other: &GroupSet, groups: std::ops::Range<u32>) {
        let (Some(ours), Some(theirs)) = (&mut self.table, &other.table) else { return };
        let pairs = ours.absorb(theirs, groups);
        self.follow();
        merge_states(&mut self.accumulators, &other.accumulators, &pairs);
    }
}

fn merge_states(into: &mut [GroupAccumulators], from: &[GroupAccumulators], pairs: &[(u32, u32)]) {
    into.iter_mut().zip(from).for_each(|(into, from)| into.merge(from, pairs));
}
