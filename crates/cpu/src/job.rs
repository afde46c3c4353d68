//! A pipeline made ready to run, and the way of a vector through it.
//!
//! [`Job::new`] reads statistics and makes the choices: predicates and probes of dense builds become filters on encoded
//! columns, hoisted to the front and ordered while running; the rest stays in the pipeline's order. [`Job::run`] takes
//! one morsel through. [`Job::finish`] merges what the workers collected.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tandem_column::{Field, Result, Table, Type};
use tandem_pipeline::{Expr, PipelineId, Query, SlotId, SortKey, Step, UserFunction};

use crate::{
    Error, MemoryBudget, Reservation,
    aggregate::{AggregatePlan, AggregateState},
    build::{Build, Use},
    collect::{Chunk, Collector, concat_all, in_order, to_table},
    evaluate::{self, Slots},
    frame::{Frame, Layout, Matches},
    plan::Planner,
    probe::ProbeStep,
    range::Domain,
    select::{Selection, SelectionState},
    sort,
};

/// Runs tasks `0..n` on all workers and waits.
pub type Parallel<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> + Sync);

/// What a job may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Rows of one vector.
    pub vector_rows: usize,
    /// All hashes are equal: a test of collisions.
    pub force_collisions: bool,
    /// What the query may collect.
    pub memory: Arc<MemoryBudget>,
    /// Set from outside to stop the query: looked at before every vector and every batch of pairs.
    pub stop: Arc<AtomicBool>,
}

impl Settings {
    /// Fails if the query was asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
    }
}

impl Default for Settings {
    fn default() -> Self {
        // 4096 rows of a few 8-byte slots stay within a core's L1 and L2 caches.
        Settings { vector_rows: 4096, force_collisions: false, memory: Arc::default(), stop: Arc::default() }
    }
}

/// What a pipeline leaves behind.
#[derive(Debug)]
pub enum Output {
    /// Rows, for the result or a later pipeline.
    Rows(Table),
    /// A build, for later probes.
    Build(Arc<Build>),
}

impl Output {
    /// Returns the memory that it holds, in bytes; dictionaries are mostly those of tables.
    pub fn byte_len(&self) -> usize {
        match self {
            Output::Rows(table) => table.parts.iter().map(|part| part.byte_len()).sum(),
            Output::Build(build) => build.byte_len(),
        }
    }
}

/// A run of rows that one worker takes at once: at most a block.
#[derive(Clone, Copy, Debug)]
pub struct Morsel {
    /// Which part of the table.
    pub part: usize,
    /// First row in the part.
    pub start: usize,
    /// How many rows.
    pub count: usize,
}

/// What one step did.
#[derive(Clone, Debug, Default)]
pub struct StepMetrics {
    /// The step, for people.
    pub label: String,
    /// Rows that came in.
    pub rows_in: u64,
    /// Rows that went out.
    pub rows_out: u64,
    /// Time spent in it by all workers together.
    pub time: Duration,
    /// Bytes that the step's result takes, where it keeps any.
    pub bytes: u64,
}

/// A pipeline ready to run over morsels, from any number of workers at once.
pub struct Job {
    pub(crate) layout: Layout,
    /// What statistics know of each slot.
    pub(crate) domains: Vec<Domain>,
    pub(crate) functions: Vec<Arc<UserFunction>>,
    pub(crate) table: Arc<Table>,
    /// Matches that follow from a source column, known for every frame from the start.
    pub(crate) direct: Vec<Direct>,
    pub(crate) first: Selection,
    pub(crate) operations: Vec<Operation>,
    pub(crate) sink: SinkPlan,
    /// The columns of the rows that the sink gives.
    pub(crate) schema: Arc<[Field]>,
    pub(crate) morsels: Vec<Morsel>,
    pub(crate) skipped: usize,
    pub(crate) settings: Settings,
    pub(crate) labels: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Rows a plain limit still wants.
    pub(crate) enough: Option<usize>,
    /// A later pipeline reads the rows, and these alone.
    pub(crate) read_later: bool,
    pub(crate) emitted: AtomicUsize,
}

