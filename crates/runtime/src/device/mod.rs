//! Pipelines on devices: the kernel of a job, its data, its launches, and its groups back.
//!
//! A device is one more worker of a [`Job`]: it computes whole parts and gives back groups or rows, which are merged like
//! any worker's. Nothing leaves a job before it has ended, so whatever goes wrong on a device (a kernel that cannot be
//! generated, memory that runs out, a device that is lost or hangs), the CPU's workers compute the job instead.

mod bind;
mod build;
mod cache;
mod data;
mod devices;
mod groups;
mod hashed;
mod keep;
mod launch;
mod operators;
mod partition;
mod prepare;
mod programs;
mod rows;
mod running;
mod settings;
mod share;
mod sink;
mod sorted;
mod streams;
mod times;
mod trusted;
mod unmatched;
mod values;
mod window;

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tandem_codegen::{ColumnLayout, GeneratedKernel, KernelInput, KernelLanguage, KernelSink, Traits};
use tandem_column::{Class, Column, Error, Result};
use tandem_cpu::{Contribution, Job};
use tandem_device::{Backend, Device, DeviceKind, Program};
use tandem_plan::Physical;

pub use cache::KernelCache;
use cache::ProgramCache;
use data::Resident;
pub use devices::{DeviceOptions, Devices};
pub use programs::ProgramMetrics;
pub use settings::{DeviceSettings, Transfer};
pub(crate) use share::{Share, share};
pub(crate) use sink::{DeviceSink, device_sink};

/// Options of OpenCL's compilers. Warnings would go to standard error; the oldest standard compiles soonest.
const OPENCL_OPTIONS: &str = "-w -cl-std=CL1.2";

/// PoCL's are told not to read the header of all functions, which takes longer than the kernel does: preludes declare
/// those that kernels use.
const POCL_OPTIONS: &str = "-w -cl-std=CL1.2 -D_OPENCL_H_ -DDECLARED";

/// The fewest bytes of rows that stay on the device for a later pipeline: fewer come back, and are copied again, in less
/// time than the kernels take that make columns of them.
const KEEP_FROM: usize = 64 << 10;

/// A device with what it keeps between queries.
#[derive(Debug)]
pub struct Accelerator {
    device: Arc<dyn Device>,
    settings: DeviceSettings,
    traits: Traits,
    columns: Resident,
    programs: Mutex<HashMap<String, Program>>,
    cache: ProgramCache,
    /// Programs that are not on disk yet.
    unsaved: Mutex<Vec<(String, Program)>>,
    /// The fewest bytes of rows that are kept for a later pipeline.
    keep_from: usize,
    /// Rows are kept even where others contribute some, too.
    keep_shares: bool,
    /// Texts may use more of OpenCL C than preludes declare.
    beyond_declared: bool,
    /// It failed once: no more work is given to it.
    lost: AtomicBool,
    jobs: AtomicU64,
}

/// What one device, or several together, did for one pipeline.
#[derive(Clone, Debug, Default)]
pub struct DeviceMetrics {
    /// The devices, for people.
    pub names: Vec<String>,
    /// Launches of the kernel.
    pub launches: u64,
    /// Bytes copied to the device for this pipeline.
    pub bytes_to: u64,
    /// Bytes that the device reads where they are.
    pub bytes_shared: u64,
    /// Bytes copied back.
    pub bytes_back: u64,
    /// What each program took that was used for the first time.
    pub programs: Vec<ProgramMetrics>,
    /// What the user should know and is told once.
    pub remarks: Vec<String>,
    /// Time in kernels, by the device's clock.
    pub kernels: Duration,
    /// Time in copies there and back, by the device's clock.
    pub copies: Duration,
    /// How long of it a kernel ran, too.
    pub overlapped: Duration,
    /// What was read of each source column, where that is counted.
    pub traffic: Vec<Traffic>,
    /// The text of each kernel, without its prelude, and how it was launched.
    pub texts: Vec<String>,
}

/// What kernels read of one source column.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// The column.
    pub column: String,
    /// Its bytes, in the parts that were computed.
    pub bytes: u64,
    /// The bytes of its sectors that were touched.
    pub touched: u64,
    /// It was read where it is, rather than copied first.
    pub passive: bool,
}

impl Accelerator {
    /// Wraps a device.
    pub fn new(device: Arc<dyn Device>) -> Accelerator {
        let info = device.info();
        let traits = Traits {
            chunked: info.kind == DeviceKind::Cpu,
            fp64: info.fp64,
            int64_atomics: info.int64_atomics,
            // What goes over the bus of a simulated device is counted, since no clock can measure it.
            traced: info.simulated,
        };
        let (columns, programs, cache) = (Resident::default(), Mutex::default(), ProgramCache::default());
        let unsaved = Mutex::default();
        let (settings, lost, jobs) = (DeviceSettings::default(), AtomicBool::new(false), AtomicU64::new(0));
        let (keep_from, keep_shares, beyond_declared) = (KEEP_FROM, false, true);
        Accelerator {
            device,
            settings,
            traits,
            columns,
            programs,
            cache,
            unsaved,
            keep_from,
            keep_shares,
            beyond_declared,
            lost,
            jobs,
        }
    }

    /// Uses the device as set.
    pub fn with_settings(mut self, settings: DeviceSettings) -> Accelerator {
        self.settings = settings;
        self
    }

    /// Keeps compiled programs on disk.
    pub fn with_kernels(mut self, kernels: KernelCache) -> Accelerator {
        self.cache = ProgramCache::new(kernels);
        self
    }

