//! A job as plain data for a generated kernel, and the groups that such a kernel counted.
//!
//! A device is one more worker of a job: it takes some of its rows, and its table of groups is merged with those of the
//! other workers.

use std::{
    rc::Rc,
    sync::{Arc, atomic::Ordering},
};

use tandem_column::{Column, Data, Dictionary, Repr, Result, Table};
use tandem_pipeline::{
    Expr, SlotId,
    fused::{Accumulator, Fused, FusedSink, FusedStep, Lookup, Origin as FusedOrigin},
};

use crate::{
    Error, Job, Values, Vector,
    build::Lookup as BuildLookup,
    filter::Filter,
    frame::Origin,
    job::{Operation, SinkPlan, SinkState, Worker},
    set::Set,
};

/// The numbers of one column, and its null flags if it has some.
pub type Numbers = (Vec<i64>, Option<Vec<u8>>);

impl Job {
    /// Describes the job for a kernel.
    ///
    /// # Errors
    /// Unsupported, with the reason, for jobs that no kernel computes yet.
    pub fn fused(&self) -> Result<Fused> {
        let mut steps = Vec::new();
        let mut sets = 0;
        let mut general = Vec::new();
        for filter in self.first.filters() {
            match filter {
                Filter::Between { slot, low, high } => {
                    steps.push(FusedStep::Between { column: self.column(*slot)?, low: *low, high: *high });
                }
                Filter::Member { slot, .. } => {
                    steps.push(FusedStep::Member { column: self.column(*slot)?, set: sets });
                    sets += 1;
                }
                Filter::General(expr) => general.push(FusedStep::Filter(expr.clone())),
            }
        }
        steps.append(&mut general);
        for operation in &self.operations {
            match operation {
                Operation::Let { first, exprs, .. } => {
                    steps.push(FusedStep::Let { first: *first, exprs: exprs.clone() });
                }
                Operation::Select(selection) => {
                    for filter in selection.filters() {
                        let Filter::General(expr) = filter else {
                            return Err(Error::unsupported("filters behind an outer join are not on the device yet"));
                        };
                        steps.push(FusedStep::Filter(expr.clone()));
                    }
                }
                Operation::Probe(_) => {
                    return Err(Error::unsupported("joins other than by dense unique keys are not on the device yet"));
                }
            }
        }
        let lookups = self.direct.iter().map(|direct| Lookup { column: direct.column, min: direct.min }).collect();
        let origins = self.layout.origins.iter().map(|origin| match origin {
            Origin::Source(column) => FusedOrigin::Column(*column),
            Origin::Payload { step, payload } => match self.direct.iter().position(|direct| direct.step == *step) {
                Some(lookup) => FusedOrigin::Payload { lookup, payload: *payload },
                None => FusedOrigin::Computed,
            },
            Origin::Computed => FusedOrigin::Computed,
        });
        let sink = match &self.sink {
            SinkPlan::Aggregate(plan) => plan.fused()?,
            _ => FusedSink::Rows { values: self.collected() },
        };
        Ok(Fused { slots: self.layout.slots.clone(), origins: origins.collect(), lookups, steps, sink })
    }

    /// Returns what a sink other than an aggregation collects of each row.
    fn collected(&self) -> Vec<Expr> {
        let slots = |slots: &[SlotId]| slots.iter().copied().map(Expr::Slot).collect::<Vec<_>>();
        match &self.sink {
            SinkPlan::Build { keys, payload, .. } => keys.iter().cloned().chain(slots(payload)).collect(),
            SinkPlan::Sort { keys, output, .. } => {
                keys.iter().map(|key| Expr::Slot(key.slot)).chain(slots(output)).collect()
            }
            SinkPlan::Materialize { output, .. } => slots(output),
            SinkPlan::Aggregate(_) => Vec::new(),
        }
    }

