//! What a statement's run tells about itself: where it ran, why parts did not run on Tandem, how far it is, and what
//! each step took. It is filled while the stream is read; everything in it may be read at any time, from any thread.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use tandem_runtime::{PipelineMetrics, QueryMetrics, RowProgress};

use crate::explain::render::misestimate;

/// Where a statement ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Where {
    /// All of it on Tandem's CPU executor.
    Cpu,
    /// All of it on devices: nothing fell back.
    Gpu,
    /// Parts of it on devices, the rest on Tandem's CPU executor.
    GpuAndCpu,
    /// All of it on the host engine, DataFusion.
    Host,
    /// Parts of it on the host engine, the rest on Tandem.
    Mixed,
}

impl std::fmt::Display for Where {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Where::Cpu => "cpu",
            Where::Gpu => "gpu",
            Where::GpuAndCpu => "gpu+cpu",
            Where::Host => "host",
            Where::Mixed => "mixed",
        })
    }
}

/// How far a statement is, in rows of what its pipelines read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Rows done.
    pub rows_done: u64,
    /// Rows of all pipelines started so far; grows as further ones start.
    pub rows_total: u64,
}

/// Where one pipeline ran, and what it did there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PipelineReport {
    /// The devices that ran it, or a part of it; empty if it ran on the CPU.
    pub devices: Vec<String>,
    /// Why it, or a part of it, ran on the CPU although a device was asked for.
    pub reason: Option<String>,
    /// Rows of its source, before block skipping.
    pub rows_in: u64,
    /// Rows of its result, or of the hash table it built.
    pub rows_out: u64,
    /// Rows that planning expected of its result.
    pub rows_estimated: Option<f64>,
    /// Rows never looked at, because statistics of blocks excluded them.
    pub rows_skipped: u64,
    /// From its start to its end.
    pub elapsed: Duration,
    /// Decisions made from statistics, for people.
    pub notes: Vec<String>,
}

/// The report of one statement.
#[derive(Debug, Default)]
pub struct Report {
    counters: Arc<RowProgress>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    captured: usize,
    reasons: Vec<String>,
    metrics: Vec<QueryMetrics>,
    /// The estimate of each pipeline of `metrics`, all of them one after the other.
    estimates: Vec<Option<f64>>,
}

/// What a statement ran on.
struct Places {
    devices: Vec<String>,
    cpu: bool,
    host: bool,
}

impl State {
    fn places(&self) -> Places {
        let pipelines = || self.metrics.iter().flat_map(|metrics| &metrics.pipelines);
        let mut devices: Vec<String> = Vec::new();
        for name in pipelines().filter_map(|pipeline| pipeline.device.as_ref()).flat_map(|device| &device.names) {
            if !devices.contains(name) {
                devices.push(name.clone());
            }
        }
        let all_on_devices = pipelines().all(|pipeline| pipeline.device.is_some() && pipeline.reason.is_none());
        let cpu = self.captured > 0 && (devices.is_empty() || !all_on_devices);
        Places { devices, cpu, host: self.captured == 0 || !self.reasons.is_empty() }
    }
}

impl PipelineReport {
    /// Returns by which factor the estimate of its rows was wrong, if that is more than 10.
    pub fn misestimate(&self) -> Option<f64> {
        misestimate(self.rows_estimated?, self.rows_out)
    }
}

impl Report {
    /// Tells where the statement ran: as planned, and, where a device was asked for, as far as it has run.
    pub fn placement(&self) -> Where {
        let places = self.state.lock().places();
        match (places.host, places.cpu, places.devices.is_empty()) {
            (true, false, true) => Where::Host,
            (true, ..) => Where::Mixed,
            (false, _, true) => Where::Cpu,
            (false, true, false) => Where::GpuAndCpu,
            (false, false, false) => Where::Gpu,
        }
    }

