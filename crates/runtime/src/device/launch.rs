//! One job on one device: data in place, a launch for each part, the groups read back.

use std::collections::{HashMap, hash_map::Entry};
use std::time::Duration;

use tandem_codegen::{Binding, Kernel, Layout, Output};
use tandem_column::{Buffer, Column, Data, Error, Part, Result};
use tandem_cpu::{Job, Worker, code_bounds};
use tandem_device::{Argument, Event, Kernel as DeviceKernel, Memory, Queue, Shape};
use tandem_pipeline::fused::{Fused, FusedStep, Way};

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
    lookups: Vec<Placed>,
    failed: Memory,
}

/// What kernels read, and mark, of a lookup's build.
#[derive(Default)]
struct Placed {
    payloads: Vec<Option<(Held, i64)>>,
    bits: Option<Memory>,
    starts: Option<Memory>,
    keys: Option<Memory>,
    matched: Option<Memory>,
}

/// Where a launch writes.
#[derive(Default)]
struct Outputs {
    groups: Option<Memory>,
    counts: Option<Memory>,
    values: Vec<Memory>,
    nulls: Vec<Option<Memory>>,
}

/// One job on its way over one device.
struct Run<'r> {
    accelerator: &'r Accelerator,
    job: &'r Job,
    cancel: &'r Cancel,
    fused: Fused,
    parts: Vec<usize>,
    /// The kernels of each layout that parts have.
    kernels: HashMap<Vec<Option<Layout>>, (Kernel, Vec<DeviceKernel>)>,
    shared: Shared,
    queue: Box<dyn Queue>,
    events: Vec<Event>,
    metrics: DeviceMetrics,
}

pub(super) fn run(
    accelerator: &Accelerator,
    job: &Job,
    parts: Vec<usize>,
    cancel: &Cancel,
) -> Result<(Worker, DeviceMetrics)> {
    let mut metrics = DeviceMetrics { names: vec![accelerator.label()], ..DeviceMetrics::default() };
    let fused = job.fused()?;
    let mut worker = job.worker();
    let Some(&first) = parts.first() else { return Ok((worker, metrics)) };
    // Parts of one layout share their kernels; what comes out is the same for all.
    let mut kernels = HashMap::new();
    let mut fresh = Vec::new();
    for &part in &parts {
        let Entry::Vacant(entry) = kernels.entry(layout_of(job, part)) else { continue };
        let kernel = accelerator.generate(job, part)?;
        let (program, compiled) = accelerator.program(&kernel, &mut metrics)?;
        if compiled {
            fresh.push((kernel.text.clone(), program.clone()));
        }
        let entries = kernel.names.iter().map(|name| program.kernel(name)).collect::<Result<Vec<_>>>()?;
        entry.insert((kernel, entries));
    }
    let kernel = kernels[&layout_of(job, first)].0.clone();
    let mut queue = accelerator.device.queue()?;
    let shared = prepare(accelerator, job, &fused, &kernel, queue.as_mut(), &mut metrics)?;
    let events = Vec::new();
    let mut run = Run { accelerator, job, cancel, fused, parts, kernels, shared, queue, events, metrics };
    match &kernel.output {
        Output::Groups { .. } => run.groups(&kernel.output, &mut worker)?,
        Output::Rows(_) => run.rows(&mut worker)?,
    }
    let mut failed = [0u8; 4];
    run.queue.read(&run.shared.failed, 0, &mut failed, &[])?;
    if failed != [0; 4] {
        return Err(Error::unsupported("a row has no value: the processor finds which"));
    }
    run.matched()?;
    run.metrics.kernels = kernel_time(&run.events);
    // Drivers finish compiling at the first launch: only now the binary is all there is to load.
    for (text, program) in fresh {
        accelerator.cache.save(&text, accelerator.device.as_ref(), &program);
    }
    Ok((worker, run.metrics))
}

