//! The OpenCL library, loaded at run time.
//!
//! Nothing links to it: without the library the reason is a sentence, not a failure to start. The table is filled whole
//! or not at all, so its functions are plain pointers; all of them exist since OpenCL 1.2.

use std::ffi::{c_char, c_uchar, c_void};

use libloading::Library;
use opencl_sys::*;

/// Names under which the library is found, in order.
const NAMES: &[&str] = if cfg!(windows) {
    &["OpenCL.dll"]
} else if cfg!(target_os = "macos") {
    &["/System/Library/Frameworks/OpenCL.framework/OpenCL"]
} else {
    &["libOpenCL.so.1", "libOpenCL.so"]
};

/// What the reporter of context errors looks like; we pass none.
type Notify = Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;
/// What the reporter of finished builds looks like; we pass none, so builds are synchronous.
type Built = Option<unsafe extern "C" fn(cl_program, *mut c_void)>;

/// What is told of the end of a command.
type Told = Option<unsafe extern "C" fn(cl_event, cl_int, *mut c_void)>;

macro_rules! table {
    ($($name:ident($($argument:ty),* $(,)?) -> $result:ty;)*) => {
        /// The functions of the library, under their own names.
        #[allow(non_snake_case)]
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> $result,)*
            // Keeps the functions loaded.
            _library: Library,
        }

        impl Api {
            #[allow(non_snake_case)]
            fn fill(library: Library) -> Result<Api, String> {
                $(
                    // SAFETY: the type is that of the function of this name in the OpenCL specification.
                    let $name = unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> $result>(concat!(stringify!($name), "\0"))
                    };
                    let $name = *$name.map_err(|_| {
                        concat!("the OpenCL library is older than OpenCL 1.2, install a newer one: no ", stringify!($name))
                    })?;
                )*
                Ok(Api { $($name,)* _library: library })
            }
        }
    };
}

table! {
    clGetPlatformIDs(cl_uint, *mut cl_platform_id, *mut cl_uint) -> cl_int;
    clGetPlatformInfo(cl_platform_id, cl_platform_info, usize, *mut c_void, *mut usize) -> cl_int;
    clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint, *mut cl_device_id, *mut cl_uint) -> cl_int;
    clGetDeviceInfo(cl_device_id, cl_device_info, usize, *mut c_void, *mut usize) -> cl_int;
    clCreateContext(*const cl_context_properties, cl_uint, *const cl_device_id, Notify, *mut c_void, *mut cl_int) -> cl_context;
    clReleaseContext(cl_context) -> cl_int;
    clCreateCommandQueue(cl_context, cl_device_id, cl_command_queue_properties, *mut cl_int) -> cl_command_queue;
    clReleaseCommandQueue(cl_command_queue) -> cl_int;
    clCreateBuffer(cl_context, cl_mem_flags, usize, *mut c_void, *mut cl_int) -> cl_mem;
    clReleaseMemObject(cl_mem) -> cl_int;
    clCreateProgramWithSource(cl_context, cl_uint, *mut *const c_char, *const usize, *mut cl_int) -> cl_program;
    clCreateProgramWithBinary(
        cl_context, cl_uint, *const cl_device_id, *const usize, *mut *const c_uchar, *mut cl_int, *mut cl_int,
    ) -> cl_program;
    clBuildProgram(cl_program, cl_uint, *const cl_device_id, *const c_char, Built, *mut c_void) -> cl_int;
    clGetProgramInfo(cl_program, cl_program_info, usize, *mut c_void, *mut usize) -> cl_int;
    clGetProgramBuildInfo(cl_program, cl_device_id, cl_program_build_info, usize, *mut c_void, *mut usize) -> cl_int;
    clReleaseProgram(cl_program) -> cl_int;
    clCreateKernel(cl_program, *const c_char, *mut cl_int) -> cl_kernel;
    clGetKernelInfo(cl_kernel, cl_kernel_info, usize, *mut c_void, *mut usize) -> cl_int;
    clSetKernelArg(cl_kernel, cl_uint, usize, *const c_void) -> cl_int;
    clReleaseKernel(cl_kernel) -> cl_int;
    clEnqueueWriteBuffer(
        cl_command_queue, cl_mem, cl_bool, usize, usize, *const c_void, cl_uint, *const cl_event, *mut cl_event,
    ) -> cl_int;
    clEnqueueReadBuffer(
        cl_command_queue, cl_mem, cl_bool, usize, usize, *mut c_void, cl_uint, *const cl_event, *mut cl_event,
    ) -> cl_int;
    clEnqueueFillBuffer(
        cl_command_queue, cl_mem, *const c_void, usize, usize, usize, cl_uint, *const cl_event, *mut cl_event,
    ) -> cl_int;
    clEnqueueNDRangeKernel(
        cl_command_queue, cl_kernel, cl_uint, *const usize, *const usize, *const usize, cl_uint, *const cl_event,
        *mut cl_event,
    ) -> cl_int;
    clEnqueueMarkerWithWaitList(cl_command_queue, cl_uint, *const cl_event, *mut cl_event) -> cl_int;
    clFlush(cl_command_queue) -> cl_int;
    clSetEventCallback(cl_event, cl_int, Told, *mut c_void) -> cl_int;
    clGetEventInfo(cl_event, cl_event_info, usize, *mut c_void, *mut usize) -> cl_int;
    clGetEventProfilingInfo(cl_event, cl_profiling_info, usize, *mut c_void, *mut usize) -> cl_int;
    clReleaseEvent(cl_event) -> cl_int;
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Loads the library and returns its functions, or the reason why there are none.
    ///
    /// They stay for the life of the process: drivers do not survive being unloaded.
    pub(super) fn open() -> Result<&'static Api, String> {
        Api::load(NAMES).map(|api| &*Box::leak(Box::new(api)))
    }

    fn load(names: &[&str]) -> Result<Api, String> {
        for name in names {
            // SAFETY: loading runs the library's initialisers; these are those of the system's OpenCL loader.
            if let Ok(library) = unsafe { Library::new(*name) } {
                return Api::fill(library);
            }
        }
        Err("no OpenCL library: install an OpenCL driver, for example the package pocl-opencl-icd".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_a_reason() {
        let reason = Api::load(&["libNoSuchOpenCL.so.1"]).expect_err("there is no such library");
        assert!(reason.contains("no OpenCL library") && reason.contains("pocl-opencl-icd"), "{reason}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_library_is_a_reason() {
        let reason = Api::load(&["libc.so.6"]).expect_err("the C library has no OpenCL functions");
        assert!(reason.contains("no clGetPlatformIDs"), "{reason}");
    }
}
