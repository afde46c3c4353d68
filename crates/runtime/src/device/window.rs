//! Window functions on a device: rows computed and sorted by partition and order, the starts of partitions and peers marked and
//! summed up, and all functions of a row computed by one kernel (`codegen/src/window.rs`).
//!
//! All rows of the job are here: where several devices share them, the CPU computes the functions of what they give back. What does
//! not fit the device's memory is the CPU's, too: an allocation fails, with the reason.

use tandem_codegen::{Binding, GeneratedKernel, KernelOutput, RowColumn, WindowBinding, WindowInput, WindowKernels};
use tandem_column::{Error, Result};
use tandem_cpu::Contribution;
use tandem_device::{Argument, Memory};
use tandem_pipeline::{Window, WindowFunction};
use tandem_plan::sink::WindowPlan;

use super::{
    bind::Outputs,
    launch::DeviceRun,
    operators::small,
    rows::{DeviceRows, width},
};

/// Partitions, or groups of peers: see `prelude/windows.h`.
struct Segments {
    /// The segment of each row, behind its place.
    numbers: Memory,
    /// The first row of each, and the end of the last.
    starts: Memory,
}

/// Rows in order, with all that functions read.
pub(super) struct Sorted {
    pub(super) rows: usize,
    /// The rows that come out, if not all do.
    listed: Option<Memory>,
    partitions: Option<Segments>,
    peers: Option<Segments>,
    /// Values and null flags of collected slots, of those that functions read.
    values: Vec<Option<Memory>>,
    nulls: Vec<Option<Memory>>,
    pub(super) running: Vec<Memory>,
    /// The rows that counts among them count.
    pub(super) counted: Vec<Option<Memory>>,
    failed: Memory,
}

