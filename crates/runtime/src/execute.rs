//! A query's way: each pipeline in turn, over the rows that its source names, into what later pipelines use.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use tandem_column::{Class, Error, Field, Result, Table};
use tandem_cpu::{Contents, Contribution, Job, PipelineOutput, Reservation, Settings, VectorSelector, Worker};
use tandem_pipeline::{Pipeline, PipelineId, Query, Sink, Slot, Source, Swapped};
use tandem_plan::{Build, Outline, Planning, SinkPlan};

use crate::{
    Accelerator, DeviceMetrics, PipelineMetrics, QueryMetrics, RowProgress, Runtime,
    device::{DeviceSink, device_sink, share},
};

/// The rows that a query's sources name.
#[derive(Clone, Debug, Default)]
pub struct QueryInputs {
    /// Tables by the name that [`Source::Table`] gives.
    pub tables: HashMap<String, Arc<Table>>,
    /// Blocks by the name that [`Source::Block`] gives.
    pub blocks: HashMap<String, Arc<Table>>,
}

/// How a query runs, and where.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// What it may use, wherever it runs.
    pub settings: Settings,
    /// Counts the rows done.
    pub progress: Arc<RowProgress>,
    /// The devices that share a pipeline's parts, where they can run it; all others run on the CPU.
    pub devices: Vec<Arc<Accelerator>>,
}

/// A query's result.
#[derive(Debug)]
pub struct Execution {
    /// The rows of the last pipeline.
    pub table: Table,
    /// How many rows each partition has, one after the other in `table`, if the last sink divides rows; none otherwise.
    pub partitions: Vec<usize>,
    /// What each pipeline did.
    pub metrics: QueryMetrics,
    /// The memory that the rows count for, as long as this lives.
    _held: Option<Reservation>,
}

/// Rows that a pipeline left.
#[derive(Clone)]
struct Left {
    table: Arc<Table>,
    /// The rows of each partition, if the sink divided them.
    partitions: Vec<usize>,
    /// The device that keeps the values.
    on: Option<Arc<Accelerator>>,
}

/// A query on its way: what its pipelines have left so far.
struct Running<'q> {
    runtime: &'q Runtime,
    /// The query, with sides swapped where that was decided on the way.
    query: Cow<'q, Query>,
    inputs: &'q QueryInputs,
    options: &'q RunOptions,
    rows: HashMap<usize, Left>,
    builds: HashMap<usize, Arc<Build>>,
    /// The memory of each pipeline's rows or build.
    held: HashMap<usize, Reservation>,
    metrics: QueryMetrics,
    /// The pipelines that have not run, in the order in which they will.
    waiting: VecDeque<PipelineId>,
}

impl Runtime {
    /// Runs a verified query and waits for its result. Blocks the calling thread, which should not be a worker's.
    ///
    /// # Errors
    /// Input: what the query raises. Exhausted: its memory budget is used up. Cancelled. Unsupported: what this executor does
    /// not run.
    pub fn execute(&self, query: &Query, inputs: &QueryInputs, options: &RunOptions) -> Result<Execution> {
        tandem_cpu::supports(query)?;
        if let Some(Pipeline { sink: Sink::Build { .. }, .. }) = query.pipelines.last() {
            return Err(Error::unsupported("a query that ends with a build gives no rows: end it with another sink"));
        }
        let (rows, builds, held) = (HashMap::new(), HashMap::new(), HashMap::new());
        let metrics = QueryMetrics { pipelines: vec![PipelineMetrics::default(); query.pipelines.len()] };
        let waiting = (0..query.pipelines.len()).collect();
        let query_on_way = Cow::Borrowed(query);
        let mut way =
            Running { runtime: self, query: query_on_way, inputs, options, rows, builds, held, metrics, waiting };
        while let Some(id) = way.waiting.pop_front() {
            let (output, metrics) = way.run(id, &options.devices)?;
            way.metrics.pipelines[id] = metrics;
            way.leave(id, output)?;
        }
        let last = query.pipelines.len().wrapping_sub(1);
        let left = way.rows.remove(&last).ok_or_else(|| Error::internal("the last pipeline gives no rows"))?;
        let held = way.held.remove(&last);
        let Left { table, partitions, .. } = left;
        Ok(Execution { table: Arc::unwrap_or_clone(table), partitions, metrics: way.metrics, _held: held })
    }