    /// Says what is left to the processor when a device has computed the rows; `None` if nothing is.
    pub fn rest(&self) -> Option<&'static str> {
        match &self.sink {
            SinkPlan::Build { .. } => Some("the table of the join is laid out by the processor"),
            SinkPlan::Sort { .. } => Some("the rows are sorted by the processor"),
            SinkPlan::Aggregate(_) | SinkPlan::Materialize { .. } => None,
        }
    }

    /// Tells whether a limit has all the rows it wants.
    pub fn has_enough(&self) -> bool {
        self.enough.is_some_and(|enough| self.emitted.load(Ordering::Relaxed) >= enough)
    }

    /// Adds rows that a kernel computed of a part to a worker's: 64-bit numbers (codes, for text; bits, for floats), and
    /// bytes that are 1 where a value is null.
    pub fn collect(&self, worker: &mut Worker, part: usize, rows: usize, columns: Vec<Numbers>) -> Result<()> {
        let exprs = self.collected();
        let (SinkState::Collect(collector), true) = (&mut worker.sink, exprs.len() == columns.len()) else {
            return Err(Error::internal("an aggregation takes no rows"));
        };
        let mut vectors = Vec::with_capacity(columns.len());
        for (expr, (numbers, nulls)) in exprs.iter().zip(columns) {
            let kind = expr.kind(&self.layout.slots);
            let values = match kind.repr() {
                Repr::Boolean => Values::Boolean(numbers.iter().map(|number| *number as u8).collect()),
                Repr::Int => Values::Int(numbers),
                Repr::Float => Values::Float(numbers.iter().map(|number| f64::from_bits(*number as u64)).collect()),
                _ => {
                    let dictionary =
                        self.dictionary(expr, part).ok_or_else(|| Error::internal("codes without words"))?;
                    // Nulls have any code.
                    let last = dictionary.len().saturating_sub(1) as i64;
                    let codes = numbers.iter().map(|number| (*number).clamp(0, last) as u32).collect();
                    Values::Code { codes, dictionary }
                }
            };
            let valid: Option<Vec<u8>> = nulls.map(|nulls| nulls.iter().map(|null| 1 - null).collect());
            vectors.push(Rc::new(Vector { values, valid: valid.filter(|valid| valid.contains(&0)) }));
        }
        collector.push(part, rows, &vectors)?;
        self.emitted.fetch_add(rows, Ordering::Relaxed);
        worker.rows_out += rows as u64;
        let counter = worker.counters.last_mut().expect("the sink has a counter");
        counter.rows_in += rows as u64;
        Ok(())
    }

    fn dictionary(&self, expr: &Expr, part: usize) -> Option<Arc<Dictionary>> {
        let Expr::Slot(slot) = expr else { return None };
        let column = match &self.layout.origins[*slot] {
            Origin::Source(column) => &*self.table.parts[part].columns[*column],
            Origin::Payload { step, payload } => &self.layout.builds[*step].as_ref()?.payload[*payload],
            Origin::Computed => return None,
        };
        match &column.data {
            Data::Dictionary { dictionary, .. } => Some(dictionary.clone()),
            _ => None,
        }
    }

    fn column(&self, slot: usize) -> Result<usize> {
        match self.layout.origins[slot] {
            Origin::Source(column) => Ok(column),
            _ => Err(Error::internal("encoded filters read source columns")),
        }
    }

    /// Returns the source's rows.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns a payload column of a lookup.
    pub fn payload(&self, lookup: usize, payload: usize) -> Option<&Column> {
        let build = self.layout.builds[self.direct.get(lookup)?.step].as_ref()?;
        build.payload.get(payload)
    }

    /// Returns how many payload columns a lookup has, with its entries' bounds: values `min ..= max` have an entry.
    pub fn lookup(&self, lookup: usize) -> Option<(usize, i64, i64)> {
        let build = self.layout.builds[self.direct.get(lookup)?.step].as_ref()?;
        let BuildLookup::Unique(set) = &build.lookup else { return None };
        Some((build.payload.len(), set.min, set.min.saturating_add_unsigned(set.domain.saturating_sub(1))))
    }

    /// Lays out the members of a set as bits from `low` on, for values up to `high`.
    pub fn set_bits(&self, set: usize, low: i64, high: i64) -> Vec<u32> {
        let mut sets = self.first.filters().filter_map(|filter| match filter {
            Filter::Member { set, .. } => Some(set.as_ref()),
            _ => None,
        });
        sets.nth(set).map_or_else(Vec::new, |set: &Set| set.words(low, high))
    }

    /// Tells which morsels a part's rows are left in: a kernel takes whole parts, so all of them or none.
    pub fn parts(&self) -> Vec<usize> {
        let mut parts: Vec<usize> = self.morsels.iter().map(|morsel| morsel.part).collect();
        parts.dedup();
        parts
    }

    /// Adds the groups that a kernel counted to a worker's.
    pub fn absorb(
        &self,
        worker: &mut Worker,
        numbers: &[i64],
        width: usize,
        accumulators: &[Accumulator],
    ) -> Result<()> {
        match (&self.sink, &mut worker.sink) {
            (SinkPlan::Aggregate(plan), SinkState::Aggregate(state)) => {
                worker.rows_out += plan.absorb(state, numbers, width, accumulators);
                Ok(())
            }
            _ => Err(Error::internal("only an aggregation takes groups")),
        }
    }
}
