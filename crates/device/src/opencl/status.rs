//! OpenCL's error codes as names and classes.

use opencl_sys::*;
use tandem_column::{Class, Error, Result};

macro_rules! names {
    ($code:expr, $($name:ident)*) => {
        match $code { $($name => stringify!($name),)* _ => "an unknown code" }
    };
}

/// Names a code as the headers do, with its number.
pub(super) fn name(code: cl_int) -> String {
    let name = names!(code,
        CL_SUCCESS CL_DEVICE_NOT_FOUND CL_DEVICE_NOT_AVAILABLE CL_COMPILER_NOT_AVAILABLE
        CL_MEM_OBJECT_ALLOCATION_FAILURE CL_OUT_OF_RESOURCES CL_OUT_OF_HOST_MEMORY CL_PROFILING_INFO_NOT_AVAILABLE
        CL_MEM_COPY_OVERLAP CL_IMAGE_FORMAT_MISMATCH CL_IMAGE_FORMAT_NOT_SUPPORTED CL_BUILD_PROGRAM_FAILURE
        CL_MAP_FAILURE CL_MISALIGNED_SUB_BUFFER_OFFSET CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        CL_COMPILE_PROGRAM_FAILURE CL_LINKER_NOT_AVAILABLE CL_LINK_PROGRAM_FAILURE CL_DEVICE_PARTITION_FAILED
        CL_KERNEL_ARG_INFO_NOT_AVAILABLE CL_INVALID_VALUE CL_INVALID_DEVICE_TYPE CL_INVALID_PLATFORM CL_INVALID_DEVICE
        CL_INVALID_CONTEXT CL_INVALID_QUEUE_PROPERTIES CL_INVALID_COMMAND_QUEUE CL_INVALID_HOST_PTR
        CL_INVALID_MEM_OBJECT CL_INVALID_IMAGE_FORMAT_DESCRIPTOR CL_INVALID_IMAGE_SIZE CL_INVALID_SAMPLER
        CL_INVALID_BINARY CL_INVALID_BUILD_OPTIONS CL_INVALID_PROGRAM CL_INVALID_PROGRAM_EXECUTABLE
        CL_INVALID_KERNEL_NAME CL_INVALID_KERNEL_DEFINITION CL_INVALID_KERNEL CL_INVALID_ARG_INDEX
        CL_INVALID_ARG_VALUE CL_INVALID_ARG_SIZE CL_INVALID_KERNEL_ARGS CL_INVALID_WORK_DIMENSION
        CL_INVALID_WORK_GROUP_SIZE CL_INVALID_WORK_ITEM_SIZE CL_INVALID_GLOBAL_OFFSET CL_INVALID_EVENT_WAIT_LIST
        CL_INVALID_EVENT CL_INVALID_OPERATION CL_INVALID_GL_OBJECT CL_INVALID_BUFFER_SIZE CL_INVALID_MIP_LEVEL
        CL_INVALID_GLOBAL_WORK_SIZE CL_INVALID_PROPERTY CL_INVALID_IMAGE_DESCRIPTOR CL_INVALID_COMPILER_OPTIONS
        CL_INVALID_LINKER_OPTIONS CL_INVALID_DEVICE_PARTITION_COUNT CL_INVALID_PIPE_SIZE CL_INVALID_DEVICE_QUEUE
        CL_INVALID_SPEC_ID CL_MAX_SIZE_RESTRICTION_EXCEEDED CL_PLATFORM_NOT_FOUND_KHR CL_CONTEXT_TERMINATED_KHR
    );
    format!("{name} ({code})")
}

/// Classes a code: what ran out, what we called wrongly, and everything else as a failing device.
fn class(code: cl_int) -> Class {
    match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_HOST_MEMORY => Class::Exhausted,
        // What queues say after a kernel crashed on them.
        CL_INVALID_COMMAND_QUEUE => Class::Device,
        CL_MAX_SIZE_RESTRICTION_EXCEEDED..=CL_INVALID_VALUE => Class::Internal,
        // Out of resources is also what drivers say of a kernel that crashed: not a reason to retry here.
        _ => Class::Device,
    }
}

/// Turns a code into a result; `what` completes "OpenCL failed to …".
pub(super) fn check(code: cl_int, what: &str) -> Result<()> {
    if code == CL_SUCCESS { Ok(()) } else { Err(error(code, what)) }
}

/// Makes the error of a code.
pub(super) fn error(code: cl_int, what: &str) -> Error {
    Error::new(class(code), format!("OpenCL failed to {what}: {}", name(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_classes() {
        assert_eq!(name(-11), "CL_BUILD_PROGRAM_FAILURE (-11)");
        assert_eq!(name(-1001), "CL_PLATFORM_NOT_FOUND_KHR (-1001)");
        assert_eq!(name(-9999), "an unknown code (-9999)");
        assert_eq!(error(-4, "copy").class, Class::Exhausted);
        assert_eq!(error(-5, "run a kernel").class, Class::Device);
        assert_eq!(error(-14, "wait").class, Class::Device);
        assert_eq!(error(-52, "run a kernel").class, Class::Internal);
        assert_eq!(error(-30, "copy").class, Class::Internal);
        assert_eq!(check(0, "copy"), Ok(()));
    }
}