/// A probe step whose build row is a source column's value minus `min`.
pub(crate) struct Direct {
    pub(crate) step: usize,
    pub(crate) column: usize,
    pub(crate) min: i64,
}

pub(crate) enum Operation {
    Select(Selection),
    Let { counter: usize, first: SlotId, exprs: Vec<Expr> },
    Probe(Box<ProbeStep>),
}

pub(crate) enum SinkPlan {
    Build { keys: Vec<Expr>, payload: Vec<SlotId>, kinds: Vec<Type>, used: Use },
    Aggregate(Box<AggregatePlan>),
    Sort { keys: Vec<SortKey>, skip: usize, fetch: Option<usize>, output: Vec<SlotId>, kinds: Vec<Type> },
    Materialize { skip: usize, fetch: Option<usize>, output: Vec<SlotId>, kinds: Vec<Type> },
}

pub(crate) enum SinkState {
    Collect(Collector),
    Aggregate(Box<AggregateState>),
}

/// One worker's state of a job.
pub struct Worker {
    pub(crate) sink: SinkState,
    selection: SelectionState,
    pub(crate) counters: Vec<Counter>,
    pub(crate) rows_out: u64,
    /// The rows collected are in the sink's order already.
    pub(crate) sorted: bool,
    /// The build, if it is laid out already.
    pub(crate) built: Option<Build>,
    /// The build rows that come out of joins at the end are among its rows already.
    pub(crate) leftovers: bool,
    /// The rows, if a device keeps them.
    pub(crate) kept: Option<Table>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Counter {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    pub(crate) time: Duration,
}

impl Job {
    /// Makes pipeline `id` of a verified query ready to run over `table`, whose columns are the source's slots.
    ///
    /// # Errors
    /// Unsupported for what [`crate::supports`] refuses; internal if a build is missing.
    pub fn new(
        query: &Query,
        id: PipelineId,
        table: Arc<Table>,
        builds: &dyn Fn(PipelineId) -> Option<Arc<Build>>,
        settings: &Settings,
    ) -> Result<Job> {
        let pipeline = &query.pipelines[id];
        let mut planner = Planner::new(query, pipeline, table, settings);
        let mut columns = pipeline.source_columns();
        for (index, step) in pipeline.steps.iter().enumerate() {
            match step {
                Step::Filter(expr) => planner.filter(index, expr),
                Step::Let(exprs) => planner.add(columns, exprs),
                Step::Probe(probe) => {
                    let build = builds(probe.build).ok_or_else(|| Error::internal("a probe's build is missing"))?;
                    planner.probe(index, columns, probe, build);
                }
            }
            columns += step.adds();
        }
        planner.finish(id)
    }

    /// Returns how many morsels there are; [`Job::run`] takes each once.
    pub fn morsels(&self) -> usize {
        self.morsels.len()
    }

    /// Returns how many rows a morsel has.
    pub fn morsel_rows(&self, morsel: usize) -> usize {
        self.morsels[morsel].count
    }

    /// Returns how many source rows no morsel covers because block statistics exclude them.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns the choices made, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Makes the state of one more worker.
    pub fn worker(&self) -> Worker {
        let collector =
            |kinds: &[Type], what| SinkState::Collect(Collector::new(kinds.to_vec(), &self.settings.memory, what));
        let sink = match &self.sink {
            SinkPlan::Build { kinds, .. } => collector(kinds, "the build side of a join"),
            SinkPlan::Aggregate(plan) => SinkState::Aggregate(Box::new(plan.state())),
            SinkPlan::Sort { kinds, .. } => collector(kinds, "sorting"),
            SinkPlan::Materialize { kinds, .. } => collector(kinds, "the result"),
        };
        let counters = vec![Counter::default(); self.labels.len()];
        Worker {
            sink,
            selection: self.first.state(),
            counters,
            rows_out: 0,
            sorted: false,
            built: None,
            leftovers: false,
            kept: None,
        }
    }

