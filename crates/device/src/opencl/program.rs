//! OpenCL programs and kernels.

use std::ffi::CString;
use std::ptr;
use std::sync::Arc;

use opencl_sys::*;
use parking_lot::Mutex;
use tandem_column::{Class, Error, Result};

use super::device::OpenClContext;
use super::handle::{KernelHandle, ProgramHandle};
use super::{query, status};
use crate::object::{KernelPart, ProgramPart};
use crate::{Kernel, Program};

/// How many lines of a build log a message takes: enough for the first mistakes.
const LOG_LINES: usize = 12;

/// A program that was built.
#[derive(Debug)]
pub(super) struct OpenClProgram {
    context: Arc<OpenClContext>,
    handle: ProgramHandle,
}

/// A kernel. Its arguments are state of the object, hence the lock from setting them to the launch.
#[derive(Debug)]
pub(super) struct OpenClKernel {
    pub(super) context: Arc<OpenClContext>,
    pub(super) handle: Mutex<KernelHandle>,
    pub(super) name: String,
    /// How many arguments the kernel takes.
    pub(super) arguments: usize,
}

impl KernelPart for OpenClKernel {}

impl OpenClProgram {
    /// Compiles text.
    pub(super) fn compile(context: &Arc<OpenClContext>, source: &str, options: &str) -> Result<Program> {
        let api = context.api;
        let mut code = CL_SUCCESS;
        let (mut start, length) = (source.as_ptr().cast(), source.len());
        // SAFETY: one string of `length` bytes, which the library copies.
        let raw = unsafe { (api.clCreateProgramWithSource)(context.handle.raw(), 1, &mut start, &length, &mut code) };
        status::check(code, "take kernel text")?;
        // SAFETY: just made, and ours.
        let handle = unsafe { ProgramHandle::new(api, raw) };
        let program = OpenClProgram { context: context.clone(), handle };
        program.build(options).map_err(|code| program.build_error(code))?;
        Ok(Program::new(program))
    }

    /// Loads a binary.
    pub(super) fn load(context: &Arc<OpenClContext>, binary: &[u8], options: &str) -> Result<Program> {
        let api = context.api;
        let (mut code, mut fits) = (CL_SUCCESS, CL_SUCCESS);
        let (mut start, length) = (binary.as_ptr(), binary.len());
        let device = context.device.0;
        // SAFETY: one binary of `length` bytes for one device, which the library copies.
        let raw = unsafe {
            (api.clCreateProgramWithBinary)(context.handle.raw(), 1, &device, &length, &mut start, &mut fits, &mut code)
        };
        let unfit = |code| {
            let code = status::name(code);
            Error::unsupported(format!("a stored kernel does not fit this device, compile it again: {code}"))
        };
        if code != CL_SUCCESS {
            return Err(unfit(code));
        }
        // SAFETY: just made, and ours.
        let handle = unsafe { ProgramHandle::new(api, raw) };
        let program = OpenClProgram { context: context.clone(), handle };
        if fits != CL_SUCCESS {
            return Err(unfit(fits));
        }
        program.build(options).map_err(unfit)?;
        Ok(Program::new(program))
    }

    fn build(&self, options: &str) -> std::result::Result<(), cl_int> {
        let options = CString::new(options).map_err(|_| CL_INVALID_BUILD_OPTIONS)?;
        let device = self.context.device.0;
        // SAFETY: the program is valid; the options end in a zero; without a callback the build is done on return.
        let code = unsafe {
            (self.context.api.clBuildProgram)(self.handle.raw(), 1, &device, options.as_ptr(), None, ptr::null_mut())
        };
        if code == CL_SUCCESS { Ok(()) } else { Err(code) }
    }

    fn build_error(&self, code: cl_int) -> Error {
        let OpenClContext { api, device, info, .. } = &*self.context;
        let log = query::text(|size, target, returned| {
            // SAFETY: the program was built for this device; `target` has room for `size` bytes.
            unsafe {
                let (program, property) = (self.handle.raw(), CL_PROGRAM_BUILD_LOG);
                (api.clGetProgramBuildInfo)(program, device.0, property, size, target, returned)
            }
        });
        let log = log.unwrap_or_default();
        let lines: Vec<&str> = log.lines().take(LOG_LINES).collect();
        let (name, code) = (&info.name, status::name(code));
        let message = format!("kernel text does not compile on {name}: {code}\n{}", lines.join("\n"));
        Error::new(Class::Device, message)
    }
}

impl ProgramPart for OpenClProgram {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        let api = self.context.api;
        let missing = || Error::internal(format!("a program has no kernel of this name: {name}"));
        let text = CString::new(name).map_err(|_| missing())?;
        let mut code = CL_SUCCESS;
        // SAFETY: the program is built; the name ends in a zero.
        let raw = unsafe { (api.clCreateKernel)(self.handle.raw(), text.as_ptr(), &mut code) };
        match code {
            CL_INVALID_KERNEL_NAME => return Err(missing()),
            _ => status::check(code, "make a kernel")?,
        }
        // SAFETY: just made, and ours.
        let handle = unsafe { KernelHandle::new(api, raw) };
        let arguments = query::number(|size, target, returned| {
            // SAFETY: the kernel is valid; `target` has room for `size` bytes.
            unsafe { (api.clGetKernelInfo)(handle.raw(), CL_KERNEL_NUM_ARGS, size, target, returned) }
        });
        let arguments = arguments.map_err(|code| status::error(code, "count a kernel's arguments"))? as usize;
        let (context, name) = (self.context.clone(), name.to_owned());
        Ok(Kernel::new(OpenClKernel { context, handle: Mutex::new(handle), name, arguments }))
    }

    fn binary(&self) -> Result<Vec<u8>> {
        let refused = |code| Error::unsupported(format!("the driver gives no kernel binaries: {}", status::name(code)));
        let info = |property| {
            move |size, target, returned| {
                // SAFETY: the program is valid; `target` has room for `size` bytes.
                unsafe { (self.context.api.clGetProgramInfo)(self.handle.raw(), property, size, target, returned) }
            }
        };
        // One size, as the context has one device.
        let size = query::number(info(CL_PROGRAM_BINARY_SIZES)).map_err(refused)? as usize;
        if size == 0 {
            return Err(Error::unsupported("the driver gives no kernel binaries: their size is 0"));
        }
        let mut binary = vec![0u8; size];
        let mut start: *mut u8 = binary.as_mut_ptr();
        let code = info(CL_PROGRAM_BINARIES)(size_of::<*mut u8>(), (&raw mut start).cast(), ptr::null_mut());
        if code == CL_SUCCESS { Ok(binary) } else { Err(refused(code)) }
    }
}
