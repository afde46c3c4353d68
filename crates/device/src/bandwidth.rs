//! Measuring a device's bandwidths.

use std::time::Instant;

use tandem_column::{AlignedVec, Error, Result};

use crate::{Argument, Device, DeviceKind, Event, Shape};

/// The kernel, after what OpenCL and CUDA spell differently.
const SOURCE: &str = concat!(include_str!("../kernels/prelude.cl"), include_str!("../kernels/bandwidth.cl"));

/// Bytes moved in a run: 64 MiB, beyond the caches of most devices; less on a device that allocates less.
const BYTES: usize = 64 << 20;

/// Runs of which the best counts; the first touches memory and compiles.
const RUNS: usize = 4;

/// Measured bandwidths, in bytes per second; modelled ones on a simulated device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidths {
    /// Copies from the host to the device.
    pub to_device: f64,
    /// Copies from the device to the host.
    pub from_device: f64,
    /// A kernel that reads device memory.
    pub on_device: f64,
}

/// Measures a device's bandwidths, which takes about a second on a CPU device. Other work on the device disturbs it.
///
/// # Errors
/// What the device fails with.
pub fn bandwidth(device: &dyn Device) -> Result<Bandwidths> {
    let info = device.info();
    let bytes = BYTES.min(info.largest_allocation / 4) & !7;
    let count = (bytes / 8) as u64;
    // As many items as keep the device busy: one a core on a CPU, 2048 a multiprocessor, all that fit, on others.
    let (shape, option) = match info.kind {
        DeviceKind::Cpu => (Shape { groups: info.units, items: 1 }, "-DCHUNKED"),
        DeviceKind::Gpu | DeviceKind::Accelerator => {
            let items = info.group_items.min(256);
            (Shape { groups: info.units * (2048 / items).max(1), items }, "")
        }
    };
    let kernel = device.compile(SOURCE, option)?.kernel("read_all")?;
    let (memory, sums) = (device.allocate(bytes)?, device.allocate(shape.groups * shape.items * 8)?);
    let mut queue = device.queue()?;
    let host = AlignedVec::from(vec![1u8; bytes]).into_buffer();
    let mut back = vec![0u8; bytes];
    let (mut write, mut read, mut run) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        write = write.min(seconds(|| queue.write(&memory, 0, host.clone(), &[]))?);
        let arguments = [Argument::Memory(&memory), Argument::U64(count), Argument::Memory(&sums)];
        run = run.min(seconds(|| queue.launch(&kernel, &arguments, shape, &[]))?);
        read = read.min(seconds(|| queue.read(&memory, 0, &mut back, &[]))?);
    }
    if back != host.as_slice() {
        return Err(Error::new(tandem_column::Class::Device, "a device does not give back what was copied to it"));
    }
    let rate = |seconds: f64| bytes as f64 / seconds;
    Ok(Bandwidths { to_device: rate(write), from_device: rate(read), on_device: rate(run) })
}

/// Runs a command to its end and returns how long it took: by the device's clock, or else the host's.
fn seconds(command: impl FnOnce() -> Result<Event>) -> Result<f64> {
    let start = Instant::now();
    let event = command()?;
    event.wait()?;
    let host = start.elapsed().as_nanos() as u64;
    let nanoseconds = event.times().map_or(host, |times| times.duration());
    Ok(nanoseconds.max(1) as f64 / 1e9)
}
