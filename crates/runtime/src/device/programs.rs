//! Programs of kernels, known by their text: from memory, from the cache on disk, or compiled; and what each took until it ran.
//!
//! Drivers may finish compiling when a kernel is launched for the first time. That launch runs alone: so its time is known, and
//! two at once do not compile the same kernel twice.

use std::{
    collections::HashSet,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tandem_column::{Class, Error, Result};
use tandem_device::{Event, Kernel as DeviceKernel, Program, Queue};

use super::{Accelerator, launch::Run};

/// Programs kept in memory; the next one drops them, and those still in use come back from disk or are compiled again.
const PROGRAMS: usize = 512;

/// Programs that wait to be put on disk. That takes a driver as long as compiling did, so it is not done while a query runs
/// unless many wait.
const UNSAVED: usize = 32;

/// What one program took until it ran.
#[derive(Clone, Debug)]
pub struct ProgramMetrics {
    /// Its kernels that were launched for the first time.
    pub kernels: Vec<String>,
    /// It was compiled, in this pipeline or an earlier one, rather than found on disk.
    pub compiled: bool,
    /// Time from text to a program; zero if an earlier pipeline needed it already.
    pub build: Duration,
    /// Time of the first launches, without what the kernels took by the device's clock.
    pub launch: Duration,
}

impl ProgramMetrics {
    /// Returns the time from text to kernels that run.
    pub fn time(&self) -> Duration {
        self.build + self.launch
    }
}

/// A program of this process.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) program: Program,
    compiled: bool,
    /// The kernels that some run was given.
    given: Mutex<HashSet<String>>,
}

/// A kernel that no run has launched yet.
pub(super) struct NotLaunched {
    kernel: DeviceKernel,
    name: String,
    /// Which of [`DeviceMetrics::programs`](super::DeviceMetrics) it is of.
    program: usize,
}

/// A first launch.
pub(super) struct First {
    program: usize,
    began: Instant,
}

impl Accelerator {
    /// Returns the program of a text, and what it took unless it was known.
    fn program(&self, text: &str) -> Result<(Arc<Known>, Option<Duration>)> {
        if let Some(known) = self.programs.lock().get(text) {
            return Ok((known.clone(), None));
        }
        let began = Instant::now();
        let stored = self.cache.load(text, self.options(), self.device.as_ref());
        let compiled = stored.is_none();
        let program = match stored {
            Some(program) => program,
            // A text that does not compile says nothing about the device.
            None => self.compile(text).map_err(|error| match error.class {
                Class::Device => Error::unsupported(error.message),
                _ => error,
            })?,
        };
        let took = began.elapsed();
        let known = Arc::new(Known { program, compiled, given: Mutex::default() });
        let mut programs = self.programs.lock();
        if programs.len() >= PROGRAMS {
            programs.clear();
        }
        programs.insert(text.to_string(), known.clone());
        Ok((known, Some(took)))
    }
}

impl Run<'_> {
    /// Returns a kernel of a text, which is compiled if it is not known.
    pub(super) fn entry(&mut self, text: &str, name: &str) -> Result<DeviceKernel> {
        let (known, built) = self.accelerator.program(text)?;
        let kernel = known.program.kernel(name)?;
        let first = known.given.lock().insert(name.to_owned());
        let program = match self.programs.iter().position(|(_, new)| Arc::ptr_eq(new, &known)) {
            Some(at) => at,
            None if first => {
                let build = built.unwrap_or_default();
                let (kernels, compiled, launch) = (Vec::new(), known.compiled, Duration::ZERO);
                self.metrics.programs.push(ProgramMetrics { kernels, compiled, build, launch });
                self.programs.push((text.to_owned(), known));
                self.programs.len() - 1
            }
            None => return Ok(kernel),
        };
        if first {
            self.not_launched.push(NotLaunched { kernel: kernel.clone(), name: name.to_owned(), program });
        }
        Ok(kernel)
    }

    /// Has a kernel that was never launched wait until everything else has ended.
    pub(super) fn before_first(&mut self, kernel: &DeviceKernel) -> Result<Option<First>> {
        let Some(at) = self.not_launched.iter().position(|new| new.kernel.same(kernel)) else { return Ok(None) };
        self.finish_all()?;
        let NotLaunched { name, program, .. } = self.not_launched.swap_remove(at);
        self.metrics.programs[program].kernels.push(name);
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
        unsaved.extend(programs.filter(|(_, took)| took.compiled && !took.build.is_zero()).map(|(program, _)| program));
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