impl DeviceRun<'_> {
    /// Computes the rows of all parts and their window functions, and adds what comes out to the contribution.
    pub(super) fn window(&mut self, into: &mut Contribution, plan: &WindowPlan) -> Result<()> {
        let (pieces, parts) = (self.pieces(), self.homes());
        if !self.origins().shares_dictionaries(&parts) {
            return Err(Error::unsupported("parts with other dictionaries are put together by the CPU"));
        }
        // What cannot be done is found before anything is.
        let kernels = self.window_kernels(plan, &self.columns_of(&pieces)?.0)?;
        self.describe(self.shape(), "rows counted, places summed up, rows written; then put in order");
        let texts = kernels.contributions.iter().chain([&kernels.functions]);
        self.metrics.texts.extend(texts.map(|kernel| kernel.text[kernel.body..].to_owned()));
        let collected = self.compute(&pieces)?;
        // Nothing else holds the memory of what is replaced by its order.
        self.outputs = Outputs::default();
        let reached = collected.count;
        if reached == 0 {
            return Ok(());
        }
        let rows = self.window_rows(plan, &kernels, collected)?;
        let beyond = reached - rows.count;
        if rows.count == 0 {
            into.contents.rows()?.sorted = true;
        } else if !self.keep_sorted(into, &rows)? {
            self.bring(into, &parts, rows, true)?;
        }
        // The sink took these in, too.
        into.rows += beyond as u64;
        Ok(())
    }

    fn window_kernels(&self, plan: &WindowPlan, columns: &[RowColumn]) -> Result<WindowKernels> {
        let own = |column: &RowColumn| if let RowColumn::Same(earlier) = column { columns[*earlier] } else { *column };
        let columns: Vec<RowColumn> = columns.iter().map(own).collect();
        let (traits, target) = (self.accelerator.traits, self.accelerator.target());
        tandem_codegen::windows(WindowInput { plan, body: self.body(), columns: &columns, traits, target })
    }

    /// Makes the rows that come out of those that were collected.
    fn window_rows(
        &mut self,
        plan: &WindowPlan,
        kernels: &WindowKernels,
        mut collected: DeviceRows,
    ) -> Result<DeviceRows> {
        let order = self.sort(&collected.ordinals, collected.count)?;
        let by_rank = matches!(plan.functions.first(), Some(Window { function: WindowFunction::Rank, .. }));
        let (partitions, peers) = self.find_segments(plan, by_rank, kernels, &collected, &order)?;
        collected.ordinals.clear();
        let mut sorted = Sorted {
            rows: collected.count,
            listed: None,
            partitions,
            peers,
            values: Vec::new(),
            nulls: Vec::new(),
            running: Vec::new(),
            counted: Vec::new(),
            failed: self.filled(4, 0)?,
        };
        let count = match plan.fetch {
            Some(fetch) => self.list_first(fetch, by_rank, &mut sorted)?,
            None => sorted.rows,
        };
        for slot in &plan.collected {
            let read = plan.read.contains(slot);
            let (values, nulls) = match read {
                true => self.in_order(&collected, plan.position(*slot), &order, sorted.rows)?,
                false => (None, None),
            };
            sorted.values.push(values);
            sorted.nulls.push(nulls);
        }
        let KernelOutput::Rows { columns: computed, .. } = &kernels.functions.output else {
            return Err(Error::internal("window functions give rows"));
        };
        let (values, nulls) = self.allocate_columns(computed, count)?;
        let mut functions = DeviceRows { count, values, nulls, ..DeviceRows::of(computed.clone()) };
        if count > 0 {
            self.run_up(kernels, &mut sorted)?;
            self.launch_window(&kernels.functions, count, &sorted, &functions)?;
        }
        self.check_window(&sorted)?;
        let Sorted { rows, listed, values, nulls, .. } = sorted;
        let order = match &listed {
            Some(listed) => self.gather(&order, listed, count, 4)?,
            None => order,
        };
        let mut out = DeviceRows { count, ..DeviceRows::of(Vec::new()) };
        for slot in &plan.output {
            let at = plan.position(*slot);
            let known = values[at].is_some() && count == rows && listed.is_none();
            let (values, nulls) = match known {
                true => (values[at].clone(), nulls[at].clone()),
                false => self.in_order(&collected, at, &order, count)?,
            };
            out.columns.push(collected.columns[own(&collected, at)]);
            out.values.push(values);
            out.nulls.push(nulls);
        }
        out.columns.append(&mut functions.columns);
        out.values.append(&mut functions.values);
        out.nulls.append(&mut functions.nulls);
        Ok(out)
    }

    /// Returns the first rows of a collected column by an order, and its null flags.
    fn in_order(
        &mut self,
        collected: &DeviceRows,
        at: usize,
        order: &Memory,
        rows: usize,
    ) -> Result<(Option<Memory>, Option<Memory>)> {
        let at = own(collected, at);
        let values = collected.values[at].as_ref().ok_or_else(|| Error::internal("a column was not computed"))?;
        let values = self.gather(values, order, rows, width(collected.columns[at]))?;
        let nulls = match &collected.nulls[at] {
            Some(nulls) => Some(self.gather(nulls, order, rows, 1)?),
            None => None,
        };
        Ok((Some(values), nulls))
    }

    /// Finds the partitions and groups of peers that kernels, or the rows that come out, depend on.
    fn find_segments(
        &mut self,
        plan: &WindowPlan,
        by_rank: bool,
        kernels: &WindowKernels,
        collected: &DeviceRows,
        order: &Memory,
    ) -> Result<(Option<Segments>, Option<Segments>)> {
        let rows = collected.count;
        let reads = |of: WindowBinding| kernels.functions.bindings.contains(&Binding::Window(of));
        let fetches = plan.fetch.is_some();
        let partitions = !plan.partition.is_empty() && (fetches || reads(WindowBinding::Partitions));
        let peers = fetches && by_rank || reads(WindowBinding::Peers);
        let mut marks = |wanted: bool| wanted.then(|| self.filled((rows + 1) * 4, 0)).transpose();
        let (partitions, peers) = (marks(partitions)?, marks(peers)?);
        let partition_keys = plan.keys().1;
        for (key, ordinals) in collected.keys.iter().zip(&collected.ordinals) {
            let partitions = partitions.as_ref().filter(|_| *key < partition_keys);
            if partitions.is_none() && peers.is_none() {
                continue;
            }
            let arguments = [
                Argument::Memory(ordinals),
                Argument::Memory(order),
                Argument::U32(small(rows)?),
                partitions.map_or(Argument::Null, Argument::Memory),
                peers.as_ref().map_or(Argument::Null, Argument::Memory),
            ];
            self.operate("mark_differences", &arguments, self.shape())?;
        }
        let partitions = partitions.map(|marks| self.number_segments(marks, rows)).transpose()?;
        let peers = peers.map(|marks| self.number_segments(marks, rows)).transpose()?;
        Ok((partitions, peers))
    }

    /// Makes segments of marks.
    fn number_segments(&mut self, numbers: Memory, rows: usize) -> Result<Segments> {
        let last = self.scan(&numbers, rows + 1)?;
        let starts = self.allocate((last + 2) * 4)?;
        let arguments = [Argument::Memory(&numbers), Argument::U32(small(rows)?), Argument::Memory(&starts)];
        self.operate("list_starts", &arguments, self.shape())?;
        Ok(Segments { numbers, starts })
    }

    /// Lists the first rows of each partition; returns how many there are.
    fn list_first(&mut self, fetch: usize, by_rank: bool, sorted: &mut Sorted) -> Result<usize> {
        let counts = self.allocate((sorted.rows + 1) * 4)?;
        let [numbers, starts] = of_segments(sorted.partitions.as_ref());
        let [peers, peer_starts] = of_segments(sorted.peers.as_ref().filter(|_| by_rank));
        // There are fewer rows than 32 bits count.
        let fetch = Argument::U32(u32::try_from(fetch).unwrap_or(u32::MAX));
        let rows = Argument::U32(small(sorted.rows)?);
        let arguments = [numbers, starts, peers, peer_starts, rows, fetch, Argument::Memory(&counts)];
        self.operate("count_first", &arguments, self.shape())?;
        let (count, list) = self.list_counted(&counts, sorted.rows)?;
        sorted.listed = Some(list);
        Ok(count)
    }

    /// Launches a kernel over rows.
    pub(super) fn launch_window(
        &mut self,
        kernel: &GeneratedKernel,
        rows: usize,
        sorted: &Sorted,
        functions: &DeviceRows,
    ) -> Result<()> {
        let compiled = self.entry(&kernel.text, kernel.name)?;
        let rows = small(rows)?;
        let arguments = kernel.bindings.iter().map(|binding| sorted.argument(binding, rows, functions));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let first = self.before_first(&compiled)?;
        let event = self.queue.launch(&compiled, &arguments, self.shape(), &[])?;
        self.launched(event, first)
    }

    /// Fails if some row has no value.
    fn check_window(&mut self, sorted: &Sorted) -> Result<()> {
        match self.read_places(&sorted.failed, 1)?.as_slice() {
            [0] => Ok(()),
            _ => Err(Error::unsupported("a sum over a window leaves its type: the CPU finds which")),
        }
    }
}

