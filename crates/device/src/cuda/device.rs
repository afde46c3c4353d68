//! A CUDA device.

use std::sync::Arc;

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{result, sys};
use tandem_column::{Buffer, Error, Result};

use super::context::{CudaContext, Registration, Registrations};
use super::failed;
use super::program::CudaProgram;
use super::queue::CudaQueue;
use crate::object::MemoryPart;
use crate::reservation::{Capacity, DeviceReservation};
use crate::{Backend, Device, DeviceKind, Info, Memory, Program, Queue};

/// The least compute capability that NVRTC 12 compiles for.
const LEAST_CAPABILITY: (i32, i32) = (5, 0);

/// A CUDA device.
#[derive(Debug)]
pub(super) struct CudaDevice {
    context: Arc<CudaContext>,
    capacity: Arc<Capacity>,
    registrations: Arc<Registrations>,
    capability: (i32, i32),
}

/// Device memory, or host memory that kernels read.
#[derive(Debug)]
pub(super) struct CudaMemory {
    pub(super) context: Arc<CudaContext>,
    /// The address in kernels; 0 for memory without bytes.
    pub(super) pointer: sys::CUdeviceptr,
    length: usize,
    // Shared memory has a registration, or none if it has no bytes; allocated memory has a reservation.
    _registration: Option<Registration>,
    reservation: Option<DeviceReservation>,
}

impl MemoryPart for CudaMemory {
    fn len(&self) -> usize {
        self.length
    }

    fn is_shared(&self) -> bool {
        self.reservation.is_none()
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if !self.is_shared() && self.pointer != 0 && self.context.enter_to_free() {
            // SAFETY: allocated by us; queues keep memory until their commands are over. An error leaves nothing to do.
            let _ = unsafe { result::free_sync(self.pointer) };
        }
    }
}

impl CudaDevice {
    /// Opens a device by its number.
    pub(super) fn open(
        ordinal: i32,
        index: usize,
        poor: bool,
        registrations: &Arc<Registrations>,
    ) -> Result<CudaDevice> {
        let device = result::device::get(ordinal).map_err(|e| failed(e, "find a device"))?;
        let attribute = |attribute| {
            // SAFETY: the device is one that the driver listed.
            unsafe { result::device::get_attribute(device, attribute) }.map_err(|e| failed(e, "describe a device"))
        };
        let size = |name| attribute(name).map(|value| usize::try_from(value).unwrap_or(0));
        let capability = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        if capability < LEAST_CAPABILITY {
            let (major, minor) = capability;
            return Err(Error::unsupported(format!(
                "compute capability 5.0 is needed, use the device through OpenCL: it has {major}.{minor}"
            )));
        }
        let mut driver = 0;
        // SAFETY: the target is a number of the right type.
        unsafe { sys::cuDriverGetVersion(&mut driver) }.result().map_err(|e| failed(e, "tell its version"))?;
        // SAFETY: the device is one that the driver listed.
        let memory = unsafe { result::device::total_mem(device) }.map_err(|e| failed(e, "describe a device"))?;
        let mut info = Info {
            backend: Backend::Cuda,
            index,
            kind: DeviceKind::Gpu,
            name: result::device::get_name(device).map_err(|e| failed(e, "describe a device"))?,
            vendor: "NVIDIA".to_owned(),
            // The driver says 1000 × major + 10 × minor.
            driver: format!("CUDA {}.{}", driver / 1000, driver % 1000 / 10),
            version: format!("compute {}.{}", capability.0, capability.1),
            memory,
            largest_allocation: memory,
            units: size(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            group_items: size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            local_memory: size(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            fp64: true,
            int64_atomics: true,
            shared_memory: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)? != 0,
            simulated: false,
        };
        if poor {
            info.impoverish();
        }
        let capacity = Capacity::new(&info);
        let context = CudaContext::open(device, info)?;
        Ok(CudaDevice { context, capacity, registrations: registrations.clone(), capability })
    }
}

impl Device for CudaDevice {
    fn info(&self) -> &Info {
        &self.context.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        let reservation = self.capacity.reserve(bytes)?;
        self.context.enter()?;
        let mut pointer = 0;
        if bytes > 0 {
            // SAFETY: the context is current.
            pointer = unsafe { result::malloc_sync(bytes) }.map_err(|error| match error.0 {
                sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => reservation.refused(&error.to_string()),
                _ => failed(error, "allocate memory"),
            })?;
        }
        let context = self.context.clone();
        let (length, reservation) = (bytes, Some(reservation));
        Ok(Memory::new(CudaMemory { context, pointer, length, _registration: None, reservation }))
    }

    fn share(&self, bytes: &Buffer<u8>) -> Result<Memory> {
        if !self.context.info.shared_memory {
            return Err(Error::unsupported("the device cannot read host memory in place"));
        }
        let (mut pointer, mut registration) = (0, None);
        if !bytes.is_empty() {
            let new = Registration::new(&self.registrations, &self.context, bytes)?;
            pointer = new.device_pointer()?;
            registration = Some(new);
        }
        let (context, length) = (self.context.clone(), bytes.len());
        Ok(Memory::new(CudaMemory { context, pointer, length, _registration: registration, reservation: None }))
    }

    fn compile(&self, source: &str, options: &str) -> Result<Program> {
        CudaProgram::compile(&self.context, self.capability, source, options)
    }

    fn load(&self, binary: &[u8], _options: &str) -> Result<Program> {
        CudaProgram::load(&self.context, binary)
    }

    fn queue(&self) -> Result<Queue> {
        Ok(Queue::new(CudaQueue::new(&self.context)?))
    }

    fn used(&self) -> usize {
        self.capacity.used()
    }
}
