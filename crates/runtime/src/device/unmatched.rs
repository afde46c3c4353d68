//! Build rows that come out of joins after the last row: one more kernel for each such join, over the entries of its build.
//!
//! They go through the steps behind the join into the same sink, so that nothing is left to the CPU. Which entries
//! come out is told by the flags that rows set before: where several devices share the parts, by those of all of them.

use tandem_codegen::{ColumnLayout, Form};
use tandem_column::{Buffer, Error, Repr, Result};
use tandem_device::Memory;
use tandem_plan::Action;

use super::launch::DeviceRun;

/// What one launch computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Piece {
    /// The rows of a part.
    Part(usize),
    /// The build rows that come out of a join: which of [`DeviceRun::unmatched`].
    Unmatched(usize),
}

/// A join whose build rows come out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unmatched {
    step: usize,
    /// How many entries its build has.
    entries: usize,
}

impl DeviceRun<'_> {
    /// Finds the joins whose build rows come out, in the order of their steps: rows of an earlier one may meet a later one's.
    pub(super) fn find_unmatched(&self) -> Vec<Unmatched> {
        let found = self.body().steps.iter().enumerate().filter_map(|(step, of)| match &of.action {
            Action::Probe(probe) if probe.kind.emits_build_rows() => {
                let entries = self.job.physical().builds[probe.lookup].entries();
                Some(Unmatched { step, entries }).filter(|_| entries > 0)
            }
            _ => None,
        });
        found.collect()
    }

    /// Returns all that is computed here, in order.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let parts = self.parts.iter().copied().map(Piece::Part);
        parts.chain((0..self.unmatched.len()).map(Piece::Unmatched)).collect()
    }

    /// Returns how many rows, or entries, a piece has.
    pub(super) fn rows_of(&self, piece: Piece) -> usize {
        match piece {
            Piece::Part(part) => self.job.table().parts[part].rows,
            Piece::Unmatched(at) => self.unmatched[at].entries,
        }
    }

    /// Returns the part that build rows without a source row are counted to: where the dictionaries of their nulls are.
    pub(super) fn home(&self) -> Option<usize> {
        self.parts.first().copied().or_else(|| (!self.job.table().parts.is_empty()).then_some(0))
    }

    /// Returns the parts that all rows computed here are of.
    pub(super) fn homes(&self) -> Vec<usize> {
        if self.parts.is_empty() { self.home().into_iter().collect() } else { self.parts.clone() }
    }

    /// Generates and compiles the kernels of build rows.
    pub(super) fn compile_unmatched(&mut self) -> Result<()> {
        for at in 0..self.unmatched.len() {
            let columns: Vec<Result<ColumnLayout>> = match self.home() {
                Some(part) => {
                    self.job.table().parts[part].columns.iter().map(|column| ColumnLayout::of(column)).collect()
                }
                // A table of no rows has no columns to look at; text of none is plain.
                None => self.body().slots.iter().map(|slot| Ok(plain(slot.kind.repr()))).collect(),
            };
            let step = Some(self.unmatched[at].step);
            let kernel = self.accelerator.generate(self.job.physical(), self.sink, &columns, step)?;
            let at_kernel = self.add_kernel(kernel)?;
            self.kernel_of.insert(Piece::Unmatched(at), at_kernel);
        }
        // One table of groups takes all rows.
        let mut outputs = self.kernels.iter().map(|kernels| kernels.0.output.accumulators());
        let first = outputs.next();
        match outputs.all(|other| Some(other) == first) {
            true => Ok(()),
            false => Err(Error::internal("build rows and rows are added up alike")),
        }
    }

    /// Puts flags of a build's entries on the device: those that rows of other devices have set are set.
    pub(super) fn place_matched(&mut self, lookup: usize) -> Result<Memory> {
        if !self.parts.is_empty() || self.whole {
            let entries = self.job.physical().builds[lookup].entries();
            return self.filled(entries, 0);
        }
        let flags: Buffer<u8> = self.job.marked(lookup).into_iter().collect();
        let matched = self.allocate(flags.len())?;
        self.metrics.bytes_to += flags.len() as u64;
        self.queue.write(&matched, 0, flags, &[])?;
        Ok(matched)
    }
}

/// Returns how values lie in columns that do not exist.
fn plain(repr: Repr) -> ColumnLayout {
    let form = if repr == Repr::Bytes { Form::Bytes } else { Form::Code(8) };
    ColumnLayout { form, nullable: true }
}