    /// Says what planning a verified query decides about each pipeline whose source is given, without running anything: what
    /// depends on rows that are not there yet waits.
    ///
    /// # Errors
    /// Unsupported: what this executor does not run.
    pub fn outline(&self, query: &Query, inputs: &QueryInputs, options: &RunOptions) -> Result<Vec<Option<Outline>>> {
        let pipelines = query.pipelines.iter().enumerate().map(|(id, pipeline)| {
            let Some(table) = inputs.source(pipeline)? else { return Ok(None) };
            self.planning(query, inputs, options, &|_| None, |planning| {
                tandem_plan::outline(query, id, &table, planning).map(Some)
            })
        });
        pipelines.collect()
    }

    /// Gives planning what it asks for.
    pub(crate) fn planning<T>(
        &self,
        query: &Query,
        inputs: &QueryInputs,
        options: &RunOptions,
        builds: &dyn Fn(PipelineId) -> Option<Arc<Build>>,
        plan: impl FnOnce(&Planning<'_>) -> Result<T>,
    ) -> Result<T> {
        let sorted = |table: &str, column: usize| {
            let statistics = inputs.tables.get(table).and_then(|table| table.statistics.get(column));
            statistics.is_some_and(|statistics| statistics.sorted)
        };
        plan(&Planning {
            builds,
            sorted: &sorted,
            selector: &VectorSelector { functions: &query.functions, memory: &options.settings.memory },
            memory: options.settings.memory.limit(),
            workers: self.threads(),
            collide: options.settings.switches.force_collisions,
        })
    }
}

impl QueryInputs {
    /// Finds the rows of a pipeline's source, with exactly the source's columns; `None` if they are not given.
    fn source(&self, pipeline: &Pipeline) -> Result<Option<Arc<Table>>> {
        Ok(match &pipeline.source {
            Source::Table { table, columns } => {
                let Some(found) = self.tables.get(table) else { return Ok(None) };
                if columns.iter().any(|column| *column >= found.schema.len()) {
                    return Err(Error::internal(format!("the table {table} has fewer columns than its source names")));
                }
                Some(Arc::new(found.project(columns)))
            }
            Source::Block { name } => self.blocks.get(name).cloned(),
            Source::Result { .. } => None,
            Source::Values { rows } => {
                let slots = &pipeline.slots[..pipeline.source_columns()];
                Some(Arc::new(tandem_cpu::values_table(slots, rows)))
            }
        })
    }
}

impl Running<'_> {
    /// Runs a pipeline, on devices if it can.
    fn run(&mut self, id: usize, devices: &[Arc<Accelerator>]) -> Result<(PipelineOutput, PipelineMetrics)> {
        let options = self.options;
        options.settings.cancel.check()?;
        let began = Instant::now();
        let Left { table, on, .. } = self.source(id)?;
        let rows_in = table.rows() as u64;
        options.progress.total.fetch_add(rows_in, Ordering::Relaxed);
        // Rows that are on one device are computed there.
        let remote = on.is_some() && !devices.is_empty();
        let table = if on.is_some() && !remote { self.source_here(id)? } else { table };
        let mut ready = self.ready(id, table, devices)?;
        let devices = if let (Some(on), true) = (&on, remote) { std::slice::from_ref(on) } else { devices };
        let mut place = RanOn::default();
        let contributions = match place.on_devices(id, &ready, devices, options) {
            Some(contributions) => contributions,
            None => {
                if remote {
                    ready = self.ready_here(id, &[])?;
                }
                self.runtime.on_cpu(&ready.job, options)?
            }
        };
        options.progress.done.fetch_add(ready.job.physical().skipped as u64, Ordering::Relaxed);
        let runtime = self.runtime;
        let parallel = |tasks: usize, task: &(dyn Fn(usize) -> Result<()> + Sync)| {
            runtime.parallel(tasks, &options.settings.cancel, task)
        };
        let swapped = if devices.is_empty() { self.swap(id, &ready.job, &contributions) } else { None };
        let finished = match &swapped {
            Some((schema, _)) => ready.job.finish_as_rows(schema, contributions, &parallel),
            None => ready.job.finish(contributions, &parallel),
        };
        let (output, steps) = match finished {
            // A device could not give back what it kept.
            Err(error) if place.device.is_some() && matches!(error.class, Class::Device | Class::Unsupported) => {
                place = RanOn { device: None, reason: Some(error.message) };
                ready = self.ready_here(id, &[])?;
                ready.job.finish(runtime.on_cpu(&ready.job, options)?, &parallel)?
            }
            finished => finished?,
        };
        let job = &ready.job;
        // A device takes whole parts: it skips those of which no block is left.
        let rows_skipped = match &place.device {
            Some(_) => rows_in - rows_of_parts(job),
            None => job.physical().skipped as u64,
        };
        let mut outline = job.physical().outline.clone();
        if let (Some((_, note)), Some(sink)) = (swapped, outline.lines.last_mut()) {
            sink.choice = Some(note);
        }
        let metrics = PipelineMetrics {
            rows_in,
            rows_out: steps.last().map_or(0, |sink| sink.rows_out),
            rows_skipped,
            elapsed: began.elapsed(),
            outline,
            steps,
            device: place.device,
            reason: place.reason,
        };
        Ok((output, metrics))
    }

