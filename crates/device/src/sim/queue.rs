//! Queues of simulated devices: each command runs on the inner queue and gets virtual times.

use std::sync::Arc;
use std::time::Duration;

use tandem_column::{Buffer, Result};

use super::clock::{Clock, Engine};
use super::device::{Model, SimulatedMemory};
use crate::object::{EventPart, foreign};
use crate::queue::{Landing, QueuePart};
use crate::{Argument, Event, Kernel, Memory, Queue, Shape, Times};

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
    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a Memory> {
        let part = memory.part::<SimulatedMemory>()?;
        if Arc::ptr_eq(&part.model, &self.model) { Ok(&part.inner) } else { Err(foreign("memory")) }
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
        let event = self.inner.fetch(self.memory(from)?, at, into, &waits)?;
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
        let (mut inner, mut counted, mut seconds) = (Vec::with_capacity(arguments.len()), Vec::new(), 0.0);
        for argument in arguments {
            let Argument::Memory(memory) = argument else {
                inner.push(*argument);
                continue;
            };
            let real = self.memory(memory)?;
            inner.push(Argument::Memory(real));
            if !counted.iter().any(|other: &&Memory| other.same(real)) {
                counted.push(real);
                let Model { profile, .. } = &*self.model;
                let bandwidth = if real.is_shared() { profile.bus_bandwidth } else { profile.memory_bandwidth };
                seconds += real.len() as f64 / bandwidth;
            }
        }
        let event = self.inner.launch(kernel, &inner, shape, &waits)?;
        Ok(self.schedule(event, Engine::Compute, ready, seconds))
    }
}