    /// Takes one morsel through the pipeline.
    ///
    /// # Errors
    /// What an expression raises, or an exhausted memory budget.
    pub fn run(&self, worker: &mut Worker, index: usize) -> Result<()> {
        let Morsel { part, start, count } = self.morsels[index];
        let part = &*self.table.parts[part];
        let covered = self.first.covered(&self.layout, part, start);
        let (mut start, end) = (start, start + count);
        // Rows that pass the first selection wait here until they fill a vector, so that what follows has enough to do.
        let mut waiting = Vec::new();
        while start < end {
            if self.enough.is_some_and(|enough| self.emitted.load(Ordering::Relaxed) >= enough) {
                return Ok(());
            }
            self.settings.check()?;
            let count = self.settings.vector_rows.min(end - start);
            let (state, counters) = (&mut worker.selection, &mut worker.counters);
            match self.first.apply_run(&self.layout, part, start, count, &covered, state, counters) {
                None => self.enter(worker, Frame::run(&self.layout, part, start, count), index)?,
                Some(kept) => waiting.extend_from_slice(&worker.selection.rows[..kept]),
            }
            start += count;
            if waiting.len() >= self.settings.vector_rows || start == end && !waiting.is_empty() {
                self.enter(worker, Frame::list(&self.layout, part, std::mem::take(&mut waiting)), index)?;
            }
        }
        Ok(())
    }

    /// Takes a frame that passed the encoded filters of the first selection into the pipeline.
    fn enter<'j>(&'j self, worker: &mut Worker, mut frame: Frame<'j>, morsel: usize) -> Result<()> {
        for direct in &self.direct {
            frame.set_matches(direct.step, Matches::FromColumn { column: direct.column, min: direct.min });
        }
        match self.first.apply_general(frame, &mut worker.counters, &self.functions)? {
            Some(frame) => self.advance(worker, frame, 0, morsel),
            None => Ok(()),
        }
    }

