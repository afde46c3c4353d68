//! Finding devices.

use std::sync::Arc;

use crate::{Backend, Device, Info, opencl, sim};

/// What a search found.
#[derive(Debug, Default)]
pub struct Found {
    /// Usable devices, open.
    pub devices: Vec<Arc<dyn Device>>,
    /// What was not usable, and why.
    pub unusable: Vec<(String, String)>,
}

/// What to look for; the default is every real device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Uses only these devices, separated by commas: `opencl:0` for one, `opencl` for all of a backend, `none` for none.
    /// `TANDEM_DEVICES`.
    pub only: Option<String>,
    /// Adds simulated devices of these profiles or profile files, separated by commas. `TANDEM_SIM`.
    pub simulate: Option<String>,
    /// Makes every device deny double precision and 64-bit atomics. `TANDEM_DEVICE_POOR=1`.
    pub poor: bool,
}

impl Search {
    /// Reads the environment.
    pub fn from_environment() -> Search {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        Search {
            only: variable("TANDEM_DEVICES"),
            simulate: variable("TANDEM_SIM"),
            poor: variable("TANDEM_DEVICE_POOR").is_some_and(|value| value.trim() != "0"),
        }
    }

    /// Finds devices, and opens them anew at every call.
    pub fn run(&self) -> Found {
        let mut found = Found::default();
        opencl::discover(self.poor, &mut found);
        #[cfg(feature = "cuda")]
        crate::cuda::discover(self.poor, &mut found);
        #[cfg(not(feature = "cuda"))]
        found.unusable.push(("cuda".to_owned(), "this build has no CUDA: build it with the feature cuda".to_owned()));
        if let Some(list) = &self.simulate {
            sim::discover(list, &mut found);
        }
        if let Some(only) = &self.only {
            retain(only, &mut found);
        }
        found
    }
}

/// Keeps the devices that a list names, and says what it left out and what it does not understand.
fn retain(only: &str, found: &mut Found) {
    let names: Vec<&str> = only.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let selects = |name: &str, info: &Info| name == info.backend.to_string() || name == info.id();
    let backends = [Backend::OpenCl, Backend::Cuda, Backend::Sim].map(|backend| backend.to_string());
    for name in &names {
        let known = *name == "none" || backends.iter().any(|backend| backend == name);
        if !known && !found.devices.iter().any(|device| selects(name, device.info())) {
            let reason = "TANDEM_DEVICES names a device that was not found: see the list of devices";
            found.unusable.push(((*name).to_owned(), reason.to_owned()));
        }
    }
    found.devices.retain(|device| {
        let info = device.info();
        let keep = names.iter().any(|name| selects(name, info));
        if !keep {
            found.unusable.push((format!("{} {}", info.id(), info.name), "left out by TANDEM_DEVICES".to_owned()));
        }
        keep
    });
}
