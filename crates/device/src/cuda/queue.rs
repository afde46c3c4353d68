//! CUDA streams as in-order queues.
//!
//! The driver copies from and to pageable memory only once earlier commands of the stream are over, and holds the caller up
//! until then; those commands are waited for first, with patience.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use tandem_column::{Buffer, Class, Error, Result};

use super::context::CudaContext;
use super::device::CudaMemory;
use super::event::{CudaEvent, Started};
use super::failed;
use super::program::CudaKernel;
use crate::device::Launch;
use crate::object::foreign;
use crate::queue::{Landing, QueuePart};
use crate::{Argument, Event, Kernel, Memory, Shape};

/// A queue.
#[derive(Debug)]
pub(super) struct CudaQueue {
    context: Arc<CudaContext>,
    stream: sys::CUstream,
}

// SAFETY: a stream may be used from any thread that makes its context current, one at a time by `&mut`.
unsafe impl Send for CudaQueue {}

impl CudaQueue {
    /// Makes a queue.
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<CudaQueue> {
        context.enter()?;
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(|e| failed(e, "make a queue"))?;
        Ok(CudaQueue { context: context.clone(), stream })
    }

    /// Adds a command by `add`, between two marks.
    fn enqueue(
        &mut self,
        what: &'static str,
        after: &[Event],
        add: impl FnOnce(sys::CUstream) -> std::result::Result<(), result::DriverError>,
    ) -> Result<Event> {
        self.context.enter()?;
        for event in after {
            match event.part::<CudaEvent>() {
                Some(event) => {
                    // Events of other contexts are allowed here.
                    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                    // SAFETY: the stream is ours and the event recorded.
                    unsafe { result::stream::wait_event(self.stream, event.raw(), flags) }
                        .map_err(|e| failed(e, "wait for another queue"))?;
                }
                None => event.wait()?,
            }
        }
        // SAFETY: the stream is ours and its context current.
        let started = unsafe { Started::record(&self.context, self.stream) }?;
        add(self.stream).map_err(|e| failed(e, what))?;
        // SAFETY: as above.
        let event = unsafe { started.end(self.stream, what) };
        // The command runs and nothing tells its end.
        Ok(Event::new(event.map_err(|error| Error::new(Class::Device, error.message))?))
    }

    /// Opens memory of this device.
    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a CudaMemory> {
        let part = memory.part::<CudaMemory>()?;
        if Arc::ptr_eq(&part.context, &self.context) { Ok(part) } else { Err(foreign("memory")) }
    }
}

impl QueuePart for CudaQueue {
    fn write(&mut self, to: &Memory, at: usize, from: &Buffer<u8>, after: &[Event]) -> Result<Event> {
        let target = self.memory(to)?.pointer + at as u64;
        self.enqueue("copy to a device", after, |stream| {
            if from.is_empty() {
                return Ok(());
            }
            // SAFETY: the range is within the memory; the caller keeps both sides until the command is over.
            unsafe { result::memcpy_htod_async(target, from.as_slice(), stream) }
        })
    }

    fn read(&mut self, from: &Memory, at: usize, into: &Landing, after: &[Event]) -> Result<Event> {
        let source = self.memory(from)?.pointer + at as u64;
        let mut into = into.open();
        self.enqueue("copy from a device", after, |stream| {
            if into.is_empty() {
                return Ok(());
            }
            // SAFETY: the range is within the memory; the caller keeps both sides, and away from the landing, until the
            // command is over.
            unsafe { result::memcpy_dtoh_async(&mut into[..], source, stream) }
        })
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        let target = self.memory(memory)?.pointer + at as u64;
        self.enqueue("fill memory", after, |stream| {
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: the range is within the memory, which the caller keeps until the command is over.
            unsafe { result::memset_d8_async(target, byte, bytes, stream) }
        })
    }

    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event> {
        let kernel = kernel.part::<CudaKernel>()?;
        if !Arc::ptr_eq(&kernel.context, &self.context) {
            return Err(foreign("kernel"));
        }
        let address = |memory: &Memory| Ok(self.memory(memory)?.pointer);
        let Launch { groups, items, local, mut values } = Launch::new(&self.context.info, arguments, shape, address)?;
        let mut places: Vec<*mut c_void> = values.iter_mut().map(|(value, _)| (&raw mut *value).cast()).collect();
        let function = kernel.function;
        self.enqueue("run a kernel", after, |stream| {
            if groups == 0 {
                return Ok(());
            }
            // SAFETY: the caller keeps the function's module and all memory until the command is over; every place holds a
            // value, which the call copies.
            unsafe { result::launch_kernel(function, (groups, 1, 1), (items, 1, 1), local, stream, &mut places) }
        })
    }

    fn copies_block(&self) -> bool {
        true
    }

    fn give_up(&mut self) {
        self.context.give_up();
    }
}

impl Drop for CudaQueue {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: ours. An error leaves nothing to do.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}