    /// Takes a frame through the operations from `at` on, into the sink.
    fn advance<'j>(&'j self, worker: &mut Worker, mut frame: Frame<'j>, at: usize, morsel: usize) -> Result<()> {
        for (index, operation) in self.operations.iter().enumerate().skip(at) {
            match operation {
                Operation::Select(select) => match select.apply(frame, &mut worker.counters, &self.functions)? {
                    Some(kept) => frame = kept,
                    None => return Ok(()),
                },
                Operation::Let { counter, first, exprs } => {
                    let began = Instant::now();
                    let values = exprs.iter().map(|expr| evaluate::evaluate(expr, &frame, &self.functions));
                    let values = values.collect::<Result<Vec<_>>>()?;
                    values.into_iter().enumerate().for_each(|(i, vector)| frame.store(first + i, vector));
                    let counter = &mut worker.counters[*counter];
                    counter.rows_in += frame.count() as u64;
                    counter.rows_out += frame.count() as u64;
                    counter.time += began.elapsed();
                }
                Operation::Probe(probe) => {
                    let began = Instant::now();
                    let rows = frame.count() as u64;
                    let (mut out, mut beyond) = (0, Duration::ZERO);
                    probe.run(frame, &self.functions, &self.settings, &mut |next| {
                        let began = Instant::now();
                        out += next.count() as u64;
                        self.advance(worker, next, index + 1, morsel)?;
                        beyond += began.elapsed();
                        Ok(())
                    })?;
                    let counter = &mut worker.counters[probe.counter];
                    counter.rows_in += rows;
                    counter.rows_out += out;
                    counter.time += began.elapsed().saturating_sub(beyond);
                    return Ok(());
                }
            }
        }
        self.consume(worker, &frame, morsel)
    }

    fn consume(&self, worker: &mut Worker, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let began = Instant::now();
        let rows = frame.count();
        match (&self.sink, &mut worker.sink) {
            (SinkPlan::Build { keys, payload, .. }, SinkState::Collect(collector)) => {
                let keys = keys.iter().map(|key| evaluate::evaluate(key, frame, &self.functions));
                let payload = payload.iter().map(|slot| frame.vector(*slot));
                collector.push(morsel, rows, &keys.chain(payload).collect::<Result<Vec<_>>>()?)?;
            }
            (SinkPlan::Aggregate(plan), SinkState::Aggregate(state)) => plan.update(state, frame)?,
            (SinkPlan::Sort { keys, skip, fetch, output, .. }, SinkState::Collect(collector)) => {
                let slots: Vec<SlotId> = keys.iter().map(|key| key.slot).chain(output.iter().copied()).collect();
                collector.push_slots(morsel, frame, &slots)?;
                worker.sorted = false;
                if let Some(fetch) = fetch {
                    let keep = skip + fetch;
                    // Cut back now and then: amortised over several times as many rows as are kept.
                    if collector.rows() > (4 * keep).max(1 << 16) {
                        let rows = collector.rows();
                        let all = collector.concat();
                        let best = sort::order(keys, &all[..keys.len()].iter().collect::<Vec<_>>(), rows, keep);
                        collector.replace(best.len(), all.iter().map(|v| v.take(&best)).collect());
                    }
                }
            }
            (SinkPlan::Materialize { output, .. }, SinkState::Collect(collector)) => {
                collector.push_slots(morsel, frame, output)?;
                self.emitted.fetch_add(rows, Ordering::Relaxed);
            }
            _ => return Err(Error::internal("a worker's state belongs to another job")),
        }
        worker.rows_out += rows as u64;
        let counter = worker.counters.last_mut().expect("the sink has a counter");
        counter.rows_in += rows as u64;
        counter.time += began.elapsed();
        Ok(())
    }

    /// Merges the workers' states into the result; tells what each step did.
    ///
    /// # Errors
    /// Overflow of a sum, an exhausted memory budget, or what a residual expression raises.
    pub fn finish(&self, mut workers: Vec<Worker>, parallel: Parallel<'_>) -> Result<(Output, Vec<StepMetrics>)> {
        self.emit_leftovers(&mut workers)?;
        let began = Instant::now();
        let mut counters = vec![Counter::default(); self.labels.len()];
        for worker in &workers {
            for (sum, counter) in counters.iter_mut().zip(&worker.counters) {
                sum.rows_in += counter.rows_in;
                sum.rows_out += counter.rows_out;
                sum.time += counter.time;
            }
        }
        let built = workers.iter_mut().find_map(|worker| worker.built.take());
        let kept = workers.iter_mut().find_map(|worker| worker.kept.take());
        let sorted = matches!(workers.as_slice(), [worker] if worker.sorted);
        let (mut collectors, mut states) = (Vec::new(), Vec::new());
        for worker in workers {
            match worker.sink {
                SinkState::Collect(collector) => collectors.push(collector),
                SinkState::Aggregate(state) => states.push(*state),
            }
        }
        // What was collected is there until the result is, which is written once more, or twice where it is put in order first.
        let taken =
            collectors.iter_mut().map(Collector::hand_over).chain(states.iter_mut().map(AggregateState::hand_over));
        let held: Vec<Reservation> = taken.collect();
        let copies = match &self.sink {
            SinkPlan::Build { .. } | SinkPlan::Sort { .. } => 2,
            SinkPlan::Aggregate(_) | SinkPlan::Materialize { .. } => 1,
        };
        let bytes = held.iter().map(Reservation::bytes).sum::<usize>().saturating_mul(copies);
        let _copies = Reservation::take(&self.settings.memory, "the result of a pipeline", bytes)?;
        let (output, rows, bytes) = match &self.sink {
            _ if let Some(table) = kept => {
                let rows = table.rows();
                (Output::Rows(table), rows, 0)
            }
            SinkPlan::Build { keys, kinds, used, .. } => {
                let build = match built {
                    Some(build) => build,
                    None => {
                        let (rows, mut vectors) = concat_all(kinds, collectors);
                        let payload = vectors.split_off(keys.len());
                        Build::new(rows, vectors, payload, &kinds[keys.len()..], *used)?
                    }
                };
                let rows = build.rows;
                let bytes = build.byte_len();
                (Output::Build(Arc::new(build)), rows, bytes)
            }
            SinkPlan::Aggregate(plan) => {
                let table = plan.finish(states, parallel)?;
                let (rows, bytes) = (table.rows(), table.byte_len());
                (Output::Rows(table), rows, bytes)
            }
            SinkPlan::Sort { keys, skip, fetch, kinds, .. } => {
                let (rows, all) = concat_all(kinds, collectors);
                let keep = fetch.map_or(usize::MAX, |fetch| skip + fetch);
                let order = match sorted {
                    true => (0..rows.min(keep) as u32).collect(),
                    false => sort::order(keys, &all[..keys.len()].iter().collect::<Vec<_>>(), rows, keep),
                };
                let order = &order[(*skip).min(order.len())..];
                let vectors = all[keys.len()..].iter().map(|v| v.take(order)).collect();
                self.table_of(vec![Chunk { morsel: 0, rows: order.len(), vectors }])
            }
            SinkPlan::Materialize { skip, fetch, .. } => {
                let chunks = in_order(collectors);
                self.table_of(limit(chunks, *skip, *fetch))
            }
        };
        let sink = counters.last_mut().expect("the sink has a counter");
        sink.rows_out = rows as u64;
        sink.time += began.elapsed();
        let metrics = self.labels.iter().zip(&counters).map(|(label, counter)| StepMetrics {
            label: label.clone(),
            rows_in: counter.rows_in,
            rows_out: counter.rows_out,
            time: counter.time,
            bytes: 0,
        });
        let mut metrics: Vec<StepMetrics> = metrics.collect();
        metrics.last_mut().expect("the sink has a counter").bytes = bytes as u64;
        Ok((output, metrics))
    }

    fn table_of(&self, chunks: Vec<Chunk>) -> (Output, usize, usize) {
        let table = to_table(self.schema.clone(), chunks);
        let (rows, bytes) = (table.rows(), table.byte_len());
        (Output::Rows(table), rows, bytes)
    }

    /// Sends build rows that probes emit at the end through the steps behind them.
    fn emit_leftovers(&self, workers: &mut Vec<Worker>) -> Result<()> {
        if workers.iter().any(|worker| worker.leftovers) {
            return Ok(());
        }
        for (index, operation) in self.operations.iter().enumerate() {
            let Operation::Probe(probe) = operation else { continue };
            for entries in probe.leftover().chunks(self.settings.vector_rows) {
                if workers.is_empty() {
                    workers.push(self.worker());
                }
                let mut frame = Frame::detached(&self.layout, entries.len());
                frame.set_matches(probe.step, Matches::Listed(Rc::new(entries.to_vec())));
                self.advance(&mut workers[0], frame, index + 1, self.morsels.len())?;
            }
        }
        Ok(())
    }
}

/// Cuts chunks to the rows behind the first `skip`, at most `fetch` of them.
fn limit(chunks: Vec<Chunk>, mut skip: usize, fetch: Option<usize>) -> Vec<Chunk> {
    let mut left = fetch.unwrap_or(usize::MAX);
    let mut out = Vec::with_capacity(chunks.len());
    for mut chunk in chunks {
        let from = skip.min(chunk.rows);
        let count = (chunk.rows - from).min(left);
        if count < chunk.rows {
            let kept: Vec<u32> = (from as u32..(from + count) as u32).collect();
            chunk.vectors = chunk.vectors.iter().map(|v| v.take(&kept)).collect();
            chunk.rows = count;
        }
        skip -= from;
        left -= count;
        out.push(chunk);
    }
    out
}
