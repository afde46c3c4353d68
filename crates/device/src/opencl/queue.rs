//! In-order OpenCL queues.
//!
//! The driver reads host memory after `write` or `launch` has returned, so the queue keeps what a command needs until
//! the command's event is over. Commands end in order: only the oldest need to be looked at, at every call.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;

use opencl_sys::*;
use tandem_column::{Buffer, Error, Result};

use super::device::{Context, OpenClMemory};
use super::event::OpenClEvent;
use super::handle::{EventHandle, KernelHandle, QueueHandle};
use super::program::OpenClKernel;
use super::status;
use crate::device::{check_range, check_writable};
use crate::object::foreign;
use crate::{Argument, Event, Kernel, Memory, Queue, Shape};

/// Host memory that the driver may still read.
#[derive(Debug)]
#[allow(dead_code)] // Held, never read.
enum Kept {
    Written(Buffer<u8>),
    Shared(Vec<Memory>),
}

/// A queue.
#[derive(Debug)]
pub(super) struct OpenClQueue {
    context: Arc<Context>,
    handle: QueueHandle,
    /// What commands not known to be over need, oldest first.
    kept: VecDeque<(OpenClEvent, Kept)>,
}

impl OpenClQueue {
    /// Wraps a new, empty queue of the context.
    pub(super) fn new(context: Arc<Context>, handle: QueueHandle) -> OpenClQueue {
        OpenClQueue { context, handle, kept: VecDeque::new() }
    }

