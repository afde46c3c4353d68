//! Profiles, and times that can be reckoned by hand.

use std::sync::Arc;

use tandem_column::{Buffer, Class};

use super::{Clock, Profile, Simulated};
use crate::testing::has;
use crate::{Argument, Backend, Device, DeviceKind, Info, Marks, Search, Shape};

const ROUND: &str = "memory = 1 MiB\nmemory_bandwidth = 10 GB/s\nbus_bandwidth = 1 GB/s\nlaunch_latency = 5 us\n";

/// Makes a device of a profile in text, or says why not.
fn device(text: &str) -> Option<(Simulated, Clock)> {
    let found = Search::default().run();
    let devices = has(&found, Backend::OpenCl).then_some(&found.devices);
    let inner = devices?.iter().find(|device| device.info().backend == Backend::OpenCl)?;
    let (profile, clock) = (Profile::parse("test.profile", text).expect("the profile is right"), Clock::new());
    Some((Simulated::new(inner, &profile, &clock, 0), clock))
}

#[test]
fn built_in_profiles_are_sane() {
    for name in Profile::names() {
        let profile = Profile::open(name).expect("built in");
        assert!(profile.memory_bandwidth > profile.bus_bandwidth && profile.info.memory > 1 << 30, "{profile:?}");
    }
    assert_eq!(Profile::names().count(), 8);
    let error = Profile::open("t5").expect_err("there is no such device");
    assert!(error.class == Class::Input && error.message.contains("titan-rtx"), "{error}");
    assert!(Profile::open("no/such/file.profile").is_err());
}

#[test]
fn profile_files_are_read() {
    let text = "# mine\nname = \"A # card\"  # with a comment\nkind = cpu\nmemory = 1.5 GiB\nmemory_bandwidth = 100 GB/s\n\
                bus_bandwidth = 12_000 MB/s\nlaunch_latency = 2.5 us\ncopy_engines = 1\nunits = 7\ngroup_items = 64\n\
                local_memory = 16 KiB\nfp64 = false\nint64_atomics = false\nshared_memory = false\n";
    let profile = Profile::parse("mine.profile", text).expect("the profile is right");
    let expected = Profile {
        info: Info {
            kind: DeviceKind::Cpu,
            name: "A # card".to_owned(),
            memory: 3 << 29,
            largest_allocation: 3 << 29,
            units: 7,
            group_items: 64,
            local_memory: 16384,
            fp64: false,
            int64_atomics: false,
            shared_memory: false,
            ..Profile::plain().info
        },
        memory_bandwidth: 1e11,
        bus_bandwidth: 1.2e10,
        launch_latency: 2500,
        copy_engines: 1,
    };
    assert_eq!(profile, expected);
    assert_eq!(Profile::parse("some/round.profile", ROUND).expect("right").info.name, "round");
}

#[test]
fn mistakes_in_profile_files_have_a_place_and_a_remedy() {
    for (text, line, remedy) in [
        ("memory = 1 GiB\nmemery = 2", 2, "the keys are name"),
        ("memory 1 GiB", 1, "write key = value"),
        ("\n\nmemory = lots", 3, "positive number with a unit"),
        ("memory = 1 Gib", 1, "unit such as GiB"),
        ("memory = 0", 1, "positive number"),
        ("memory = 0.5", 1, "at least one byte"),
        ("memory = 1\nmemory = 2", 2, "remove this line"),
        ("launch_latency = 5 hours", 1, "ns, us, ms or s"),
        ("copy_engines = 3", 1, "write 1 or 2"),
        ("units = 0", 1, "positive whole number"),
        ("fp64 = yes", 1, "true or false"),
        ("kind = tpu", 1, "cpu, gpu or accelerator"),
        ("memory = 1 GiB\nbus_bandwidth = 1 GB/s\n", 3, "add a line memory_bandwidth"),
    ] {
        let error = Profile::parse("my.profile", text).expect_err("there is a mistake");
        assert_eq!(error.class, Class::Input);
        assert!(error.message.contains(&format!("my.profile, line {line}:")), "{error}");
        assert!(error.message.contains(remedy), "{error}");
    }
}

