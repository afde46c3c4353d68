//! Operators that are the same for every pipeline, on one queue: prefix sums, sorting, gathering.

use tandem_column::{Error, Result};
use tandem_device::{Argument, Kernel, Memory, Shape};

use super::launch::DeviceRun;

/// Work-items for each unit of an operator that deals shares out: each has counters of its own for every digit.
const ITEMS: usize = 64;
/// Bits of a digit.
const DIGIT: u32 = 8;
/// The most things that a work-item of a CPU does alone: they take it about as long as a launch more.
const FEW: usize = 1 << 12;
/// One work-item.
pub(super) const ALONE: Shape = Shape { groups: 1, items: 1 };

impl DeviceRun<'_> {
    /// Runs an operator.
    pub(super) fn operate(&mut self, name: &'static str, arguments: &[Argument<'_>], shape: Shape) -> Result<()> {
        let kernel = self.operator(name)?;
        let first = self.before_first(&kernel)?;
        let event = self.queue.launch(&kernel, arguments, shape, &[])?;
        self.launched(event, first)
    }

    fn operator(&mut self, name: &'static str) -> Result<Kernel> {
        if let Some(kernel) = self.operators.get(name) {
            return Ok(kernel.clone());
        }
        let text = tandem_codegen::operator(name, self.accelerator.traits, self.accelerator.target());
        let kernel = self.entry(&text, name)?;
        self.operators.insert(name, kernel.clone());
        Ok(kernel)
    }

    /// Chooses how many shares there are, and so work-items.
    pub(super) fn shares(&self) -> Shape {
        let info = self.accelerator.device.info();
        match self.accelerator.traits.chunked {
            true => self.shape(),
            false => Shape { groups: info.units, items: info.group_items.min(ITEMS) },
        }
    }

    /// Tells whether one work-item does so many things sooner than several launches: if it is as fast as a CPU.
    pub(super) fn is_few(&self, count: usize) -> bool {
        self.accelerator.traits.chunked && count <= FEW
    }

    /// Replaces numbers by the sums of those before each; returns the sum of all.
    pub(super) fn scan(&mut self, numbers: &Memory, count: usize) -> Result<usize> {
        let total = self.sum_up(numbers, count)?;
        Ok(self.read_places(&total, 1)?[0] as usize)
    }

    /// Replaces numbers by the sums of those before each; returns where the sum of all will be.
    pub(super) fn sum_up(&mut self, numbers: &Memory, count: usize) -> Result<Memory> {
        let total = self.allocate(4)?;
        let (all, sum) = (Argument::Memory(numbers), Argument::Memory(&total));
        let few = self.is_few(count);
        let count = Argument::U32(small(count)?);
        if few {
            self.operate("scan", &[all, count, sum], ALONE)?;
            return Ok(total);
        }
        let shape = self.shares();
        let shares = shape.groups * shape.items;
        let sums = self.allocate(shares * 4)?;
        let each = Argument::Memory(&sums);
        self.operate("sum_shares", &[all, count, each], shape)?;
        self.operate("scan", &[each, Argument::U32(shares as u32), sum], ALONE)?;
        self.operate("scan_shares", &[all, count, each], shape)?;
        Ok(total)
    }

    /// Sorts rows by ordinals, the first the most significant; returns their numbers in order.
    pub(super) fn sort(&mut self, ordinals: &[Memory], rows: usize) -> Result<Memory> {
        let shape = self.shares();
        let shares = shape.groups * shape.items;
        let count = Argument::U32(small(rows)?);
        let (mut order, mut moved) = (self.allocate(rows * 4)?, self.allocate(rows * 4)?);
        self.operate("number_rows", &[Argument::Memory(&order), count], shape)?;
        if self.is_few(rows) {
            for keys in ordinals.iter().rev() {
                let arguments = [Argument::Memory(keys), Argument::Memory(&order), count, Argument::Memory(&moved)];
                self.operate("sort_alone", &arguments, ALONE)?;
            }
            return Ok(order);
        }
        let digits = self.allocate((shares << DIGIT) * 4)?;
        for keys in ordinals.iter().rev() {
            let differing = self.differing_bits(keys, rows)?;
            for shift in (0..64).step_by(DIGIT as usize).filter(|shift| differing >> shift & 0xff != 0) {
                let (keys, shift) = (Argument::Memory(keys), Argument::U32(shift));
                let (from, to, counts) =
                    (Argument::Memory(&order), Argument::Memory(&moved), Argument::Memory(&digits));
                self.operate("count_digits", &[keys, from, count, shift, counts], shape)?;
                self.sum_up(&digits, shares << DIGIT)?;
                self.operate("move_by_digit", &[keys, from, count, shift, counts, to], shape)?;
                std::mem::swap(&mut order, &mut moved);
            }
        }
        Ok(order)
    }

    /// Returns the bits in which some ordinals differ: the others need no pass.
    fn differing_bits(&mut self, keys: &Memory, rows: usize) -> Result<u64> {
        let shape = self.shares();
        let bits = self.allocate(shape.groups * shape.items * 8)?;
        let arguments = [Argument::Memory(keys), Argument::U32(small(rows)?), Argument::Memory(&bits)];
        self.operate("differing_bits", &arguments, shape)?;
        let bits = self.read_numbers(&bits, shape.groups * shape.items)?;
        Ok(bits.iter().fold(0, |all, bits| all | *bits as u64))
    }

    /// Returns values in the order of row numbers; `width` is 8, 4 or 1 byte.
    pub(super) fn gather(&mut self, values: &Memory, order: &Memory, rows: usize, width: usize) -> Result<Memory> {
        let name = match width {
            16 => "gather_128",
            8 => "gather_64",
            4 => "gather_32",
            _ => "gather_8",
        };
        let out = self.allocate(rows * width)?;
        let count = Argument::U32(small(rows)?);
        let arguments = [Argument::Memory(values), Argument::Memory(order), count, Argument::Memory(&out)];
        self.operate(name, &arguments, self.shape())?;
        Ok(out)
    }
}

/// Checks that operators can count so many things.
pub(super) fn small(count: usize) -> Result<u32> {
    let small = u32::try_from(count).ok().filter(|count| *count < 1 << 31);
    small.ok_or_else(|| Error::unsupported(format!("{count} rows at once are too many for the device")))
}