    /// Does without double precision and 64-bit atomics, whatever the device has: a test of those kernels.
    #[doc(hidden)]
    pub fn poor(mut self) -> Accelerator {
        (self.traits.fp64, self.traits.int64_atomics) = (false, false);
        self
    }

    /// Keeps all rows that a later pipeline reads, however few they are and whoever has the others: a test of what does so.
    #[doc(hidden)]
    pub fn keep_all(mut self) -> Accelerator {
        (self.keep_from, self.keep_shares) = (0, true);
        self
    }

    /// Compiles no text that uses more of OpenCL C than preludes declare: a test that none does.
    #[doc(hidden)]
    pub fn only_declared(mut self) -> Accelerator {
        self.beyond_declared = false;
        self
    }

    /// Has work-items take rows in turn, as on GPUs, whatever the device is: a test of those kernels.
    #[doc(hidden)]
    pub fn in_turn(mut self) -> Accelerator {
        self.traits.chunked = false;
        self
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Describes the device, for people: a CPU behind a driver is never called a GPU.
    pub fn name(&self) -> String {
        let info = self.device.info();
        format!("{} ({}, {})", info.id(), info.name, self.kind())
    }

    /// Describes the device in few words, as `opencl:0 (a CPU device)`.
    pub fn label(&self) -> String {
        format!("{} ({})", self.device.info().id(), self.kind())
    }

    fn kind(&self) -> &'static str {
        let info = self.device.info();
        match (info.kind, info.simulated) {
            (DeviceKind::Cpu, false) => "a CPU device",
            (DeviceKind::Gpu, false) => "a GPU",
            (DeviceKind::Accelerator, false) => "an accelerator",
            (DeviceKind::Cpu, true) => "a simulated CPU device",
            (DeviceKind::Gpu, true) => "a simulated GPU",
            (DeviceKind::Accelerator, true) => "a simulated accelerator",
        }
    }

    /// Returns how many jobs, or shares of one, it has computed.
    pub fn jobs(&self) -> u64 {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Tells whether it failed once, after which it gets no more work.
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<()> {
        match self.is_lost() {
            true => Err(Error::unsupported(format!("the device failed before and gets no more work: {}", self.name()))),
            false => Ok(()),
        }
    }

    /// Returns the options of the compiler.
    fn options(&self) -> &'static str {
        match self.target() {
            KernelLanguage::OpenCl if self.device.info().version.contains("PoCL") => POCL_OPTIONS,
            KernelLanguage::OpenCl => OPENCL_OPTIONS,
            KernelLanguage::Cuda => "-w",
        }
    }

    /// Compiles a text; the whole of OpenCL C is there where the functions that a prelude declares are not enough.
    fn compile(&self, text: &str) -> Result<Program> {
        match self.device.compile(text, self.options()) {
            Err(_) if self.options() == POCL_OPTIONS && self.beyond_declared => {
                self.device.compile(text, OPENCL_OPTIONS)
            }
            compiled => compiled,
        }
    }

    fn target(&self) -> KernelLanguage {
        match self.device.info().backend {
            Backend::Cuda | Backend::Shim => KernelLanguage::Cuda,
            Backend::OpenCl | Backend::Sim => KernelLanguage::OpenCl,
        }
    }

    /// Generates the kernel of a pipeline for parts of one layout, or of the build rows that come out of one of its steps.
    ///
    /// # Errors
    /// Unsupported, with the reason.
    fn generate(
        &self,
        physical: &Physical,
        sink: &KernelSink,
        columns: &[Result<ColumnLayout>],
        unmatched: Option<usize>,
    ) -> Result<GeneratedKernel> {
        let payloads: Vec<_> = physical.builds.iter().map(|build| layouts(&build.payload)).collect();
        let (traits, target) = (self.traits, self.target());
        let input = KernelInput { body: &physical.body, sink, columns, payloads: &payloads, traits, target };
        match unmatched {
            None => tandem_codegen::generate(input),
            Some(step) => tandem_codegen::generate_unmatched(input, step),
        }
    }

    /// Computes a share of a job and returns what it contributes.
    ///
    /// # Errors
    /// Unsupported for what no kernel computes, and for jobs in which a row has no value; Cancelled; Exhausted if out of
    /// memory; Device if it failed or did not answer in time, after which it gets no more work. The CPU can compute the job in every case.
    pub(crate) fn run(
        self: &Arc<Self>,
        job: &Job,
        sink: &DeviceSink,
        share: Share,
    ) -> Result<(Contribution, DeviceMetrics)> {
        self.check()?;
        let ran = launch::run(self, job, sink, share);
        self.note_failure(&ran);
        if ran.is_ok() {
            self.jobs.fetch_add(1, Ordering::Relaxed);
        }
        ran
    }

    /// Gives a device that failed no more work.
    fn note_failure<T>(&self, ran: &Result<T>) {
        if ran.as_ref().is_err_and(|error| error.class == Class::Device) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Puts the programs on disk that wait for it.
    pub fn save_programs(&self) {
        let unsaved = std::mem::take(&mut *self.unsaved.lock());
        for (text, program) in unsaved.iter().filter(|_| !self.is_lost()) {
            self.cache.save(text, self.options(), self.device.as_ref(), program);
        }
    }
}

fn layouts(columns: &[Arc<Column>]) -> Vec<Result<ColumnLayout>> {
    columns.iter().map(|column| ColumnLayout::of(column)).collect()
}
