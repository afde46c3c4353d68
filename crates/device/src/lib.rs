//! Devices: memory, kernels, queues and events, the same for OpenCL, CUDA and the simulator.
//!
//! [`Search`] lists what is usable and says why the rest is not. A [`Device`] gives [`Memory`], [`Program`]s and [`Queue`]s;
//! every command of a queue gives an [`Event`] that other queues may wait for. No wait is longer than a [`Patience`], and
//! what a device may still use then is kept. Backends are loaded at run time: without a driver the list is empty and the
//! reason is in [`Found::unusable`].
//!
//! | backend | what it is | where |
//! |---|---|---|
//! | `opencl` | any OpenCL 1.2 device of any type, a CPU too | `opencl/` |
//! | `cuda` | NVIDIA devices by the driver and NVRTC (feature `cuda`, on by default); not run yet | `cuda/` |
//! | `sim` | a device of a [`Profile`] on a virtual [`Clock`]; computes on an OpenCL device | `sim/` |
//!
//! Environment: `TANDEM_DEVICES=opencl:0,sim` uses only these (`none` for none), `TANDEM_SIM=t4,my.profile` adds simulated
//! devices, `TANDEM_DEVICE_POOR=1` makes every device deny fp64 and 64-bit atomics. [`Search`] holds the same choices.
//!
//! [`Faulty`] makes any device fail on purpose; the module `conformance` (feature of that name) is what every backend
//! must pass. The module `shim` (feature of that name) runs CUDA text on the CPU, for tests; a search does not find
//! it. `unsafe` is confined to the modules that call C.
//!
//! Kernel text is trusted: a kernel that writes out of bounds on a CPU device writes into this process.
//!
//! ```
//! for device in tandem_device::Search::from_environment().run().devices {
//!     println!("{}: {}", device.info().id(), device.info().name);
//! }
//! ```

#![deny(unsafe_code)]

mod bandwidth;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[cfg(feature = "cuda")]
#[allow(unsafe_code)]
mod cuda;
mod device;
mod faulty;
mod find;
mod info;
mod object;
#[allow(unsafe_code)]
mod opencl;
mod patience;
mod queue;
mod reservation;
#[cfg(any(test, feature = "shim"))]
#[allow(unsafe_code)]
pub mod shim;
mod sim;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use bandwidth::{Bandwidths, bandwidth};
#[cfg(feature = "cuda")]
pub use cuda::compile_to_ptx;
pub use device::{Argument, Device, Marks, Shape};
pub use faulty::{Fault, Faulty, Operation};
pub use find::{Found, Search};
pub use info::{Backend, DeviceKind, Info};
pub use object::{Event, Kernel, Memory, Program, Times};
pub use patience::Patience;
pub use queue::Queue;
pub use sim::{Clock, Profile, Simulated};
pub use tandem_column::{Buffer, Class, Error, Result};
