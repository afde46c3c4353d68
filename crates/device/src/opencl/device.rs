//! An OpenCL device with a context of its own.

use std::ptr;
use std::sync::Arc;

use opencl_sys::*;
use tandem_column::{Buffer, Error, PAGE, Result};

use super::handle::{ContextHandle, MemoryHandle, QueueHandle};
use super::library::Api;
use super::program::OpenClProgram;
use super::queue::OpenClQueue;
use super::status;
use crate::object::MemoryPart;
use crate::reservation::{Capacity, DeviceReservation};
use crate::{Device, Info, Memory, Program, Queue};

/// What all objects of a device share.
#[derive(Debug)]
pub(super) struct OpenClContext {
    pub(super) api: &'static Api,
    pub(super) device: DeviceId,
    pub(super) handle: ContextHandle,
    pub(super) info: Info,
}

/// A device that the library listed. It is never released.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceId(pub(super) cl_device_id);

// SAFETY: an identity of the library, valid for the life of the process in any thread.
unsafe impl Send for DeviceId {}
// SAFETY: as above.
unsafe impl Sync for DeviceId {}

/// An OpenCL device.
#[derive(Debug)]
pub(super) struct OpenClDevice {
    context: Arc<OpenClContext>,
    capacity: Arc<Capacity>,
}

/// Device memory, or host memory that kernels read.
#[derive(Debug)]
pub(super) struct OpenClMemory {
    // First, so that it is released before the memory under it.
    pub(super) handle: MemoryHandle,
    pub(super) context: Arc<OpenClContext>,
    length: usize,
    shared: Option<Buffer<u8>>,
    _reservation: Option<DeviceReservation>,
}

impl MemoryPart for OpenClMemory {
    fn len(&self) -> usize {
        self.length
    }

    fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
}

impl OpenClDevice {
    /// Opens a listed device.
    pub(super) fn open(api: &'static Api, device: cl_device_id, info: Info) -> Result<OpenClDevice> {
        let mut code = CL_SUCCESS;
        // SAFETY: one listed device, no properties, no callback.
        let raw = unsafe { (api.clCreateContext)(ptr::null(), 1, &device, None, ptr::null_mut(), &mut code) };
        status::check(code, "make a context")?;
        // SAFETY: just made, and ours.
        let handle = unsafe { ContextHandle::new(api, raw) };
        let capacity = Capacity::new(&info);
        Ok(OpenClDevice { context: Arc::new(OpenClContext { api, device: DeviceId(device), handle, info }), capacity })
    }

    /// Makes a buffer of at least one byte.
    ///
    /// # Safety
    /// `host` is null, or `flags` use it as host memory and it stays valid for `bytes` bytes as long as the buffer.
    unsafe fn buffer(
        &self,
        flags: cl_mem_flags,
        bytes: usize,
        host: *const u8,
    ) -> std::result::Result<MemoryHandle, cl_int> {
        let api = self.context.api;
        let mut code = CL_SUCCESS;
        let host = host.cast_mut().cast();
        // SAFETY: the context is valid; `host` is as our caller promises.
        let raw = unsafe { (api.clCreateBuffer)(self.context.handle.raw(), flags, bytes.max(1), host, &mut code) };
        match code {
            // SAFETY: just made, and ours.
            CL_SUCCESS => Ok(unsafe { MemoryHandle::new(api, raw) }),
            _ => Err(code),
        }
    }
}

impl Device for OpenClDevice {
    fn info(&self) -> &Info {
        &self.context.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let reservation = self.capacity.reserve(bytes)?;
        // SAFETY: no host memory.
        let handle = unsafe { self.buffer(CL_MEM_READ_WRITE, bytes, ptr::null()) }.map_err(|code| match code {
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY | CL_INVALID_BUFFER_SIZE => {
                reservation.refused(&status::name(code))
            }
            _ => status::error(code, "allocate memory"),
        })?;
        let context = self.context.clone();
        Ok(Memory::new(OpenClMemory { context, handle, length: bytes, shared: None, _reservation: Some(reservation) }))
    }

    fn share(&self, bytes: &Buffer<u8>) -> Result<Memory> {
        if !self.context.info.shared_memory {
            return Err(Error::unsupported("the device has memory of its own and would copy what it shares"));
        }
        let flags = CL_MEM_READ_ONLY | if bytes.is_empty() { 0 } else { CL_MEM_USE_HOST_PTR };
        let start = if bytes.is_empty() { ptr::null() } else { bytes.as_ptr() };
        // Whole pages: some drivers copy anything else. The allocation behind a buffer is whole pages, too.
        let whole = bytes.len().next_multiple_of(PAGE);
        // SAFETY: the buffer's pages live as long as the handle, which is next to a clone of the buffer and dropped
        // before it; queues keep the memory until their commands are done. Kernels do not write to it.
        let handle =
            unsafe { self.buffer(flags, whole, start) }.map_err(|code| status::error(code, "share host memory"))?;
        let (context, length) = (self.context.clone(), bytes.len());
        Ok(Memory::new(OpenClMemory { context, handle, length, shared: Some(bytes.clone()), _reservation: None }))
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        OpenClProgram::compile(&self.context, source, options)
    }

    fn load(&self, binary: &[u8], options: &str) -> Result<Program> {
        OpenClProgram::load(&self.context, binary, options)
    }

    fn queue(&self) -> Result<Queue> {
        let OpenClContext { api, device, handle, .. } = &*self.context;
        let mut code = CL_SUCCESS;
        // SAFETY: the context is valid and made for this device. This older function is the one that every version has.
        let raw = unsafe { (api.clCreateCommandQueue)(handle.raw(), device.0, CL_QUEUE_PROFILING_ENABLE, &mut code) };
        status::check(code, "make a queue")?;
        // SAFETY: just made, and ours.
        let handle = unsafe { QueueHandle::new(api, raw) };
        Ok(Queue::new(OpenClQueue::new(self.context.clone(), handle)))
    }

    fn used(&self) -> usize {
        self.capacity.used()
    }
}
