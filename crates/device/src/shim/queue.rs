//! Queues: every command is over when its call returns.

use std::ffi::{c_ulong, c_void};
use std::ptr;
use std::sync::Arc;

use tandem_column::{Buffer, Class, Error, Result};

use super::device::{ShimContext, ShimMemory};
use super::program::ShimKernel;
use crate::device::Launch;
use crate::object::{EventPart, foreign};
use crate::queue::{Landing, QueuePart};
use crate::{Argument, Event, Kernel, Memory, Shape, Times};

/// A queue.
#[derive(Debug)]
pub(super) struct ShimQueue {
    context: Arc<ShimContext>,
}

/// A command that is over.
#[derive(Debug)]
struct ShimEvent(Times);

impl EventPart for ShimEvent {
    fn poll(&self) -> Result<bool> {
        Ok(true)
    }

    fn times(&self) -> Option<Times> {
        Some(self.0)
    }
}

impl ShimQueue {
    pub(super) fn new(context: &Arc<ShimContext>) -> ShimQueue {
        ShimQueue { context: context.clone() }
    }

    /// Opens memory of this device.
    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a ShimMemory> {
        let part = memory.part::<ShimMemory>()?;
        if Arc::ptr_eq(&part.context, &self.context) { Ok(part) } else { Err(foreign("memory")) }
    }

    /// Returns the address of a byte of memory.
    fn address(&self, memory: &Memory, at: usize) -> Result<*mut u8> {
        Ok(self.memory(memory)?.pointer.wrapping_add(at))
    }

    fn command(&self, after: &[Event], work: impl FnOnce() -> Result<()>) -> Result<Event> {
        let queued = self.context.now();
        after.iter().try_for_each(Event::wait)?;
        let started = self.context.now();
        work()?;
        let ended = self.context.now();
        Ok(Event::new(ShimEvent(Times { queued, submitted: queued, started, ended })))
    }
}

impl QueuePart for ShimQueue {
    fn write(&mut self, to: &Memory, at: usize, from: &Buffer<u8>, after: &[Event]) -> Result<Event> {
        let target = self.address(to, at)?;
        self.command(after, || {
            if !from.is_empty() {
                // SAFETY: the range is within the memory, and no buffer of the host is.
                unsafe { ptr::copy_nonoverlapping(from.as_ptr(), target, from.len()) };
            }
            Ok(())
        })
    }

    fn read(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event> {
        let source = self.address(from, at)?;
        let mut into = into.open();
        self.command(after, || {
            if !into.is_empty() {
                // SAFETY: the range is within the memory; the target is locked and not of the device.
                unsafe { ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len()) };
            }
            Ok(())
        })
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        let target = self.address(memory, at)?;
        self.command(after, || {
            if bytes > 0 {
                // SAFETY: the range is within the memory.
                unsafe { ptr::write_bytes(target, byte, bytes) };
            }
            Ok(())
        })
    }

    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event> {
        let kernel = kernel.part::<ShimKernel>()?;
        if !Arc::ptr_eq(&kernel.context, &self.context) {
            return Err(foreign("kernel"));
        }
        let address = |memory: &Memory| Ok(self.memory(memory)?.pointer.expose_provenance() as u64);
        let Launch { groups, items, local, values } = Launch::new(&self.context.info, arguments, shape, address)?;
        let places: Vec<*const c_void> = values.iter().map(|(value, _)| (&raw const *value).cast()).collect();
        let sizes: Vec<u8> = values.iter().map(|(_, size)| *size).collect();
        self.command(after, || {
            let count = places.len() as c_ulong;
            // SAFETY: a place and a size for each argument; the library is kept; the text is trusted with its memory.
            let status =
                unsafe { (kernel.launch)(groups, items, c_ulong::from(local), places.as_ptr(), sizes.as_ptr(), count) };
            // As the header numbers them.
            match status {
                0 => Ok(()),
                1 => Err(Error::internal("the arguments are not those that the kernel declares")),
                2 => Err(Error::new(Class::Device, "some threads of a block meet a barrier and others do not")),
                _ => Err(Error::exhausted("the process has no memory for a kernel's threads")),
            }
        })
    }
}
