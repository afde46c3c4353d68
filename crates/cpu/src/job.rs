//! A physical pipeline made ready to run on the CPU, and the way of a vector through it.
//!
//! [`Job::run`] takes one morsel through: filters on codes at the front, ordered while running; then the steps in their
//! order; then the sink. [`Job::finish`] merges what all places contributed, CPU workers and devices alike.

use std::{
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tandem_column::{Result, Table};
use tandem_pipeline::{Expr, SlotId};
use tandem_plan::{Action, Morsel, Physical, Way};

use crate::{
    Contents, Contribution, Error, MemoryBudget, Output, Reservation,
    contribution::Counter,
    evaluate,
    frame::{Frame, Layout, Matches},
    probe::ProbeStep,
    select::{Selection, SelectionState},
    sink::{Finishing, Sink, sink},
};

/// Runs tasks `0..n` on all workers and waits.
pub type Parallel<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> + Sync);

/// What tests change about execution: results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Rows that flow through a pipeline at a time; at least one.
    pub vector_rows: usize,
    /// Gives all keys of hash tables one hash.
    pub force_collisions: bool,
}

impl Default for Switches {
    fn default() -> Self {
        // 4096 rows of a few 8-byte slots stay within a core's L1 and L2 caches.
        Switches { vector_rows: 4096, force_collisions: false }
    }
}

/// What a query may use, and how it runs: given to its planning and to all of its jobs.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What tests change.
    pub switches: Switches,
    /// What the query may collect.
    pub memory: Arc<MemoryBudget>,
    /// Set from outside to stop the query: looked at before every vector and every batch of pairs.
    pub stop: Arc<AtomicBool>,
}

impl Settings {
    /// Returns the rows of one vector.
    fn vector_rows(&self) -> usize {
        self.switches.vector_rows.max(1)
    }

    /// Fails if the query was asked to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
    }
}

/// What one step did.
#[derive(Clone, Debug, Default)]
pub struct StepMetrics {
    /// The pipeline's step that it is, or is a part of; `None` is the sink.
    pub of: Option<usize>,
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
    /// Rows and time were counted: devices count none of single steps.
    pub counted: bool,
}

/// A pipeline ready to run over morsels, from any number of workers at once.
pub struct Job {
    physical: Arc<Physical>,
    table: Arc<Table>,
    settings: Settings,
    layout: Layout,
    first: Selection,
    operations: Vec<Operation>,
    sink: Box<dyn Sink>,
    /// Rows that a plain limit has so far.
    emitted: AtomicUsize,
}

enum Operation {
    Select(Selection),
    Let { counter: usize, first: SlotId, exprs: Vec<Expr> },
    Probe(Box<ProbeStep>),
}

/// One worker's state of a job.
pub struct Worker {
    contribution: Contribution,
    selection: SelectionState,
}

impl Worker {
    /// Ends the worker: what it leaves.
    pub fn finish(self) -> Contribution {
        self.contribution
    }
}

impl Job {
    /// Makes a physical pipeline ready to run over the table that it was planned for.
    pub fn new(physical: Arc<Physical>, table: Arc<Table>, settings: &Settings) -> Job {
        let (mut first, mut operations) = (Selection::default(), Vec::new());
        for (counter, step) in physical.body.steps.iter().enumerate() {
            match &step.action {
                Action::Let { first, exprs } => {
                    operations.push(Operation::Let { counter, first: *first, exprs: exprs.clone() });
                }
                Action::Probe(probe) => {
                    let step = ProbeStep::new(step.of, counter, probe, &physical.builds[probe.lookup]);
                    operations.push(Operation::Probe(Box::new(step)));
                }
                Action::Between { .. } | Action::Member { .. } | Action::Filter(_) => {
                    let selection = match operations.last_mut() {
                        None => &mut first,
                        Some(Operation::Select(selection)) => selection,
                        Some(_) => {
                            operations.push(Operation::Select(Selection::default()));
                            let Some(Operation::Select(selection)) = operations.last_mut() else { continue };
                            selection
                        }
                    };
                    selection.push(&physical, &table, counter);
                }
            }
        }
        let layout = Layout { physical: physical.clone(), memory: settings.memory.clone() };
        let sink = sink(&physical, settings);
        let (settings, emitted) = (settings.clone(), AtomicUsize::new(0));
        Job { physical, table, settings, layout, first, operations, sink, emitted }
    }

    /// Returns the plan.
    pub fn physical(&self) -> &Arc<Physical> {
        &self.physical
    }