/// Returns the layout of each column of a part, where a kernel can read it.
fn layout_of(job: &Job, part: usize) -> Vec<Option<Layout>> {
    job.table().parts[part].columns.iter().map(|column| Layout::of(column).ok()).collect()
}

impl Run<'_> {
    /// Counts groups over all parts and adds them to the worker's.
    fn groups(&mut self, output: &Output, worker: &mut Worker) -> Result<()> {
        let (width, groups) = (output.group_width(), output.groups());
        let (shape, tables) = self.group_shape(groups * width * 8)?;
        self.describe(shape, &format!("{tables} tables of {groups} groups, {width} numbers each"));
        let empty = output.empty_group();
        let numbers: Buffer<i64> = empty.iter().copied().cycle().take(tables * groups * width).collect();
        let table = self.allocate(numbers.len() * 8)?;
        self.metrics.bytes_to += numbers.len() as u64 * 8;
        self.queue.write(&table, 0, numbers.bytes(), &[])?;
        let outputs = Outputs { groups: Some(table.clone()), ..Outputs::default() };
        for part in self.parts.clone() {
            self.cancel.check()?;
            self.launch(part, 0, shape, &outputs)?;
        }
        let numbers = self.read_numbers(&table, tables * groups * width)?;
        numbers
            .chunks_exact(groups * width)
            .try_for_each(|table| self.job.absorb(worker, table, width, output.accumulators()))
    }

    /// Computes the rows that are left of each part, by counting, adding up and writing, and adds them to the worker's.
    fn rows(&mut self, worker: &mut Worker) -> Result<()> {
        let shape = self.shape();
        let items = shape.groups * shape.items;
        self.describe(shape, "rows counted, then written");
        let counts = self.allocate(items * 8)?;
        for part in self.parts.clone() {
            self.cancel.check()?;
            if self.job.has_enough() {
                return Ok(());
            }
            let mut outputs = Outputs { counts: Some(counts.clone()), ..Outputs::default() };
            if !self.launch(part, 0, shape, &outputs)? {
                continue;
            }
            let mut bytes = vec![0u8; items * 4];
            self.queue.read(&counts, 0, &mut bytes, &[])?;
            let kept = bytes.as_chunks::<4>().0.iter().map(|count| u32::from_le_bytes(*count));
            let mut total = 0;
            let places: Buffer<u32> = kept
                .map(|count| {
                    total += count;
                    total - count
                })
                .collect();
            self.metrics.bytes_back += bytes.len() as u64;
            let rows = total as usize;
            if rows == 0 {
                continue;
            }
            self.metrics.bytes_to += bytes.len() as u64;
            self.queue.write(&counts, items * 4, places.bytes(), &[])?;
            // A part without nulls has no flags, whatever others have.
            let Output::Rows(nullable) = self.kernels[&layout_of(self.job, part)].0.output.clone() else {
                return Err(Error::internal("all parts of a job give rows"));
            };
            for &nullable in &nullable {
                outputs.values.push(self.allocate(rows * 8)?);
                outputs.nulls.push(if nullable { Some(self.allocate(rows)?) } else { None });
            }
            self.launch(part, 1, shape, &outputs)?;
            let mut columns = Vec::with_capacity(nullable.len());
            for (values, nulls) in outputs.values.iter().zip(&outputs.nulls) {
                let numbers = self.read_numbers(values, rows)?;
                let nulls = match nulls {
                    Some(memory) => {
                        let mut flags = vec![0u8; rows];
                        self.queue.read(memory, 0, &mut flags, &[])?;
                        self.metrics.bytes_back += rows as u64;
                        Some(flags)
                    }
                    None => None,
                };
                columns.push((numbers, nulls));
            }
            self.job.collect(worker, part, rows, columns)?;
        }
        Ok(())
    }

    /// Notes in the job which build rows met a row.
    fn matched(&mut self) -> Result<()> {
        for (lookup, placed) in self.shared.lookups.iter().enumerate() {
            let (Some(memory), Some(build)) = (&placed.matched, self.job.build_of(lookup)) else { continue };
            let mut flags = vec![0; build.entries()];
            self.queue.read(memory, 0, &mut flags, &[])?;
            self.metrics.bytes_back += flags.len() as u64;
            self.job.mark(lookup, &flags);
        }
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Result<Memory> {
        self.accelerator.device.allocate(bytes)
    }

    fn read_numbers(&mut self, memory: &Memory, count: usize) -> Result<Vec<i64>> {
        let mut bytes = vec![0u8; count * 8];
        self.queue.read(memory, 0, &mut bytes, &[])?;
        self.metrics.bytes_back += bytes.len() as u64;
        Ok(bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number)).collect())
    }

    /// Chooses how many work-items run.
    fn shape(&self) -> Shape {
        let info = self.accelerator.device.info();
        match self.accelerator.traits.chunked {
            true => Shape { groups: info.units * ITEMS_PER_UNIT, items: 1 },
            false => Shape { groups: info.units * GROUPS_PER_UNIT, items: info.group_items.min(256) },
        }
    }

    /// Chooses how many work-items run, and how many tables of so many bytes they need.
    fn group_shape(&self, bytes: usize) -> Result<(Shape, usize)> {
        let mut shape = self.shape();
        if bytes > TABLE_BYTES {
            return Err(Error::unsupported(format!("the groups take more than {TABLE_BYTES} bytes on the device")));
        }
        if !self.accelerator.traits.chunked {
            return Ok((shape, 1));
        }
        shape.groups = shape.groups.min(TABLE_BYTES / bytes.max(1));
        Ok((shape, shape.groups))
    }

    /// Notes the text of each kernel and how it is launched.
    fn describe(&mut self, shape: Shape, what: &str) {
        let Shape { groups, items } = shape;
        let texts = self.kernels.values().map(|(kernel, _)| {
            format!("// {groups} groups of {items} work-items for each part; {what}\n{}", &kernel.text[kernel.body..])
        });
        self.metrics.texts = texts.collect();
    }

    /// Launches a kernel over one part; false if statistics show that it has no row to keep.
    fn launch(&mut self, part: usize, which: usize, shape: Shape, outputs: &Outputs) -> Result<bool> {
        let (kernel, entries) = &self.kernels[&layout_of(self.job, part)];
        let part: &Part = &self.job.table().parts[part];
        let mut held: HashMap<usize, Held> = HashMap::new();
        for binding in &kernel.bindings {
            if let Binding::Column(column) = binding {
                let (device, queue) = (self.accelerator.device.as_ref(), self.queue.as_mut());
                let place = self.accelerator.columns.hold(&part.columns[*column], device, queue, &mut self.metrics)?;
                held.insert(*column, place);
            }
        }
        let Some(arguments) = arguments(kernel, &self.fused, part, &held, &self.shared, outputs)? else {
            return Ok(false);
        };
        self.metrics.launches += 1;
        self.events.push(self.queue.launch(&entries[which], &arguments, shape, &[])?);
        Ok(true)
    }
}

