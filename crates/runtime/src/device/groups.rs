//! Groups from a device: tables of numbers, one or one for each work-item, read back and added up.

use tandem_codegen::Output;
use tandem_column::{Buffer, Error, Result};
use tandem_cpu::Worker;
use tandem_device::{Argument, Memory, Shape};

use super::{launch::Run, operators::small};

/// The most memory for tables of groups.
const TABLE_BYTES: usize = 256 << 20;

impl Run<'_> {
    /// Counts groups over all parts and adds them to the worker's.
    pub(super) fn groups(&mut self, output: &Output, worker: &mut Worker) -> Result<()> {
        let (width, groups) = (output.group_width(), output.groups());
        let (shape, tables) = self.group_shape(groups * width * 8)?;
        self.describe(shape, &format!("{tables} tables of {groups} groups, {width} numbers each"));
        let table = self.empty_groups(output, tables * groups)?;
        self.outputs.groups = Some(table.clone());
        for part in self.parts.clone() {
            self.cancel.check()?;
            self.launch(part, 0, shape)?;
        }
        let numbers = self.read_numbers(&table, tables * groups * width)?;
        numbers
            .chunks_exact(groups * width)
            .try_for_each(|table| self.job.absorb(worker, table, width, output.accumulators()))
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

    /// Chooses how many work-items run, and how many tables of so many bytes they need.
    fn group_shape(&self, bytes: usize) -> Result<(Shape, usize)> {
        let mut shape = self.shape();
        if bytes > TABLE_BYTES {
            return Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device")));
        }
        if !self.accelerator.traits.chunked {
            return Ok((shape, 1));
        }
        shape.groups = shape.groups.min(TABLE_BYTES / bytes.max(1));
        Ok((shape, shape.groups))
    }
}
