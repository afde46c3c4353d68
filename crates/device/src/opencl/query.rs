//! Reading properties of OpenCL objects.
//!
//! All `clGet…Info` functions share one shape: ask for the size, then for the bytes.

use std::ffi::c_void;

use opencl_sys::{CL_SUCCESS, cl_device_id, cl_device_info, cl_int, cl_platform_id, cl_platform_info};

use super::library::Api;

/// Reads a property as bytes by a call of a `clGet…Info` function with size, target and size to return.
pub(super) fn bytes(get: impl Fn(usize, *mut c_void, *mut usize) -> cl_int) -> Result<Vec<u8>, cl_int> {
    let mut size = 0;
    let code = get(0, std::ptr::null_mut(), &mut size);
    if code != CL_SUCCESS {
        return Err(code);
    }
    let mut bytes = vec![0u8; size];
    if size > 0 {
        let code = get(size, bytes.as_mut_ptr().cast(), std::ptr::null_mut());
        if code != CL_SUCCESS {
            return Err(code);
        }
    }
    Ok(bytes)
}

/// Reads a property that is text.
pub(super) fn text(get: impl Fn(usize, *mut c_void, *mut usize) -> cl_int) -> Result<String, cl_int> {
    let bytes = bytes(get)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).trim().to_owned())
}

/// Reads a property that is an unsigned number of 4 or 8 bytes.
pub(super) fn number(get: impl Fn(usize, *mut c_void, *mut usize) -> cl_int) -> Result<u64, cl_int> {
    let bytes = bytes(get)?;
    Ok(match bytes.len() {
        4 => bytes.try_into().map_or(0, |bytes| u32::from_ne_bytes(bytes).into()),
        _ => bytes.try_into().map_or(0, u64::from_ne_bytes),
    })
}

/// A device that is asked for its properties.
#[derive(Clone, Copy)]
pub(super) struct DeviceQuery {
    pub(super) api: &'static Api,
    pub(super) device: cl_device_id,
}

impl DeviceQuery {
    fn get(self, property: cl_device_info) -> impl Fn(usize, *mut c_void, *mut usize) -> cl_int {
        move |size, target, returned| {
            // SAFETY: the device is one that the library listed; `target` has room for `size` bytes.
            unsafe { (self.api.clGetDeviceInfo)(self.device, property, size, target, returned) }
        }
    }

    /// Reads a text, empty if there is none.
    pub(super) fn text(self, property: cl_device_info) -> String {
        text(self.get(property)).unwrap_or_default()
    }

    /// Reads a number, 0 if there is none.
    pub(super) fn number(self, property: cl_device_info) -> u64 {
        number(self.get(property)).unwrap_or_default()
    }

    /// Reads a number as a size, 0 if there is none.
    pub(super) fn size(self, property: cl_device_info) -> usize {
        usize::try_from(self.number(property)).unwrap_or(usize::MAX)
    }
}

/// Reads a text of a platform, empty if there is none.
pub(super) fn platform_text(api: &Api, platform: cl_platform_id, property: cl_platform_info) -> String {
    text(|size, target, returned| {
        // SAFETY: the platform is one that the library listed; `target` has room for `size` bytes.
        unsafe { (api.clGetPlatformInfo)(platform, property, size, target, returned) }
    })
    .unwrap_or_default()
}
