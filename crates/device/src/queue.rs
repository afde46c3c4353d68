//! Queues: what every backend's have in common.
//!
//! A [`Queue`] keeps all that its commands use until they are over, and waits for them with [`Patience`]. Whoever gives up
//! waiting drops the queue: what is still in use then stays with a thread until the device is done with it, so that no
//! memory is freed under a kernel that runs, or hangs.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tandem_column::{Buffer, Class, Error, Result};

use crate::patience::Look;
use crate::{Argument, Event, Kernel, Marks, Memory, Patience, Shape};

/// How often the thread that keeps a dropped queue's memory looks at it.
const SELDOM: Duration = Duration::from_millis(20);

/// A backend's side of [`Queue`]. Calls only start commands. Memory, kernels and host bytes that a command uses outlive it:
/// the caller keeps them until its event is over, and for ever if the call fails with class `Device`. Ranges are checked.
pub(crate) trait QueuePart: Send + Debug {
    /// Copies to a device.
    fn write(&mut self, to: &Memory, at: usize, from: &Buffer<u8>, after: &[Event]) -> Result<Event>;
    /// Copies from a device; nobody touches the landing before the event is over.
    fn read(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event>;
    /// Sets bytes.
    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event>;
    /// Runs a kernel.
    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event>;

    /// Tells whether copies may hold the caller up until earlier commands are over, so that those must be waited for.
    fn copies_block(&self) -> bool {
        false
    }

    /// Takes note that a command did not end in time: from now on nothing may wait for the device.
    fn give_up(&mut self) {}
}

/// Host memory into which a device copies.
#[derive(Clone, Debug)]
pub(crate) struct Landing(Arc<Mutex<Vec<u8>>>);

impl Landing {
    fn new(bytes: usize) -> Landing {
        Landing(Arc::new(Mutex::new(vec![0; bytes])))
    }

    /// Opens the memory, whose address does not change.
    pub(crate) fn open(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock()
    }
}

/// What a command uses while it runs.
#[derive(Debug, Default)]
#[allow(dead_code)] // Held, never read.
struct InFlight {
    memories: Vec<Memory>,
    written: Option<Buffer<u8>>,
    read: Option<Landing>,
    kernel: Option<Kernel>,
}

/// An in-order list of commands, of one thread at a time. Commands start without further calls; only `read` and `finish`
/// wait, with the queue's patience. Dropping it does not wait. Any error of class `Device` may mean that the device is lost.
#[derive(Debug)]
pub struct Queue {
    /// Commands not known to be over, oldest first.
    pending: VecDeque<(Event, InFlight)>,
    /// The last command.
    last: Option<Event>,
    /// What the first command that failed failed with.
    failure: Option<Error>,
    /// There until the queue is dropped.
    part: Option<Box<dyn QueuePart>>,
    patience: Patience,
}

impl Queue {
    pub(crate) fn new(part: impl QueuePart + 'static) -> Queue {
        let (pending, part) = (VecDeque::new(), Some(Box::new(part) as Box<dyn QueuePart>));
        Queue { pending, last: None, failure: None, part, patience: Patience::default() }
    }

    /// Sets how long it waits.
    pub fn with_patience(mut self, patience: Patience) -> Queue {
        self.patience = patience;
        self
    }

    /// Copies all of `from` to `to`, from its byte `at` on; keeps `from` alive until that is done.
    ///
    /// # Errors
    /// `Internal` if it does not fit or the memory is shared; `Exhausted` or `Device` if the driver fails.
    pub fn write(&mut self, to: &Memory, at: usize, from: Buffer<u8>, after: &[Event]) -> Result<Event> {
        check_writable(to, at, from.len())?;
        self.unblock(after)?;
        let in_flight = InFlight { memories: vec![to.clone()], written: Some(from.clone()), ..InFlight::default() };
        self.add(in_flight, |part| part.write(to, at, &from, after))
    }

    /// Fills `into` with the bytes of `from` from `at` on, and waits for that.
    ///
    /// # Errors
    /// As [`Queue::write`], and what earlier commands failed with; what waiting fails with, as [`Queue::finish`].
    pub fn read(&mut self, from: &Memory, at: usize, into: &mut [u8], after: &[Event]) -> Result<Event> {
        let (bytes, event) = self.read_vec(from, at, into.len(), after)?;
        into.copy_from_slice(&bytes);
        Ok(event)
    }

    /// Returns `bytes` bytes of `from` from `at` on, and waits for them: a copy less than [`Queue::read`].
    ///
    /// # Errors
    /// As [`Queue::read`].
    pub fn read_vec(&mut self, from: &Memory, at: usize, bytes: usize, after: &[Event]) -> Result<(Vec<u8>, Event)> {
        let read = self.read_each(&[(from, at, bytes)], after)?.pop();
        read.ok_or_else(|| Error::internal("what was read is not there"))
    }

    /// Returns some bytes of each of several memories, from a place on, and waits once, for all of them.
    ///
    /// # Errors
    /// As [`Queue::read`].
    pub fn read_each(&mut self, from: &[(&Memory, usize, usize)], after: &[Event]) -> Result<Vec<(Vec<u8>, Event)>> {
        from.iter().try_for_each(|(memory, at, bytes)| check_range(memory, *at, *bytes))?;
        self.unblock(after)?;
        let mut landings = Vec::with_capacity(from.len());
        for (memory, at, bytes) in from {
            let landing = Landing::new(*bytes);
            let event = self.fetch(memory, *at, &landing, after)?;
            landings.push((landing, event));
        }
        if let Some((_, last)) = landings.last() {
            self.wait(&last.clone())?;
        }
        Ok(landings.into_iter().map(|(landing, event)| (mem::take(&mut *landing.open()), event)).collect())
    }