/// Binds a kernel's arguments for one part; `None` if no code of it can be within some range.
fn arguments<'a>(
    kernel: &Kernel,
    fused: &Fused,
    part: &Part,
    held: &'a HashMap<usize, Held>,
    shared: &'a Shared,
    outputs: &'a Outputs,
) -> Result<Option<Vec<Argument<'a>>>> {
    let of = |column: usize| base(&part.columns[column]);
    let missing = || Error::internal("a kernel's argument has no value");
    // What a kernel of several does not write is not there yet.
    let written = |memory: Option<&'a Memory>| memory.map_or(Argument::Null, Argument::Memory);
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
                let Way::Column { column, min } = fused.lookups[*lookup].way else { return Err(missing()) };
                Argument::I64(of(column).wrapping_sub(min))
            }
            Binding::Payload { lookup, payload } => {
                Argument::Memory(&shared.lookups[*lookup].payloads[*payload].as_ref().ok_or_else(missing)?.0.values)
            }
            Binding::PayloadValidity { lookup, payload } => {
                let (held, _) = shared.lookups[*lookup].payloads[*payload].as_ref().ok_or_else(missing)?;
                Argument::Memory(held.validity.as_ref().ok_or_else(missing)?)
            }
            Binding::PayloadBase { lookup, payload } => {
                Argument::I64(shared.lookups[*lookup].payloads[*payload].as_ref().ok_or_else(missing)?.1)
            }
            Binding::KeyBits(lookup) => Argument::Memory(shared.lookups[*lookup].bits.as_ref().ok_or_else(missing)?),
            Binding::Starts(lookup) => Argument::Memory(shared.lookups[*lookup].starts.as_ref().ok_or_else(missing)?),
            Binding::PackedKeys(lookup) => Argument::Memory(shared.lookups[*lookup].keys.as_ref().ok_or_else(missing)?),
            Binding::Matched(lookup) => Argument::Memory(shared.lookups[*lookup].matched.as_ref().ok_or_else(missing)?),
            Binding::Constant(value) => Argument::I64(*value),
            Binding::Groups => written(outputs.groups.as_ref()),
            Binding::Counts => written(outputs.counts.as_ref()),
            Binding::Values(column) => written(outputs.values.get(*column)),
            Binding::Nulls(column) => written(outputs.nulls.get(*column).and_then(Option::as_ref)),
            Binding::Failed => Argument::Memory(&shared.failed),
        });
    }
    Ok(Some(arguments))
}

