//! Owned OpenCL objects.

use opencl_sys::*;

use super::library::Api;

macro_rules! handle {
    ($($(#[$doc:meta])* $name:ident: $raw:ty, $release:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name {
            raw: $raw,
            pub(super) api: &'static Api,
        }

        // SAFETY: OpenCL objects may be used from any thread; the exception, setting a kernel's arguments, is behind a
        // lock where it happens.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            /// Owns an object.
            ///
            /// # Safety
            /// `raw` is a valid object of `api` with a reference that nobody else releases.
            pub(super) unsafe fn new(api: &'static Api, raw: $raw) -> Self {
                $name { raw, api }
            }

            /// Returns the object, valid as long as `self`.
            pub(super) fn raw(&self) -> $raw {
                self.raw
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the object is valid and this reference is ours. An error leaves nothing to do.
                unsafe { (self.api.$release)(self.raw) };
            }
        }
    )* };
}

handle! {
    /// A context.
    ContextHandle: cl_context, clReleaseContext;
    /// A command queue.
    QueueHandle: cl_command_queue, clReleaseCommandQueue;
    /// A buffer. Commands in flight keep the driver's object, not the host memory under a shared one.
    MemoryHandle: cl_mem, clReleaseMemObject;
    /// A program.
    ProgramHandle: cl_program, clReleaseProgram;
    /// A kernel.
    KernelHandle: cl_kernel, clReleaseKernel;
    /// An event.
    EventHandle: cl_event, clReleaseEvent;
}
