//! Programs, each of one kernel, known by their text: from memory, from the cache on disk, or compiled; and what each took until it ran.
//!
//! Drivers may finish compiling when a kernel is launched for the first time. That launch runs alone: so its time is known, and
//! two at once do not compile the same kernel twice.

use std::{
    mem,
    time::{Duration, Instant},
};

use tandem_column::{Class, Error, Result};
use tandem_device::{Event, Kernel, Queue};

use super::launch::DeviceRun;

/// Programs kept in memory; the next one drops them, and those still in use come back from disk or are compiled again.
const PROGRAMS: usize = 512;

/// Programs that wait to be put on disk. That takes a driver as long as compiling did, so it is not done while a query runs
/// unless many wait.
const UNSAVED: usize = 32;

/// What one program took until it ran.
#[derive(Clone, Debug)]
pub struct ProgramMetrics {
    /// Its kernel.
    pub kernel: String,
    /// It was compiled, rather than found on disk.
    pub compiled: bool,
    /// Time from text to a program.
    pub build: Duration,
    /// Time of the first launch, without what the kernel took by the device's clock.
    pub launch: Duration,
}

impl ProgramMetrics {
    /// Returns the time from text to a kernel that has run.
    pub fn time(&self) -> Duration {
        self.build + self.launch
    }
}

/// A first launch: of which of [`DeviceMetrics::programs`](super::DeviceMetrics), and when it began.
pub(super) struct First {
    program: usize,
    began: Instant,
}

impl DeviceRun<'_> {
    /// Returns the kernel of a text: from memory, from disk, or compiled.
    pub(super) fn entry(&mut self, text: &str, name: &str) -> Result<Kernel> {
        let accelerator = self.accelerator;
        let known = accelerator.programs.lock().get(text).cloned();
        if let Some(program) = known {
            return program.kernel(name);
        }
        let began = Instant::now();
        let stored = accelerator.cache.load(text, accelerator.options(), accelerator.device.as_ref());
        self.metrics.remarks.extend(accelerator.cache.distrust());
        let compiled = stored.is_none();
        let program = match stored {
            Some(program) => program,
            // A text that does not compile says nothing about the device.
            None => accelerator.compile(text).map_err(|error| match error.class {
                Class::Device => Error::unsupported(error.message),
                _ => error,
            })?,
        };
        let build = began.elapsed();
        let kernel = program.kernel(name)?;
        let mut programs = accelerator.programs.lock();
        if programs.len() >= PROGRAMS {
            programs.clear();
        }
        programs.insert(text.to_owned(), program.clone());
        self.metrics.programs.push(ProgramMetrics { kernel: name.to_owned(), compiled, build, launch: Duration::ZERO });
        self.programs.push((text.to_owned(), program));
        self.not_launched.push((kernel.clone(), self.programs.len() - 1));
        Ok(kernel)
    }

    /// Has a kernel that was never launched wait until everything else has ended.
    pub(super) fn before_first(&mut self, kernel: &Kernel) -> Result<Option<First>> {
        let Some(at) = self.not_launched.iter().position(|(new, _)| new.same(kernel)) else { return Ok(None) };
        self.finish_all()?;
        let (_, program) = self.not_launched.swap_remove(at);
        Ok(Some(First { program, began: Instant::now() }))
    }

    /// Takes note of a launch, and waits for it if it was the kernel's first.
    pub(super) fn launched(&mut self, event: Event, first: Option<First>) -> Result<()> {
        self.metrics.launches += 1;
        if let Some(First { program, began }) = first {
            self.finish_all()?;
            let ran = event.times().map_or(0, |times| times.duration());
            self.metrics.programs[program].launch += began.elapsed().saturating_sub(Duration::from_nanos(ran));
        }
        self.events.push(event);
        Ok(())
    }

    /// Keeps programs that were compiled, and have run, for later processes: drivers finish compiling at the first launch.
    pub(super) fn save_later(&mut self) {
        let mut unsaved = self.accelerator.unsaved.lock();
        let programs = mem::take(&mut self.programs).into_iter().zip(&self.metrics.programs);
        unsaved.extend(programs.filter(|(_, took)| took.compiled).map(|(program, _)| program));
        let many = unsaved.len() >= UNSAVED;
        drop(unsaved);
        if many {
            self.accelerator.save_programs();
        }
    }

    fn finish_all(&mut self) -> Result<()> {
        self.queue.finish()?;
        let lanes = self.lanes.iter_mut().map(|(queue, _)| queue);
        lanes.chain(&mut self.streams).try_for_each(Queue::finish)
    }
}