    /// Plans a pipeline and makes it ready to run.
    fn ready(&self, id: usize, table: Arc<Table>, devices: &[Arc<Accelerator>]) -> Result<Ready> {
        let builds = |build| self.builds.get(&build).cloned();
        let (query, inputs, options) = (&*self.query, self.inputs, self.options);
        let physical = self.runtime.planning(query, inputs, options, &builds, |planning| {
            tandem_plan::plan(query, id, &table, planning).map(Arc::new)
        })?;
        let sink = match devices.is_empty() {
            true => Err(Error::unsupported("no device was asked for")),
            false => device_sink(&physical, &table),
        };
        Ok(Ready { job: Job::new(physical, table, &self.options.settings), sink })
    }

    /// Makes a pipeline ready to run over rows whose values are all here.
    fn ready_here(&mut self, id: usize, devices: &[Arc<Accelerator>]) -> Result<Ready> {
        let table = self.source_here(id)?;
        self.ready(id, table, devices)
    }

    /// Keeps what a pipeline left for later ones.
    fn leave(&mut self, id: usize, output: PipelineOutput) -> Result<()> {
        let held = Reservation::new(&self.options.settings.memory, "what a pipeline leaves");
        self.held.entry(id).or_insert(held).grow_to(output.byte_len())?;
        match output {
            PipelineOutput::Rows(table) => {
                let on = self.options.devices.iter().find(|device| device.keeps(&table)).cloned();
                self.rows.insert(id, Left { table: Arc::new(table), partitions: Vec::new(), on });
            }
            PipelineOutput::Partitions(table, partitions) => {
                self.rows.insert(id, Left { table: Arc::new(table), partitions, on: None });
            }
            PipelineOutput::Build(build) => drop(self.builds.insert(id, build)),
        }
        Ok(())
    }

