//! Groups from a device: tables of numbers, one or one for each work-item, read back and added up.

use tandem_codegen::Output;
use tandem_column::{Buffer, Error, Result};
use tandem_cpu::{HashedGroups, Worker};
use tandem_device::{Argument, Memory, Shape};

use super::{launch::Run, operators::small};

/// The most memory for tables of groups.
const TABLE_BYTES: usize = 256 << 20;
/// Places of the first hash table that is tried.
const FIRST_PLACES: usize = 1 << 17;
/// How much larger the next one is.
const GROWTH: usize = 8;

impl Run<'_> {
    /// Counts groups over all parts and adds them to the worker's.
    pub(super) fn groups(&mut self, output: &Output, worker: &mut Worker) -> Result<()> {
        let width = output.group_width();
        let Output::Groups { groups: Some(groups), .. } = *output else { return self.hashed(output, worker) };
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
        if self.keep_groups(output, worker, groups, tables)? {
            return Ok(());
        }
        let numbers = self.read_numbers(&table, tables * groups * width)?;
        numbers
            .chunks_exact(groups * width)
            .try_for_each(|table| self.job.absorb(worker, table, width, output.accumulators()))
    }

    /// Counts groups in a hash table, in a larger one as long as it is too small, and adds them to the worker's.
    fn hashed(&mut self, output: &Output, worker: &mut Worker) -> Result<()> {
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
            if self.keep_groups(output, worker, places, 1)? {
                return Ok(());
            }
            let numbers = self.read_numbers(&numbers, places)?;
            let whole = self.accelerator.traits.int64_atomics;
            let number = |stored: &i64| if whole { *stored as u64 } else { number_of_words(*stored as u64) };
            let numbers: Vec<u64> = numbers.iter().map(number).collect();
            let table = self.read_numbers(&table, places * width)?;
            let keys = self.hash_keys();
            let places = output.accumulators();
            let hashed = HashedGroups { keys: &keys, numbers: &numbers, table: &table, width, places };
            return self.job.absorb_hashed(worker, &hashed);
        }
    }

    /// Makes a table of groups as they are before their first row.
    fn empty_groups(&mut self, output: &Output, groups: usize) -> Result<Memory> {
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

/// Returns the number that two words of 31 bits stand for; all ones stay what they are. `NUMBER_OF_WORDS` does so in kernels.
fn number_of_words(words: u64) -> u64 {
    if words == u64::MAX { words } else { words >> 32 << 31 | words & 0x7fff_ffff }
}
