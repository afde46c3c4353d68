//! OpenCL events.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opencl_sys::*;
use parking_lot::{Condvar, Mutex};
use tandem_column::Result;

use super::device::OpenClContext;
use super::handle::EventHandle;
use super::{query, status};
use crate::Times;
use crate::object::EventPart;
use crate::patience::{LONGEST, pause};

/// The end of a command of one of our queues.
#[derive(Debug)]
pub(super) struct OpenClEvent {
    pub(super) context: Arc<OpenClContext>,
    pub(super) handle: EventHandle,
    /// What the command does, completing "OpenCL failed to …".
    what: &'static str,
    /// Set when the driver says that the command is over; asked for by whoever waits first.
    signal: OnceLock<Option<Arc<Signal>>>,
}

/// How long a command is looked at before its end is asked for: the driver takes about as long to tell it.
const BUSY: Duration = Duration::from_micros(20);

/// Tells the end of a command to a thread that sleeps.
#[derive(Debug, Default)]
struct Signal {
    over: Mutex<bool>,
    changed: Condvar,
}

/// Sets a signal, of which it has a reference that is now dropped.
///
/// # Safety
/// `signal` is what `Arc::into_raw` gave for an `Arc<Signal>`, once.
unsafe extern "C" fn tell(_: cl_event, _: cl_int, signal: *mut c_void) {
    // SAFETY: as the caller promises.
    let signal = unsafe { Arc::from_raw(signal.cast::<Signal>().cast_const()) };
    *signal.over.lock() = true;
    signal.changed.notify_all();
}

impl OpenClEvent {
    /// Wraps an event of a context.
    pub(super) fn new(context: &Arc<OpenClContext>, handle: EventHandle, what: &'static str) -> OpenClEvent {
        OpenClEvent { context: context.clone(), handle, what, signal: OnceLock::new() }
    }

    /// Asks the driver to tell when the command is over; `None` if it does not.
    fn ask(&self) -> Option<Arc<Signal>> {
        let signal = Arc::new(Signal::default());
        let given = Arc::into_raw(signal.clone()).cast_mut().cast();
        // SAFETY: the event is valid; the driver calls `tell` once, with the reference that it is given here.
        let code = unsafe { (self.context.api.clSetEventCallback)(self.handle.raw(), CL_COMPLETE, Some(tell), given) };
        if code != CL_SUCCESS {
            // SAFETY: the driver did not take the reference.
            drop(unsafe { Arc::from_raw(given.cast::<Signal>().cast_const()) });
            return None;
        }
        Some(signal)
    }

    /// Returns the command's state: positive while it waits or runs, 0 when done, negative when it failed.
    fn state(&self) -> cl_int {
        let get = |size, target: *mut c_void, returned| {
            let (event, property) = (self.handle.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS);
            // SAFETY: the event is valid; `target` has room for `size` bytes.
            unsafe { (self.context.api.clGetEventInfo)(event, property, size, target, returned) }
        };
        // The state is a signed number of four bytes. Unknown counts as not done.
        query::number(get).map_or(CL_SUBMITTED, |state| state as u32 as cl_int)
    }

    fn moment(&self, property: cl_profiling_info) -> Option<u64> {
        let get = |size, target: *mut c_void, returned| {
            // SAFETY: the event is valid; `target` has room for `size` bytes.
            unsafe { (self.context.api.clGetEventProfilingInfo)(self.handle.raw(), property, size, target, returned) }
        };
        query::number(get).ok()
    }
}

impl EventPart for OpenClEvent {
    fn poll(&self) -> Result<bool> {
        let state = self.state();
        status::check(state.min(CL_COMPLETE), self.what)?;
        Ok(state == CL_COMPLETE)
    }

    fn rest(&self, waited: Duration) {
        if waited < BUSY {
            return std::hint::spin_loop();
        }
        match self.signal.get_or_init(|| self.ask()) {
            Some(signal) => {
                let mut over = signal.over.lock();
                if !*over {
                    signal.changed.wait_for(&mut over, LONGEST);
                }
            }
            None => pause(waited),
        }
    }

    fn times(&self) -> Option<Times> {
        if self.state() != CL_COMPLETE {
            return None;
        }
        Some(Times {
            queued: self.moment(CL_PROFILING_COMMAND_QUEUED)?,
            submitted: self.moment(CL_PROFILING_COMMAND_SUBMIT)?,
            started: self.moment(CL_PROFILING_COMMAND_START)?,
            ended: self.moment(CL_PROFILING_COMMAND_END)?,
        })
    }
}