impl Sorted {
    /// Binds an argument of a kernel over some rows, which may write the values of functions.
    fn argument<'a>(&'a self, binding: &Binding, rows: u32, functions: &'a DeviceRows) -> Result<Argument<'a>> {
        let memory = match binding {
            Binding::Rows => return Ok(Argument::U32(rows)),
            Binding::Constant(value) => return Ok(Argument::I64(*value)),
            Binding::Window(WindowBinding::AllRows) => return Ok(Argument::U32(small(self.rows)?)),
            Binding::Failed => Some(&self.failed),
            Binding::Values(at) => functions.values[*at].as_ref(),
            Binding::Nulls(at) => functions.nulls[*at].as_ref(),
            Binding::Window(WindowBinding::Listed) => self.listed.as_ref(),
            Binding::Window(WindowBinding::Partitions) => self.partitions.as_ref().map(|of| &of.numbers),
            Binding::Window(WindowBinding::PartitionStarts) => self.partitions.as_ref().map(|of| &of.starts),
            Binding::Window(WindowBinding::Peers) => self.peers.as_ref().map(|of| &of.numbers),
            Binding::Window(WindowBinding::PeerStarts) => self.peers.as_ref().map(|of| &of.starts),
            Binding::Window(WindowBinding::Column(at)) => self.values[*at].as_ref(),
            Binding::Window(WindowBinding::ColumnNulls(at)) => self.nulls[*at].as_ref(),
            Binding::Window(WindowBinding::Running(at)) => self.running.get(*at),
            Binding::Window(WindowBinding::Counted(at)) => self.counted.get(*at).and_then(Option::as_ref),
            _ => None,
        };
        memory.map(Argument::Memory).ok_or_else(|| Error::internal("a kernel's argument has no value"))
    }
}

/// Binds segments, if there are some.
fn of_segments(segments: Option<&Segments>) -> [Argument<'_>; 2] {
    segments.map_or([Argument::Null; 2], |of| [Argument::Memory(&of.numbers), Argument::Memory(&of.starts)])
}

/// Returns the column that has a collected column's values.
fn own(collected: &DeviceRows, at: usize) -> usize {
    if let RowColumn::Same(earlier) = collected.columns[at] { earlier } else { at }
}