    /// Names all that the statement ran on, devices as what they are: `opencl:0 (a CPU device) + cpu`.
    pub fn places(&self) -> String {
        let places = self.state.lock().places();
        let mut names = places.devices;
        names.extend(places.cpu.then(|| "cpu".to_string()));
        names.extend(places.host.then(|| "host".to_string()));
        names.join(" + ")
    }

    /// Returns how far the statement is.
    pub fn progress(&self) -> Progress {
        let rows_total = self.counters.total.load(Relaxed);
        // The two are counted apart: done may be ahead for a moment.
        Progress { rows_done: self.counters.done.load(Relaxed).min(rows_total), rows_total }
    }

    /// Returns where each pipeline that has ended ran, in the order of the plan.
    pub fn pipelines(&self) -> Vec<PipelineReport> {
        let state = self.state.lock();
        let pipelines = state.metrics.iter().flat_map(|metrics| &metrics.pipelines);
        let report = |(pipeline, estimate): (&PipelineMetrics, &Option<f64>)| PipelineReport {
            devices: pipeline.device.as_ref().map_or_else(Vec::new, |device| device.names.clone()),
            reason: pipeline.reason.clone(),
            rows_in: pipeline.rows_in,
            rows_out: pipeline.rows_out,
            rows_estimated: *estimate,
            rows_skipped: pipeline.rows_skipped,
            elapsed: pipeline.elapsed,
            notes: pipeline.outline.choices(),
        };
        pipelines.zip(&state.estimates).map(report).collect()
    }

    /// Returns why pipelines, or parts of them, ran on the CPU although a device was asked for, by their number.
    pub fn device_reasons(&self) -> Vec<String> {
        let state = self.state.lock();
        let pipelines = state.metrics.iter().flat_map(|metrics| metrics.pipelines.iter().enumerate());
        let reasons = pipelines.filter_map(|(id, pipeline)| {
            let reason = pipeline.reason.as_ref()?;
            let how = if pipeline.device.is_some() { "ran in part" } else { "ran" };
            Some(format!("pipeline {id} {how} on the CPU: {reason}"))
        });
        reasons.collect()
    }

    /// Returns why parts of the statement ran on the CPU instead of a device, or on the host engine: each reason
    /// once, whatever it was a reason for.
    pub fn fallbacks(&self) -> Vec<String> {
        let state = self.state.lock();
        let pipelines = state.metrics.iter().flat_map(|metrics| &metrics.pipelines);
        let mut found: Vec<String> = Vec::new();
        for reason in pipelines.filter_map(|pipeline| pipeline.reason.as_ref()).chain(&state.reasons) {
            if !found.contains(reason) {
                found.push(reason.clone());
            }
        }
        found
    }

    /// Returns why parts of the statement run on the host engine; empty if none do.
    pub fn reasons(&self) -> Vec<String> {
        self.state.lock().reasons.clone()
    }

    /// Returns what each of Tandem's queries within the statement measured, for tests and benchmarks of the executor.
    #[doc(hidden)]
    pub fn metrics(&self) -> Vec<QueryMetrics> {
        self.state.lock().metrics.clone()
    }

    /// Returns what running pipelines count their rows in.
    pub(crate) fn counters(&self) -> &Arc<RowProgress> {
        &self.counters
    }

    /// Records the outcome of capture: how many sub-plans were taken, and why the rest was not.
    pub(crate) fn planned(&self, captured: usize, reasons: Vec<String>) {
        let mut state = self.state.lock();
        state.captured += captured;
        for reason in reasons {
            if !state.reasons.contains(&reason) {
                state.reasons.push(reason);
            }
        }
    }

    /// Records what one of Tandem's queries measured, and what was expected of its pipelines.
    pub(crate) fn measured(&self, metrics: QueryMetrics, estimates: &[f64]) {
        let mut state = self.state.lock();
        state.estimates.extend((0..metrics.pipelines.len()).map(|pipeline| estimates.get(pipeline).copied()));
        state.metrics.push(metrics);
    }
}
