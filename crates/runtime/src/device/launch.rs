//! One job on one device: data in place, a launch for each part, what comes out read back.

use std::collections::{HashMap, hash_map::Entry};
use std::mem;
use std::sync::Arc;

use tandem_codegen::{
    AccumulatorWords, Binding, ColumnLayout, GeneratedKernel, KernelOutput, KernelSink, SECTOR, Traits,
};
use tandem_column::{Buffer, Column, Data, Error, Part, Repr, Result};
use tandem_cpu::{Contribution, Job};
use tandem_device::{Event, Kernel, Memory, Program, Queue, Shape};
use tandem_plan::{Body, SinkPlan, sink::BuildPlan};

use super::{
    Accelerator, DeviceMetrics, DeviceSink, Traffic, Transfer,
    bind::{Outputs, SharedArguments, arguments},
    data::HeldColumn,
    share::Share,
    streams::{self, excludes},
    times,
    unmatched::{Piece, Unmatched},
    values::Origins,
};

/// Work-items for each unit of a device that deals runs of rows out: enough to even out what units get.
const ITEMS_PER_UNIT: usize = 8;
/// Launches that run at once on a device that deals runs of rows out: while the last work-items of one still run, units that
/// are done begin with the other. Two took a tenth off SSB's time on PoCL; three and four were no better.
const LANES: usize = 2;
/// Groups of work-items for each unit of a device on which they take rows in turn.
const GROUPS_PER_UNIT: usize = 8;

/// Reads bytes of memories of a device, each from a place on.
pub(super) type ReadBack<'r> = &'r mut dyn FnMut(&[(&Memory, usize, usize)]) -> Result<Vec<Vec<u8>>>;

/// One job on its way over one device.
pub(super) struct DeviceRun<'r> {
    pub(super) accelerator: &'r Arc<Accelerator>,
    pub(super) job: &'r Job,
    pub(super) sink: &'r KernelSink,
    pub(super) goal: Goal,
    pub(super) parts: Vec<usize>,
    /// These are all parts of the job: what is sorted or laid out here needs no merging.
    pub(super) whole: bool,
    /// The joins whose build rows come out here, after the last part.
    pub(super) unmatched: Vec<Unmatched>,
    /// The kernels of each layout that parts have and of build rows, and which of them are a piece's.
    pub(super) kernels: Vec<Arc<(GeneratedKernel, Kernel)>>,
    pub(super) kernel_of: HashMap<Piece, usize>,
    pub(super) shared: SharedArguments,
    pub(super) outputs: Outputs,
    /// The queue of kernels, but for those of lanes, and of all that is in order with them.
    pub(super) queue: Queue,
    /// More queues of kernels, and the commands of others that the next one of each waits for: see [`DeviceRun::launch_each`].
    pub(super) lanes: Vec<(Queue, Vec<Event>)>,
    /// Queues that only copy.
    pub(super) streams: Vec<Queue>,
    /// Kernels.
    pub(super) events: Vec<Event>,
    /// Copies, there and back.
    pub(super) copies: Vec<Event>,
    /// Copies of any queue that the next kernel waits for.
    after: Vec<Event>,
    pub(super) metrics: DeviceMetrics,
    pub(super) operators: HashMap<&'static str, Kernel>,
    /// The programs of [`DeviceMetrics::programs`], by their texts.
    pub(super) programs: Vec<(String, Program)>,
    /// Kernels that are to be launched for the first time, and which of these they are of.
    pub(super) not_launched: Vec<(Kernel, usize)>,
    /// How many of a column's bytes launches have read, of how many, where that is counted.
    reads: Vec<(Arc<Column>, usize, usize)>,
}

/// What a pass over the rows is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// What the pipeline's sink holds, but for what other passes compute.
    Sink,
    /// The distinct values of aggregates: which of [`AggregatePlan::distinct`].
    Distinct(usize),
    /// What is picked from values in order: which of the aggregates.
    Values(usize),
}

