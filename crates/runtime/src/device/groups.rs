//! Groups from a device: tables of numbers, one or one for each work-item, read back and added up.

use arrow_buffer::i256;
use tandem_codegen::{AccumulatorWords, HashKey, KernelOutput, KernelSink, KeyOf, MOST_HALVES, ROWS_COUNT};
use tandem_column::{Buffer, Error, Repr, Result, from_float_order};
use tandem_cpu::{Best, Contribution, Job, Partial};
use tandem_device::{Argument, Memory, Shape};
use tandem_pipeline::{SlotId, scalar::aggregate::Moments};
use tandem_plan::{
    SinkPlan,
    sink::{AggregatePlan, PlannedAggregate},
};

use super::{
    hashed::HashedGroups,
    launch::{DeviceRun, ReadBack, numbers},
    operators::small,
    unmatched::Piece,
    values::Origins,
};

/// The most memory for tables of groups.
const TABLE_BYTES: usize = 256 << 20;
/// Places of the first hash table that is tried.
const FIRST_PLACES: usize = 1 << 17;
/// How much larger the next one is.
const GROWTH: usize = 8;

impl DeviceRun<'_> {
    /// Counts groups over all parts and adds them to the contribution.
    pub(super) fn groups(&mut self, output: &KernelOutput, into: &mut Contribution) -> Result<()> {
        let width = output.group_width();
        let KernelOutput::Groups { groups: Some(groups), .. } = *output else { return self.hashed(output, into) };
        let (shape, lanes) = self.group_shape(groups * width * 8)?;
        let of_lane = if self.accelerator.traits.chunked { shape.groups } else { 1 };
        let tables = lanes * of_lane;
        self.describe(shape, &format!("{tables} tables of {groups} groups, {width} numbers each"));
        let table = self.empty_groups(output, tables * groups)?;
        self.outputs.groups = Some(table.clone());
        self.launch_each(&self.pieces(), (shape, lanes), |outputs, _, lane| {
            outputs.first_table = small(lane * of_lane)?;
            Ok(())
        })?;
        let counted = GroupTables { output: output.clone(), table, places: groups, tables, hashed: None };
        self.keep_or_add(counted, into)
    }

    /// Keeps groups, if that pays; adds them to the contribution if not.
    fn keep_or_add(&mut self, counted: GroupTables, into: &mut Contribution) -> Result<()> {
        if self.keep_groups(&counted, into)? {
            return Ok(());
        }
        let job = self.job;
        counted.add_to(job, into, &mut |from| self.read_each(from))
    }

    /// Counts groups in a hash table, in a larger one as long as it is too small, and adds them to the contribution.
    fn hashed(&mut self, output: &KernelOutput, into: &mut Contribution) -> Result<()> {
        let width = output.group_width();
        let keys = match self.sink {
            KernelSink::Hashed { keys, .. } => keys.clone(),
            _ => Vec::new(),
        };
        let texts = keys.iter().filter_map(|key| if let KeyOf::Text(slot) = key.of { Some(slot) } else { None });
        let texts: Vec<SlotId> = texts.collect();
        // A place of the group's table, one of each of the other tables.
        let of_place = (width + HashKey::numbers(&keys) + texts.len()) * 8;
        let pieces = self.pieces();
        // Texts of one part are told apart by where they lie in it.
        let runs: Vec<&[Piece]> = if texts.is_empty() { vec![&pieces] } else { pieces.chunks(1).collect() };
        for run in runs {
            self.hashed_run(output, (&keys, &texts), of_place, run, into)?;
        }
        Ok(())
    }

    /// Counts the groups of some pieces.
    fn hashed_run(
        &mut self,
        output: &KernelOutput,
        (keys, texts): (&[HashKey], &[SlotId]),
        of_place: usize,
        pieces: &[Piece],
        into: &mut Contribution,
    ) -> Result<()> {
        let (width, most) = (output.group_width(), TABLE_BYTES / of_place);
        let rows: usize = pieces.iter().map(|piece| self.rows_of(*piece)).sum();
        let mut places = (2 * rows).next_power_of_two().clamp(64, FIRST_PLACES);
        loop {
            if places > most {
                return Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device")));
            }
            self.describe(self.shape(), &format!("a hash table of {places} groups, {width} numbers each"));
            let table = self.empty_groups(output, places)?;
            let mut empty = || self.filled(places * 8, 0xff);
            let numbers = (0..HashKey::numbers(keys)).map(|_| empty()).collect::<Result<Vec<_>>>()?;
            let texts = texts.iter().map(|slot| Ok((*slot, empty()?))).collect::<Result<Vec<_>>>()?;
            let full = self.allocate(4)?;
            self.queue.fill(&full, 0, 4, 0, &[])?;
            self.outputs.groups = Some(table.clone());
            self.outputs.numbers = numbers.last().cloned();
            self.outputs.earlier = numbers[..numbers.len() - 1].to_vec();
            self.outputs.texts = texts.clone();
            self.outputs.mask = small(places - 1)?;
            self.outputs.full = Some(full.clone());
            self.launch_each(pieces, (self.shape(), self.lanes()), |_, _, _| Ok(()))?;
            let mut flag = [0; 4];
            self.read(&full, 0, &mut flag)?;
            if flag != [0; 4] {
                places *= GROWTH;
                continue;
            }
            let in_words = !self.accelerator.traits.int64_atomics;
            let part = if let [Piece::Part(part)] = pieces { Some(*part) } else { None };
            let hashed = Some(HashedGroups { numbers, keys: keys.to_vec(), texts, part, in_words });
            let counted = GroupTables { output: output.clone(), table, places, tables: 1, hashed };
            return self.keep_or_add(counted, into);
        }
    }

    /// Makes a table of groups as they are before their first row.
    fn empty_groups(&mut self, output: &KernelOutput, groups: usize) -> Result<Memory> {
        let empty = output.empty_group();
        let bytes = groups * empty.len() * 8;
        let table = self.allocate(bytes)?;
        if empty.iter().all(|number| *number == 0) {
            self.queue.fill(&table, 0, bytes, 0, &[])?;
            return Ok(table);
        }
        let width = Argument::U32(empty.len() as u32);
        let numbers = Argument::U32(small(groups * empty.len())?);
        let group: Buffer<i64> = empty.into();
        let group = self.place_bytes(group.bytes())?;
        let arguments = [Argument::Memory(&table), Argument::Memory(&group), width, numbers];
        self.operate("fill_groups", &arguments, self.shape())?;
        Ok(table)
    }

    /// Chooses how many work-items run, and on how many lanes, so that tables of so many bytes have room.
    fn group_shape(&self, bytes: usize) -> Result<(Shape, usize)> {
        let (mut shape, lanes) = (self.shape(), self.lanes());
        if bytes > TABLE_BYTES {
            return Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device")));
        }
        if !self.accelerator.traits.chunked {
            return Ok((shape, lanes));
        }
        let most = TABLE_BYTES / bytes.max(1);
        let lanes = lanes.min(most);
        shape.groups = shape.groups.min(most / lanes);
        Ok((shape, lanes))
    }
}

