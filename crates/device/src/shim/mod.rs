//! CUDA text on the CPU, for tests: g++ compiles it behind a small header, and a launch runs its threads in turn.
//!
//! A [`Shim`] is a device like others whose programs are CUDA C++, so what is generated for CUDA can be run, and its
//! results compared, where there is no NVIDIA device. [`Shim::sanitized`] adds the address and undefined-behaviour
//! sanitizers: memory is allocated to the byte, so a kernel that leaves it ends the process with a report. Such a process
//! needs the sanitizer loaded before all else: a test starts itself again in [`sanitized_environment`].
//!
//! What it does not show: speed, warps, and races (threads run one after the other; oclgrind looks for those).

mod device;
mod program;
mod queue;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::Command;

pub use device::Shim;
use tandem_column::{Error, Result};

/// Returns the environment in which a process can run [`Shim::sanitized`].
///
/// # Errors
/// `Unsupported` if there is no g++ with sanitizers.
pub fn sanitized_environment() -> Result<Vec<(&'static str, String)>> {
    let missing = || Error::unsupported("g++ has no address sanitizer: install g++ and its libasan");
    let output = Command::new("g++").arg("-print-file-name=libasan.so").output().map_err(|_| missing())?;
    // A library that is not there comes back as its bare name.
    let library = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let library = library.canonicalize().map_err(|_| missing())?;
    let library = library.into_os_string().into_string().map_err(|_| missing())?;
    Ok(vec![
        ("LD_PRELOAD", library),
        // What the Rust program keeps to its end is not ours to judge.
        ("ASAN_OPTIONS", "detect_leaks=0".to_owned()),
        ("UBSAN_OPTIONS", "print_stacktrace=1".to_owned()),
    ])
}
