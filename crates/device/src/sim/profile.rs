//! Profiles of devices: sizes and speeds.

use tandem_column::{Error, Result};

use crate::{Backend, DeviceKind, Info};

/// What a simulated device is like. The keys of a profile file are these fields and those of [`Info`] that a profile sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// What it says of itself. Its place, vendor, driver and version come from the device that it computes on.
    pub info: Info,
    /// What kernels read from device memory, in bytes per second: the peak of the public specification.
    pub memory_bandwidth: f64,
    /// What a copy reaches across the bus in one direction, in bytes per second: the peak of the PCIe generation.
    pub bus_bandwidth: f64,
    /// The time before any command does its work, in nanoseconds.
    pub launch_latency: u64,
    /// How many copies run at once: 1, or 2 for one in each direction.
    pub copy_engines: usize,
}

/// Time from a launch to the kernel's start: 5 µs, a rule of thumb for all generations; no datasheet has it.
const LAUNCH_LATENCY: u64 = 5_000;

/// Bytes per second of 16 PCIe lanes in one direction, after line coding, by generation (PCI-SIG base specifications:
/// 5 GT/s with 8b/10b, then 8, 16 and 32 GT/s with 128b/130b).
fn pcie(generation: u32) -> f64 {
    match generation {
        2 => 8.0e9,
        3 => 15.75e9,
        4 => 31.5e9,
        _ => 63.0e9,
    }
}

/// A row of the table: name, product, memory in GiB, memory bandwidth in GB/s, PCIe generation, copy engines, units.
type Row = (&'static str, &'static str, f64, f64, u32, usize, usize);

/// The built-in profiles. Memory, bandwidth, bus and multiprocessors are public specification figures, peaks that no
/// program reaches; for boards with two GPUs, of one. Copy engines: GeForce boards up to Fermi have one, the others at
/// least two.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    // GeForce GTX 580 specifications: 1536 MB GDDR5, 192.4 GB/s, PCIe 2.0; 16 multiprocessors (GF110).
    ("gtx580",    "GeForce GTX 580", 1.5,   192.4, 2, 1, 16),
    // GRID K520 board specification: 8 GB GDDR5 and 320 GB/s for two GK104, PCIe 3.0; 8 multiprocessors each.
    ("k520",      "GRID K520",       4.0,   160.0, 3, 2, 8),
    // Tesla M2050/M2070 board specification: 3 GB GDDR5 (ECC off), 148.4 GB/s, PCIe 2.0; 14 multiprocessors (GF100).
    ("m2050",     "Tesla M2050",     3.0,   148.4, 2, 2, 14),
    // T4 datasheet: 16 GB GDDR6, 320 GB/s, PCIe 3.0; 40 multiprocessors (TU104).
    ("t4",        "Tesla T4",        16.0,  320.0, 3, 2, 40),
    // TITAN Xp product page: 12 GB GDDR5X, 547.7 GB/s, PCIe 3.0; 30 multiprocessors (GP102).
    ("titan-xp",  "TITAN Xp",        12.0,  547.7, 3, 2, 30),
    // TITAN RTX product page: 24 GB GDDR6, 672 GB/s, PCIe 3.0; 72 multiprocessors (TU102).
    ("titan-rtx", "TITAN RTX",       24.0,  672.0, 3, 2, 72),
    // A100 datasheet, 40 GB: HBM2, 1555 GB/s, PCIe 4.0; 108 multiprocessors.
    ("a100",      "A100 40GB",       40.0, 1555.0, 4, 2, 108),
    // H100 datasheet, SXM5: 80 GB HBM3, 3.35 TB/s, PCIe 5.0; 132 multiprocessors.
    ("h100",      "H100 SXM5 80GB",  80.0, 3350.0, 5, 2, 132),
];

impl Profile {
    /// Returns the names of the built-in profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.0)
    }

    /// Returns a built-in profile.
    pub fn named(name: &str) -> Option<Profile> {
        let (_, product, memory, bandwidth, generation, copy_engines, units) =
            *TABLE.iter().find(|row| row.0 == name)?;
        let mut profile = Profile {
            memory_bandwidth: bandwidth * 1e9,
            bus_bandwidth: pcie(generation),
            copy_engines,
            ..Profile::plain()
        };
        profile.info.name = product.to_owned();
        profile.info.units = units;
        profile.set_memory((memory * f64::from(1 << 30)) as usize);
        Some(profile)
    }

    /// Returns a built-in profile, or reads a file if the name looks like a path (has a slash, or ends in `.profile`).
    ///
    /// # Errors
    /// `Input` if there is no such profile or file, or the file is wrong; names file, line and remedy.
    pub fn open(name: &str) -> Result<Profile> {
        if let Some(profile) = Profile::named(name) {
            return Ok(profile);
        }
        if name.contains(['/', '\\']) || name.ends_with(".profile") {
            let text = std::fs::read_to_string(name)
                .map_err(|error| Error::input(format!("cannot read a device profile: {name}: {error}")))?;
            return Profile::parse(name, &text);
        }
        let names: Vec<&str> = Profile::names().collect();
        let names = names.join(", ");
        Err(Error::input(format!("no such device profile, use one of {names} or the path of a .profile file: {name}")))
    }

    /// Returns a profile without sizes and speeds; the rest is what the GPUs of the table have in common.
    pub(super) fn plain() -> Profile {
        let info = Info {
            backend: Backend::Sim,
            index: 0,
            kind: DeviceKind::Gpu,
            name: String::new(),
            vendor: String::new(),
            driver: String::new(),
            version: String::new(),
            memory: 0,
            largest_allocation: 0,
            units: 1,
            // CUDA C++ Programming Guide, compute capability 2.0 and later: 1024 threads, 48 KB shared memory a block,
            // double precision, 64-bit atomics in global and shared memory, mapped host memory.
            group_items: 1024,
            local_memory: 48 << 10,
            fp64: true,
            int64_atomics: true,
            shared_memory: true,
            simulated: true,
        };
        Profile { info, memory_bandwidth: 0.0, bus_bandwidth: 0.0, launch_latency: LAUNCH_LATENCY, copy_engines: 2 }
    }

    /// Sets the memory, all of which may be one allocation.
    pub(super) fn set_memory(&mut self, bytes: usize) {
        (self.info.memory, self.info.largest_allocation) = (bytes, bytes);
    }
}