/// Groups as kernels counted them, on the device.
#[derive(Clone, Debug)]
pub(super) struct GroupTables {
    pub(super) output: KernelOutput,
    table: Memory,
    /// How many groups a table has room for.
    pub(super) places: usize,
    pub(super) tables: usize,
    /// What tells hashed groups apart; groups of arrays are told apart by their places.
    hashed: Option<HashedGroups>,
}

impl GroupTables {
    /// Reads the groups back and adds them to a contribution.
    pub(super) fn add_to(&self, job: &Job, into: &mut Contribution, read: ReadBack<'_>) -> Result<()> {
        let SinkPlan::Aggregate(plan) = &job.physical().sink else {
            return Err(Error::internal("only an aggregation has groups"));
        };
        let (width, accumulators) = (self.output.group_width(), self.output.accumulators());
        let mut from = vec![(&self.table, 0, self.tables * self.places * width * 8)];
        let hashed = self.hashed.iter().flat_map(|hashed| hashed.memories());
        from.extend(hashed.map(|memory| (memory, 0, self.places * 8)));
        let mut found = read(&from)?.into_iter();
        let counted = numbers(&found.next().unwrap_or_default());
        let Some(hashed) = &self.hashed else {
            for table in counted.chunks_exact(self.places * width) {
                let met = table.chunks_exact(width).enumerate().filter(|(_, numbers)| numbers[ROWS_COUNT] != 0);
                for (group, numbers) in met {
                    into.contents.groups()?.meet(group);
                    add_group(into, plan, group, numbers, accumulators)?;
                }
            }
            return Ok(());
        };
        let mut tables = found.map(|bytes| numbers(&bytes));
        let (met, found) = hashed.numbers_of(&tables.by_ref().take(hashed.numbers.len()).collect::<Vec<_>>());
        let texts: Vec<Vec<i64>> = tables.collect();
        let origins = Origins { physical: job.physical(), table: job.table() };
        let keys = hashed.key_vectors(plan, origins, &found, &texts)?;
        let groups = into.contents.groups()?.number(&keys, met.len());
        for (place, group) in met.iter().zip(groups) {
            let numbers = &counted[place * width..(place + 1) * width];
            add_group(into, plan, group as usize, numbers, accumulators)?;
        }
        into.contents.groups()?.reserve()
    }
}

