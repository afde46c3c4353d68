//! A physical pipeline made ready to run on the CPU, and the way of a vector through it.
//!
//! [`Job::run`] takes one morsel through: filters on codes at the front, ordered while running; then the steps in their
//! order; then the sink. [`Job::finish`], in `finish.rs`, merges what all places contributed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tandem_column::{Result, Table};
use tandem_pipeline::{Expr, SlotId};
use tandem_plan::{Action, Morsel, Physical, Way};

use crate::{
    Contribution, Settings,
    contribution::Counter,
    evaluate,
    frame::{Frame, FrameLayout, Matches},
    probe::ProbeStep,
    select::{Selection, SelectionState},
    sink::{SinkOperator, sink},
};

/// A pipeline ready to run over morsels, from any number of workers at once.
pub struct Job {
    pub(crate) physical: Arc<Physical>,
    table: Arc<Table>,
    pub(crate) settings: Settings,
    pub(crate) layout: FrameLayout,
    first: Selection,
    pub(crate) operations: Vec<Operation>,
    pub(crate) sink: Box<dyn SinkOperator>,
    /// Rows that a plain limit has so far.
    emitted: AtomicUsize,
}

pub(crate) enum Operation {
    Select(Selection),
    Let { counter: usize, first: SlotId, exprs: Vec<Expr> },
    Probe(Box<ProbeStep>),
}

/// One worker's state of a job.
pub struct Worker {
    pub(crate) contribution: Contribution,
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
        let layout =
            FrameLayout { physical: physical.clone(), patterns: Default::default(), memory: settings.memory.clone() };
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

    /// Returns what it may use, and what stops it.
    pub fn settings(&self) -> &Settings {
        &self.settings
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
        if self.sink.excludes(part, start) {
            return Ok(());
        }
        let covered = self.first.covered(part, start);
        let (mut start, end) = (start, start + count);
        // Rows that pass the first selection wait here until they fill a vector, so that what follows has enough to do.
        let mut waiting = Vec::new();
        while start < end {
            if self.has_enough() {
                return Ok(());
            }
            self.settings.cancel.check()?;
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
    pub(crate) fn advance<'j>(
        &'j self,
        into: &mut Contribution,
        mut frame: Frame<'j>,
        at: usize,
        morsel: usize,
    ) -> Result<()> {
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
