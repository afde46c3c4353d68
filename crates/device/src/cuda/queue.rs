//! CUDA streams as in-order queues.
//!
//! As with OpenCL, the queue keeps what a command needs until the command is over; device memory too, because freeing it
//! would stop the whole device.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use tandem_column::{Buffer, Error, Result};

use super::context::Context;
use super::device::CudaMemory;
use super::event::{CudaEvent, Started};
use super::failed;
use super::program::CudaKernel;
use crate::device::{check_range, check_writable};
use crate::object::foreign;
use crate::{Argument, Event, Kernel, Memory, Queue, Shape};

/// The alignment of each local argument within dynamic shared memory, in bytes: that of the widest vector type.
const LOCAL_ALIGNMENT: usize = 16;

/// What a command needs while it runs.
#[derive(Debug, Default)]
#[allow(dead_code)] // Held, never read.
struct Kept {
    written: Option<Buffer<u8>>,
    memories: Vec<Memory>,
    kernel: Option<CudaKernel>,
}

/// A queue.
#[derive(Debug)]
pub(super) struct CudaQueue {
    context: Arc<Context>,
    stream: sys::CUstream,
    /// What commands not known to be over need, oldest first.
    kept: VecDeque<(CudaEvent, Kept)>,
}

// SAFETY: a stream may be used from any thread that makes its context current, one at a time by `&mut`.
unsafe impl Send for CudaQueue {}

impl CudaQueue {
    /// Makes a queue.
    pub(super) fn new(context: &Arc<Context>) -> Result<CudaQueue> {
        context.enter()?;
        let stream =
            result::stream::create(result::stream::StreamKind::NonBlocking).map_err(|e| failed(e, "make a queue"))?;
        Ok(CudaQueue { context: context.clone(), stream, kept: VecDeque::new() })
    }

    /// Adds a command by `add`, between two marks.
    fn enqueue(
        &mut self,
        what: &'static str,
        after: &[Event],
        kept: Kept,
        add: impl FnOnce(sys::CUstream) -> std::result::Result<(), result::DriverError>,
    ) -> Result<Event> {
        self.context.enter()?;
        while self.kept.front().is_some_and(|(event, _)| event.is_over()) {
            self.kept.pop_front();
        }
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
        match unsafe { started.end(self.stream, what) } {
            Ok(event) => {
                self.kept.push_back((event.clone(), kept));
                Ok(Event::new(event))
            }
            Err(error) => {
                // The command runs and nothing tells its end: better lose its memory than free it too early.
                std::mem::forget(kept);
                Err(error)
            }
        }
    }

    /// Opens memory of this device.
    fn memory<'a>(&self, memory: &'a Memory) -> Result<&'a CudaMemory> {
        let part = memory.part::<CudaMemory>()?;
        if Arc::ptr_eq(&part.context, &self.context) { Ok(part) } else { Err(foreign("memory")) }
    }
}

impl Queue for CudaQueue {
    fn write(&mut self, to: &Memory, at: usize, from: Buffer<u8>, after: &[Event]) -> Result<Event> {
        check_writable(to, at, from.len())?;
        let target = self.memory(to)?.pointer + at as u64;
        let kept = Kept { written: Some(from.clone()), memories: vec![to.clone()], kernel: None };
        self.enqueue("copy to a device", after, kept, |stream| {
            if from.is_empty() {
                return Ok(());
            }
            // SAFETY: the range is within the memory; both sides are kept until the command is over.
            unsafe { result::memcpy_htod_async(target, from.as_slice(), stream) }
        })
    }

    fn read(&mut self, from: &Memory, at: usize, into: &mut [u8], after: &[Event]) -> Result<Event> {
        check_range(from, at, into.len())?;
        let source = self.memory(from)?.pointer + at as u64;
        let kept = Kept { memories: vec![from.clone()], ..Kept::default() };
        let event = self.enqueue("copy from a device", after, kept, |stream| {
            if into.is_empty() {
                return Ok(());
            }
            // SAFETY: the range is within the memory, which is kept; the target is borrowed until the wait below.
            unsafe { result::memcpy_dtoh_async(into, source, stream) }
        })?;
        event.wait()?;
        Ok(event)
    }

    fn fill(&mut self, memory: &Memory, at: usize, bytes: usize, byte: u8, after: &[Event]) -> Result<Event> {
        check_writable(memory, at, bytes)?;
        let target = self.memory(memory)?.pointer + at as u64;
        let kept = Kept { memories: vec![memory.clone()], ..Kept::default() };
        self.enqueue("fill memory", after, kept, |stream| {
            if bytes == 0 {
                return Ok(());
            }
            // SAFETY: the range is within the memory, which is kept until the command is over.
            unsafe { result::memset_d8_async(target, byte, bytes, stream) }
        })
    }

    fn launch(&mut self, kernel: &Kernel, arguments: &[Argument<'_>], shape: Shape, after: &[Event]) -> Result<Event> {
        let kernel = kernel.part::<CudaKernel>()?;
        if !Arc::ptr_eq(&kernel.context, &self.context) {
            return Err(foreign("kernel"));
        }
        shape.check(&self.context.info)?;
        let many = |_| Error::internal(format!("too many work-items: {} groups of {}", shape.groups, shape.items));
        let groups = u32::try_from(shape.groups).map_err(many)?;
        let items = u32::try_from(shape.items).map_err(many)?;
        // Each value in a place of eight bytes, of which the driver reads what the kernel declares, the low ones first.
        let (mut values, mut local, mut memories) = (Vec::with_capacity(arguments.len()), 0usize, Vec::new());
        for argument in arguments {
            values.push(match argument {
                Argument::Memory(memory) => {
                    memories.push((*memory).clone());
                    self.memory(memory)?.pointer
                }
                Argument::Null => 0,
                Argument::U8(value) => u64::from(*value),
                Argument::U16(value) => u64::from(*value),
                Argument::I32(value) => u64::from(*value as u32),
                Argument::U32(value) => u64::from(*value),
                Argument::I64(value) => *value as u64,
                Argument::U64(value) => *value,
                Argument::Local(bytes) => {
                    local += bytes.next_multiple_of(LOCAL_ALIGNMENT);
                    continue;
                }
            });
        }
        let local = u32::try_from(local)
            .map_err(|_| Error::internal(format!("too much local memory for a kernel: {local} bytes")))?;
        let mut places: Vec<*mut c_void> = values.iter_mut().map(|value| (&raw mut *value).cast()).collect();
        let kept = Kept { written: None, memories, kernel: Some(kernel.clone()) };
        let function = kernel.function;
        self.enqueue("run a kernel", after, kept, |stream| {
            if groups == 0 {
                return Ok(());
            }
            // SAFETY: the function's module is kept; every place holds a value, which the call copies; memory is kept
            // until the command is over.
            unsafe { result::launch_kernel(function, (groups, 1, 1), (items, 1, 1), local, stream, &mut places) }
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the stream is ours.
        unsafe { result::stream::synchronize(self.stream) }.map_err(|e| failed(e, "finish commands"))?;
        self.kept.clear();
        Ok(())
    }
}

impl Drop for CudaQueue {
    fn drop(&mut self) {
        if self.finish().is_err() {
            // The driver may still use this memory: better lost than freed under it.
            std::mem::forget(std::mem::take(&mut self.kept));
        }
        if self.context.enter().is_ok() {
            // SAFETY: ours. An error leaves nothing to do.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}