/// Computes a share of a job: the first pass, and those that its aggregates need besides.
pub(super) fn run(
    accelerator: &Arc<Accelerator>,
    job: &Job,
    sink: &DeviceSink,
    share: Share,
) -> Result<(Contribution, DeviceMetrics)> {
    let mut into = job.contribution();
    let (mut metrics, accumulators) = pass(accelerator, job, (&sink.first, Goal::Sink), &share, &mut into)?;
    let distinct = sink.distinct.iter().enumerate().map(|(at, sink)| (sink, Goal::Distinct(at)));
    let left = |at: &usize| accumulators.get(*at) == Some(&AccumulatorWords::Elsewhere);
    let values = sink.values.iter().filter(|(at, _)| left(at)).map(|(at, sink)| (sink, Goal::Values(*at)));
    for goal in distinct.chain(values) {
        let (mut more, _) = pass(accelerator, job, goal, &share, &mut into)?;
        // It is named already.
        more.names.clear();
        metrics.add(more);
    }
    Ok((into, metrics))
}

/// Takes a share of the rows through kernels once; says what was done, and what groups hold.
fn pass(
    accelerator: &Arc<Accelerator>,
    job: &Job,
    (sink, goal): (&KernelSink, Goal),
    share: &Share,
    into: &mut Contribution,
) -> Result<(DeviceMetrics, Vec<AccumulatorWords>)> {
    // Where parts are shared, which build rows have met no row is known when all parts are done.
    let (parts, last) = match share {
        Share::Whole => (job.physical().parts(), true),
        Share::Parts(parts) => (parts.clone(), false),
        Share::Unmatched => (Vec::new(), true),
    };
    let mut run = DeviceRun {
        accelerator,
        job,
        sink,
        goal,
        whole: *share == Share::Whole,
        parts,
        unmatched: Vec::new(),
        kernels: Vec::new(),
        kernel_of: HashMap::new(),
        shared: SharedArguments::default(),
        outputs: Outputs::default(),
        queue: streams::queue(accelerator, &job.settings().cancel)?,
        lanes: Vec::new(),
        streams: Vec::new(),
        events: Vec::new(),
        copies: Vec::new(),
        after: Vec::new(),
        metrics: DeviceMetrics { names: vec![accelerator.label()], ..DeviceMetrics::default() },
        operators: HashMap::new(),
        programs: Vec::new(),
        not_launched: Vec::new(),
        reads: Vec::new(),
    };
    into.unmatched = last;
    if last {
        run.unmatched = run.find_unmatched();
    }
    if run.pieces().is_empty() {
        return Ok((run.metrics, Vec::new()));
    }
    run.compile()?;
    run.compile_unmatched()?;
    run.prepare()?;
    let output = run.kernels[0].0.output.clone();
    match (&output, goal, &job.physical().sink) {
        (KernelOutput::Groups { .. }, ..) => run.groups(&output, into)?,
        (_, Goal::Values(aggregate), SinkPlan::Aggregate(plan)) => run.values(plan, aggregate, into)?,
        (_, _, SinkPlan::Partition(plan)) => run.partition(plan.parts, into)?,
        (_, _, SinkPlan::Build(plan)) if run.whole && is_laid_out_here(plan) => run.build(into, plan)?,
        (_, _, SinkPlan::Window(plan)) if run.whole => run.window(into, plan)?,
        _ => run.rows(into)?,
    }
    run.end(last)?;
    Ok((run.metrics, output.accumulators().to_vec()))
}

