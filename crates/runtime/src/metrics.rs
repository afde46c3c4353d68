//! What a query did, rows and time of each pipeline and step, and how far it is.

use std::{sync::atomic::AtomicU64, time::Duration};

pub use tandem_cpu::StepMetrics;
use tandem_plan::Outline;

use crate::DeviceMetrics;

/// What each pipeline of a query did, in the query's order.
#[derive(Clone, Debug, Default)]
pub struct QueryMetrics {
    /// One entry per pipeline.
    pub pipelines: Vec<PipelineMetrics>,
}

impl QueryMetrics {
    /// Tells whether any pipeline ran on a device.
    pub fn used_device(&self) -> bool {
        self.pipelines.iter().any(|pipeline| pipeline.device.is_some())
    }
}

/// What one pipeline did.
#[derive(Clone, Debug, Default)]
pub struct PipelineMetrics {
    /// Rows of the source, before block skipping.
    pub rows_in: u64,
    /// Rows of the result, or of the build.
    pub rows_out: u64,
    /// Rows never looked at because block statistics excluded them.
    pub rows_skipped: u64,
    /// From start to end, sink included.
    pub elapsed: Duration,
    /// What ran, in words.
    pub outline: Outline,
    /// Each step of the physical pipeline, then its sink, summed over workers.
    pub steps: Vec<StepMetrics>,
    /// What the device did, if it ran on one.
    pub device: Option<DeviceMetrics>,
    /// Why it did not run on the device that was asked for.
    pub reason: Option<String>,
}

/// How far a query has come, in rows of its sources.
#[derive(Debug, Default)]
pub struct RowProgress {
    /// Rows done.
    pub done: AtomicU64,
    /// Rows to do, as far as known.
    pub total: AtomicU64,
}