fn kernel_time(events: &[Event]) -> Duration {
    let times = events.iter().filter_map(Event::times);
    Duration::from_nanos(times.map(|times| times.ended.saturating_sub(times.started)).sum())
}

/// Puts what all parts share on the device.
fn prepare(
    accelerator: &Accelerator,
    job: &Job,
    fused: &Fused,
    kernel: &Kernel,
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
    let mut lookups = Vec::with_capacity(fused.lookups.len());
    for lookup in 0..fused.lookups.len() {
        let build = job.build_of(lookup).ok_or_else(|| Error::internal("a lookup has no build"))?;
        let mut placed = Placed::default();
        for (payload, column) in build.columns().iter().enumerate() {
            let used = kernel.bindings.contains(&Binding::Payload { lookup, payload });
            let held = if used { Some((place(column, device, queue, metrics)?, base(column))) } else { None };
            placed.payloads.push(held);
        }
        for binding in &kernel.bindings {
            match binding {
                Binding::KeyBits(at) if *at == lookup => {
                    let bits: Buffer<u32> = build.key_bits().into();
                    placed.bits = Some(place_bytes(bits.bytes(), device, queue, metrics)?);
                }
                Binding::Starts(at) if *at == lookup => {
                    let starts: Buffer<u32> = build.starts().iter().copied().collect();
                    placed.starts = Some(place_bytes(starts.bytes(), device, queue, metrics)?);
                }
                Binding::PackedKeys(at) if *at == lookup => {
                    let keys: Buffer<u64> = build.packed_keys().iter().copied().collect();
                    placed.keys = Some(place_bytes(keys.bytes(), device, queue, metrics)?);
                }
                Binding::Matched(at) if *at == lookup => {
                    let matched = device.allocate(build.entries())?;
                    queue.fill(&matched, 0, build.entries(), 0, &[])?;
                    placed.matched = Some(matched);
                }
                _ => {}
            }
        }
        lookups.push(placed);
    }
    let failed = device.allocate(4)?;
    queue.fill(&failed, 0, 4, 0, &[])?;
    Ok(Shared { sets, lookups, failed })
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