    /// Returns the rows of a pipeline, with their values. Those that are lost with a device are computed again.
    fn rows_here(&mut self, id: usize) -> Result<Arc<Table>> {
        let missing = || Error::internal("a pipeline reads the rows of one that gives none");
        let Left { table, on, .. } = self.rows.get(&id).cloned().ok_or_else(missing)?;
        let Some(on) = on else { return Ok(table) };
        match on.fetch(&table, &self.options.settings.cancel) {
            Ok((table, bytes)) => {
                if let Some(device) = &mut self.metrics.pipelines[id].device {
                    device.bytes_back += bytes;
                }
                self.leave(id, PipelineOutput::Rows(table))?;
            }
            Err(error) => {
                self.options.settings.cancel.check()?;
                let (output, metrics) = self.run(id, &[])?;
                self.metrics.pipelines[id] = PipelineMetrics { reason: Some(error.message), ..metrics };
                self.leave(id, output)?;
            }
        }
        Ok(self.rows.get(&id).ok_or_else(missing)?.table.clone())
    }

    /// Finds the rows of a pipeline's source, with exactly the source's columns, wherever they are.
    fn source(&mut self, id: usize) -> Result<Left> {
        if let Source::Result { pipelines } = &self.query.pipelines[id].source
            && let [only] = pipelines.as_slice()
            && let Some(left) = self.rows.get(only)
        {
            return Ok(left.clone());
        }
        Ok(Left { table: self.source_here(id)?, partitions: Vec::new(), on: None })
    }

    /// Finds the rows of a pipeline's source, with their values.
    fn source_here(&mut self, id: usize) -> Result<Arc<Table>> {
        let source = self.query.pipelines[id].source.clone();
        if let Source::Result { pipelines } = &source {
            let missing = || Error::internal("a pipeline reads the rows of one that gives none");
            let mut tables = pipelines.iter().map(|id| self.rows_here(*id));
            let first = tables.next().ok_or_else(missing)??;
            return tables.try_fold(first, |all, table| Ok(Arc::new(all.append(&*table?)?)));
        }
        let given = self.inputs.source(&self.query.pipelines[id])?;
        given.ok_or_else(|| Error::internal(format!("no rows were given for the source of pipeline {id}")))
    }
}

/// Rows of a build from which on swapping sides is worth a thought.
const MANY: usize = 1 << 16;
/// How many times the rows that would look it up a build must have, to look those up instead: what it saves is laying the rows out,
/// what it costs is one more build.
const TIMES: usize = 4;

impl Running<'_> {
    /// Swaps the sides of the join that a build is for, if the build turns out to have many more rows than the side that is to look
    /// them up. Returns the columns of the build's rows, and what EXPLAIN ANALYZE says.
    fn swap(&mut self, id: usize, job: &Job, contributions: &[Contribution]) -> Option<(Arc<[Field]>, String)> {
        let SinkPlan::Build(plan) = &job.physical().sink else { return None };
        let rows: usize = contributions.iter().map(|contribution| contribution.rows as usize).sum();
        let as_rows = contributions.iter().all(|contribution| matches!(contribution.contents, Contents::Rows(_)));
        // What is in the order of its key is not laid out at all.
        if rows < MANY || !as_rows || plan.used.merge || job.physical().body.emits_build_rows() {
            return None;
        }
        let (probe, _) = self.query.only_probe(id)?;
        let probing = match &self.query.pipelines[probe].source {
            Source::Result { pipelines } => {
                let tables = pipelines.iter().map(|pipeline| Some(self.rows.get(pipeline)?.table.rows()));
                tables.sum::<Option<usize>>()?
            }
            Source::Table { table, .. } => self.inputs.tables.get(table)?.rows(),
            Source::Block { name } => self.inputs.blocks.get(name)?.rows(),
            Source::Values { rows } => rows.len(),
        };
        if rows / TIMES < probing {
            return None;
        }
        let columns = self.query.build_as_rows(id)?.into_iter();
        let schema = columns.map(|Slot { name, kind, nullable }| Field { name, kind, nullable }).collect();
        let Swapped { query, probe, build } = self.query.swap_sides(id)?;
        let before = self.waiting.iter().position(|waiting| *waiting == probe)?;
        self.waiting.insert(before, build);
        self.metrics.pipelines.push(PipelineMetrics::default());
        self.query = Cow::Owned(query);
        let note = format!(
            "{rows} rows, of the other side at most {probing}: sides swapped, pipeline {build} builds that one"
        );
        Some((schema, note))
    }
}

