//! Streams: the columns of parts to come are copied while a kernel runs.
//!
//! Kernels of a job run on one queue, in the order of its parts, or on a CPU on two, each with tables of groups of its own:
//! whatever two that run at once share (counters, hash tables) they change by atomic operations, or at places of their own.
//! Copies of columns go to the other queues, part by part in turn; a kernel waits for those of its own part. With so many
//! streams, that many parts are on their way; with one, copies are in order with the kernels of their queue.

use std::collections::HashMap;

use tandem_codegen::{Binding, GeneratedKernel};
use tandem_column::{Column, Part, Result};
use tandem_device::{Patience, Queue};
use tandem_plan::{Action, Body};

use super::{
    Accelerator,
    bind::code_bounds,
    data::{HeldColumn, Mover},
    launch::DeviceRun,
    unmatched::Piece,
};
use crate::Cancel;

/// Makes a queue that is waited for as the user wants.
pub(super) fn queue(accelerator: &Accelerator, cancel: &Cancel) -> Result<Queue> {
    let patience = Patience { limit: accelerator.settings.limit(), cancel: cancel.clone() };
    Ok(accelerator.device.queue()?.with_patience(patience))
}

impl DeviceRun<'_> {
    /// Returns what moves bytes to the device: on the kernels' queue if `stream` is 0, else on one for copies.
    pub(super) fn mover(&mut self, stream: usize) -> Result<Mover<'_>> {
        while self.streams.len() < stream {
            self.streams.push(queue(self.accelerator, &self.job.settings().cancel)?);
        }
        let queue = if stream == 0 { &mut self.queue } else { &mut self.streams[stream - 1] };
        let (device, settings) = (self.accelerator.device.as_ref(), self.accelerator.settings);
        Ok(Mover { device, settings, queue, metrics: &mut self.metrics, copies: &mut self.copies })
    }

    /// Puts the columns that a part's kernel reads on the device; the kernel has to wait until they are ready.
    pub(super) fn hold(&mut self, part: usize) -> Result<HashMap<usize, HeldColumn>> {
        let (job, accelerator) = (self.job, self.accelerator);
        let ahead = self.ahead();
        let stream = if ahead == 0 { 0 } else { 1 + self.place_of(part) % ahead };
        let kernel = self.kernel(Piece::Part(part)).clone();
        let mut held = HashMap::new();
        for binding in &kernel.0.bindings {
            let Binding::Column(column) = binding else { continue };
            let source = &job.table().parts[part].columns[*column];
            let memory = accelerator.columns.hold(source, !job.physical().is_reference(), &mut self.mover(stream)?)?;
            held.insert(*column, memory);
        }
        Ok(held)
    }

    /// Starts to copy the columns of the parts that follow one.
    pub(super) fn look_ahead(&mut self, part: usize) -> Result<()> {
        let next = self.parts.iter().skip(self.place_of(part) + 1).take(self.ahead()).copied();
        for part in next.collect::<Vec<usize>>() {
            if !excludes(&self.kernel(Piece::Part(part)).0, self.body(), &self.job.table().parts[part]) {
                self.hold(part)?;
            }
        }
        Ok(())
    }

    /// Returns how many parts are copied ahead, each by a queue of its own: none if columns are read where they are.
    fn ahead(&self) -> usize {
        let (settings, info) = (self.accelerator.settings, self.accelerator.device.info());
        if settings.in_place(info, !self.job.physical().is_reference()) { 0 } else { settings.queues(info) - 1 }
    }

    fn place_of(&self, part: usize) -> usize {
        self.parts.iter().position(|known| *known == part).unwrap_or(0)
    }
}

/// Tells whether statistics show that a kernel keeps no row of a part: no code of it is within some range.
pub(super) fn excludes(kernel: &GeneratedKernel, body: &Body, part: &Part) -> bool {
    kernel.bindings.iter().any(|binding| match binding {
        Binding::Low(step) => match body.steps[*step].action {
            Action::Between { column, low, high } => bounds(&part.columns[column], low, high).is_none(),
            _ => false,
        },
        _ => false,
    })
}

/// Returns the codes of a column within a range: the first, and how many more.
fn bounds(column: &Column, low: i64, high: i64) -> Option<(u64, u64)> {
    let (base, width) = column.code_form()?;
    code_bounds(base, width, low, high)
}
