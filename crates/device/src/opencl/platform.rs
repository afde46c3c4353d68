//! Finding OpenCL devices: of every platform, of every type.

use std::ptr;
use std::sync::Arc;

use opencl_sys::*;
use parking_lot::Mutex;

use super::device::OpenClDevice;
use super::library::Api;
use super::query::{DeviceQuery, platform_text};
use super::status;
use crate::{Backend, Device, DeviceKind, Found, Info};

/// Held while devices are listed. It guards the driver's own state, which is the process's: PoCL 3.1 lists devices that another thread is still initialising, and crashes when
/// they are asked for their properties.
static LISTING: Mutex<()> = Mutex::new(());

/// Adds all OpenCL devices to `found`, or the reasons why there are none.
pub(crate) fn discover(poor: bool, found: &mut Found) {
    let _alone = LISTING.lock();
    let mut no = |what: String, reason: String| found.unusable.push((what, reason));
    let api = match Api::open() {
        Ok(api) => api,
        Err(reason) => return no("opencl".to_owned(), reason),
    };
    let platforms = match platforms(api) {
        Ok(platforms) => platforms,
        Err(reason) => return no("opencl".to_owned(), reason),
    };
    let mut usable: Vec<Arc<dyn Device>> = Vec::new();
    for platform in platforms {
        let name = platform_text(api, platform, CL_PLATFORM_NAME);
        let devices = match devices(api, platform) {
            Ok(devices) => devices,
            Err(reason) => {
                no(format!("opencl platform {name}"), reason);
                continue;
            }
        };
        for device in devices {
            let query = DeviceQuery { api, device };
            let opened = describe(query, usable.len(), poor)
                .and_then(|info| OpenClDevice::open(api, device, info).map_err(|error| error.message));
            match opened {
                Ok(device) => usable.push(Arc::new(device)),
                Err(reason) => no(format!("opencl device {} of {name}", query.text(CL_DEVICE_NAME)), reason),
            }
        }
    }
    found.devices.extend(usable);
}

fn platforms(api: &Api) -> Result<Vec<cl_platform_id>, String> {
    const REMEDY: &str = "no OpenCL driver is installed: install one, for example the package pocl-opencl-icd";
    let mut count = 0;
    // SAFETY: asks for the count only.
    let code = unsafe { (api.clGetPlatformIDs)(0, ptr::null_mut(), &mut count) };
    match code {
        CL_SUCCESS if count > 0 => {}
        CL_SUCCESS => return Err(REMEDY.to_owned()),
        CL_PLATFORM_NOT_FOUND_KHR => return Err(format!("{REMEDY}; {}", status::name(code))),
        _ => return Err(format!("OpenCL failed to list its platforms: {}", status::name(code))),
    }
    let mut platforms = vec![ptr::null_mut(); count as usize];
    // SAFETY: there is room for `count` platforms.
    let code = unsafe { (api.clGetPlatformIDs)(count, platforms.as_mut_ptr(), ptr::null_mut()) };
    if code != CL_SUCCESS {
        return Err(format!("OpenCL failed to list its platforms: {}", status::name(code)));
    }
    Ok(platforms)
}

fn devices(api: &Api, platform: cl_platform_id) -> Result<Vec<cl_device_id>, String> {
    let mut count = 0;
    // SAFETY: the platform is listed; asks for the count only.
    let mut code = unsafe { (api.clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 0, ptr::null_mut(), &mut count) };
    let mut devices = vec![ptr::null_mut(); count as usize];
    if code == CL_SUCCESS && count > 0 {
        // SAFETY: there is room for `count` devices.
        code =
            unsafe { (api.clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, count, devices.as_mut_ptr(), ptr::null_mut()) };
    }
    match code {
        CL_SUCCESS if count > 0 => Ok(devices),
        CL_SUCCESS | CL_DEVICE_NOT_FOUND => Err("the platform has no devices".to_owned()),
        _ => Err(format!("OpenCL failed to list the platform's devices: {}", status::name(code))),
    }
}

/// Reads a device's properties, or says why it is of no use.
fn describe(query: DeviceQuery, index: usize, poor: bool) -> Result<Info, String> {
    let version = query.text(CL_DEVICE_VERSION);
    if query.number(CL_DEVICE_AVAILABLE) == 0 {
        return Err("the driver says that the device is not available".to_owned());
    }
    if query.number(CL_DEVICE_COMPILER_AVAILABLE) == 0 {
        return Err("the driver has no compiler for the device".to_owned());
    }
    if !at_least_1_2(&version) {
        return Err(format!("OpenCL 1.2 is needed, update the driver: the device has {version}"));
    }
    if query.number(CL_DEVICE_ENDIAN_LITTLE) == 0 {
        return Err("the device is big-endian, columns are little-endian".to_owned());
    }
    let extensions = query.text(CL_DEVICE_EXTENSIONS);
    let has = |extension: &str| extensions.split_whitespace().any(|name| name == extension);
    let kinds = query.number(CL_DEVICE_TYPE);
    let kind = if kinds & CL_DEVICE_TYPE_GPU != 0 {
        DeviceKind::Gpu
    } else if kinds & CL_DEVICE_TYPE_CPU != 0 {
        DeviceKind::Cpu
    } else {
        DeviceKind::Accelerator
    };
    let mut info = Info {
        backend: Backend::OpenCl,
        index,
        kind,
        name: query.text(CL_DEVICE_NAME),
        vendor: query.text(CL_DEVICE_VENDOR),
        driver: query.text(CL_DRIVER_VERSION),
        version,
        memory: query.size(CL_DEVICE_GLOBAL_MEM_SIZE),
        largest_allocation: query.size(CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        units: query.size(CL_DEVICE_MAX_COMPUTE_UNITS),
        group_items: query.size(CL_DEVICE_MAX_WORK_GROUP_SIZE),
        local_memory: query.size(CL_DEVICE_LOCAL_MEM_SIZE),
        fp64: has("cl_khr_fp64") || query.number(CL_DEVICE_DOUBLE_FP_CONFIG) != 0,
        int64_atomics: has("cl_khr_int64_base_atomics"),
        shared_memory: kind == DeviceKind::Cpu || query.number(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0,
        simulated: false,
    };
    if poor {
        info.impoverish();
    }
    Ok(info)
}

/// Reads `OpenCL <major>.<minor> …`.
fn at_least_1_2(version: &str) -> bool {
    let number = version.strip_prefix("OpenCL ").and_then(|rest| rest.split_whitespace().next());
    let Some((major, minor)) = number.and_then(|number| number.split_once('.')) else { return false };
    matches!((major.parse::<u32>(), minor.parse::<u32>()), (Ok(major), Ok(minor)) if (major, minor) >= (1, 2))
}

#[cfg(test)]
mod tests {
    use super::at_least_1_2;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(at_least_1_2("OpenCL 1.2 CUDA") && at_least_1_2("OpenCL 3.0 PoCL") && at_least_1_2("OpenCL 1.10"));
        assert!(!at_least_1_2("OpenCL 1.1 Mesa") && !at_least_1_2("") && !at_least_1_2("3.0"));
    }
}
