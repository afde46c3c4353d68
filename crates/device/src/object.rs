//! What devices hand out: memory, programs, kernels, events.
//!
//! Each is a cheap clone of a part that only its backend can open, by its type. The last clone frees it.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tandem_column::{Error, Result};

use crate::Patience;
use crate::patience::{Look, pause};

/// A backend's side of [`Memory`].
pub(crate) trait MemoryPart: Any + Send + Sync + Debug {
    /// Returns the size that was asked for.
    fn len(&self) -> usize;
    /// Tells whether it is host memory.
    fn is_shared(&self) -> bool;
}

/// A backend's side of [`Program`].
pub(crate) trait ProgramPart: Any + Send + Sync + Debug {
    /// Looks up a kernel.
    fn kernel(&self, name: &str) -> Result<Kernel>;
    /// Returns what the device's `load` takes.
    fn binary(&self) -> Result<Vec<u8>>;
}

/// A backend's side of [`Kernel`].
pub(crate) trait KernelPart: Any + Send + Sync + Debug {}

/// A backend's side of [`Event`].
pub(crate) trait EventPart: Any + Send + Sync + Debug {
    /// Tells whether the device is done with the command; fails with what the command failed with.
    fn poll(&self) -> Result<bool>;
    /// Returns the command's times, once it is done.
    fn times(&self) -> Option<Times>;
    /// Lets others run for a while, or until the command is over, after the host has waited for so long.
    fn rest(&self, waited: Duration) {
        pause(waited);
    }
    /// Takes note that the host waited for the command, which is over.
    fn waited(&self) {}
    /// Tells whether the command is over by the device's clock, too, if that is not the host's.
    fn is_due(&self) -> bool {
        true
    }
}

/// Memory that kernels see.
#[derive(Clone, Debug)]
pub struct Memory(Arc<dyn MemoryPart>);

impl Memory {
    pub(crate) fn new(part: impl MemoryPart) -> Memory {
        Memory(Arc::new(part))
    }

    /// Returns its size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether it is host memory that kernels read in place.
    pub fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Tells whether both are the same memory.
    pub fn same(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn part<T: MemoryPart>(&self) -> Result<&T> {
        let part: &dyn Any = &*self.0;
        part.downcast_ref().ok_or_else(|| foreign("memory"))
    }
}

/// Compiled kernel text.
#[derive(Clone, Debug)]
pub struct Program(Arc<dyn ProgramPart>);

impl Program {
    pub(crate) fn new(part: impl ProgramPart) -> Program {
        Program(Arc::new(part))
    }

    /// Looks up a kernel by its name in the text.
    ///
    /// # Errors
    /// `Internal` if the text has no such kernel.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        self.0.kernel(name)
    }

    /// Returns what [`Device::load`](crate::Device::load) takes. Some drivers put more into it after the first launch.
    ///
    /// # Errors
    /// `Unsupported` if the driver does not give it.
    pub fn binary(&self) -> Result<Vec<u8>> {
        self.0.binary()
    }
}

/// A kernel of a program. Clones may be launched from several threads.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<dyn KernelPart>);

impl Kernel {
    pub(crate) fn new(part: impl KernelPart) -> Kernel {
        Kernel(Arc::new(part))
    }

    /// Tells whether both are the same kernel object.
    pub fn same(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn part<T: KernelPart>(&self) -> Result<&T> {
        let part: &dyn Any = &*self.0;
        part.downcast_ref().ok_or_else(|| foreign("kernel"))
    }
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Event(Arc<dyn EventPart>);

impl Event {
    pub(crate) fn new(part: impl EventPart) -> Event {
        Event(Arc::new(part))
    }

    /// Waits for the command, with the usual patience.
    ///
    /// # Errors
    /// What the command failed with; `Device` if the device does not answer.
    pub fn wait(&self) -> Result<()> {
        self.wait_with(&Patience::default())
    }

    /// Waits for the command.
    pub(crate) fn wait_with(&self, patience: &Patience) -> Result<()> {
        patience.wait(|| Ok(if self.ended()? { Look::Over } else { Look::Same }), |waited| self.rest(waited))?;
        self.waited();
        Ok(())
    }

    /// Tells whether the device is done with the command, without waiting.
    ///
    /// # Errors
    /// What the command failed with.
    pub fn poll(&self) -> Result<bool> {
        Ok(self.ended()? && self.is_due())
    }

    /// Tells whether the device is done with the command, which may not be due yet by a virtual clock.
    pub(crate) fn ended(&self) -> Result<bool> {
        self.0.poll()
    }

    /// Tells whether the command is due.
    pub(crate) fn is_due(&self) -> bool {
        self.0.is_due()
    }

    /// Lets others run between two looks at it.
    pub(crate) fn rest(&self, waited: Duration) {
        self.0.rest(waited);
    }

    /// Takes note that the host waited for the command.
    pub(crate) fn waited(&self) {
        self.0.waited();
    }

    /// Returns when the command was queued, ran and ended, once it has ended and if the device tells.
    pub fn times(&self) -> Option<Times> {
        self.0.times()
    }

    pub(crate) fn part<T: EventPart>(&self) -> Option<&T> {
        let part: &dyn Any = &*self.0;
        part.downcast_ref()
    }
}

/// Moments of a command, in nanoseconds on the device's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The host queued it.
    pub queued: u64,
    /// The driver handed it to the device.
    pub submitted: u64,
    /// The device began it.
    pub started: u64,
    /// The device ended it.
    pub ended: u64,
}

impl Times {
    /// Returns how long the device worked on it, in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.ended.saturating_sub(self.started)
    }
}

/// Makes the error of an object that was given to another device than its own.
pub(crate) fn foreign(what: &str) -> Error {
    Error::internal(format!("an object was given to a device that did not make it: {what}"))
}
