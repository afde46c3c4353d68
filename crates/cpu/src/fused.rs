//! A job as plain data for a generated kernel, and the groups that such a kernel counted.
//!
//! A device is one more worker of a job: it takes some of its rows, and its table of groups is merged with those of the
//! other workers.

use tandem_column::{Column, Result, Table};
use tandem_pipeline::fused::{Accumulator, Fused, FusedStep, Lookup, Origin as FusedOrigin};

use crate::{
    Error, Job,
    build::Lookup as BuildLookup,
    filter::Filter,
    frame::Origin,
    job::{Operation, SinkPlan, SinkState, Worker},
    set::Set,
};

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
            SinkPlan::Build { .. } => {
                return Err(Error::unsupported("building a join's table is not on the device yet"));
            }
            SinkPlan::Sort { .. } => return Err(Error::unsupported("sorting is not on the device yet")),
            SinkPlan::Materialize { .. } => {
                return Err(Error::unsupported("returning rows is not on the device yet"));
            }
        };
        Ok(Fused { slots: self.layout.slots.clone(), origins: origins.collect(), lookups, steps, sink })
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
