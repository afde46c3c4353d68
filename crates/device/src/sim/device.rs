//! A simulated device around another one.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tandem_column::{Buffer, Error, Result};

use super::clock::{Clock, Engines};
use super::profile::Profile;
use super::queue::SimulatedQueue;
use crate::object::MemoryPart;
use crate::reservation::{Capacity, DeviceReservation};
use crate::{Device, Info, Memory, Program, Queue};

/// A device that computes on another one and lives by a profile and a virtual clock.
#[derive(Debug)]
pub struct Simulated {
    inner: Arc<dyn Device>,
    model: Arc<Model>,
    capacity: Arc<Capacity>,
}

/// What a device's queues need of it.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) info: Info,
    pub(super) profile: Profile,
    pub(super) engines: Engines,
}

/// Memory of the inner device, counted by the profile.
#[derive(Debug)]
pub(super) struct SimulatedMemory {
    pub(super) inner: Memory,
    pub(super) model: Arc<Model>,
    /// Kernels mark in it what they read: an observation, which takes no virtual time to look at.
    pub(super) marks: AtomicBool,
    _reservation: Option<DeviceReservation>,
}

impl SimulatedMemory {
    fn new(inner: Memory, model: Arc<Model>, reservation: Option<DeviceReservation>) -> SimulatedMemory {
        SimulatedMemory { inner, model, marks: AtomicBool::new(false), _reservation: reservation }
    }
}

impl MemoryPart for SimulatedMemory {
    fn len(&self) -> usize {
        self.inner.len()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }
}

impl Simulated {
    /// Makes a device of a profile; `index` is its position among the simulated ones. Abilities are those that both the
    /// profile and `inner` have.
    pub fn new(inner: &Arc<dyn Device>, profile: &Profile, clock: &Clock, index: usize) -> Simulated {
        let real = inner.info();
        let info = Info {
            index,
            name: format!("simulated {}", profile.info.name),
            vendor: real.vendor.clone(),
            driver: format!("computes on {} {}", real.id(), real.name),
            version: real.version.clone(),
            largest_allocation: profile.info.largest_allocation.min(real.largest_allocation),
            group_items: profile.info.group_items.min(real.group_items),
            local_memory: profile.info.local_memory.min(real.local_memory),
            fp64: profile.info.fp64 && real.fp64,
            int64_atomics: profile.info.int64_atomics && real.int64_atomics,
            shared_memory: profile.info.shared_memory && real.shared_memory,
            ..profile.info.clone()
        };
        let engines = Engines::new(clock, profile.copy_engines);
        let capacity = Capacity::new(&info);
        let model = Arc::new(Model { info, profile: profile.clone(), engines });
        Simulated { inner: inner.clone(), model, capacity }
    }

    /// Returns the virtual clock.
    pub fn clock(&self) -> &Clock {
        self.model.engines.clock()
    }

    /// Returns the profile.
    pub fn profile(&self) -> &Profile {
        &self.model.profile
    }
}

impl Device for Simulated {
    fn info(&self) -> &Info {
        &self.model.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let reservation = self.capacity.reserve(bytes)?;
        let (inner, model) = (self.inner.allocate(bytes)?, self.model.clone());
        Ok(Memory::new(SimulatedMemory::new(inner, model, Some(reservation))))
    }

    fn share(&self, bytes: &Buffer<u8>) -> Result<Memory> {
        if !self.model.info.shared_memory {
            return Err(Error::unsupported("the simulated device does not read host memory in place"));
        }
        let (inner, model) = (self.inner.share(bytes)?, self.model.clone());
        Ok(Memory::new(SimulatedMemory::new(inner, model, None)))
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        self.inner.compile(source, options)
    }

    fn load(&self, binary: &[u8], options: &str) -> Result<Program> {
        self.inner.load(binary, options)
    }

    fn queue(&self) -> Result<Queue> {
        Ok(Queue::new(SimulatedQueue::new(self.inner.queue()?, self.model.clone())))
    }

    fn used(&self) -> usize {
        self.capacity.used()
    }
}
