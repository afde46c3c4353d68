//! The device and its memory.

use std::alloc::{Layout, alloc, dealloc};
use std::process::Command;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use tandem_column::{Buffer, Error, Result};

use super::program::{HEADER, ShimProgram};
use super::queue::ShimQueue;
use crate::object::MemoryPart;
use crate::reservation::{Capacity, DeviceReservation};
use crate::{Backend, Device, DeviceKind, Info, Memory, Program, Queue};

/// Bytes of memory: more than tests take, less than machines have.
const MEMORY: usize = 1 << 30;
/// The alignment of allocations in bytes, that of `cuMemAlloc`.
const ALIGNMENT: usize = 256;
/// Threads of a block: a warp. Few, so that a thread takes many rows of a small table.
const GROUP_ITEMS: usize = 32;
/// What fresh memory is filled with: contents are undefined, and zeros would hide that.
const GARBAGE: u8 = 0xA5;
/// Allocations of more bytes are not filled: they would only then take memory.
const MOST_GARBAGE: usize = 1 << 20;

/// A device that runs CUDA text on the CPU.
#[derive(Debug)]
pub struct Shim {
    context: Arc<ShimContext>,
}

/// What all objects of the device share.
#[derive(Debug)]
pub(super) struct ShimContext {
    pub(super) info: Info,
    pub(super) sanitize: bool,
    pub(super) capacity: Arc<Capacity>,
    pub(super) origin: Instant,
}

impl ShimContext {
    /// Returns the device's time in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

/// Memory of the process, exactly as long as asked for.
#[derive(Debug)]
pub(super) struct ShimMemory {
    pub(super) context: Arc<ShimContext>,
    /// Null if it has no bytes.
    pub(super) pointer: *mut u8,
    layout: Layout,
    _reservation: DeviceReservation,
}

// SAFETY: as with any device, who launches kernels and copies orders them by queues and events.
unsafe impl Send for ShimMemory {}
// SAFETY: as above.
unsafe impl Sync for ShimMemory {}

impl MemoryPart for ShimMemory {
    fn len(&self) -> usize {
        self.layout.size()
    }

    fn is_shared(&self) -> bool {
        false
    }
}

impl Drop for ShimMemory {
    fn drop(&mut self) {
        if !self.pointer.is_null() {
            // SAFETY: allocated with this layout; commands are over when their calls return.
            unsafe { dealloc(self.pointer, self.layout) };
        }
    }
}

impl Shim {
    /// Opens the device.
    ///
    /// # Errors
    /// `Unsupported` if there is no g++.
    pub fn open() -> Result<Shim> {
        Shim::new(false)
    }

    /// Opens the device with the address and undefined-behaviour sanitizers, in a process that
    /// [`sanitized_environment`](super::sanitized_environment) prepared.
    ///
    /// # Errors
    /// `Unsupported` if there is no g++, or in any other process.
    pub fn sanitized() -> Result<Shim> {
        // The sanitizer ends a process into which it comes late.
        if !std::env::var("LD_PRELOAD").is_ok_and(|libraries| libraries.contains("libasan")) {
            return Err(Error::unsupported("the address sanitizer is not loaded: start in its environment"));
        }
        Shim::new(true)
    }

    fn new(sanitize: bool) -> Result<Shim> {
        let output = Command::new("g++").arg("-dumpfullversion").output();
        let output = output.map_err(|error| Error::unsupported(format!("there is no g++, install it: {error}")))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let sanitizers = if sanitize { " with sanitizers" } else { "" };
        let info = Info {
            backend: Backend::Shim,
            index: 0,
            kind: DeviceKind::Gpu,
            name: "CUDA text on the CPU".to_owned(),
            vendor: "Tandem".to_owned(),
            driver: format!("g++ {version}{sanitizers}"),
            // Stored kernels contain the header.
            version: format!("header {:016x}", fingerprint(HEADER)),
            memory: MEMORY,
            largest_allocation: MEMORY / 4,
            units: 1,
            group_items: GROUP_ITEMS,
            local_memory: 48 << 10,
            fp64: true,
            int64_atomics: true,
            shared_memory: false,
            simulated: false,
        };
        let capacity = Capacity::new(&info);
        Ok(Shim { context: Arc::new(ShimContext { info, sanitize, capacity, origin: Instant::now() }) })
    }
}

/// FNV-1a.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

impl Device for Shim {
    fn info(&self) -> &Info {
        &self.context.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let reservation = self.context.capacity.reserve(bytes)?;
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| reservation.refused("too large"))?;
        let mut pointer = ptr::null_mut();
        if bytes > 0 {
            // SAFETY: the layout has bytes.
            pointer = unsafe { alloc(layout) };
            if pointer.is_null() {
                return Err(reservation.refused("the process has no more memory"));
            }
            if bytes <= MOST_GARBAGE {
                // SAFETY: as many bytes were allocated.
                unsafe { ptr::write_bytes(pointer, GARBAGE, bytes) };
            }
        }
        let context = self.context.clone();
        Ok(Memory::new(ShimMemory { context, pointer, layout, _reservation: reservation }))
    }

    fn share(&self, _: &Buffer<u8>) -> Result<Memory> {
        // Buffers are longer than their contents: copies to the byte show what is read beyond.
        Err(Error::unsupported("the device does not read host memory in place"))
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        ShimProgram::compile(&self.context, source, options)
    }

    fn load(&self, binary: &[u8], _: &str) -> Result<Program> {
        ShimProgram::load(&self.context, binary)
    }

    fn queue(&self) -> Result<Queue> {
        Ok(Queue::new(ShimQueue::new(&self.context)))
    }

    fn used(&self) -> usize {
        self.context.capacity.used()
    }
}
