//! Queues of simulated devices: each command runs on the inner queue and gets virtual times.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tandem_column::{Buffer, Result};

use super::clock::{Clock, Engine};
use super::device::{Model, SimulatedMemory};
use crate::object::{EventPart, foreign};
use crate::queue::{Landing, QueuePart};
use crate::{Argument, Event, Kernel, Marks, Memory, Queue, Shape, Times};

/// A queue.
#[derive(Debug)]
pub(super) struct SimulatedQueue {
    inner: Queue,
    model: Arc<Model>,
    /// When the last command ends, in virtual time.
    ready: u64,
}

/// The end of a command in both worlds.
#[derive(Debug)]
struct SimulatedEvent {
    inner: Event,
    times: Times,
    clock: Clock,
}

impl EventPart for SimulatedEvent {
    fn poll(&self) -> Result<bool> {
        self.inner.ended()
    }

    fn times(&self) -> Option<Times> {
        Some(self.times)
    }

    fn rest(&self, waited: Duration) {
        self.inner.rest(waited);
    }

    fn waited(&self) {
        self.clock.wait_until(self.times.ended);
    }

    fn is_due(&self) -> bool {
        self.clock.now() >= self.times.ended
    }
}

impl SimulatedQueue {
    /// Makes a queue on an inner one.
    pub(super) fn new(inner: Queue, model: Arc<Model>) -> SimulatedQueue {
        SimulatedQueue { inner, model, ready: 0 }
    }

    /// Opens memory of this device.
    fn open<'a>(&self, memory: &'a Memory) -> Result<&'a SimulatedMemory> {
        let part = memory.part::<SimulatedMemory>()?;
        if Arc::ptr_eq(&part.model, &self.model) { Ok(part) } else { Err(foreign("memory")) }
    }

    /// Opens memory of this device; returns what it is on the inner one.
    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a Memory> {
        Ok(&self.open(memory)?.inner)
    }

    /// Splits events into what the inner queue waits for and when they end. Foreign events are waited for.
    fn after(&self, after: &[Event]) -> Result<(Vec<Event>, u64)> {
        let (mut inner, mut ready) = (Vec::with_capacity(after.len()), self.ready);
        for event in after {
            match event.part::<SimulatedEvent>() {
                Some(event) => {
                    ready = ready.max(event.times.ended);
                    inner.push(event.inner.clone());
                }
                None => event.wait()?,
            }
        }
        Ok((inner, ready))
    }

    /// Gives a command that the inner queue took its virtual times.
    fn schedule(&mut self, inner: Event, engine: Engine, ready: u64, seconds: f64) -> Event {
        let Model { engines, profile, .. } = &*self.model;
        let duration = profile.launch_latency + (seconds * 1e9).ceil() as u64;
        let times = engines.schedule(engine, ready, duration);
        self.ready = times.ended;
        Event::new(SimulatedEvent { inner, times, clock: engines.clock().clone() })
    }

    /// Gives a command that the model knows nothing of no virtual time.
    fn observe(&self, inner: Event) -> Event {
        let clock = self.model.engines.clock().clone();
        let now = clock.now();
        Event::new(SimulatedEvent {
            inner,
            times: Times { queued: now, submitted: now, started: now, ended: now },
            clock,
        })
    }

    /// Returns the bytes of shared memory that a kernel which has ended read of it, by its marks, or else all of them.
    fn read_by(&mut self, shared: &Memory, marked: &[(&Memory, &Memory, usize)]) -> Result<usize> {
        let Some((_, marks, unit)) = marked.iter().find(|(of, ..)| of.same(shared)) else { return Ok(shared.len()) };
        let mut flags = vec![0; marks.len()];
        self.inner.read(marks, 0, &mut flags, &[])?;
        Ok((flags.iter().filter(|flag| **flag != 0).count() * unit).min(shared.len()))
    }
}

impl QueuePart for SimulatedQueue {
    fn write(&mut self, to: &Memory, at: usize, from: &Buffer<u8>, after: &[Event]) -> Result<Event> {
        let (waits, ready) = self.after(after)?;
        let seconds = from.len() as f64 / self.model.profile.bus_bandwidth;
        let event = self.inner.write(self.memory(to)?, at, from.clone(), &waits)?;
        Ok(self.schedule(event, Engine::ToDevice, ready, seconds))
    }

    fn read(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event> {
        let (waits, ready) = self.after(after)?;
        let seconds = into.open().len() as f64 / self.model.profile.bus_bandwidth;
        let memory = self.open(from)?;
        let event = self.inner.fetch(&memory.inner, at, into, &waits)?;
        if memory.marks.load(Ordering::Relaxed) {
            return Ok(self.observe(event));
        }
        Ok(self.schedule(event, Engine::FromDevice, ready, seconds))
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        let (waits, ready) = self.after(after)?;
        let seconds = bytes as f64 / self.model.profile.memory_bandwidth;
        let event = self.inner.fill(self.memory(memory)?, at, bytes, byte, &waits)?;
        Ok(self.schedule(event, Engine::Compute, ready, seconds))
    }

    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event> {
        shape.check(&self.model.info)?;
        let (waits, ready) = self.after(after)?;
        let (mut inner, mut counted, mut marked) = (Vec::with_capacity(arguments.len()), Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                Argument::Memory(memory) => {
                    let real = self.memory(memory)?;
                    inner.push(Argument::Memory(real));
                    if !counted.iter().any(|other: &&Memory| other.same(real)) {
                        counted.push(real);
                    }
                }
                Argument::Marks(Marks { memory, of, unit }) => {
                    let marks = self.open(memory)?;
                    marks.marks.store(true, Ordering::Relaxed);
                    inner.push(Argument::Memory(&marks.inner));
                    marked.push((self.memory(of)?, &marks.inner, *unit));
                }
                _ => inner.push(*argument),
            }
        }
        let event = self.inner.launch(kernel, &inner, shape, &waits)?;
        let (shared, own): (Vec<&Memory>, Vec<&Memory>) = counted.into_iter().partition(|memory| memory.is_shared());
        let mut seconds =
            own.iter().map(|memory| memory.len()).sum::<usize>() as f64 / self.model.profile.memory_bandwidth;
        for memory in shared {
            seconds += self.read_by(memory, &marked)? as f64 / self.model.profile.bus_bandwidth;
        }
        Ok(self.schedule(event, Engine::Compute, ready, seconds))
    }
}
