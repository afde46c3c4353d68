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
    Expr, Slot, SlotId,
    fused::{Accumulator, Fused, FusedProbe, FusedSink, FusedStep, Lookup, Origin as FusedOrigin, Way},
};

use crate::{
    Error, Job, Values, Vector,
    build::{Build, Lookup as BuildLookup},
    directory::Keys,
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
        let mut probed = Vec::new();
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
                Operation::Probe(probe) => {
                    probed.push(probe);
                    steps.push(FusedStep::Probe(FusedProbe {
                        lookup: self.direct.len() + probed.len() - 1,
                        kind: probe.kind,
                        keys: probe.keys.clone(),
                        residual: probe.residual.clone(),
                        first: probe.first,
                        null_equals_null: probe.null_equals_null,
                        null_aware: probe.null_aware,
                    }));
                }
            }
        }
        let steps_of = self.lookup_steps();
        let mut lookups = Vec::with_capacity(steps_of.len());
        for (lookup, step) in steps_of.iter().enumerate() {
            let build = self.build_of(lookup).ok_or_else(|| Error::internal("a lookup has no build"))?;
            let way = self.direct.iter().find(|direct| direct.step == *step);
            lookups.push(build.fused(way.map(|direct| Way::Column { column: direct.column, min: direct.min }))?);
        }
        let origins = self.layout.origins.iter().map(|origin| match origin {
            Origin::Source(column) => FusedOrigin::Column(*column),
            Origin::Payload { step, payload } => match steps_of.iter().position(|known| known == step) {
                Some(lookup) => FusedOrigin::Payload { lookup, payload: *payload },
                None => FusedOrigin::Computed,
            },
            Origin::Computed => FusedOrigin::Computed,
        });
        let sink = match &self.sink {
            SinkPlan::Aggregate(plan) => plan.fused()?,
            _ => FusedSink::Rows { values: self.collected() },
        };
        let (slots, ranges) = (self.layout.slots.clone(), self.ranges.clone());
        Ok(Fused { slots, ranges, origins: origins.collect(), lookups, steps, sink })
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
        let leftovers = |operation: &Operation| matches!(operation, Operation::Probe(probe) if probe.matched.is_some());
        match &self.sink {
            SinkPlan::Build { .. } => Some("the table of the join is laid out by the processor"),
            SinkPlan::Sort { .. } => Some("the rows are sorted by the processor"),
            _ if self.operations.iter().any(leftovers) => {
                Some("build rows of an outer join are added by the processor")
            }
            SinkPlan::Aggregate(_) | SinkPlan::Materialize { .. } => None,
        }
    }

    /// Tells whether a limit has all the rows it wants.
    pub fn has_enough(&self) -> bool {
        self.enough.is_some_and(|enough| self.emitted.load(Ordering::Relaxed) >= enough)
    }

    /// Forgets what a device's worker counted towards a limit before it failed: its rows are lost.
    pub fn begin_again(&self) {
        self.emitted.store(0, Ordering::Relaxed);
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

    /// Returns the step of each lookup: those by a source column first, then the others in order.
    fn lookup_steps(&self) -> Vec<usize> {
        let probes = self.operations.iter().filter_map(|operation| match operation {
            Operation::Probe(probe) => Some(probe.step),
            _ => None,
        });
        self.direct.iter().map(|direct| direct.step).chain(probes).collect()
    }

    /// Returns the build of a lookup.
    pub fn build_of(&self, lookup: usize) -> Option<&Build> {
        self.layout.builds[*self.lookup_steps().get(lookup)?].as_deref()
    }

    /// Notes which entries of a lookup's build met a row of a device: those with a flag that is not 0.
    pub fn mark(&self, lookup: usize, flags: &[u8]) {
        let step = self.lookup_steps().get(lookup).copied();
        let matched = self.operations.iter().find_map(|operation| match operation {
            Operation::Probe(probe) if Some(probe.step) == step => probe.matched.as_ref(),
            _ => None,
        });
        for (matched, _) in matched.into_iter().flatten().zip(flags).filter(|(_, flag)| **flag != 0) {
            matched.store(1, Ordering::Relaxed);
        }
    }

    /// Lays out the members of a set as bits from `low` on, for values up to `high`.
    pub fn set_bits(&self, set: usize, low: i64, high: i64) -> Vec<u32> {
        let mut sets = self.first.filters().filter_map(|filter| match filter {
            Filter::Member { set, .. } => Some(set.as_ref()),
            _ => None,
        });
        sets.nth(set).map_or_else(Vec::new, |set: &Set| set.words(low, high))
    }

    /// Returns the parts that have rows to compute: a kernel takes whole parts.
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

impl Build {
    /// Describes the build for a kernel; `way` says how rows lead into it if a source column does.
    fn fused(&self, way: Option<Way>) -> Result<Lookup> {
        let way = match (way, &self.lookup) {
            (Some(way), _) => way,
            (None, BuildLookup::All) => Way::All(self.rows),
            (None, BuildLookup::Unique(set)) => Way::Unique { min: set.min, domain: set.domain },
            (None, BuildLookup::Dense { set, .. }) => Way::Dense { min: set.min, domain: set.domain },
            (None, BuildLookup::Hash(directory)) => match &directory.keys {
                Keys::Packed { packing, .. } => Way::Hash { packing: packing.clone(), bits: directory.bits() },
                Keys::Bytes(_) => {
                    return Err(Error::unsupported("joins by keys that do not fit 64 bits are not on the device yet"));
                }
            },
        };
        let payload = self.payload.iter().map(|column| Slot {
            name: String::new(),
            kind: column.kind.clone(),
            nullable: column.validity.is_some(),
        });
        let (empty, null_key) = (self.rows == 0, self.null_key);
        Ok(Lookup { way, payload: payload.collect(), unique: self.is_unique(), empty, null_key })
    }

    /// Returns the payload columns.
    pub fn columns(&self) -> &[Column] {
        &self.payload
    }

    /// Returns how many entries there are, for flags of each.
    pub fn entries(&self) -> usize {
        match &self.lookup {
            BuildLookup::Unique(set) => self.entries.max(set.domain as usize),
            _ => self.entries,
        }
    }

    /// Returns the keys of a set as bits from its smallest on.
    pub fn key_bits(&self) -> Vec<u32> {
        match &self.lookup {
            BuildLookup::Unique(set) | BuildLookup::Dense { set, .. } if set.domain > 0 => {
                set.words(set.min, set.min.saturating_add_unsigned(set.domain - 1))
            }
            _ => vec![0],
        }
    }

    /// Returns where the entries of each place or bucket begin.
    pub fn starts(&self) -> &[u32] {
        match &self.lookup {
            BuildLookup::Dense { starts, .. } => starts,
            BuildLookup::Hash(directory) => &directory.starts,
            _ => &[],
        }
    }

    /// Returns the packed key of each entry.
    pub fn packed_keys(&self) -> &[u64] {
        match &self.lookup {
            BuildLookup::Hash(directory) => match &directory.keys {
                Keys::Packed { values, .. } => values,
                Keys::Bytes(_) => &[],
            },
            _ => &[],
        }
    }
}