impl DeviceRun<'_> {
    /// Generates and compiles the kernels: parts of one layout share theirs, and what comes out is the same for all.
    fn compile(&mut self) -> Result<()> {
        let mut known: HashMap<Vec<Option<ColumnLayout>>, usize> = HashMap::new();
        for part in self.parts.clone() {
            let layout: Vec<Result<ColumnLayout>> =
                self.job.table().parts[part].columns.iter().map(|column| ColumnLayout::of(column)).collect();
            let at = match known.entry(layout.iter().map(|layout| layout.as_ref().ok().copied()).collect()) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let kernel = self.accelerator.generate(self.job.physical(), self.sink, &layout, None)?;
                    *entry.insert(self.add_kernel(kernel)?)
                }
            };
            self.kernel_of.insert(Piece::Part(part), at);
        }
        Ok(())
    }

    /// Waits for what is under way, and counts it; nothing is left to do but for what comes after the `last` row.
    fn end(&mut self, last: bool) -> Result<()> {
        // What is kept for later pipelines is there for every queue, and whatever failed has failed here.
        self.queue.finish()?;
        self.check_failed()?;
        if !last {
            self.matched()?;
        }
        let (kernels, copies) = (times::spans(&self.events), times::spans(&self.copies));
        self.metrics.kernels = times::sum(&kernels);
        self.metrics.copies = times::sum(&copies);
        self.metrics.overlapped = times::overlap(&kernels, &copies);
        self.save_later();
        let accelerator = self.accelerator;
        for (column, read, bytes) in self.reads.iter().filter(|_| accelerator.settings.transfer == Transfer::Auto) {
            accelerator.columns.note(column, *read, *bytes);
        }
        Ok(())
    }

    /// Compiles a kernel and returns where it is.
    pub(super) fn add_kernel(&mut self, kernel: GeneratedKernel) -> Result<usize> {
        let compiled = self.entry(&kernel.text, kernel.name)?;
        self.kernels.push(Arc::new((kernel, compiled)));
        Ok(self.kernels.len() - 1)
    }

    /// Returns the kernel of a piece.
    pub(super) fn kernel(&self, piece: Piece) -> &Arc<(GeneratedKernel, Kernel)> {
        &self.kernels[self.kernel_of[&piece]]
    }

    /// Returns what happens to each row.
    pub(super) fn body(&self) -> &Body {
        &self.job.physical().body
    }

    /// Returns where values of slots are.
    pub(super) fn origins(&self) -> Origins<'_> {
        Origins { physical: self.job.physical(), table: self.job.table() }
    }

    /// Fails if some row has no value.
    fn check_failed(&mut self) -> Result<()> {
        let Some(failed) = self.shared.failed.clone() else { return Ok(()) };
        let mut flag = [0; 4];
        self.read(&failed, 0, &mut flag)?;
        match flag {
            [0, 0, 0, 0] => Ok(()),
            _ => Err(Error::unsupported("a row has no value: the CPU finds which")),
        }
    }

    /// Notes in the job which build rows met a row.
    fn matched(&mut self) -> Result<()> {
        for lookup in 0..self.shared.lookups.len() {
            let Some(matched) = self.shared.lookups[lookup].matched.clone() else { continue };
            let mut flags = vec![0; matched.len()];
            self.read(&matched, 0, &mut flags)?;
            self.job.mark(lookup, &flags);
        }
        Ok(())
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<Memory> {
        self.accelerator.device.allocate(bytes)
    }

    /// Copies bytes back and waits for them.
    pub(super) fn read(&mut self, memory: &Memory, at: usize, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(&self.read_bytes(memory, at, bytes.len())?);
        Ok(())
    }

    fn read_bytes(&mut self, memory: &Memory, at: usize, count: usize) -> Result<Vec<u8>> {
        Ok(self.read_each(&[(memory, at, count)])?.pop().unwrap_or_default())
    }

    /// Copies bytes of several memories back, each from a place on, and waits once, for all of them.
    pub(super) fn read_each(&mut self, from: &[(&Memory, usize, usize)]) -> Result<Vec<Vec<u8>>> {
        let read = self.queue.read_each(from, &[])?.into_iter().map(|(bytes, event)| {
            self.copies.push(event);
            self.metrics.bytes_back += bytes.len() as u64;
            bytes
        });
        Ok(read.collect())
    }

    pub(super) fn read_numbers(&mut self, memory: &Memory, count: usize) -> Result<Vec<i64>> {
        Ok(numbers(&self.read_bytes(memory, 0, count * 8)?))
    }

    pub(super) fn read_places(&mut self, memory: &Memory, count: usize) -> Result<Vec<u32>> {
        Ok(places(&self.read_bytes(memory, 0, count * 4)?))
    }

    /// Chooses how many work-items run.
    pub(super) fn shape(&self) -> Shape {
        let info = self.accelerator.device.info();
        match self.accelerator.traits.chunked {
            true => Shape { groups: info.units * ITEMS_PER_UNIT, items: 1 },
            false => Shape { groups: info.units * GROUPS_PER_UNIT, items: info.group_items.min(256) },
        }
    }

    /// Notes the text of each kernel and how it is launched.
    pub(super) fn describe(&mut self, shape: Shape, what: &str) {
        let Shape { groups, items } = shape;
        let texts = self.kernels.iter().map(|kernel| {
            let kernel = &kernel.0;
            format!("// {groups} groups of {items} work-items for each part; {what}\n{}", &kernel.text[kernel.body..])
        });
        self.metrics.texts = texts.collect();
    }

    /// Chooses how many launches run at once. Where each work-item takes a run of rows, the last ones of a launch would
    /// leave units without work until the next begins.
    pub(super) fn lanes(&self) -> usize {
        let Traits { chunked, traced, .. } = self.accelerator.traits;
        // Build rows come out when all other rows are done, and what is read is counted launch by launch.
        let several = chunked && !traced && self.unmatched.is_empty();
        if several { LANES.min(self.parts.len()).max(1) } else { 1 }
    }

    /// Launches a kernel over pieces, several at once: those of one lane run in order, and all are over in the end.
    /// `prepare` is told the number of each piece and its lane, and says where its launch writes.
    pub(super) fn launch_each(
        &mut self,
        pieces: &[Piece],
        (shape, lanes): (Shape, usize),
        prepare: impl Fn(&mut Outputs, usize, usize) -> Result<()>,
    ) -> Result<()> {
        while self.lanes.len() + 1 < lanes {
            self.lanes.push((streams::queue(self.accelerator, &self.job.settings().cancel)?, Vec::new()));
        }
        for (_, after) in &mut self.lanes {
            after.clone_from(&self.after);
            after.extend(self.queue.last().cloned());
        }
        for (at, piece) in pieces.iter().enumerate() {
            self.job.settings().cancel.check()?;
            let lane = at % lanes;
            prepare(&mut self.outputs, at, lane)?;
            self.launch(*piece, shape, lane)?;
        }
        let ended = self.lanes.iter_mut().try_for_each(|(queue, _)| queue.finish());
        // A lane that waited for what failed on the main queue does not know why.
        ended.or_else(|error| self.queue.finish().and(Err(error)))
    }

    /// Launches a kernel over one piece, unless statistics show that it has no row to keep.
    fn launch(&mut self, piece: Piece, shape: Shape, lane: usize) -> Result<()> {
        let kernel = self.kernel(piece).clone();
        let (kernel, compiled) = &*kernel;
        let job = self.job;
        let parts = &job.table().parts;
        // Build rows are of no part, and behind all.
        let (before, part) = match piece {
            Piece::Part(part) => (&parts[..part], parts[part].clone()),
            Piece::Unmatched(_) => (&parts[..], Arc::new(Part { rows: self.rows_of(piece), columns: Vec::new() })),
        };
        // Only kernels of smaller tables read it.
        self.outputs.first_row = before.iter().map(|part| part.rows).sum::<usize>() as u32;
        let part: &Part = &part;
        if excludes(kernel, self.body(), part) {
            return Ok(());
        }
        let held = match piece {
            Piece::Part(part) => self.hold(part)?,
            Piece::Unmatched(_) => HashMap::new(),
        };
        for binding in &kernel.bindings {
            if let Binding::Touched(column) = binding {
                let sectors = values_bytes(&part.columns[*column]).div_ceil(SECTOR).max(1);
                let flags = self.filled(sectors, 0)?;
                self.outputs.touched.insert(*column, flags);
            }
        }
        let first = self.before_first(compiled)?;
        let arguments = arguments(kernel, &job.physical().body, part, &held, &self.shared, &self.outputs)?;
        let (queue, after) = match lane {
            0 => (&mut self.queue, &mut self.after),
            lane => {
                let (queue, after) = &mut self.lanes[lane - 1];
                (queue, after)
            }
        };
        let mut after = mem::take(after);
        after.extend(held.values().flat_map(|held| &held.ready).cloned());
        let event = queue.launch(compiled, &arguments, shape, &after)?;
        self.launched(event, first)?;
        if let Piece::Part(part) = piece {
            self.look_ahead(part)?;
        }
        self.trace(part, &held)
    }

    /// Counts what a launch touched of each column.
    fn trace(&mut self, part: &Part, held: &HashMap<usize, HeldColumn>) -> Result<()> {
        if !self.accelerator.traits.traced {
            return Ok(());
        }
        let mut columns: Vec<usize> = held.keys().copied().collect();
        columns.sort_unstable();
        for column in columns {
            let bytes = values_bytes(&part.columns[column]);
            // What is not noted, such as text, counts as read.
            let read = match self.outputs.touched.remove(&column) {
                Some(flags) => {
                    let mut sectors = vec![0; flags.len()];
                    self.queue.read(&flags, 0, &mut sectors, &[])?;
                    sectors.iter().filter(|flag| **flag != 0).count() * SECTOR
                }
                None => bytes,
            };
            let name = &self.job.physical().body.slots[column].name;
            let passive = held.get(&column).is_some_and(|held| held.values.is_shared());
            let known = self.metrics.traffic.iter().position(|traffic| traffic.column == *name);
            let at = known.unwrap_or_else(|| {
                self.metrics.traffic.push(Traffic { column: name.clone(), bytes: 0, touched: 0, passive });
                self.metrics.traffic.len() - 1
            });
            let traffic = &mut self.metrics.traffic[at];
            traffic.bytes += bytes as u64;
            traffic.touched += read.min(bytes) as u64;
            self.reads.push((part.columns[column].clone(), read, bytes));
        }
        Ok(())
    }

    /// Allocates memory whose bytes are all the same.
    pub(super) fn filled(&mut self, bytes: usize, byte: u8) -> Result<Memory> {
        let memory = self.allocate(bytes)?;
        self.queue.fill(&memory, 0, bytes, byte, &[])?;
        Ok(memory)
    }

    pub(super) fn place(&mut self, column: &Arc<Column>) -> Result<HeldColumn> {
        let accelerator = self.accelerator;
        let held = accelerator.columns.hold(column, false, &mut self.mover(0)?)?;
        self.after.extend(held.ready.iter().cloned());
        Ok(held)
    }

    pub(super) fn place_bytes(&mut self, bytes: Buffer<u8>) -> Result<Memory> {
        self.mover(0)?.place_bytes(bytes, false)
    }
}

/// Reads 64-bit numbers.
pub(super) fn numbers(bytes: &[u8]) -> Vec<i64> {
    bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number)).collect()
}

/// Reads 32-bit numbers.
pub(super) fn places(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)).collect()
}

/// Returns the bytes of a column's values, wherever they are.
fn values_bytes(column: &Column) -> usize {
    match &column.data {
        Data::Bytes { bytes, .. } => bytes.len(),
        _ => column.rows * column.width(),
    }
}

/// Tells whether a device may lay out a build: its keys are integers, or it has none and nothing is searched in it.
fn is_laid_out_here(plan: &BuildPlan) -> bool {
    let integers = plan.kinds[..plan.keys.len()].iter().all(|kind| matches!(kind.repr(), Repr::Int | Repr::Boolean));
    let searched = plan.keys.is_empty() && plan.order.is_some();
    integers && !searched && !plan.used.collide
}
