//! CUDA events, in pairs.

use std::sync::Arc;

use cudarc::driver::{result, sys};
use tandem_column::Result;

use super::context::CudaContext;
use super::failed;
use crate::Times;
use crate::object::EventPart;

/// A driver's event.
#[derive(Debug)]
struct Mark {
    context: Arc<CudaContext>,
    raw: sys::CUevent,
}

// SAFETY: events may be used from any thread that makes their context current.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

impl Mark {
    /// Records a mark in a stream of the context, which is current.
    ///
    /// # Safety
    /// The stream is valid.
    unsafe fn record(context: &Arc<CudaContext>, stream: sys::CUstream) -> Result<Mark> {
        let raw =
            result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(|e| failed(e, "make an event"))?;
        let mark = Mark { context: context.clone(), raw };
        // SAFETY: the event is new; the stream is valid as the caller promises.
        unsafe { result::event::record(mark.raw, stream) }.map_err(|e| failed(e, "record an event"))?;
        Ok(mark)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: ours. An error leaves nothing to do.
            let _ = unsafe { result::event::destroy(self.raw) };
        }
    }
}

/// The start of a command, until its end is recorded too.
#[derive(Debug)]
pub(super) struct Started {
    context: Arc<CudaContext>,
    mark: Mark,
    queued: u64,
}

/// A command between two marks.
#[derive(Debug)]
pub(super) struct CudaEvent {
    pub(super) context: Arc<CudaContext>,
    start: Mark,
    end: Mark,
    /// What the command does, completing "CUDA failed to …".
    what: &'static str,
    queued: u64,
}

impl Started {
    /// Marks the start of a command.
    ///
    /// # Safety
    /// The stream is valid and its context current.
    pub(super) unsafe fn record(context: &Arc<CudaContext>, stream: sys::CUstream) -> Result<Started> {
        let queued = context.now();
        // SAFETY: as the caller promises.
        let mark = unsafe { Mark::record(context, stream) }?;
        Ok(Started { context: context.clone(), mark, queued })
    }

    /// Marks the end of the command.
    ///
    /// # Safety
    /// The stream is that of the start and its context current.
    pub(super) unsafe fn end(self, stream: sys::CUstream, what: &'static str) -> Result<CudaEvent> {
        // SAFETY: as the caller promises.
        let end = unsafe { Mark::record(&self.context, stream) }?;
        let Started { context, mark, queued } = self;
        Ok(CudaEvent { context, start: mark, end, what, queued })
    }
}

impl CudaEvent {
    /// Returns the driver's event at the end of the command.
    pub(super) fn raw(&self) -> sys::CUevent {
        self.end.raw
    }
}

impl EventPart for CudaEvent {
    fn poll(&self) -> Result<bool> {
        self.context.enter()?;
        // SAFETY: the event is recorded.
        match unsafe { result::event::query(self.end.raw) } {
            Ok(()) => Ok(true),
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(failed(error, self.what)),
        }
    }

    /// The driver tells spans in milliseconds with 24 bits, so moments lose precision with the age of the device, 60 µs
    /// after a thousand seconds; durations do not.
    fn times(&self) -> Option<Times> {
        self.context.enter().ok()?;
        let span = |from, to| {
            // SAFETY: all marks are recorded; the driver refuses while one is not reached.
            let milliseconds = unsafe { result::event::elapsed(from, to) }.ok()?;
            Some((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
        };
        let started = span(self.context.origin, self.start.raw)?;
        let ended = started + span(self.start.raw, self.end.raw)?;
        // The host's clock and the device's agree only about, and the driver does not tell when it submitted.
        let queued = self.queued.min(started);
        Some(Times { queued, submitted: queued, started, ended })
    }
}
