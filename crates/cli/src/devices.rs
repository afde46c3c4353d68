//! `tandem devices`: what was found, what it can do, and why anything is not usable.

use std::{fmt::Write as _, io::Write as _};

use clap::Args;
use serde_json::{Value, json};
use tandem_device::{Bandwidths, Device, DeviceKind, Info, bandwidth};
use tandem_runtime::{Accelerator, Devices};

use crate::failure::Failure;

/// What `tandem devices` is told.
#[derive(Debug, Args)]
#[command(after_help = "Environment:\n  \
    TANDEM_DEVICES=opencl:0,sim    use only these devices or backends; none for none\n  \
    TANDEM_SIM=titan-rtx           add simulated devices, of built-in profiles or profile files\n  \
    TANDEM_DEVICE_POOR=1           deny double precision and 64-bit atomics on all devices\n  \
    TANDEM_DEVICE_TIMEOUT=60       seconds in which a device must end a command\n  \
    TANDEM_DEVICE_STREAMS=2        queues of a device: 1, 2 or 4, to copy columns while kernels run\n  \
    TANDEM_DEVICE_TRANSFER=auto    active to copy all columns, passive to have them read in place")]
pub struct DevicesArguments {
    /// Write one JSON object, with sizes in bytes and bandwidths in bytes per second.
    #[arg(long)]
    json: bool,
}

/// Lists the devices of this machine, each with its measured bandwidths.
pub fn run(arguments: &DevicesArguments, found: &Devices) -> Result<(), Failure> {
    let text = if arguments.json { format!("{:#}\n", to_json(found)) } else { to_text(found) };
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| Failure::write("to standard output", &e))
}

fn is_chosen(found: &Devices, accelerator: &Accelerator) -> bool {
    let id = accelerator.device().info().id();
    found.chosen().is_ok_and(|chosen| chosen.iter().any(|other| other.device().info().id() == id))
}

fn to_json(found: &Devices) -> Value {
    let devices = found.accelerators().iter().map(|accelerator| {
        let info = accelerator.device().info();
        let measured = bandwidth(accelerator.device().as_ref()).map_err(|error| error.to_string());
        json!({
            "id": info.id(),
            "name": info.name,
            "kind": info.kind.to_string(),
            "simulated": info.simulated,
            "used_by_mode_gpu": is_chosen(found, accelerator),
            "vendor": info.vendor,
            "driver": info.driver,
            "version": info.version,
            "memory": info.memory,
            "largest_allocation": info.largest_allocation,
            "units": info.units,
            "group_items": info.group_items,
            "local_memory": info.local_memory,
            "fp64": info.fp64,
            "int64_atomics": info.int64_atomics,
            "shared_memory": info.shared_memory,
            "bandwidth": measured.as_ref().ok().map(|Bandwidths { to_device, from_device, on_device }| {
                json!({ "to_device": to_device, "from_device": from_device, "on_device": on_device })
            }),
            "bandwidth_error": measured.as_ref().err(),
        })
    });
    let unusable = found.unusable().iter().map(|(what, why)| json!({ "what": what, "reason": why }));
    json!({ "devices": devices.collect::<Vec<_>>(), "unusable": unusable.collect::<Vec<_>>() })
}

fn to_text(found: &Devices) -> String {
    let mut text = String::new();
    for accelerator in found.accelerators() {
        text.push_str(&describe(accelerator.device().as_ref(), is_chosen(found, accelerator)));
    }
    if found.accelerators().is_empty() {
        text.push_str("no device is usable; --mode cpu runs everything on the CPU\n");
    }
    for (what, why) in found.unusable() {
        let _ = writeln!(text, "{what} is not usable: {why}");
    }
    text
}

fn describe(device: &dyn Device, chosen: bool) -> String {
    let info = device.info();
    let mut text = format!("{}  {}\n", info.id(), info.name);
    let kind = match (info.simulated, info.kind) {
        (true, kind) => format!("{kind}, simulated: its times are by model"),
        (false, DeviceKind::Cpu) => "cpu: kernels run on a CPU, not on a GPU".to_owned(),
        (false, kind) => kind.to_string(),
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
    let used = match chosen {
        true => "--mode gpu runs on it".to_owned(),
        false => format!("--mode gpu runs on the first device and its equals; TANDEM_DEVICES={} chooses it", info.id()),
    };
    line("used", used);
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