/// A pipeline ready to run in any place.
struct Ready {
    job: Job,
    /// What rows end in on a device, or why there is no kernel.
    sink: Result<DeviceSink>,
}

impl Runtime {
    /// Runs a job's morsels on the pool's workers.
    fn on_cpu(&self, job: &Job, options: &RunOptions) -> Result<Vec<Contribution>> {
        let morsels = &job.physical().morsels;
        let workers = self.parallel_with(
            morsels.len(),
            &options.settings.cancel,
            || job.worker(),
            |worker, morsel| {
                job.run(worker, morsel)?;
                options.progress.done.fetch_add(morsels[morsel].count as u64, Ordering::Relaxed);
                Ok(())
            },
        )?;
        Ok(workers.into_iter().map(Worker::finish).collect())
    }
}

/// Where a pipeline ran.
#[derive(Default)]
struct RanOn {
    device: Option<DeviceMetrics>,
    reason: Option<String>,
}

impl RanOn {
    /// Runs a job on the devices, if there are any; `None`, with the reason, if the CPU has to.
    fn on_devices(
        &mut self,
        id: usize,
        ready: &Ready,
        devices: &[Arc<Accelerator>],
        options: &RunOptions,
    ) -> Option<Vec<Contribution>> {
        if devices.is_empty() {
            return None;
        }
        let job = &ready.job;
        let ran = match &ready.sink {
            Ok(sink) => share(devices, id, job, sink),
            Err(error) => Err(error.clone()),
        };
        match ran {
            Ok((contributions, metrics)) => {
                let rows: usize = job.physical().morsels.iter().map(|morsel| morsel.count).sum();
                options.progress.done.fetch_add(rows as u64, Ordering::Relaxed);
                self.device = Some(metrics);
                self.reason = left_to_cpu(job, &contributions).map(str::to_string);
                Some(contributions)
            }
            Err(error) => {
                job.begin_again();
                self.reason = Some(error.message);
                None
            }
        }
    }
}

/// Returns how many rows the parts have of which a block is left.
fn rows_of_parts(job: &Job) -> u64 {
    let parts = job.physical().parts();
    parts.into_iter().map(|part| job.table().parts[part].rows as u64).sum()
}

/// Says what is left to the CPU when devices have computed the rows; `None` if nothing is.
fn left_to_cpu(job: &Job, contributions: &[Contribution]) -> Option<&'static str> {
    let rows = contributions.iter().any(|contribution| contribution.rows > 0);
    let mut contents = contributions.iter().map(|contribution| &contribution.contents);
    match &job.physical().sink {
        SinkPlan::Build(_) if rows && contents.all(|contents| !matches!(contents, Contents::Build(_))) => {
            Some("the CPU builds the hash table of the join")
        }
        SinkPlan::Sort(_)
            if rows && contents.any(|contents| matches!(contents, Contents::Rows(rows) if !rows.sorted)) =>
        {
            Some("the rows of several devices are sorted by the CPU")
        }
        SinkPlan::Window(_)
            if rows && contents.any(|contents| matches!(contents, Contents::Rows(rows) if !rows.sorted)) =>
        {
            Some("window functions of the rows of several devices are computed by the CPU")
        }
        _ if job.physical().body.emits_build_rows() && !contributions.iter().any(|c| c.unmatched) => {
            Some("unmatched rows of an outer join are added by the CPU")
        }
        _ => None,
    }
}
