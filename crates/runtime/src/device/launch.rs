//! One job on one device: data in place, a launch for each part, the groups read back.

use std::collections::HashMap;
use std::time::Duration;

use tandem_codegen::{Binding, Kernel, Layout};
use tandem_column::{AlignedVec, Buffer, Column, Data, Error, Part, Result};
use tandem_cpu::{Job, Worker, code_bounds};
use tandem_device::{Argument, Event, Kernel as DeviceKernel, Memory, Queue, Shape};
use tandem_pipeline::fused::{Fused, FusedStep};

use super::{
    Accelerator, DeviceMetrics,
    data::{Held, place, place_bytes},
};
use crate::Cancel;

/// Work-items for each unit of a device that deals runs of rows out: enough to even out what units get.
const ITEMS_PER_UNIT: usize = 4;
/// Groups of work-items for each unit of a device on which they take rows in turn.
const GROUPS_PER_UNIT: usize = 8;
/// The most memory for tables of groups.
const TABLE_BYTES: usize = 256 << 20;

/// What all launches of a job share.
struct Shared {
    sets: Vec<(Memory, i64)>,
    payloads: Vec<Vec<Option<(Held, i64)>>>,
    table: Memory,
    failed: Memory,
}

pub(super) fn run(accelerator: &Accelerator, job: &Job, cancel: &Cancel) -> Result<(Worker, DeviceMetrics)> {
    let mut metrics = DeviceMetrics { name: accelerator.name(), ..DeviceMetrics::default() };
    let fused = job.fused()?;
    let parts = job.parts();
    let mut worker = job.worker();
    let Some(&first) = parts.first() else { return Ok((worker, metrics)) };
    // Parts of one layout share a kernel; the groups are the same for all.
    let mut kernels: HashMap<Vec<Option<Layout>>, (Kernel, DeviceKernel)> = HashMap::new();
    let mut fresh = Vec::new();
    let layout_of = |part: usize| -> Vec<Option<Layout>> {
        job.table().parts[part].columns.iter().map(|column| Layout::of(column).ok()).collect()
    };
    for &part in &parts {
        let layout = layout_of(part);
        if !kernels.contains_key(&layout) {
            let kernel = accelerator.generate(job, part)?;
            let (program, compiled) = accelerator.program(&kernel, &mut metrics)?;
            if compiled {
                fresh.push((kernel.text.clone(), program.clone()));
            }
            let entry = program.kernel(kernel.name)?;
            kernels.insert(layout, (kernel, entry));
        }
    }
    let (kernel, _) = &kernels[&layout_of(first)];
    let (shape, tables) = shape(accelerator, kernel)?;
    metrics.texts = kernels.values().map(|(kernel, _)| describe(kernel, shape, tables)).collect();
    let mut queue = accelerator.device.queue()?;
    let mut shared = prepare(accelerator, job, &fused, kernel, tables, queue.as_mut(), &mut metrics)?;
    let mut events = Vec::with_capacity(parts.len());
    for &part in &parts {
        cancel.check()?;
        let (kernel, compiled) = &kernels[&layout_of(part)];
        let launched =
            launch(accelerator, job, &fused, part, kernel, compiled, &mut shared, shape, queue.as_mut(), &mut metrics)?;
        events.extend(launched);
    }
    let width = kernel.group_width();
    let mut numbers = AlignedVec::<i64>::zeroed(tables * kernel.groups * width);
    let bytes = numbers.len() * 8;
    let mut raw = vec![0u8; bytes];
    queue.read(&shared.table, 0, &mut raw, &[])?;
    for (number, bytes) in numbers.as_mut_slice().iter_mut().zip(raw.as_chunks::<8>().0) {
        *number = i64::from_le_bytes(*bytes);
    }
    let mut failed = [0u8; 4];
    queue.read(&shared.failed, 0, &mut failed, &[])?;
    metrics.bytes_back += bytes as u64 + 4;
    metrics.kernels = kernel_time(&events);
    // Drivers finish compiling at the first launch: only now the binary is all there is to load.
    for (text, program) in fresh {
        accelerator.cache.save(&text, accelerator.device.as_ref(), &program);
    }
    if failed != [0; 4] {
        return Err(Error::unsupported("a row has no value: the processor finds which"));
    }
    for table in numbers.chunks_exact(kernel.groups * width) {
        job.absorb(&mut worker, table, width, &kernel.accumulators)?;
    }
    Ok((worker, metrics))
}

/// Prints a kernel and how it is launched.
fn describe(kernel: &Kernel, shape: Shape, tables: usize) -> String {
    let (groups, width) = (kernel.groups, kernel.group_width());
    format!(
        "// {} groups of {} work-items for each part; {tables} tables of {groups} groups, {width} numbers each\n{}",
        shape.groups,
        shape.items,
        &kernel.text[kernel.body..]
    )
}

fn kernel_time(events: &[Event]) -> Duration {
    let times = events.iter().filter_map(Event::times);
    Duration::from_nanos(times.map(|times| times.ended.saturating_sub(times.started)).sum())
}

/// Chooses how many work-items run, and how many tables of groups they need.
fn shape(accelerator: &Accelerator, kernel: &Kernel) -> Result<(Shape, usize)> {
    let (info, traits) = (accelerator.device.info(), accelerator.traits);
    let bytes = kernel.groups * kernel.group_width() * 8;
    let (shape, tables) = if traits.chunked {
        let fit = (TABLE_BYTES / bytes.max(1)).min(info.units * ITEMS_PER_UNIT);
        (Shape { groups: fit, items: 1 }, fit)
    } else {
        (Shape { groups: info.units * GROUPS_PER_UNIT, items: info.group_items.min(256) }, 1)
    };
    if shape.groups == 0 || bytes > TABLE_BYTES {
        return Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device")));
    }
    Ok((shape, tables))
}

