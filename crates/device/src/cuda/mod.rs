//! Devices through the CUDA driver, kernels compiled by NVRTC.
//!
//! **Not run yet**: no machine of the project has such a device; `docs/02-devices.md` says what is tested instead. It is
//! written against cudarc's thin layers (`driver::result` and `sys`), which load the driver at run time; the safe layer
//! does not take argument lists that are known at run time only. Compute capability 5.0 is the least that NVRTC 12
//! compiles for. Binaries are PTX.
//!
//! Every call first makes the device's primary context current in its thread. Events are pairs, recorded before and after
//! a command, so that they carry durations; local memory of all arguments together is the dynamic shared memory.

mod context;
mod device;
mod event;
mod program;
mod queue;

use std::panic::catch_unwind;
use std::sync::Arc;

use cudarc::driver::result;
use tandem_column::{Class, Error};

pub use program::compile_to_ptx;

use crate::{Device, Found};

/// Why nothing can be compiled, and the remedy.
const NO_COMPILER: &str = "no CUDA compiler: install NVRTC 12, for example the package nvidia-cuda-nvrtc-cu12";

/// Adds all CUDA devices to `found`, or the reasons why there are none.
pub(crate) fn discover(poor: bool, found: &mut Found) {
    // cudarc panics when a function is missing from an old driver.
    match catch_unwind(|| list(poor)) {
        Ok(Ok((devices, unusable))) => {
            found.devices.extend(devices);
            found.unusable.extend(unusable);
        }
        Ok(Err(reason)) => found.unusable.push(("cuda".to_owned(), reason)),
        Err(_) => found.unusable.push(("cuda".to_owned(), "the driver is too old: update it".to_owned())),
    }
}

type Listed = (Vec<Arc<dyn Device>>, Vec<(String, String)>);

fn list(poor: bool) -> Result<Listed, String> {
    // SAFETY: loads the driver's library and lets it go; its initialisers are the vendor's.
    if !unsafe { cudarc::driver::sys::is_culib_present() } {
        return Err("no CUDA driver: install NVIDIA's driver".to_owned());
    }
    // SAFETY: as above, for the compiler's library.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err(NO_COMPILER.to_owned());
    }
    result::init().map_err(|error| format!("the CUDA driver does not start: {error}"))?;
    let count = result::device::get_count().map_err(|error| format!("the CUDA driver lists no devices: {error}"))?;
    if count == 0 {
        return Err("the CUDA driver has no devices".to_owned());
    }
    let registrations = Arc::default();
    let (mut devices, mut unusable): Listed = Default::default();
    for ordinal in 0..count {
        match device::CudaDevice::open(ordinal, devices.len(), poor, &registrations) {
            Ok(device) => devices.push(Arc::new(device)),
            Err(error) => unusable.push((format!("cuda device {ordinal}"), error.message)),
        }
    }
    Ok((devices, unusable))
}

/// Makes the error of a driver call; `what` completes "CUDA failed to …".
fn failed(error: result::DriverError, what: &str) -> Error {
    use cudarc::driver::sys::CUresult;
    let class = match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Class::Exhausted,
        CUresult::CUDA_ERROR_INVALID_VALUE => Class::Internal,
        _ => Class::Device,
    };
    Error::new(class, format!("CUDA failed to {what}: {error}"))
}
