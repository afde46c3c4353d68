//! In-order OpenCL queues.

use std::ptr;
use std::sync::Arc;

use opencl_sys::*;
use tandem_column::{Buffer, Class, Error, Result};

use super::device::{OpenClContext, OpenClMemory};
use super::event::OpenClEvent;
use super::handle::{EventHandle, KernelHandle, QueueHandle};
use super::program::OpenClKernel;
use super::status;
use crate::object::foreign;
use crate::queue::{Landing, QueuePart};
use crate::{Argument, Event, Kernel, Marks, Memory, Shape};

/// A queue.
#[derive(Debug)]
pub(super) struct OpenClQueue {
    context: Arc<OpenClContext>,
    handle: QueueHandle,
}

impl OpenClQueue {
    /// Wraps a new, empty queue of the context.
    pub(super) fn new(context: Arc<OpenClContext>, handle: QueueHandle) -> OpenClQueue {
        OpenClQueue { context, handle }
    }

    /// Adds a command by `add`, which is given a wait list, its length and a place for the event.
    fn enqueue(
        &mut self,
        what: &'static str,
        after: &[Event],
        add: impl FnOnce(&Self, cl_uint, *const cl_event, *mut cl_event) -> cl_int,
    ) -> Result<Event> {
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
        let handle = unsafe { EventHandle::new(api, raw) };
        let event = OpenClEvent::new(&self.context, handle, what);
        // Other queues may wait for the event only once it is flushed.
        // SAFETY: the queue is valid.
        let flushed = status::check(unsafe { (api.clFlush)(self.handle.raw()) }, "start commands");
        // The command is there: only a failed device says so.
        flushed.map_err(|error| Error::new(Class::Device, error.message))?;
        Ok(Event::new(event))
    }

    /// Adds a command that does nothing but end in its turn.
    fn mark(&mut self, after: &[Event]) -> Result<Event> {
        self.enqueue("mark a queue", after, |this, count, list, event| {
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
            Argument::Memory(memory) | Argument::Marks(Marks { memory, .. }) => {
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

impl QueuePart for OpenClQueue {
    fn write(&mut self, to: &Memory, at: usize, from: &Buffer<u8>, after: &[Event]) -> Result<Event> {
        let memory = self.memory(to)?.handle.raw();
        if from.is_empty() {
            return self.mark(after);
        }
        let (start, bytes) = (from.as_ptr().cast(), from.len());
        self.enqueue("copy to a device", after, |this, count, list, event| {
            let queue = this.handle.raw();
            // SAFETY: the range is within the memory; the caller keeps the host's bytes until the event is over; the
            // listed events are valid; `event` is a place for an event.
            unsafe {
                let write = this.context.api.clEnqueueWriteBuffer;
                write(queue, memory, CL_FALSE, at, bytes, start, count, list, event)
            }
        })
    }

    fn read(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event> {
        let memory = self.memory(from)?.handle.raw();
        let mut into = into.open();
        if into.is_empty() {
            return self.mark(after);
        }
        let (start, bytes) = (into.as_mut_ptr().cast(), into.len());
        self.enqueue("copy from a device", after, |this, count, list, event| {
            let queue = this.handle.raw();
            // SAFETY: the range is within the memory; the caller keeps the landing, and away from it, until the event is
            // over; the listed events are valid; `event` is a place for an event.
            unsafe {
                let read = this.context.api.clEnqueueReadBuffer;
                read(queue, memory, CL_FALSE, at, bytes, start, count, list, event)
            }
        })
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        let memory = self.memory(memory)?.handle.raw();
        if bytes == 0 {
            return self.mark(after);
        }
        self.enqueue("fill memory", after, |this, count, list, event| {
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
        let (global, local) = (shape.groups * shape.items, shape.items);
        self.enqueue("run a kernel", after, |this, count, list, event| {
            let (queue, kernel) = (this.handle.raw(), handle.raw());
            // SAFETY: all arguments are set and the kernel is locked until the call has taken them; the caller keeps
            // the memory until the event is over; the global size is a multiple of the local one; the
            // listed events are valid; `event` is a place for an event.
            unsafe {
                let run = this.context.api.clEnqueueNDRangeKernel;
                run(queue, kernel, 1, ptr::null(), &global, &local, count, list, event)
            }
        })
    }
}