/// Puts what all parts share on the device.
fn prepare(
    accelerator: &Accelerator,
    job: &Job,
    fused: &Fused,
    kernel: &Kernel,
    tables: usize,
    queue: &mut dyn Queue,
    metrics: &mut DeviceMetrics,
) -> Result<Shared> {
    let device = accelerator.device.as_ref();
    let mut sets = Vec::new();
    for step in &fused.steps {
        if let FusedStep::Member { column, set } = step {
            let range = job.table().statistics[*column].range;
            let (low, high) = range.ok_or_else(|| Error::unsupported("the range of a joined column is not known"))?;
            let words: Buffer<u32> = job.set_bits(*set, low, high).into();
            sets.push((place_bytes(words.bytes(), device, queue, metrics)?, low));
        }
    }
    let mut payloads = Vec::with_capacity(fused.lookups.len());
    for lookup in 0..fused.lookups.len() {
        let count = job.lookup(lookup).map_or(0, |(columns, ..)| columns);
        let mut held = Vec::with_capacity(count);
        for payload in 0..count {
            let used = kernel.bindings.contains(&Binding::Payload { lookup, payload });
            held.push(match job.payload(lookup, payload).filter(|_| used) {
                Some(column) => Some((place(column, device, queue, metrics)?, base(column))),
                None => None,
            });
        }
        payloads.push(held);
    }
    let empty = kernel.empty_group();
    let numbers: Buffer<i64> = empty.iter().copied().cycle().take(tables * kernel.groups * empty.len()).collect();
    let numbers = numbers.bytes();
    let table = device.allocate(numbers.len())?;
    metrics.bytes_to += numbers.len() as u64;
    queue.write(&table, 0, numbers, &[])?;
    let failed = device.allocate(4)?;
    queue.fill(&failed, 0, 4, 0, &[])?;
    Ok(Shared { sets, payloads, table, failed })
}

/// Launches the kernel over one part; `None` if statistics show that it has no row to keep.
#[allow(clippy::too_many_arguments)]
fn launch(
    accelerator: &Accelerator,
    job: &Job,
    fused: &Fused,
    number: usize,
    kernel: &Kernel,
    compiled: &DeviceKernel,
    shared: &mut Shared,
    shape: Shape,
    queue: &mut dyn Queue,
    metrics: &mut DeviceMetrics,
) -> Result<Option<Event>> {
    let part: &Part = &job.table().parts[number];
    let mut held: HashMap<usize, Held> = HashMap::new();
    for binding in &kernel.bindings {
        if let Binding::Column(column) = binding {
            let column = *column;
            let place = accelerator.columns.hold(&part.columns[column], accelerator.device.as_ref(), queue, metrics)?;
            held.insert(column, place);
        }
    }
    let of = |column: usize| base(&part.columns[column]);
    let missing = || Error::internal("a kernel's argument has no value");
    let mut arguments = Vec::with_capacity(kernel.bindings.len());
    for binding in &kernel.bindings {
        arguments.push(match binding {
            Binding::Rows => Argument::U32(part.rows as u32),
            Binding::Column(column) => Argument::Memory(&held.get(column).ok_or_else(missing)?.values),
            Binding::Validity(column) => {
                let held = held.get(column).ok_or_else(missing)?;
                Argument::Memory(held.validity.as_ref().ok_or_else(missing)?)
            }
            Binding::Base(column) => Argument::I64(of(*column)),
            Binding::Low(step) | Binding::Span(step) => {
                let FusedStep::Between { column, low, high } = fused.steps[*step] else { return Err(missing()) };
                let Some((first, span)) = bounds(&part.columns[column], low, high) else { return Ok(None) };
                Argument::U64(if matches!(binding, Binding::Low(_)) { first } else { span })
            }
            Binding::Set(set) => Argument::Memory(&shared.sets[*set].0),
            Binding::SetShift { set, column } => Argument::U32(of(*column).wrapping_sub(shared.sets[*set].1) as u32),
            Binding::LookupShift(lookup) => {
                let lookup = fused.lookups[*lookup];
                Argument::I64(of(lookup.column).wrapping_sub(lookup.min))
            }
            Binding::Payload { lookup, payload } => {
                Argument::Memory(&shared.payloads[*lookup][*payload].as_ref().ok_or_else(missing)?.0.values)
            }
            Binding::PayloadValidity { lookup, payload } => {
                let (held, _) = shared.payloads[*lookup][*payload].as_ref().ok_or_else(missing)?;
                Argument::Memory(held.validity.as_ref().ok_or_else(missing)?)
            }
            Binding::PayloadBase { lookup, payload } => {
                Argument::I64(shared.payloads[*lookup][*payload].as_ref().ok_or_else(missing)?.1)
            }
            Binding::Constant(value) => Argument::I64(*value),
            Binding::Groups => Argument::Memory(&shared.table),
            Binding::Failed => Argument::Memory(&shared.failed),
        });
    }
    metrics.launches += 1;
    queue.launch(compiled, &arguments, shape, &[]).map(Some)
}

/// Returns what code 0 of a column stands for.
fn base(column: &Column) -> i64 {
    match &column.data {
        Data::Int { base, .. } => *base,
        _ => 0,
    }
}

fn bounds(column: &Column, low: i64, high: i64) -> Option<(u64, u64)> {
    let (base, codes) = column.codes()?;
    code_bounds(base, codes, low, high)
}
