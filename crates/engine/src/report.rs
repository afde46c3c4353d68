//! What a statement's run tells about itself: where it ran, why parts did not run on Tandem, how far it is, and what
//! each step took. It is filled while the stream is read; everything in it may be read at any time, from any thread.

use std::sync::Arc;

use parking_lot::Mutex;
use tandem_runtime::{Progress, QueryMetrics};

/// Where a statement ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Where {
    /// All of it on Tandem's CPU executor.
    Cpu,
    /// All of it on a device: nothing fell back.
    Gpu,
    /// All of it on the host engine, DataFusion.
    Host,
    /// Parts of it on each.
    Mixed,
}

impl std::fmt::Display for Where {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Where::Cpu => "cpu",
            Where::Gpu => "gpu",
            Where::Host => "host",
            Where::Mixed => "mixed",
        })
    }
}

/// The report of one statement.
#[derive(Debug, Default)]
pub struct Report {
    /// Rows done and to do, over all pipelines started so far.
    pub progress: Arc<Progress>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    captured: usize,
    reasons: Vec<String>,
    metrics: Vec<QueryMetrics>,
}

impl Report {
    /// Tells where the statement ran: as planned, and, where a device was asked for, as far as it has run.
    pub fn placement(&self) -> Where {
        let state = self.state.lock();
        let mut pipelines = state.metrics.iter().flat_map(|metrics| &metrics.pipelines).peekable();
        let on_device = pipelines.peek().is_some()
            && pipelines.all(|pipeline| pipeline.device.is_some() && pipeline.reason.is_none());
        match (state.captured, state.reasons.is_empty()) {
            (0, _) => Where::Host,
            (_, true) if on_device => Where::Gpu,
            (_, true) if state.metrics.iter().any(QueryMetrics::used_device) => Where::Mixed,
            (_, true) => Where::Cpu,
            (_, false) => Where::Mixed,
        }
    }

    /// Returns why pipelines, or parts of them, ran on the processor although a device was asked for, by their number.
    pub fn device_reasons(&self) -> Vec<String> {
        let state = self.state.lock();
        let pipelines = state.metrics.iter().flat_map(|metrics| metrics.pipelines.iter().enumerate());
        let reasons = pipelines.filter_map(|(id, pipeline)| {
            let reason = pipeline.reason.as_ref()?;
            let how = if pipeline.device.is_some() { "ran in part" } else { "ran" };
            Some(format!("pipeline {id} {how} on the processor: {reason}"))
        });
        reasons.collect()
    }

    /// Returns why parts of the statement run on the host engine; empty if none do.
    pub fn reasons(&self) -> Vec<String> {
        self.state.lock().reasons.clone()
    }

    /// Returns what each of Tandem's queries within the statement measured; complete once the stream has ended.
    pub fn metrics(&self) -> Vec<QueryMetrics> {
        self.state.lock().metrics.clone()
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

    /// Records what one of Tandem's queries measured.
    pub(crate) fn measured(&self, metrics: QueryMetrics) {
        self.state.lock().metrics.push(metrics);
    }
}