/// Adds the numbers that a kernel counted for a group.
///
/// # Errors
/// Unsupported for a group with more rows than lower halves of sums, of 32 bits, add up in 63.
fn add_group(
    into: &mut Contribution,
    plan: &AggregatePlan,
    group: usize,
    numbers: &[i64],
    accumulators: &[AccumulatorWords],
) -> Result<()> {
    let in_halves =
        |place: &AccumulatorWords| matches!(place, AccumulatorWords::WideSum { .. } | AccumulatorWords::LimbSum { .. });
    if numbers[ROWS_COUNT] > MOST_HALVES && accumulators.iter().any(in_halves) {
        return Err(Error::unsupported("a group has too many rows for sums of a device"));
    }
    into.rows += numbers[ROWS_COUNT] as u64;
    let groups = into.contents.groups()?;
    for (at, (places, planned)) in accumulators.iter().zip(&plan.aggregates).enumerate() {
        groups.add(at, group, partial(numbers, places, planned));
    }
    Ok(())
}

/// Reads one aggregate of a group from its numbers.
fn partial<'p>(numbers: &[i64], places: &AccumulatorWords, planned: &'p PlannedAggregate) -> Partial<'p> {
    let count = numbers[places.count()];
    match *places {
        AccumulatorWords::Count(_) => Partial::Count(count),
        AccumulatorWords::Sum { sum, .. } => Partial::Sum { sum: i256::from_i128(numbers[sum].into()), count },
        AccumulatorWords::WideSum { low, high, .. } => {
            let sum = (i128::from(numbers[high]) << 32) + i128::from(numbers[low]);
            Partial::Sum { sum: i256::from_i128(sum), count }
        }
        AccumulatorWords::LimbSum { first, .. } => {
            let limbs = numbers[first..first + 4].iter().rev();
            let sum =
                limbs.fold(i256::ZERO, |sum: i256, limb| (sum << 32u8).wrapping_add(i256::from_i128((*limb).into())));
            Partial::Sum { sum, count }
        }
        AccumulatorWords::FloatSum { sum, .. } => Partial::FloatSum { sum: f64::from_bits(numbers[sum] as u64), count },
        AccumulatorWords::Best { best, from, .. } => {
            let number = from.map_or(numbers[best], |from| from.wrapping_add((numbers[best] as u32).into()));
            let best = match (&planned.dictionary, planned.argument.repr()) {
                // What no value reached holds none.
                _ if count == 0 => Best::Integer(0),
                (Some(dictionary), _) => Best::Bytes(dictionary.get(number as u32)),
                (None, Repr::Float) => Best::Float(from_float_order(number)),
                (None, _) => Best::Integer(number),
            };
            Partial::Best { best, count }
        }
        AccumulatorWords::WideBest { low, high, .. } => {
            let value = i128::from(numbers[high]) << 64 | i128::from(numbers[low] as u64);
            Partial::Best { best: Best::Wide(value), count }
        }
        AccumulatorWords::Moments { mean, squares, .. } => {
            let (mean, squares) = (f64::from_bits(numbers[mean] as u64), f64::from_bits(numbers[squares] as u64));
            Partial::Moments(Moments { count, mean, squares })
        }
    }
}
