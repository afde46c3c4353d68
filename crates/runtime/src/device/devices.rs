//! The devices of a session or daemon: found when first asked for, and kept.

use std::sync::{Arc, OnceLock};

use tandem_column::{Error, Result};
use tandem_device::Search;

use super::{Accelerator, DeviceSettings, KernelCache};

/// Which devices there are, how they are used, and where their compiled programs are kept.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DeviceOptions {
    /// Which devices are looked for; the default is every real one.
    pub search: Search,
    /// How they are used.
    pub settings: DeviceSettings,
    /// Where compiled programs are kept; the default is nowhere.
    pub kernels: KernelCache,
}

impl DeviceOptions {
    /// Reads the environment: `TANDEM_DEVICES`, `TANDEM_SIM`, `TANDEM_DEVICE_*` and `TANDEM_KERNEL_CACHE`. Programs read it
    /// once, where they start; nothing else looks at it.
    ///
    /// # Errors
    /// Input, for a value that is none.
    pub fn from_environment() -> Result<DeviceOptions> {
        Ok(DeviceOptions {
            search: Search::from_environment(),
            settings: DeviceSettings::from_environment()?,
            kernels: KernelCache::from_environment(),
        })
    }

    /// Looks for devices as `search` says.
    pub fn with_search(mut self, search: Search) -> DeviceOptions {
        self.search = search;
        self
    }

    /// Uses devices as `settings` say.
    pub fn with_settings(mut self, settings: DeviceSettings) -> DeviceOptions {
        self.settings = settings;
        self
    }

    /// Keeps compiled programs in a directory, or nowhere.
    pub fn with_kernels(mut self, kernels: KernelCache) -> DeviceOptions {
        self.kernels = kernels;
        self
    }
}

/// The devices of a session or daemon, with what they keep between queries.
#[derive(Debug, Default)]
pub struct Devices {
    options: DeviceOptions,
    /// Why options could not be read.
    mistake: Option<String>,
    found: OnceLock<Found>,
}

#[derive(Debug)]
struct Found {
    accelerators: Vec<Arc<Accelerator>>,
    unusable: Vec<(String, String)>,
}

impl Devices {
    /// Makes a set of devices, which are looked for when first asked for.
    pub fn new(options: DeviceOptions) -> Devices {
        Devices { options, ..Devices::default() }
    }

    /// Makes the set of devices that the environment asks for; none, with the reason, if it cannot be understood.
    pub fn from_environment() -> Devices {
        match DeviceOptions::from_environment() {
            Ok(options) => Devices::new(options),
            Err(error) => Devices { mistake: Some(error.message), ..Devices::default() },
        }
    }

    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            if let Some(mistake) = &self.mistake {
                return Found { accelerators: Vec::new(), unusable: vec![("settings".to_owned(), mistake.clone())] };
            }
            let DeviceOptions { search, settings, kernels } = &self.options;
            let found = search.run();
            let accelerator =
                |device| Arc::new(Accelerator::new(device).with_settings(*settings).with_kernels(kernels.clone()));
            Found { accelerators: found.devices.into_iter().map(accelerator).collect(), unusable: found.unusable }
        })
    }

    /// Returns those that can be used, in the order they were found.
    pub fn accelerators(&self) -> &[Arc<Accelerator>] {
        &self.found().accelerators
    }

    /// Returns what cannot be used, and why.
    pub fn unusable(&self) -> &[(String, String)] {
        &self.found().unusable
    }

    /// Returns the devices that share a query's rows: the first, and those like it, since each gets as many rows.
    ///
    /// # Errors
    /// Unsupported, with the reasons, if there is none.
    pub fn chosen(&self) -> Result<Vec<Arc<Accelerator>>> {
        let Some(first) = self.accelerators().first() else {
            let why: Vec<String> = self.unusable().iter().map(|(what, why)| format!("{what}: {why}")).collect();
            return Err(Error::unsupported(format!("no device is usable; use --mode cpu ({})", why.join("; "))));
        };
        let alike = |accelerator: &&Arc<Accelerator>| {
            let (one, other) = (first.device().info(), accelerator.device().info());
            (one.backend, one.kind, &one.name) == (other.backend, other.kind, &other.name)
        };
        Ok(self.accelerators().iter().filter(alike).cloned().collect())
    }

    /// Puts all programs on disk that were compiled and are not there yet. To be called before the process ends.
    pub fn save_programs(&self) {
        let found = self.found.get();
        found.into_iter().flat_map(|found| &found.accelerators).for_each(|accelerator| accelerator.save_programs());
    }
}