    /// Returns the source's rows.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Makes an empty contribution: that of one more worker.
    pub fn contribution(&self) -> Contribution {
        Contribution::new(self.sink.state(), 0)
    }

    /// Makes the state of one more worker.
    pub fn worker(&self) -> Worker {
        let counters = vec![Counter::default(); self.physical.body.steps.len() + 1];
        Worker { contribution: Contribution { counters, ..self.contribution() }, selection: self.first.state() }
    }

    /// Takes one morsel through the pipeline.
    ///
    /// # Errors
    /// What an expression raises, or an exhausted memory budget.
    pub fn run(&self, worker: &mut Worker, index: usize) -> Result<()> {
        let Morsel { part, start, count } = self.physical.morsels[index];
        let part = &*self.table.parts[part];
        let covered = self.first.covered(part, start);
        let (mut start, end) = (start, start + count);
        // Rows that pass the first selection wait here until they fill a vector, so that what follows has enough to do.
        let mut waiting = Vec::new();
        while start < end {
            if self.has_enough() {
                return Ok(());
            }
            self.settings.check()?;
            let count = self.settings.vector_rows().min(end - start);
            let (state, counters) = (&mut worker.selection, &mut worker.contribution.counters);
            match self.first.apply_run(part, start, count, &covered, state, counters) {
                None => self.enter(worker, Frame::run(&self.layout, part, start, count), index)?,
                Some(kept) => waiting.extend_from_slice(&worker.selection.rows[..kept]),
            }
            start += count;
            if waiting.len() >= self.settings.vector_rows() || start == end && !waiting.is_empty() {
                self.enter(worker, Frame::list(&self.layout, part, std::mem::take(&mut waiting)), index)?;
            }
        }
        Ok(())
    }

