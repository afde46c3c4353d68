//! What every device must do, whatever its backend.
//!
//! [`conformance`] runs all checks on one device and panics at the first that fails; [`conformance_test!`] makes a test of
//! it for all devices of a backend. A machine without the backend skips the test and prints why, unless the environment
//! requires it: `TANDEM_REQUIRE_OPENCL=1` for `opencl` and `sim`, `TANDEM_REQUIRE_CUDA=1` for `cuda`,
//! `TANDEM_REQUIRE_SHIM=1` for `shim`.
//!
//! [`conformance_test!`]: crate::conformance_test

mod copies;
mod kernels;
mod waits;

use std::sync::Arc;

use crate::{Backend, Device, Found, Program, Queue, testing};

/// Makes a test that checks all devices of a backend: `conformance_test!(opencl, Search::default().run(), Backend::OpenCl)`.
#[macro_export]
macro_rules! conformance_test {
    ($name:ident, $found:expr, $backend:expr) => {
        #[test]
        fn $name() {
            $crate::conformance::check_all(&$found, $backend);
        }
    };
}

/// The kernels, after what OpenCL and CUDA spell differently.
const SOURCE: &str = concat!(include_str!("../../kernels/prelude.cl"), include_str!("../../kernels/conformance.cl"));

/// Checks all devices of a backend, or prints why there are none.
///
/// # Panics
/// If a device does not conform, or there is none and the environment requires one.
pub fn check_all(found: &Found, backend: Backend) {
    if testing::has(found, backend) {
        found.devices.iter().filter(|device| device.info().backend == backend).for_each(conformance);
    }
}

/// Checks one device.
///
/// # Panics
/// If it does not conform.
pub fn conformance(device: &Arc<dyn Device>) {
    let before = device.used();
    info_is_sane(&**device);
    let mut check = Check::new(device);
    check.copies_round_trip();
    check.copies_at_offsets();
    check.copies_nothing();
    check.copies_much();
    check.fills();
    check.refuses_what_does_not_fit();
    check.shares();
    check.is_exhausted_and_recovers();
    check.reports_compile_errors();
    check.passes_all_arguments();
    check.has_local_memory();
    check.runs_in_order();
    check.orders_events();
    check.waits_across_queues();
    check.round_trips_binaries();
    check.holds_two_programs();
    check.launches_often();
    check.is_shared_by_threads();
    check.gives_up_waiting();
    drop(check);
    assert_eq!(device.used(), before, "all memory is given back");
}

/// A device under test.
struct Check {
    device: Arc<dyn Device>,
    program: Program,
    queue: Queue,
}

impl Check {
    fn new(device: &Arc<dyn Device>) -> Check {
        let program = device.compile(SOURCE, "").expect("the kernels compile");
        let queue = device.queue().expect("a device has queues");
        Check { device: device.clone(), program, queue }
    }
}

fn info_is_sane(device: &dyn Device) {
    let info = device.info();
    assert!(!info.name.is_empty() && !info.version.is_empty(), "{info:?}");
    assert!(info.memory > 0 && info.largest_allocation > 0 && info.units > 0 && info.group_items > 0, "{info:?}");
    assert!(info.largest_allocation <= info.memory, "{info:?}");
    assert!(info.local_memory >= 1024, "{info:?}");
    assert_eq!(info.id(), format!("{}:{}", info.backend, info.index));
    assert_eq!(info.simulated, info.backend == Backend::Sim);
}
