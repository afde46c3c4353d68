//! The devices of a session or daemon: found when first asked for, and kept.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tandem_column::{Error, Result};
use tandem_device::Search;

use super::{Accelerator, DeviceSettings, KernelCache, Transfer};

/// Which devices there are, how they are used, and where their compiled programs are kept: every real device, and nowhere,
/// unless told.
///
/// ```
/// use tandem_runtime::{DeviceOptions, Devices};
///
/// let devices = Devices::new(DeviceOptions::default().only("none"));
/// assert!(devices.accelerators().is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeviceOptions {
    search: Search,
    settings: DeviceSettings,
    kernels: KernelCache,
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

    /// Uses only these devices, separated by commas: `opencl:0` for one, `opencl` for all of a driver, `none` for none.
    pub fn only(mut self, devices: impl Into<String>) -> DeviceOptions {
        self.search.only = Some(devices.into());
        self
    }

    /// Adds simulated devices of these profiles or profile files, separated by commas: `titan-rtx`.
    pub fn simulate(mut self, profiles: impl Into<String>) -> DeviceOptions {
        self.search.simulate = Some(profiles.into());
        self
    }

    /// Makes every device deny double precision and 64-bit atomics, as small ones do: for tests.
    #[doc(hidden)]
    pub fn poor(mut self, poor: bool) -> DeviceOptions {
        self.search.poor = poor;
        self
    }

    /// Sets the time in which a device must end a command, before it is given up; 60 s unless told.
    pub fn timeout(mut self, timeout: Duration) -> DeviceOptions {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Sets the number of queues, 1, 2 or 4: one for kernels, the others for copies; as many as pay unless told.
    pub fn streams(mut self, streams: usize) -> DeviceOptions {
        self.settings.streams = Some(streams);
        self
    }

    /// Sets how columns get to a device.
    pub fn transfer(mut self, transfer: Transfer) -> DeviceOptions {
        self.settings.transfer = transfer;
        self
    }

    /// Keeps compiled programs in a directory, or nowhere.
    pub fn kernels(mut self, kernels: KernelCache) -> DeviceOptions {
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
    found: OnceLock<OpenDevices>,
}

#[derive(Debug)]
struct OpenDevices {
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

    fn found(&self) -> &OpenDevices {
        self.found.get_or_init(|| {
            if let Some(mistake) = &self.mistake {
                return OpenDevices {
                    accelerators: Vec::new(),
                    unusable: vec![("settings".to_owned(), mistake.clone())],
                };
            }
            let DeviceOptions { search, settings, kernels } = &self.options;
            let found = search.run();
            let accelerator =
                |device| Arc::new(Accelerator::new(device).with_settings(*settings).with_kernels(kernels.clone()));
            OpenDevices { accelerators: found.devices.into_iter().map(accelerator).collect(), unusable: found.unusable }
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
