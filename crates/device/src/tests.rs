//! The conformance suite on each backend, and what the environment changes.
//!
//! What depends on the process's environment runs in a child (`testing`).

use std::sync::Arc;
use std::time::Duration;

use crate::testing::{TWO_DEVICES, child, has, is_pocl};
use crate::{
    Argument, Backend, Buffer, Class, Device, Fault, Faulty, Found, Operation, Patience, Search, Shape, bandwidth,
    conformance_test,
};

conformance_test!(opencl_conforms, Search::default().run(), Backend::OpenCl);
conformance_test!(cuda_conforms, Search::default().run(), Backend::Cuda);
conformance_test!(sim_conforms, simulating("m2050").run(), Backend::Sim);
conformance_test!(poor_opencl_conforms, Search { poor: true, ..Search::default() }.run(), Backend::OpenCl);

fn simulating(profiles: &str) -> Search {
    Search { simulate: Some(profiles.to_owned()), ..Search::default() }
}

/// Returns the first OpenCL device, or says why there is none.
fn first(found: &Found) -> Option<&Arc<dyn Device>> {
    let devices = has(found, Backend::OpenCl).then_some(&found.devices);
    devices?.iter().find(|device| device.info().backend == Backend::OpenCl)
}

#[test]
fn a_faulty_device_without_faults_conforms() {
    let found = Search::default().run();
    let Some(device) = first(&found) else { return };
    let faulty: Arc<dyn Device> = Arc::new(Faulty::new(device, &[]));
    crate::conformance::conformance(&faulty);
}

#[test]
fn faults_hit_what_they_name() {
    let found = Search::default().run();
    let Some(device) = first(&found) else { return };
    let faulty = Faulty::new(device, &[Fault::At(Operation::Allocate, 2), Fault::From(Operation::Launch, 2)]);
    let memory = faulty.allocate(8).expect("the first works");
    assert_eq!(faulty.allocate(8).expect_err("the second fails").class, Class::Exhausted);
    faulty.allocate(8).expect("the third works");
    faulty.inject(Fault::At(Operation::Compile, 1));
    let text = "__kernel void nothing(__global uchar *a) {}";
    assert_eq!(faulty.compile(text, "").expect_err("asked for").class, Class::Device);
    let kernel = faulty.compile(text, "").expect("the second works").kernel("nothing").expect("it is there");
    let mut queue = faulty.queue().expect("a queue");
    let shape = Shape { groups: 1, items: 1 };
    let ran = queue.launch(&kernel, &[Argument::Memory(&memory)], shape, &[]).expect("the first works");
    for _ in 0..2 {
        let error = queue.launch(&kernel, &[Argument::Memory(&memory)], shape, &[]).expect_err("the others fail");
        assert_eq!(error.class, Class::Device);
    }
    assert_eq!((faulty.count(Operation::Launch), faulty.operations()), (3, 8));

    // One more operation works, then the device is gone.
    faulty.inject(Fault::LostAfter(9));
    let written = queue.write(&memory, 0, Buffer::from(vec![1; 8]), &[ran]).expect("the last that works");
    written.wait().expect("it works");
    assert_eq!(queue.read(&memory, 0, &mut [0], &[]).expect_err("lost").class, Class::Device);
    assert_eq!(written.wait().expect_err("lost").class, Class::Device);
    assert_eq!(queue.finish().expect_err("lost").class, Class::Device);
    assert_eq!(faulty.queue().expect_err("lost").class, Class::Device);
    assert_eq!(faulty.allocate(8).expect_err("lost").class, Class::Device);
}

/// What a command that never ends uses is never freed, and nothing waits for it longer than it wants to.
#[test]
fn a_hanging_device_keeps_what_it_uses() {
    let found = Search::default().run();
    let Some(device) = first(&found) else { return };
    let faulty = Faulty::new(device, &[Fault::Hang(Operation::Fill, 2)]);
    // Kernels of other tests may keep all threads of the driver busy for seconds.
    let patience = Patience { limit: Duration::from_secs(10), ..Patience::default() };
    let queue = || faulty.queue().expect("a queue").with_patience(patience.clone());
    let (mut one, mut two) = (queue(), queue());
    let memory = faulty.allocate(100).expect("it fits");
    one.fill(&memory, 0, 100, 1, &[]).expect("it fills");
    one.finish().expect("the first ends");
    let hangs = one.fill(&memory, 0, 100, 2, &[]).expect("the second begins");
    assert!(!hangs.poll().expect("nobody knows"));
    // A queue of its own ends, unless it waits for the other.
    two.fill(&memory, 0, 1, 3, &[]).expect("it fills");
    two.finish().expect("the third ends");
    let error = two.read(&memory, 0, &mut [0], &[hangs]).expect_err("it waits for what never ends");
    assert!(error.class == Class::Device && error.message.contains("did not answer"), "{error}");
    assert_eq!(one.finish().expect_err("it never ends").class, Class::Device);
    drop((one, two, memory));
    assert_eq!(faulty.used(), 100);
}

#[test]
fn a_process_ends_though_a_kernel_runs() {
    let found = Search::default().run();
    if first(&found).is_some() {
        child("tests::child_leaves_a_kernel", &[]);
    }
}