#[test]
fn times_follow_the_profile() {
    let Some((device, clock)) = device(ROUND) else { return };
    let (mut copies, mut kernels) = (device.queue().expect("a queue"), device.queue().expect("a queue"));
    let text = "__kernel void nothing(__global uchar *a, __global uchar *b) {}";
    let kernel = device.compile(text, "").expect("it compiles").kernel("nothing").expect("it is there");
    let memory = device.allocate(100_000).expect("it fits");
    let shape = Shape { groups: 1, items: 1 };

    // 5 µs and 100 kB at 1 GB/s; the host does not wait.
    let written = copies.write(&memory, 0, Buffer::from(vec![7; 100_000]), &[]).expect("it writes");
    let times = written.times().expect("virtual times are known at once");
    assert_eq!((times.queued, times.started, times.ended, clock.now()), (0, 0, 105_000, 0));
    // After that, 5 µs and 100 kB at 10 GB/s; the same memory counts once.
    let arguments = [Argument::Memory(&memory), Argument::Memory(&memory)];
    let ran = kernels.launch(&kernel, &arguments, shape, &[written]).expect("it runs");
    let times = ran.times().expect("virtual times are known at once");
    assert_eq!((times.started, times.ended), (105_000, 120_000));
    // A copy of the other queue overlaps the kernel; shared memory comes by the bus.
    let other = device.allocate(1000).expect("it fits");
    let again = copies.write(&other, 0, Buffer::from(vec![7; 1000]), &[]).expect("it writes");
    assert_eq!(again.times().map(|times| (times.started, times.ended)), Some((105_000, 111_000)));
    let shared = device.share(&Buffer::from(vec![1; 1000])).expect("it shares");
    let arguments = [Argument::Memory(&shared), Argument::Null];
    let ran = kernels.launch(&kernel, &arguments, shape, &[]).expect("it runs");
    assert_eq!(ran.times().map(|times| (times.started, times.ended)), Some((120_000, 126_000)));
    // Waiting moves the host's clock; looking does not. Reading waits.
    assert!(!ran.poll().expect("it does not fail"));
    ran.wait().expect("it ends");
    assert!(clock.now() == 126_000 && ran.poll().expect("it ended"));
    clock.advance(4_000);
    let mut bytes = [0; 1000];
    let read = copies.read(&memory, 50_000, &mut bytes, &[]).expect("it reads");
    assert_eq!(bytes, [7; 1000]);
    assert_eq!(read.times().map(|times| (times.queued, times.ended)), Some((130_000, 136_000)));
    assert_eq!(clock.now(), 136_000);
}

#[test]
fn shared_memory_costs_what_kernels_mark_of_it() {
    let Some((device, clock)) = device(ROUND) else { return };
    let mut queue = device.queue().expect("a queue");
    let text = "__kernel void third(__global const uchar *values, __global uchar *marks) {\n\
                for (int at = 0; at < 96000; at += 96) marks[at / 32] = values[at];\n}";
    let kernel = device.compile(text, "").expect("it compiles").kernel("third").expect("it is there");
    let values = device.share(&Buffer::from(vec![1; 96_000])).expect("it shares");
    let marks = device.allocate(3_000).expect("it fits");
    queue.fill(&marks, 0, 3_000, 0, &[]).expect("it fills");
    let arguments = [Argument::Memory(&values), Argument::Marks(Marks { memory: &marks, of: &values, unit: 32 })];
    let ran = queue.launch(&kernel, &arguments, Shape { groups: 1, items: 1 }, &[]).expect("it runs");
    // 5 µs and every third unit, 32 kB, at 1 GB/s. The marks cost nothing, nor does looking at them.
    let times = ran.times().expect("virtual times are known at once");
    assert_eq!(times.duration(), 37_000);
    ran.wait().expect("it ends");
    let (now, mut read) = (clock.now(), [0; 3_000]);
    queue.read(&marks, 0, &mut read, &[]).expect("it reads");
    assert_eq!((read.iter().filter(|mark| **mark == 1).count(), clock.now()), (1_000, now));
    // Without marks, all of it counts.
    let arguments = [Argument::Memory(&values), Argument::Memory(&marks)];
    let ran = queue.launch(&kernel, &arguments, Shape { groups: 1, items: 1 }, &[]).expect("it runs");
    assert_eq!(ran.times().map(|times| times.duration()), Some(5_000 + 96_000 + 300));
}

#[test]
fn copy_engines_decide_what_overlaps() {
    for (engines, second) in [(1, 15_000), (2, 0)] {
        let Some((device, _)) = device(&format!("{ROUND}copy_engines = {engines}\n")) else { return };
        let (mut to, mut from) = (device.queue().expect("a queue"), device.queue().expect("a queue"));
        let memory = device.allocate(10_000).expect("it fits");
        to.write(&memory, 0, Buffer::from(vec![0; 10_000]), &[]).expect("it writes");
        let read = from.read(&memory, 0, &mut [0; 10_000], &[]).expect("it reads");
        assert_eq!(read.times().map(|times| times.started), Some(second));
    }
}

#[test]
fn memory_and_abilities_are_limited() {
    let Some((device, _)) = device(&format!("{ROUND}fp64 = false\nshared_memory = false\ngroup_items = 2\n")) else {
        return;
    };
    let device: Arc<dyn Device> = Arc::new(device);
    let info = device.info();
    assert_eq!((info.memory, info.fp64, info.shared_memory, info.group_items), (1 << 20, false, false, 2));
    assert!(info.simulated && info.name == "simulated test" && info.id() == "sim:0");
    let held = device.allocate(1 << 19).expect("half fits");
    let error = device.allocate((1 << 19) + 1).expect_err("more than the other half does not");
    assert!(error.class == Class::Exhausted && error.message.contains("524289 bytes asked for, 524288 of 1048576"));
    drop(held);
    assert_eq!(device.allocate(1 << 20).expect("all fits").len(), 1 << 20);
    assert_eq!(device.share(&Buffer::from(vec![1])).expect_err("it cannot").class, Class::Unsupported);
}
