//! OpenCL events.

use std::ffi::c_void;
use std::sync::Arc;

use opencl_sys::*;
use tandem_column::Result;

use super::device::Context;
use super::handle::EventHandle;
use super::{query, status};
use crate::Times;
use crate::object::EventPart;

/// The end of a command of one of our queues. Clones share the object.
#[derive(Clone, Debug)]
pub(super) struct OpenClEvent {
    pub(super) context: Arc<Context>,
    pub(super) handle: Arc<EventHandle>,
    /// What the command does, completing "OpenCL failed to …".
    pub(super) what: &'static str,
}

impl OpenClEvent {
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

    /// Tells whether the device is done with the command, well or not.
    pub(super) fn is_over(&self) -> bool {
        self.state() <= CL_COMPLETE
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
    fn wait(&self) -> Result<()> {
        let raw = self.handle.raw();
        // SAFETY: one valid event. Its queue was flushed when it was made.
        let code = unsafe { (self.context.api.clWaitForEvents)(1, &raw) };
        let state = self.state();
        // The event's own state says more than that some event failed.
        status::check(if state < CL_COMPLETE { state } else { code }, self.what)
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
