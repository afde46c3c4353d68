//! Groups from a device: tables of numbers, one or one for each work-item, read back and added up.

use arrow_buffer::i256;
use tandem_codegen::{AccumulatorWords, HashKey, KernelOutput, KernelSink, MOST_HALVES, ROWS_COUNT};
use tandem_column::{Buffer, Error, Repr, Result, from_float_order};
use tandem_cpu::{Best, Contribution, Groups, Job, Partial};
use tandem_device::{Argument, Memory, Shape};
use tandem_pipeline::{
    SlotId,
    scalar::{aggregate::Moments, pairs::PairMoments},
};
use tandem_plan::{
    SinkPlan,
    sink::{AggregatePlan, PlannedAggregate},
};

use super::{
    hashed::{HashedGroups, texts_of},
    launch::{DeviceRun, Goal, ReadBack, numbers},
    operators::small,
    unmatched::Piece,
};

/// The most memory for tables of groups.
const TABLE_BYTES: usize = 256 << 20;
/// Places of the first hash table that is tried.
const FIRST_PLACES: usize = 1 << 17;
/// How much larger the next one is.
pub(super) const GROWTH: usize = 8;

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
        let counted =
            GroupTables { output: output.clone(), table, places: groups, tables, hashed: None, goal: self.goal };
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
        let texts = texts_of(&keys);
        // A place of the group's table, one of each of the other tables.
        let of_place = (width + HashKey::numbers(&keys) + texts.len()) * 8;
        let pieces = self.pieces();
        for run in self.runs_of(&keys, &pieces) {
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
        let width = output.group_width();
        let mut places = self.first_places(pieces);
        loop {
            check_bytes(places * of_place)?;
            self.describe(self.shape(), &format!("a hash table of {places} groups, {width} numbers each"));
            let table = self.empty_groups(output, places)?;
            self.outputs.groups = Some(table.clone());
            let hashed = self.empty_hash_table((keys, texts), places, pieces)?;
            self.launch_each(pieces, (self.shape(), self.lanes()), |_, _, _| Ok(()))?;
            if self.is_full()? {
                places *= GROWTH;
                continue;
            }
            let (output, goal, hashed) = (output.clone(), self.goal, Some(hashed));
            return self.keep_or_add(GroupTables { output, table, places, tables: 1, hashed, goal }, into);
        }
    }

    /// Returns how many places the first hash table has that is tried for the groups of some pieces.
    pub(super) fn first_places(&self, pieces: &[Piece]) -> usize {
        let rows: usize = pieces.iter().map(|piece| self.rows_of(*piece)).sum();
        (2 * rows).next_power_of_two().clamp(64, FIRST_PLACES)
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
        check_bytes(bytes)?;
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
    /// Whose groups they are.
    goal: Goal,
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
        let Contribution { contents, rows, .. } = into;
        let plan: &AggregatePlan = plan;
        let (plan, groups) = match self.goal {
            Goal::Distinct(at) => (&*plan.distinct[at].rows, contents.groups()?.distinct(at)),
            _ => {
                // Those of other passes are the same.
                *rows += counted.chunks_exact(width).map(|numbers| numbers[ROWS_COUNT] as u64).sum::<u64>();
                (plan, contents.groups()?)
            }
        };
        let Some(hashed) = &self.hashed else {
            for table in counted.chunks_exact(self.places * width) {
                let met = table.chunks_exact(width).enumerate().filter(|(_, numbers)| numbers[ROWS_COUNT] != 0);
                for (group, numbers) in met {
                    groups.meet(group);
                    add_group(groups, plan, group, numbers, accumulators)?;
                }
            }
            return Ok(());
        };
        let tables: Vec<Vec<i64>> = found.map(|bytes| numbers(&bytes)).collect();
        let (met, numbered) = hashed.number_groups(plan, job, &tables, groups)?;
        for (place, group) in met.iter().zip(numbered) {
            let numbers = &counted[place * width..(place + 1) * width];
            add_group(groups, plan, group as usize, numbers, accumulators)?;
        }
        groups.reserve()
    }
}

/// Checks that tables of groups have room.
fn check_bytes(bytes: usize) -> Result<()> {
    match bytes > TABLE_BYTES {
        true => Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device"))),
        false => Ok(()),
    }
}

/// Adds the numbers that a kernel counted for a group.
///
/// # Errors
/// Unsupported for a group with more rows than lower halves of sums, of 32 bits, add up in 63.
fn add_group(
    groups: &mut Groups,
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
    for (at, (places, planned)) in accumulators.iter().zip(&plan.aggregates).enumerate() {
        if let Some(partial) = partial(numbers, places, planned) {
            groups.add(at, group, partial);
        }
    }
    Ok(())
}

/// Reads one aggregate of a group from its numbers; `None` if they do not have it.
fn partial<'p>(numbers: &[i64], places: &AccumulatorWords, planned: &'p PlannedAggregate) -> Option<Partial<'p>> {
    let count = numbers[places.count()];
    let float = |at: usize| f64::from_bits(numbers[at] as u64);
    Some(match *places {
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
        AccumulatorWords::Spread { center, sum, squares, .. } => {
            let (mean, squares) = around_mean((float(center), float(sum), float(squares)), count);
            Partial::Moments(Moments { count, mean, squares })
        }
        AccumulatorWords::Pairs { first, .. } => {
            let of = |axis: usize| (float(first + axis), float(first + 2 + axis), float(first + 4 + axis));
            let ((mean_y, squares_y), (mean_x, squares_x)) = (around_mean(of(0), count), around_mean(of(1), count));
            let products = float(first + 6) - of(0).1 * (of(1).1 / count as f64);
            Partial::Pairs(PairMoments { count, mean_y, mean_x, squares_y, squares_x, products })
        }
        AccumulatorWords::Bits { low, high, .. } => {
            let bits = match high {
                Some(high) => i128::from(numbers[high]) << 64 | i128::from(numbers[low] as u64),
                None => numbers[low].into(),
            };
            Partial::Bits { bits, count }
        }
        AccumulatorWords::Elsewhere => return None,
    })
}

/// Returns the mean of values and their squared differences from it, of sums of differences from one of them.
fn around_mean((center, sum, squares): (f64, f64, f64), count: i64) -> (f64, f64) {
    let mean = sum / count as f64;
    let around = squares - sum * mean;
    // What rounding leaves of equal squares is no spread.
    (center + mean, if around < 0.0 { 0.0 } else { around })
}
