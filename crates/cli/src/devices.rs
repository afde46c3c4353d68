//! `tandem devices`: what was found, what it can do, and why anything is not usable.

use std::fmt::Write;

use tandem_device::{Device, Info, bandwidth};

use crate::failure::Failure;

/// Lists the devices of this machine, each with its measured bandwidths.
pub fn run() -> Result<(), Failure> {
    let found = tandem_device::find();
    let mut text = String::new();
    for device in &found.devices {
        text.push_str(&describe(device.as_ref()));
    }
    if found.devices.is_empty() {
        text.push_str("no device is usable; --mode cpu runs everything on the processor\n");
    }
    for (what, why) in &found.unusable {
        let _ = writeln!(text, "{what} is not usable: {why}");
    }
    print!("{text}");
    Ok(())
}

fn describe(device: &dyn Device) -> String {
    let info = device.info();
    let mut text = format!("{}  {}\n", info.id(), info.name);
    let kind = match info.simulated {
        true => format!("{}, simulated: its times are by model", info.kind),
        false => info.kind.to_string(),
    };
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12}{value}");
    };
    line("kind", kind);
    line("vendor", info.vendor.clone());
    line("driver", format!("{}, {}", info.driver, info.version));
    line("memory", format!("{}, at most {} at once", bytes(info.memory), bytes(info.largest_allocation)));
    let local = bytes(info.local_memory);
    line("units", format!("{}, groups of up to {} work-items, {local} of local memory", info.units, info.group_items));
    line("features", features(info));
    let measured = match bandwidth(device) {
        Ok(found) => format!(
            "{:.1} GB/s to the device, {:.1} GB/s back, {:.1} GB/s within",
            found.to_device / 1e9,
            found.from_device / 1e9,
            found.on_device / 1e9
        ),
        Err(error) => format!("not measured: {error}"),
    };
    line("bandwidth", measured);
    text
}

fn features(info: &Info) -> String {
    let all = [
        (info.fp64, "double precision"),
        (info.int64_atomics, "atomics on 64 bits"),
        (info.shared_memory, "reads host memory in place"),
    ];
    let (has, lacks): (Vec<_>, Vec<_>) = all.into_iter().partition(|(has, _)| *has);
    let names = |list: Vec<(bool, &'static str)>| list.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", ");
    match (has.is_empty(), lacks.is_empty()) {
        (_, true) => names(has),
        (true, _) => format!("lacks {}", names(lacks)),
        _ => format!("{}; lacks {}", names(has), names(lacks)),
    }
}

fn bytes(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}