    /// Adds a command by `add`, which is given a wait list, its length and a place for the event.
    fn enqueue(
        &mut self,
        what: &'static str,
        after: &[Event],
        kept: Option<Kept>,
        add: impl FnOnce(&Self, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<Event> {
        while self.kept.front().is_some_and(|(event, _)| event.is_over()) {
            self.kept.pop_front();
        }
        let mut list = Vec::with_capacity(after.len());
        for event in after {
            match event.part::<OpenClEvent>() {
                Some(event) if Arc::ptr_eq(&event.context, &self.context) => list.push(event.handle.raw()),
                _ => event.wait()?,
            }
        }
        let start = if list.is_empty() { ptr::null() } else { list.as_ptr() };
        let mut raw = ptr::null_mut();
        status::check(add(self, list.len() as cl_uint, start, &mut raw), what)?;
        let api = self.context.api;
        // SAFETY: the command was added, so the event is set and ours.
        let handle = Arc::new(unsafe { EventHandle::new(api, raw) });
        let event = OpenClEvent { context: self.context.clone(), handle, what };
        if let Some(kept) = kept {
            self.kept.push_back((event.clone(), kept));
        }
        // Other queues may wait for the event only once it is flushed.
        // SAFETY: the queue is valid.
        status::check(unsafe { (api.clFlush)(self.handle.raw()) }, "start commands")?;
        Ok(Event::new(event))
    }

    /// Adds a command that does nothing but end in its turn.
    fn mark(&mut self, after: &[Event]) -> Result<Event> {
        self.enqueue("mark a queue", after, None, |this, count, list, event| {
            // SAFETY: the queue and the listed events are valid; `event` is a place for an event.
            unsafe { (this.context.api.clEnqueueMarkerWithWaitList)(this.handle.raw(), count, list, event) }
        })
    }

    /// Opens memory of this device.
    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a OpenClMemory> {
        let part = memory.part::<OpenClMemory>()?;
        if Arc::ptr_eq(&part.context, &self.context) { Ok(part) } else { Err(foreign("memory")) }
    }

    /// Sets one argument of a kernel that is locked.
    fn set(&self, kernel: &KernelHandle, index: usize, argument: &Argument<'_>) -> Result<()> {
        let set = |size: usize, value: *const std::ffi::c_void| {
            // SAFETY: the kernel is valid and locked; `value` is null for local memory, else points to `size` bytes.
            let code = unsafe { (self.context.api.clSetKernelArg)(kernel.raw(), index as cl_uint, size, value) };
            if code == CL_SUCCESS {
                return Ok(());
            }
            let code = status::name(code);
            Err(Error::internal(format!("a kernel does not take argument {index}: {argument:?}, {code}")))
        };
        match argument {
            Argument::Memory(memory) => {
                let raw = self.memory(memory)?.handle.raw();
                set(size_of::<cl_mem>(), (&raw const raw).cast())
            }
            Argument::Null => {
                let raw: cl_mem = ptr::null_mut();
                set(size_of::<cl_mem>(), (&raw const raw).cast())
            }
            Argument::U8(value) => set(1, ptr::from_ref(value).cast()),
            Argument::U16(value) => set(2, ptr::from_ref(value).cast()),
            Argument::I32(value) => set(4, ptr::from_ref(value).cast()),
            Argument::U32(value) => set(4, ptr::from_ref(value).cast()),
            Argument::I64(value) => set(8, ptr::from_ref(value).cast()),
            Argument::U64(value) => set(8, ptr::from_ref(value).cast()),
            Argument::Local(bytes) => set(*bytes, ptr::null()),
        }
    }
}

impl Queue for OpenClQueue {
    fn write(&mut self, to: &Memory, at: usize, from: Buffer<u8>, after: &[Event]) -> Result<Event> {
        check_writable(to, at, from.len())?;
        let memory = self.memory(to)?.handle.raw();
        if from.is_empty() {
            return self.mark(after);
        }
        let (start, bytes) = (from.as_ptr().cast(), from.len());
        self.enqueue("copy to a device", after, Some(Kept::Written(from)), |this, count, list, event| {
            let queue = this.handle.raw();
            // SAFETY: the range is within the memory; the queue keeps the host's bytes until the event is over; the
            // listed events are valid; `event` is a place for an event.
            unsafe {
                let write = this.context.api.clEnqueueWriteBuffer;
                write(queue, memory, CL_FALSE, at, bytes, start, count, list, event)
            }
        })
    }

    fn read(&mut self, from: &Memory, at: usize, into: &mut [u8], after: &[Event]) -> Result<Event> {
        check_range(from, at, into.len())?;
        let memory = self.memory(from)?.handle.raw();
        if into.is_empty() {
            let event = self.mark(after)?;
            event.wait()?;
            return Ok(event);
        }
        let (start, bytes) = (into.as_mut_ptr().cast(), into.len());
        self.enqueue("copy from a device", after, None, |this, count, list, event| {
            let queue = this.handle.raw();
            // SAFETY: the range is within the memory; the call blocks until the bytes, borrowed until then, are there;
            // the listed events are valid; `event` is a place for an event.
            unsafe {
                let read = this.context.api.clEnqueueReadBuffer;
                read(queue, memory, CL_TRUE, at, bytes, start, count, list, event)
            }
        })
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        check_writable(memory, at, bytes)?;
        let memory = self.memory(memory)?.handle.raw();
        if bytes == 0 {
            return self.mark(after);
        }
        self.enqueue("fill memory", after, None, |this, count, list, event| {
            let (queue, pattern) = (this.handle.raw(), (&raw const byte).cast());
            // SAFETY: the range is within the memory; the pattern is one byte, copied by the call; the listed events
            // are valid; `event` is a place for an event.
            unsafe { (this.context.api.clEnqueueFillBuffer)(queue, memory, pattern, 1, at, bytes, count, list, event) }
        })
    }

    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event> {
        let kernel = kernel.part::<OpenClKernel>()?;
        if !Arc::ptr_eq(&kernel.context, &self.context) {
            return Err(foreign("kernel"));
        }
        shape.check(&self.context.info)?;
        if arguments.len() != kernel.arguments {
            let (name, takes, given) = (&kernel.name, kernel.arguments, arguments.len());
            return Err(Error::internal(format!("kernel {name} takes {takes} arguments, not {given}")));
        }
        let handle = kernel.handle.lock();
        for (index, argument) in arguments.iter().enumerate() {
            self.set(&handle, index, argument)?;
        }
        if shape.groups == 0 {
            drop(handle);
            return self.mark(after);
        }
        let shared: Vec<Memory> = arguments
            .iter()
            .filter_map(|argument| match argument {
                Argument::Memory(memory) if memory.is_shared() => Some((*memory).clone()),
                _ => None,
            })
            .collect();
        let kept = (!shared.is_empty()).then_some(Kept::Shared(shared));
        let (global, local) = (shape.groups * shape.items, shape.items);
        self.enqueue("run a kernel", after, kept, |this, count, list, event| {
            let (queue, kernel) = (this.handle.raw(), handle.raw());
            // SAFETY: all arguments are set and the kernel is locked until the call has taken them; memory that it
            // reads in place is kept until the event is over; the global size is a multiple of the local one; the
            // listed events are valid; `event` is a place for an event.
            unsafe {
                let run = this.context.api.clEnqueueNDRangeKernel;
                run(queue, kernel, 1, ptr::null(), &global, &local, count, list, event)
            }
        })
    }

    fn finish(&mut self) -> Result<()> {
        // SAFETY: the queue is valid.
        status::check(unsafe { (self.context.api.clFinish)(self.handle.raw()) }, "finish commands")?;
        self.kept.clear();
        Ok(())
    }
}

impl Drop for OpenClQueue {
    fn drop(&mut self) {
        if self.finish().is_err() {
            // The driver may still read this memory: better lost than freed under it.
            std::mem::forget(std::mem::take(&mut self.kept));
        }
    }
}