    /// Takes a frame that passed the encoded filters of the first selection into the pipeline.
    fn enter<'j>(&'j self, worker: &mut Worker, mut frame: Frame<'j>, morsel: usize) -> Result<()> {
        for (lookup, of) in self.physical.body.lookups.iter().enumerate() {
            if let Way::Column { column, min } = of.way {
                frame.set_matches(lookup, Matches::FromColumn { column, min });
            }
        }
        let (contribution, functions) = (&mut worker.contribution, &self.physical.functions);
        match self.first.apply_general(frame, &mut contribution.counters, functions)? {
            Some(frame) => self.advance(contribution, frame, 0, morsel),
            None => Ok(()),
        }
    }

    /// Takes a frame through the operations from `at` on, into the sink.
    fn advance<'j>(&'j self, into: &mut Contribution, mut frame: Frame<'j>, at: usize, morsel: usize) -> Result<()> {
        let functions = &self.physical.functions;
        for (index, operation) in self.operations.iter().enumerate().skip(at) {
            match operation {
                Operation::Select(select) => match select.apply_general(frame, &mut into.counters, functions)? {
                    Some(kept) => frame = kept,
                    None => return Ok(()),
                },
                Operation::Let { counter, first, exprs } => {
                    let began = Instant::now();
                    let values = exprs.iter().map(|expr| evaluate::evaluate(expr, &frame, functions));
                    let values = values.collect::<Result<Vec<_>>>()?;
                    values.into_iter().enumerate().for_each(|(i, vector)| frame.store(first + i, vector));
                    into.counters[*counter].count(frame.count(), frame.count(), began.elapsed());
                }
                Operation::Probe(probe) => {
                    let began = Instant::now();
                    let rows = frame.count();
                    let (mut out, mut beyond) = (0, Duration::ZERO);
                    probe.run(frame, functions, &self.settings, &mut |next| {
                        let began = Instant::now();
                        out += next.count();
                        self.advance(into, next, index + 1, morsel)?;
                        beyond += began.elapsed();
                        Ok(())
                    })?;
                    into.counters[probe.counter].count(rows, out, began.elapsed().saturating_sub(beyond));
                    return Ok(());
                }
            }
        }
        let began = Instant::now();
        self.sink.consume(&mut into.contents, &frame, morsel)?;
        self.note_rows(frame.count());
        into.rows += frame.count() as u64;
        if let Some(sink) = into.counters.last_mut() {
            sink.time += began.elapsed();
        }
        Ok(())
    }

    /// Merges all contributions into the output; tells what each step did.
    ///
    /// # Errors
    /// Overflow of a sum, an exhausted memory budget, or what a residual expression raises.
    pub fn finish(&self, mut all: Vec<Contribution>, parallel: Parallel<'_>) -> Result<(Output, Vec<StepMetrics>)> {
        self.emit_unmatched(&mut all)?;
        let began = Instant::now();
        let steps = &self.physical.body.steps;
        let mut counters = vec![Counter::default(); steps.len() + 1];
        for contribution in &all {
            counters.iter_mut().zip(&contribution.counters).for_each(|(sum, counter)| sum.add(counter));
        }
        let counted = all.is_empty() || all.iter().any(|contribution| !contribution.counters.is_empty());
        let rows_in = all.iter().map(|contribution| contribution.rows).sum();
        let mut contents: Vec<_> = all.into_iter().map(|contribution| contribution.contents).collect();
        // What was collected is there until the output is, which is written once more, or twice where it is put in order.
        let held: Vec<Reservation> = contents.iter_mut().filter_map(|contents| contents.hand_over()).collect();
        let bytes = held.iter().map(Reservation::bytes).sum::<usize>().saturating_mul(self.sink.copies());
        let _copies = Reservation::take(&self.settings.memory, "the result of a pipeline", bytes)?;
        let output = match contents.as_slice() {
            [Contents::Kept(table)] => Output::Rows(table.clone()),
            _ => self.sink.finish(contents, &Finishing { schema: &self.physical.schema, parallel })?,
        };
        let metrics = |(step, counter): (&tandem_plan::PhysicalStep, &Counter)| StepMetrics {
            of: Some(step.of),
            label: step.label.clone(),
            rows_in: counter.rows_in,
            rows_out: counter.rows_out,
            time: counter.time,
            bytes: 0,
            counted,
        };
        let mut metrics: Vec<StepMetrics> = steps.iter().zip(&counters).map(metrics).collect();
        metrics.push(StepMetrics {
            of: None,
            label: self.physical.sink.name().into(),
            rows_in,
            rows_out: output.rows() as u64,
            time: counters.last().map_or(Duration::ZERO, |sink| sink.time) + began.elapsed(),
            bytes: output.byte_len() as u64,
            counted: true,
        });
        Ok((output, metrics))
    }

    /// Sends unmatched build rows, which joins emit at the end, through the steps behind them.
    fn emit_unmatched(&self, all: &mut Vec<Contribution>) -> Result<()> {
        if !self.physical.body.emits_build_rows() || all.iter().any(|contribution| contribution.unmatched) {
            return Ok(());
        }
        let mut emitted = self.worker().contribution;
        for (index, operation) in self.operations.iter().enumerate() {
            let Operation::Probe(probe) = operation else { continue };
            for entries in probe.unmatched().chunks(self.settings.vector_rows()) {
                let mut frame = Frame::detached(&self.layout, entries.len());
                frame.set_matches(probe.probe.lookup, Matches::Listed(Rc::new(entries.to_vec())));
                self.advance(&mut emitted, frame, index + 1, self.physical.morsels.len())?;
            }
        }
        if emitted.rows > 0 {
            all.push(emitted);
        }
        Ok(())
    }

    /// Tells whether a limit has all the rows it wants.
    pub fn has_enough(&self) -> bool {
        self.physical.sink.enough().is_some_and(|enough| self.emitted.load(Ordering::Relaxed) >= enough)
    }

    /// Counts rows towards a limit.
    pub fn note_rows(&self, rows: usize) {
        self.emitted.fetch_add(rows, Ordering::Relaxed);
    }

    /// Forgets the rows counted towards a limit: they are lost, and computed again.
    pub fn begin_again(&self) {
        self.emitted.store(0, Ordering::Relaxed);
    }

    /// Notes which entries of a lookup's build met a row elsewhere: those with a flag that is not 0.
    pub fn mark(&self, lookup: usize, flags: &[u8]) {
        self.probe_of(lookup).into_iter().for_each(|probe| probe.mark_flags(flags));
    }

    /// Returns a flag for each entry of a lookup's build: 1 if it met a row so far.
    pub fn marked(&self, lookup: usize) -> Vec<u8> {
        self.probe_of(lookup).map_or_else(Vec::new, ProbeStep::flags)
    }

    fn probe_of(&self, lookup: usize) -> Option<&ProbeStep> {
        self.operations.iter().find_map(|operation| match operation {
            Operation::Probe(probe) if probe.probe.lookup == lookup => Some(&**probe),
            _ => None,
        })
    }
}
