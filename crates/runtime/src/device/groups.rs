//! Groups from a device: tables of numbers, one or one for each work-item, read back and added up.

use std::rc::Rc;

use arrow_buffer::i256;
use tandem_codegen::{AccumulatorWords, HashKey, KernelOutput, KernelSink, KeyOf, MOST_HALVES, ROWS_COUNT};
use tandem_column::{Buffer, Error, Repr, Result, from_float_order};
use tandem_cpu::{Best, Contribution, Groups, Job, Partial, Vector};
use tandem_device::{Argument, Memory, Shape};
use tandem_pipeline::{Expr, scalar::aggregate::Moments};
use tandem_plan::{
    Origin, SinkPlan,
    sink::{AggregatePlan, PlannedAggregate},
};

use super::{
    launch::{DeviceRun, ReadBack, numbers},
    operators::small,
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
        let most = TABLE_BYTES / ((width + 1) * 8);
        let rows: usize = self.pieces().into_iter().map(|piece| self.rows_of(piece)).sum();
        let mut places = (2 * rows).next_power_of_two().clamp(64, FIRST_PLACES);
        loop {
            if places > most {
                return Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device")));
            }
            self.describe(self.shape(), &format!("a hash table of {places} groups, {width} numbers each"));
            let table = self.empty_groups(output, places)?;
            let numbers = self.allocate(places * 8)?;
            self.queue.fill(&numbers, 0, places * 8, 0xff, &[])?;
            let full = self.allocate(4)?;
            self.queue.fill(&full, 0, 4, 0, &[])?;
            self.outputs.groups = Some(table.clone());
            self.outputs.numbers = Some(numbers.clone());
            self.outputs.mask = small(places - 1)?;
            self.outputs.full = Some(full.clone());
            self.launch_each(&self.pieces(), (self.shape(), self.lanes()), |_, _, _| Ok(()))?;
            let mut flag = [0; 4];
            self.read(&full, 0, &mut flag)?;
            if flag != [0; 4] {
                places *= GROWTH;
                continue;
            }
            let keys = match self.sink {
                KernelSink::Hashed { keys, .. } => keys.clone(),
                _ => Vec::new(),
            };
            let in_words = !self.accelerator.traits.int64_atomics;
            let hashed = Some(HashedGroups { numbers, keys, in_words });
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

/// What tells the groups of a hash table apart.
#[derive(Clone, Debug)]
struct HashedGroups {
    /// The number of each group.
    numbers: Memory,
    /// What numbers are made of.
    keys: Vec<HashKey>,
    /// A number is two words of 31 bits.
    in_words: bool,
}

impl GroupTables {
    /// Reads the groups back and adds them to a contribution.
    pub(super) fn add_to(&self, job: &Job, into: &mut Contribution, read: ReadBack<'_>) -> Result<()> {
        let SinkPlan::Aggregate(plan) = &job.physical().sink else {
            return Err(Error::internal("only an aggregation has groups"));
        };
        let (width, accumulators) = (self.output.group_width(), self.output.accumulators());
        let mut from = vec![(&self.table, 0, self.tables * self.places * width * 8)];
        from.extend(self.hashed.as_ref().map(|hashed| (&hashed.numbers, 0, self.places * 8)));
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
        let stored = numbers(&found.next().unwrap_or_default());
        let number = |stored: i64| if hashed.in_words { number_of_words(stored as u64) } else { stored as u64 };
        let met = stored.into_iter().map(number).enumerate().filter(|(_, number)| *number != u64::MAX);
        let (met, found): (Vec<usize>, Vec<u64>) = met.unzip();
        let origins = Origins { physical: job.physical(), table: job.table() };
        let groups = into.contents.groups()?.number(&hashed.key_vectors(plan, origins, &found)?, met.len());
        for (place, group) in met.iter().zip(groups) {
            let numbers = &counted[place * width..(place + 1) * width];
            add_group(into, plan, group as usize, numbers, accumulators)?;
        }
        into.contents.groups()?.reserve()
    }
}

impl HashedGroups {
    /// Returns the key values of groups, from the numbers that stand for them.
    fn key_vectors(&self, plan: &AggregatePlan, origins: Origins<'_>, numbers: &[u64]) -> Result<Vec<Rc<Vector>>> {
        let (keys, body) = (&self.keys, &origins.physical.body);
        let part = |at: usize| {
            let above = keys.get(at + 1).map_or(64, |next: &HashKey| next.shift);
            let (shift, bits) = (keys[at].shift, above - keys[at].shift);
            let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            numbers.iter().map(move |number| if bits == 0 { 0 } else { number >> shift & mask })
        };
        let vectors = plan.keys.iter().zip(&plan.places).map(|(slot, place)| {
            let own = keys.iter().position(|key| matches!(key.of, KeyOf::Place(group) if group.slot == *slot));
            if let (Some(at), Some(key)) = (own, place) {
                return Ok(Rc::new(Groups::key_values(key, part(at), numbers.len())));
            }
            let held = keys.iter().enumerate().find_map(|(at, key)| match (key.of, body.origins[*slot]) {
                (KeyOf::Entry(lookup), Origin::Payload { lookup: of, .. }) if lookup == of => {
                    // 0 is no entry.
                    let entries: Vec<u32> = part(at).map(|entry| (entry as u32).wrapping_sub(1)).collect();
                    let payload = origins.payload_of(&Expr::Slot(*slot))?;
                    Some(Vector::fetch(payload, &entries))
                }
                (KeyOf::Row, Origin::Column(column)) => {
                    Some(origins.source_values(*slot, column, &part(at).collect::<Vec<_>>()))
                }
                _ => None,
            });
            held.map(Rc::new).ok_or_else(|| Error::internal("a group has no key"))
        });
        vectors.collect()
    }
}

/// Returns the number that two words of 31 bits stand for; all ones stay what they are. `NUMBER_OF_WORDS` does so in kernels.
fn number_of_words(words: u64) -> u64 {
    if words == u64::MAX { words } else { words >> 32 << 31 | words & 0x7fff_ffff }
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
