//! Simulated devices: real results, modelled times.
//!
//! A [`Simulated`] device computes on another device and takes only time and size from its [`Profile`]: memory beyond the
//! profile's is refused, and every command is scheduled on a virtual [`Clock`], whose moments are the times of its event.
//! The model is small enough to reckon by hand:
//!
//! - a command waits for its queue, for what it comes `after`, and for its engine: one or two for copies, one for kernels;
//! - a copy takes the latency and its bytes at the bus's bandwidth;
//! - a fill takes the latency and its bytes at the memory's bandwidth;
//! - a kernel takes the latency, the bytes of all its arguments in device memory, each read once, at the memory's bandwidth,
//!   and what it touches of shared memory at the bus's. What it touches is what it marks ([`Marks`](crate::Marks)), in whole
//!   units; shared memory without marks counts whole. Arithmetic is free: these are the devices of data-bound queries;
//! - reading marks takes no time: a real device has none.
//!
//! The host's time stands still except where it waits.

mod clock;
mod device;
mod parse;
mod profile;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use clock::Clock;
pub use device::Simulated;
pub use profile::Profile;

use crate::{Backend, Found};

/// Adds a simulated device for each name or file in `list` to `found`, or the reasons why it cannot.
pub(crate) fn discover(list: &str, found: &mut Found) {
    let inner = found.devices.iter().find(|device| device.info().backend == Backend::OpenCl).cloned();
    let clock = Clock::default();
    let mut index = 0;
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let profile = match Profile::open(name) {
            Ok(profile) => profile,
            Err(error) => {
                found.unusable.push((format!("sim {name}"), error.message));
                continue;
            }
        };
        let Some(inner) = &inner else {
            let reason = "a simulated device computes on an OpenCL device, and none is usable";
            found.unusable.push((format!("sim {name}"), reason.to_owned()));
            continue;
        };
        found.devices.push(Arc::new(Simulated::new(inner, &profile, &clock, index)));
        index += 1;
    }
}
