//! CUDA programs: text to PTX by NVRTC, PTX to a module by the driver.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use cudarc::driver::{result, sys};
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};
use tandem_column::{Class, Error, Result};

use super::context::CudaContext;
use super::failed;
use crate::object::{KernelPart, ProgramPart};
use crate::{Kernel, Program};

/// How many lines of a build log a message takes: enough for the first mistakes.
const LOG_LINES: usize = 12;

/// A loaded module.
#[derive(Debug)]
struct Module {
    context: Arc<CudaContext>,
    raw: sys::CUmodule,
}

// SAFETY: modules may be used from any thread that makes their context current.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: loaded by us; kernels and queues keep it. An error leaves nothing to do.
            let _ = unsafe { result::module::unload(self.raw) };
        }
    }
}

/// A program: its module and the PTX it came from.
#[derive(Debug)]
pub(super) struct CudaProgram {
    module: Arc<Module>,
    ptx: CString,
}

/// A kernel of a module, which it keeps loaded.
#[derive(Clone, Debug)]
pub(super) struct CudaKernel {
    pub(super) context: Arc<CudaContext>,
    pub(super) function: sys::CUfunction,
    _module: Arc<Module>,
}

// SAFETY: functions may be launched from any thread that makes their context current.
unsafe impl Send for CudaKernel {}
// SAFETY: as above.
unsafe impl Sync for CudaKernel {}

impl KernelPart for CudaKernel {}

impl CudaProgram {
    /// Compiles text for the device's compute capability.
    pub(super) fn compile(
        context: &Arc<CudaContext>,
        capability: (i32, i32),
        source: &str,
        options: &str,
    ) -> Result<Program> {
        let ptx = compile_to_ptx(source, capability, options)?;
        Self::module(context, ptx).map_err(|e| failed(e, "load compiled kernels"))
    }

    /// Loads PTX that [`ProgramPart::binary`] gave.
    pub(super) fn load(context: &Arc<CudaContext>, binary: &[u8]) -> Result<Program> {
        let unfit = |reason: String| {
            Error::unsupported(format!("a stored kernel does not fit this device, compile it again: {reason}"))
        };
        let ptx = CString::new(binary).map_err(|_| unfit("it is not PTX".to_owned()))?;
        context.enter()?;
        Self::module(context, ptx).map_err(|error| unfit(error.to_string()))
    }

    fn module(context: &Arc<CudaContext>, ptx: CString) -> std::result::Result<Program, result::DriverError> {
        if context.enter().is_err() {
            return Err(result::DriverError(sys::CUresult::CUDA_ERROR_INVALID_CONTEXT));
        }
        // SAFETY: PTX text that ends in a zero; the context is current.
        let raw = unsafe { result::module::load_data(ptx.as_ptr().cast()) }?;
        Ok(Program::new(CudaProgram { module: Arc::new(Module { context: context.clone(), raw }), ptx }))
    }
}

impl ProgramPart for CudaProgram {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        let missing = || Error::internal(format!("a program has no kernel of this name: {name}"));
        let text = CString::new(name).map_err(|_| missing())?;
        self.module.context.enter()?;
        // SAFETY: the module is loaded.
        let function =
            unsafe { result::module::get_function(self.module.raw, text) }.map_err(|error| match error.0 {
                sys::CUresult::CUDA_ERROR_NOT_FOUND => missing(),
                _ => failed(error, "find a kernel"),
            })?;
        let (context, module) = (self.module.context.clone(), self.module.clone());
        Ok(Kernel::new(CudaKernel { context, function, _module: module }))
    }

    fn binary(&self) -> Result<Vec<u8>> {
        Ok(self.ptx.as_bytes().to_vec())
    }
}

/// Compiles CUDA text to PTX for a compute capability, such as (8, 0). Needs NVRTC but no device and no driver.
///
/// # Errors
/// `Unsupported` if there is no NVRTC; `Device` with the first lines of the compiler's log.
pub fn compile_to_ptx(source: &str, (major, minor): (i32, i32), options: &str) -> Result<CString> {
    // SAFETY: only looks for the library.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err(Error::unsupported(super::NO_COMPILER));
    }
    if source.contains('\0') || options.contains('\0') {
        return Err(Error::internal("kernel text or options contain a zero byte"));
    }
    // A product is rounded before it is added to, as on the CPU: x·x − x·x is 0.
    let mut arguments = vec![format!("--gpu-architecture=compute_{major}{minor}"), "--fmad=false".to_owned()];
    arguments.extend(options.split_whitespace().map(str::to_owned));
    let options = CompileOptions { options: arguments, ..Default::default() };
    let ptx = compile_ptx_with_opts(source, options).map_err(|error| {
        let (code, log) = match &error {
            CompileError::CompileError { nvrtc, log, .. } => (nvrtc.to_string(), log.to_string_lossy().into_owned()),
            _ => (error.to_string(), String::new()),
        };
        let lines: Vec<&str> = log.lines().take(LOG_LINES).collect();
        let log = lines.join("\n");
        Error::new(Class::Device, format!("kernel text does not compile for compute {major}.{minor}: {code}\n{log}"))
    })?;
    let ptx = CStr::from_bytes_until_nul(ptx.as_bytes().unwrap_or_default());
    Ok(ptx.map_err(|_| Error::internal("the compiler gave no PTX"))?.to_owned())
}
