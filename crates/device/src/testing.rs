//! What tests of several crates share: whether there is a device to test on, and tests in a child process.
//!
//! Drivers read the environment when they are loaded, once in the life of a process; so a test under another environment
//! starts its own executable again, with one ignored test.

use std::{env, process::Command};

use crate::{Backend, Found};

/// Tells whether a backend has a device to test on; prints why not.
///
/// # Panics
/// If there is none and the environment requires one: `TANDEM_REQUIRE_OPENCL=1` for `opencl` and `sim`,
/// `TANDEM_REQUIRE_CUDA=1` for `cuda`.
pub fn has(found: &Found, backend: Backend) -> bool {
    if found.devices.iter().any(|device| device.info().backend == backend) {
        return true;
    }
    let variable = match backend {
        Backend::OpenCl | Backend::Sim => "TANDEM_REQUIRE_OPENCL",
        Backend::Cuda => "TANDEM_REQUIRE_CUDA",
        Backend::Shim => "TANDEM_REQUIRE_SHIM",
    };
    let required = env::var(variable).is_ok_and(|value| value == "1");
    let reasons: Vec<String> = found.unusable.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    let reasons = reasons.join("; ");
    assert!(!required, "{variable}=1, but no {backend} device is usable: {reasons}");
    eprintln!("skipped: no {backend} device is usable: {reasons}");
    false
}

/// Tells whether the first device is PoCL's, the driver whose devices [`TWO_DEVICES`] doubles; prints if not.
pub fn is_pocl(found: &Found) -> bool {
    let version = found.devices.first().map_or("", |device| &device.info().version);
    let pocl = version.to_lowercase().contains("pocl");
    if !pocl {
        eprintln!("skipped: only PoCL can pretend to have two devices: {version}");
    }
    pocl
}

/// Makes PoCL pretend to have two devices.
pub const TWO_DEVICES: (&str, &str) = ("POCL_DEVICES", "pthread pthread");

/// Runs an ignored test of this executable, by its full name, in a child with no variables of ours but these; returns
/// what it printed.
///
/// # Panics
/// If the test fails, or there is no such test.
pub fn child(test: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env::current_exe().expect("a test has a program"));
    let ours = ["TANDEM_DEVICES", "TANDEM_SIM", "TANDEM_DEVICE_"];
    for (variable, _) in env::vars_os() {
        if variable.to_str().is_some_and(|name| ours.iter().any(|our| name.starts_with(our))) {
            command.env_remove(variable);
        }
    }
    let output = command
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .envs(environment.iter().copied())
        .output()
        .expect("the child starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{environment:?}: {text}");
    text
}
