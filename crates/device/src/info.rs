//! What a device says of itself.

use std::fmt;

/// The interface through which a device is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// OpenCL.
    OpenCl,
    /// The CUDA driver.
    Cuda,
    /// The simulator.
    Sim,
    /// CUDA text on the CPU, for tests.
    Shim,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Backend::OpenCl => "opencl",
            Backend::Cuda => "cuda",
            Backend::Sim => "sim",
            Backend::Shim => "shim",
        })
    }
}

/// The kind of device, which decides how kernels iterate over rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// A CPU: few work-items, each with a contiguous chunk.
    Cpu,
    /// A GPU: many work-items, neighbours read neighbouring values.
    Gpu,
    /// Anything else.
    Accelerator,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Gpu => "gpu",
            DeviceKind::Accelerator => "accelerator",
        })
    }
}

/// The properties of a device; they do not change while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The interface that drives it.
    pub backend: Backend,
    /// The position among the devices of its backend.
    pub index: usize,
    /// The kind of device.
    pub kind: DeviceKind,
    /// The product's name.
    pub name: String,
    /// Who made it.
    pub vendor: String,
    /// The driver and its version.
    pub driver: String,
    /// The version of the interface, such as `OpenCL 3.0` or `compute 8.0`.
    pub version: String,
    /// Device memory, in bytes.
    pub memory: usize,
    /// The largest single allocation, in bytes.
    pub largest_allocation: usize,
    /// Compute units: cores or multiprocessors.
    pub units: usize,
    /// The most work-items in a group.
    pub group_items: usize,
    /// Local memory of a group, in bytes.
    pub local_memory: usize,
    /// Whether kernels may use double precision.
    pub fp64: bool,
    /// Whether kernels may use 64-bit atomics.
    pub int64_atomics: bool,
    /// Whether [`share`](crate::Device::share) works: kernels read host memory without a copy.
    pub shared_memory: bool,
    /// Whether its times are modelled rather than measured.
    pub simulated: bool,
}

impl Info {
    /// Returns the short name by which `TANDEM_DEVICES` selects it, such as `opencl:0`.
    pub fn id(&self) -> String {
        format!("{}:{}", self.backend, self.index)
    }

    /// Denies what a poor device lacks, so that tests reach the kernels for such devices.
    pub(crate) fn impoverish(&mut self) {
        self.fp64 = false;
        self.int64_atomics = false;
    }
}
