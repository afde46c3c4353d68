//! A job as plain data for a generated kernel. A device is one more worker of a job: `absorb` takes what it computed.

use std::sync::{Arc, atomic::Ordering};

use tandem_column::{Column, Data, Repr, Result, Table};
use tandem_pipeline::{
    Expr, Slot, SlotId, SortKey,
    fused::{Fused, FusedProbe, FusedSink, FusedStep, KeyOf, Lookup, OrderKey, Origin as FusedOrigin, Way},
};

use crate::{
    Error, Job,
    build::{Build, Lookup as BuildLookup},
    directory::Keys,
    filter::Filter,
    frame::Origin,
    job::{Operation, SinkPlan, Worker},
    set::Set,
};

/// The most bytes of text that rows are sorted by on a device, eight for each 64-bit ordinal of a row: beyond, ordinals take
/// more memory than rows.
const MOST_ORDERED: usize = 64;

impl Job {
    /// Describes the job for a kernel.
    ///
    /// # Errors
    /// Unsupported, with the reason, for jobs that no kernel computes yet.
    pub fn fused(&self) -> Result<Fused> {
        let mut encoded: Vec<(f64, FusedStep)> = Vec::new();
        let mut sets = 0;
        let mut general = Vec::new();
        let mut probed = Vec::new();
        for filter in self.first.filters() {
            let kept = self.kept_share(filter);
            match filter {
                Filter::Between { slot, low, high } => {
                    let column = self.column(*slot)?;
                    encoded.push((kept, FusedStep::Between { column, low: *low, high: *high }));
                }
                Filter::Member { slot, .. } => {
                    encoded.push((kept, FusedStep::Member { column: self.column(*slot)?, set: sets }));
                    sets += 1;
                }
                Filter::General(expr) => general.push(FusedStep::Filter(expr.clone())),
            }
        }
        // What drops most rows comes first: later columns are read only for the rows that are left.
        encoded.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        let mut steps: Vec<FusedStep> = encoded.into_iter().map(|(_, step)| step).collect();
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
            SinkPlan::Aggregate(plan) => plan.fused(&|slot| match &self.layout.origins[slot] {
                Origin::Source(_) => {
                    // One more number is for build rows, which have no source row.
                    let numbers = self.table.rows() as u64 + u64::from(self.has_leftovers());
                    Some((KeyOf::Row, numbers)).filter(|(_, numbers)| *numbers < 1 << 31)
                }
                Origin::Payload { step, .. } => {
                    let lookup = steps_of.iter().position(|known| known == step)?;
                    Some((KeyOf::Entry(lookup), self.build_of(lookup)?.entries() as u64 + 1))
                }
                Origin::Computed => None,
            })?,
            SinkPlan::Sort { keys, .. } => FusedSink::Rows { values: self.collected(), order: self.order(keys)? },
            _ => FusedSink::Rows { values: self.collected(), order: Vec::new() },
        };
        let ranges = self.domains.iter().map(|domain| domain.range.filter(|_| domain.dictionary.is_none()));
        let mut slots = self.layout.slots.clone();
        // In build rows without a source row, all slots before their join are null.
        for (slot, domain) in slots.iter_mut().zip(&self.domains).filter(|_| self.has_leftovers()) {
            slot.nullable |= domain.nullable;
        }
        Ok(Fused { slots, ranges: ranges.collect(), origins: origins.collect(), lookups, steps, sink })
    }

    /// Guesses which share of rows a filter keeps, as if values were spread evenly.
    fn kept_share(&self, filter: &Filter) -> f64 {
        let span = |low: i64, high: i64| high as f64 - low as f64 + 1.0;
        let whole = |slot: SlotId| self.domains[slot].range.map_or(f64::INFINITY, |(low, high)| span(low, high));
        match filter {
            Filter::Between { slot, low, high } => span(*low, *high) / whole(*slot),
            Filter::Member { slot, set } => set.len() as f64 / whole(*slot),
            Filter::General(_) => 1.0,
        }
    }

    /// Tells whether the rows are those of a table that others look up: its columns are worth a copy on the device.
    pub fn is_reference(&self) -> bool {
        let joins = !self.lookup_steps().is_empty();
        matches!(self.sink, SinkPlan::Build { .. }) && !joins
    }

    /// Describes an order whose keys are the first values of each row.
    fn order(&self, keys: &[SortKey]) -> Result<Vec<OrderKey>> {
        let key = |(value, key): (usize, &SortKey)| {
            let text = self.layout.slots[key.slot].kind.repr() == Repr::Bytes;
            let plain = text && self.domains[key.slot].dictionary.is_none();
            let longest = if plain { Some(self.longest_text(key.slot)?) } else { None };
            Ok(OrderKey { value, descending: key.descending, nulls_first: key.nulls_first, longest })
        };
        keys.iter().enumerate().map(key).collect()
    }

    /// Returns the bytes of a slot's longest text, if a device sorts by texts of so many.
    fn longest_text(&self, slot: SlotId) -> Result<usize> {
        let payload = match &self.layout.origins[slot] {
            Origin::Payload { step, payload } => {
                self.layout.builds[*step].as_ref().map(|build| &build.payload[*payload])
            }
            _ => None,
        };
        let columns: Vec<&Arc<Column>> = match &self.layout.origins[slot] {
            Origin::Source(column) => self.table.parts.iter().map(|part| &part.columns[*column]).collect(),
            Origin::Payload { .. } => payload.into_iter().collect(),
            Origin::Computed => return Err(Error::unsupported("an order by computed text is not on the device yet")),
        };
        let longest = columns.iter().map(|column| match &column.data {
            Data::Bytes { offsets, .. } => offsets.windows(2).map(|ends| ends[1] - ends[0]).max(),
            _ => None,
        });
        match longest.flatten().max().unwrap_or(0) as usize {
            longest if longest <= MOST_ORDERED => Ok(longest),
            longest => Err(Error::unsupported(format!("an order by text of {longest} bytes is not on the device yet"))),
        }
    }

    /// Returns how many of the rows in order are wanted; `None` for rows in any order.
    pub fn in_order(&self) -> Option<usize> {
        match &self.sink {
            SinkPlan::Sort { skip, fetch, .. } => Some(fetch.map_or(usize::MAX, |fetch| skip.saturating_add(fetch))),
            _ => None,
        }
    }

    /// Returns what a sink other than an aggregation collects of each row.
    pub(crate) fn collected(&self) -> Vec<Expr> {
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

    /// Says what is left to the processor when devices have computed the rows; `None` if nothing is.
    pub fn rest(&self, workers: &[Worker]) -> Option<&'static str> {
        let rows = workers.iter().any(|worker| worker.rows_out > 0);
        match &self.sink {
            SinkPlan::Build { .. } if rows && workers.iter().all(|worker| worker.built.is_none()) => {
                Some("the table of the join is laid out by the processor")
            }
            SinkPlan::Sort { .. } if rows && !workers.iter().all(|worker| worker.sorted) => {
                Some("the rows of several devices are sorted by the processor")
            }
            _ if self.has_leftovers() && !workers.iter().any(|worker| worker.leftovers) => {
                Some("build rows of an outer join are added by the processor")
            }
            _ => None,
        }
    }

    /// Tells whether build rows come out at the end.
    pub fn has_leftovers(&self) -> bool {
        let leftovers = |operation: &Operation| matches!(operation, Operation::Probe(probe) if probe.matched.is_some());
        self.operations.iter().any(leftovers)
    }

    /// Tells whether a limit has all the rows it wants.
    pub fn has_enough(&self) -> bool {
        self.enough.is_some_and(|enough| self.emitted.load(Ordering::Relaxed) >= enough)
    }

    /// Forgets what a device's worker counted towards a limit before it failed: its rows are lost.
    pub fn begin_again(&self) {
        self.emitted.store(0, Ordering::Relaxed);
    }

    pub(crate) fn column(&self, slot: usize) -> Result<usize> {
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
    pub(crate) fn lookup_steps(&self) -> Vec<usize> {
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

    /// Lays out the members of a set as bits from `low` on, for values up to `high`.
    pub fn set_bits(&self, set: usize, low: i64, high: i64) -> Vec<u32> {
        let mut sets = self.first.filters().filter_map(|filter| match filter {
            Filter::Member { set, .. } => Some(set.as_ref()),
            _ => None,
        });
        sets.nth(set).map_or_else(Vec::new, |set: &Set| set.words(low, high.wrapping_sub(low) as u64))
    }

    /// Returns the parts that have rows to compute: a kernel takes whole parts.
    pub fn parts(&self) -> Vec<usize> {
        let mut parts: Vec<usize> = self.morsels.iter().map(|morsel| morsel.part).collect();
        parts.dedup();
        parts
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
                Keys::Packed { packing, .. } => match (packing.clone(), directory.bits()) {
                    // One bucket is all entries in the order of their keys.
                    (packing, 0) => Way::Sorted { packing, keyed: directory.starts[1] as usize },
                    (packing, bits) => Way::Hash { packing, bits },
                },
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
    pub fn columns(&self) -> &[Arc<Column>] {
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
                set.words(set.min, set.domain - 1)
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
