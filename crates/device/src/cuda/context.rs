//! A device's primary context, and the host memory that devices read in place.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use cudarc::driver::{result, sys};
use parking_lot::Mutex;
use tandem_column::{Buffer, Error, PAGE, Result};

use super::failed;
use crate::Info;

/// What all objects of a device share.
#[derive(Debug)]
pub(super) struct CudaContext {
    device: sys::CUdevice,
    raw: sys::CUcontext,
    /// An event at the origin of the device's clock, recorded at `origin_host`.
    pub(super) origin: sys::CUevent,
    pub(super) origin_host: Instant,
    pub(super) info: Info,
    /// A command did not end in time. Freeing memory waits for all commands, so that it is lost instead.
    given_up: AtomicBool,
}

// SAFETY: contexts and events may be used from any thread that makes the context current, as `enter` does.
unsafe impl Send for CudaContext {}
// SAFETY: as above.
unsafe impl Sync for CudaContext {}

impl CudaContext {
    /// Opens the primary context of a device.
    pub(super) fn open(device: sys::CUdevice, info: Info) -> Result<Arc<CudaContext>> {
        // SAFETY: the device is one that the driver listed.
        let raw = unsafe { result::primary_ctx::retain(device) }.map_err(|e| failed(e, "open a device"))?;
        let (origin, given_up) = (std::ptr::null_mut(), AtomicBool::new(false));
        let mut context = CudaContext { device, raw, origin, origin_host: Instant::now(), info, given_up };
        context.enter()?;
        context.origin =
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(|e| failed(e, "make an event"))?;
        // SAFETY: the event is new, the null stream always exists, and its context is current.
        unsafe { result::event::record(context.origin, std::ptr::null_mut()) }
            .and_then(|()| {
                // SAFETY: as above.
                unsafe { result::event::synchronize(context.origin) }
            })
            .map_err(|e| failed(e, "record an event"))?;
        context.origin_host = Instant::now();
        Ok(Arc::new(context))
    }

    /// Makes the context current in this thread.
    pub(super) fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained as long as `self`.
        unsafe { result::ctx::set_current(self.raw) }.map_err(|e| failed(e, "enter a device's context"))
    }

    /// Takes note that the device does not answer.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Makes the context current to free memory; tells whether that does not wait for a device that does not answer.
    pub(super) fn enter_to_free(&self) -> bool {
        !self.given_up.load(Ordering::Relaxed) && self.enter().is_ok()
    }

    /// Returns the host's time on the device's clock, in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.origin_host.elapsed().as_nanos() as u64
    }
}

impl Drop for CudaContext {
    fn drop(&mut self) {
        // Errors leave nothing to do.
        if self.enter().is_ok() && !self.origin.is_null() {
            // SAFETY: ours, and nobody else is left.
            let _ = unsafe { result::event::destroy(self.origin) };
        }
        // SAFETY: retained once by `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Host memory registered with the driver, by address, with a count of users: the driver takes a range only once, for
/// all devices.
pub(super) type Registrations = Mutex<HashMap<usize, usize>>;

/// A use of a registered buffer.
#[derive(Debug)]
pub(super) struct Registration {
    registrations: Arc<Registrations>,
    context: Arc<CudaContext>,
    buffer: Buffer<u8>,
}

impl Registration {
    /// Registers a buffer that is not empty, or counts one more use.
    pub(super) fn new(
        registrations: &Arc<Registrations>,
        context: &Arc<CudaContext>,
        buffer: &Buffer<u8>,
    ) -> Result<Registration> {
        context.enter()?;
        let address = buffer.as_ptr().addr();
        let mut registered = registrations.lock();
        let users = registered.get(&address).copied().unwrap_or(0);
        if users == 0 {
            let flags = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
            let (start, whole) = (buffer.as_ptr().cast_mut().cast(), buffer.len().next_multiple_of(PAGE));
            // SAFETY: whole pages of the buffer's allocation, which this registration keeps alive; kernels only read.
            unsafe { sys::cuMemHostRegister_v2(start, whole, flags) }
                .result()
                .map_err(|e| Error::unsupported(failed(e, "share host memory").message))?;
        }
        registered.insert(address, users + 1);
        Ok(Registration { registrations: registrations.clone(), context: context.clone(), buffer: buffer.clone() })
    }

    /// Returns the address under which kernels of the context see the buffer.
    pub(super) fn device_pointer(&self) -> Result<sys::CUdeviceptr> {
        self.context.enter()?;
        let mut pointer = 0;
        // SAFETY: the buffer is registered for all devices.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut pointer, self.buffer.as_ptr().cast_mut().cast(), 0) }
            .result()
            .map_err(|e| failed(e, "share host memory"))?;
        Ok(pointer)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut registered = self.registrations.lock();
        let address = self.buffer.as_ptr().addr();
        match registered.get_mut(&address) {
            Some(users) if *users > 1 => *users -= 1,
            _ => {
                registered.remove(&address);
                if self.context.enter_to_free() {
                    // SAFETY: registered by us, and this was the last use. An error leaves nothing to do.
                    let _ = unsafe { sys::cuMemHostUnregister(self.buffer.as_ptr().cast_mut().cast()) }.result();
                } else {
                    // A kernel may still read it.
                    std::mem::forget(self.buffer.clone());
                }
            }
        }
    }
}