    /// Starts to fill a landing.
    pub(crate) fn fetch(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event> {
        // Whoever gives up waiting must not get the memory back: it belongs to the command as well.
        let in_flight = InFlight { memories: vec![from.clone()], read: Some(into.clone()), ..InFlight::default() };
        self.add(in_flight, |part| part.read(from, at, into, after))
    }

    /// Sets `bytes` bytes from `at` on to `byte`.
    ///
    /// # Errors
    /// As [`Queue::write`].
    pub fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        check_writable(memory, at, bytes)?;
        let in_flight = InFlight { memories: vec![memory.clone()], ..InFlight::default() };
        self.add(in_flight, |part| part.fill(memory, at, bytes, byte, after))
    }

    /// Runs a kernel. Scalars and sizes must be what the kernel's text declares: not every backend can check.
    ///
    /// # Errors
    /// `Internal` for arguments or a shape that do not fit; `Exhausted` or `Device` if the driver fails.
    pub fn launch(
        &mut self,
        kernel: &Kernel,
        arguments: &[Argument<'_>],
        shape: Shape,
        after: &[Event],
    ) -> Result<Event> {
        let memory = |argument: &Argument<'_>| match argument {
            Argument::Memory(memory) | Argument::Marks(Marks { memory, .. }) => Some((*memory).clone()),
            _ => None,
        };
        let memories = arguments.iter().filter_map(memory).collect();
        let in_flight = InFlight { memories, kernel: Some(kernel.clone()), ..InFlight::default() };
        self.add(in_flight, |part| part.launch(kernel, arguments, shape, after))
    }

    /// Returns the event of the last command.
    pub fn last(&self) -> Option<&Event> {
        self.last.as_ref()
    }

    /// Waits for all commands.
    ///
    /// # Errors
    /// What a command failed with; `Device` if the device did not answer in time; the error of a cancelled statement if
    /// that was asked for.
    pub fn finish(&mut self) -> Result<()> {
        self.last.clone().map_or(Ok(()), |event| self.wait(&event))
    }

    /// Starts a command.
    fn add(&mut self, in_flight: InFlight, start: impl FnOnce(&mut dyn QueuePart) -> Result<Event>) -> Result<Event> {
        self.forget_ended();
        let part = self.part.as_mut().ok_or_else(|| Error::internal("a dropped queue was used"))?;
        match start(part.as_mut()) {
            Ok(event) => {
                self.pending.push_back((event.clone(), in_flight));
                self.last = Some(event.clone());
                Ok(event)
            }
            Err(error) => {
                if error.class == Class::Device {
                    // It may run, and nothing tells its end: better lose the memory than free it too early.
                    mem::forget(in_flight);
                }
                Err(error)
            }
        }
    }

    /// Waits for what a copy would otherwise wait for in the driver.
    fn unblock(&mut self, after: &[Event]) -> Result<()> {
        if !self.part.as_ref().is_some_and(|part| part.copies_block()) {
            return Ok(());
        }
        after.iter().try_for_each(|event| event.wait_with(&self.patience))?;
        self.finish()
    }

    /// Waits for a command of this queue. The end of any other before it shows that the device works.
    fn wait(&mut self, event: &Event) -> Result<()> {
        let patience = self.patience.clone();
        let look = || {
            Ok(match event.ended()? {
                true => Look::Over,
                false if self.forget_ended() => Look::Nearer,
                false => Look::Same,
            })
        };
        if let Err(error) = patience.wait(look, |waited| event.rest(waited)) {
            if let (Class::Device, Some(part)) = (error.class, &mut self.part) {
                part.give_up();
            }
            return Err(error);
        }
        event.waited();
        self.forget_ended();
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Lets go of what commands that are over used; tells whether there were any.
    fn forget_ended(&mut self) -> bool {
        let before = self.pending.len();
        while let Some((event, _)) = self.pending.front() {
            match event.ended() {
                Ok(false) => break,
                Ok(true) => {}
                Err(error) => drop(self.failure.get_or_insert(error)),
            }
            self.pending.pop_front();
        }
        self.pending.len() < before
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.forget_ended();
        if self.pending.is_empty() {
            return;
        }
        // If no thread can be had, all of it is lost rather than freed.
        let left = ManuallyDrop::new((mem::take(&mut self.pending), self.part.take()));
        let keep = move || {
            let (pending, _part) = ManuallyDrop::into_inner(left);
            for (event, in_flight) in pending {
                while !event.ended().unwrap_or(true) {
                    thread::sleep(SELDOM);
                }
                drop(in_flight);
            }
        };
        drop(thread::Builder::new().name("tandem-device-rest".to_owned()).spawn(keep));
    }
}

/// Checks that bytes `at..at + bytes` lie within the memory.
fn check_range(memory: &Memory, at: usize, bytes: usize) -> Result<()> {
    if at.checked_add(bytes).is_some_and(|end| end <= memory.len()) {
        return Ok(());
    }
    let length = memory.len();
    Err(Error::internal(format!("a command leaves its memory of {length} bytes: {bytes} bytes at {at}")))
}

/// Checks the same for a command that writes, which shared memory does not allow.
fn check_writable(memory: &Memory, at: usize, bytes: usize) -> Result<()> {
    if memory.is_shared() {
        return Err(Error::internal("shared host memory is read-only: copy it into device memory first"));
    }
    check_range(memory, at, bytes)
}