#[test]
#[ignore = "a child of a_process_ends_though_a_kernel_runs: leaves a kernel that never ends"]
fn child_leaves_a_kernel() {
    let found = Search::from_environment().run();
    let device = first(&found).expect("a device");
    let text = "__kernel void churn(__global volatile uint *a) { while (a[0] < 2) a[1]++; }";
    let kernel = device.compile(text, "").expect("it compiles").kernel("churn").expect("it is there");
    let patience = Patience { limit: Duration::from_secs(2), ..Patience::default() };
    let mut queue = device.queue().expect("a queue").with_patience(patience);
    let memory = device.allocate(8).expect("it fits");
    // PoCL compiles at the first launch, and does not survive the end of the process while it does: once it ends.
    let mut launch = |byte| {
        let filled = queue.fill(&memory, 0, 8, byte, &[]).expect("it fills");
        let shape = Shape { groups: 1, items: 1 };
        queue.launch(&kernel, &[Argument::Memory(&memory)], shape, &[filled]).expect("it begins")
    };
    launch(2).wait().expect("it ends at once");
    launch(0);
    assert_eq!(queue.finish().expect_err("it never ends").class, Class::Device);
}

#[test]
fn the_search_selects() {
    let all = simulating("t4,k520,nonsense").run();
    assert!(all.unusable.iter().any(|(what, why)| what == "sim nonsense" && why.contains("gtx580")));
    let Some(_) = first(&all) else {
        assert!(all.unusable.iter().any(|(what, why)| what == "sim t4" && why.contains("OpenCL")));
        return;
    };
    let ids = |found: &Found| found.devices.iter().map(|device| device.info().id()).collect::<Vec<_>>();
    let only = |list: &str| Search { only: Some(list.to_owned()), ..simulating("t4,k520") }.run();
    assert_eq!(ids(&only("sim:1")), ["sim:1"]);
    assert_eq!(ids(&only("sim")), ["sim:0", "sim:1"]);
    assert_eq!(ids(&only(" opencl:0, sim:0")), ["opencl:0", "sim:0"]);
    let none = only("none");
    assert!(none.devices.is_empty());
    assert!(none.unusable.iter().any(|(what, why)| what.starts_with("sim:0 ") && why.contains("TANDEM_DEVICES")));
    assert!(only("opencl:77").unusable.iter().any(|(what, _)| what == "opencl:77"));
    let poor = Search { poor: true, ..simulating("t4") }.run();
    assert!(poor.devices.iter().all(|device| !device.info().fp64 && !device.info().int64_atomics));
}

#[test]
fn bandwidths_are_measured() {
    let found = simulating("t4").run();
    if first(&found).is_none() {
        return;
    }
    for device in &found.devices {
        let measured = bandwidth(&**device).expect("it can be measured");
        println!("{}: {measured:?}", device.info().id());
        assert!(measured.to_device > 0.0 && measured.from_device > 0.0 && measured.on_device > 0.0);
        if device.info().simulated {
            // 64 MiB at 15.75 GB/s take about 4.3 ms, of which the latency is a thousandth.
            assert!((measured.to_device / 15.75e9 - 1.0).abs() < 0.01, "{measured:?}");
            assert!((measured.on_device / 320e9 - 1.0).abs() < 0.05, "{measured:?}");
        }
    }
}

#[test]
#[ignore = "a child of other tests: prints what is found in their environment"]
fn child_lists() {
    let found = Search::from_environment().run();
    for device in &found.devices {
        println!("found {:?}", device.info());
    }
    for (what, why) in &found.unusable {
        println!("unusable {what}: {why}");
    }
}

#[test]
#[ignore = "a child of two_devices_work: needs two OpenCL devices"]
fn child_uses_two_devices() {
    let found = Search::from_environment().run();
    let [one, two] = &found.devices[..] else { panic!("two devices: {found:?}") };
    crate::conformance::conformance(two);
    let (mut first, mut second) = (one.queue().expect("a queue"), two.queue().expect("a queue"));
    let (source, target) = (one.allocate(1000).expect("it fits"), two.allocate(1000).expect("it fits"));
    assert_eq!((one.used(), two.used()), (1000, 1000));
    let filled = first.fill(&source, 0, 1000, 9, &[]).expect("it fills");
    // A queue waits for an event of another device, and refuses its memory.
    let cleared = second.fill(&target, 0, 1000, 1, &[filled]).expect("it fills");
    assert_eq!(second.fill(&source, 0, 1, 1, &[]).expect_err("not its memory").class, Class::Internal);
    let mut bytes = vec![0; 1000];
    first.read(&source, 0, &mut bytes, &[cleared]).expect("it reads");
    assert_eq!(bytes, [9; 1000]);
    second.write(&target, 0, Buffer::from(bytes), &[]).expect("it writes");
    let mut bytes = vec![0; 1000];
    second.read(&target, 0, &mut bytes, &[]).expect("it reads");
    assert_eq!(bytes, [9; 1000]);
}

#[test]
fn two_devices_work() {
    let found = Search::default().run();
    if has(&found, Backend::OpenCl) && is_pocl(&found) {
        child("tests::child_uses_two_devices", &[TWO_DEVICES]);
    }
}

#[test]
fn without_drivers_there_are_reasons() {
    let nothing = tempfile::tempdir().expect("a directory");
    let vendors = nothing.path().to_str().expect("a plain path").to_owned() + "/";
    let text = child("tests::child_lists", &[("OCL_ICD_VENDORS", &vendors), ("TANDEM_SIM", "t4")]);
    let reasons = ["no OpenCL library", "no OpenCL driver is installed", "found Info { backend: OpenCl"];
    assert!(reasons.iter().any(|reason| text.contains(reason)), "{text}");
    assert!(text.contains("unusable cuda: ") || text.contains("backend: Cuda"), "{text}");
}

#[test]
fn the_environment_is_read() {
    let text = child("tests::child_lists", &[("TANDEM_DEVICES", "none"), ("TANDEM_DEVICE_POOR", "1")]);
    assert!(!text.contains("found Info"), "{text}");
}
