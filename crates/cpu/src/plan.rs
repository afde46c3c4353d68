//! From a pipeline and statistics to a [`Job`]: which choice each step gets.

use std::sync::{
    Arc,
    atomic::{AtomicU8, AtomicUsize},
};

use tandem_column::{BLOCK_ROWS, Data, Field, Repr, Result, Table};
use tandem_pipeline::{Expr, JoinKind, Pipeline, PipelineId, Probe, Query, Sink, SlotId, Source, Step, range::Range};

use crate::{
    aggregate::AggregatePlan,
    build::{Build, Lookup, Use},
    filter::{self, Filter},
    frame::{Layout, Origin},
    job::{Direct, Job, Morsel, Operation, Settings, SinkPlan},
    kernel,
    probe::ProbeStep,
    range::{self, Domain},
    select::{Placed, Selection},
    set::CodeSet,
};

/// What is decided so far.
pub(crate) struct Planner<'q> {
    query: &'q Query,
    pipeline: &'q Pipeline,
    table: Arc<Table>,
    settings: Settings,
    layout: Layout,
    domains: Vec<Domain>,
    direct: Vec<Direct>,
    first: Selection,
    operations: Vec<Operation>,
    labels: Vec<String>,
    notes: Vec<String>,
    /// A step before emits build rows at the end: later filters must see those too and stay in place.
    outer: bool,
    /// Some filter is false for every row.
    never: bool,
    /// Rows may repeat, so sums may be larger than the source's rows suggest.
    most_rows: usize,
}

impl<'q> Planner<'q> {
    pub(crate) fn new(query: &'q Query, pipeline: &'q Pipeline, table: Arc<Table>, settings: &Settings) -> Self {
        let columns = pipeline.source_columns();
        let origins =
            (0..pipeline.slots.len()).map(|slot| if slot < columns { Origin::Source(slot) } else { Origin::Computed });
        let layout = Layout {
            slots: pipeline.slots.clone(),
            origins: origins.collect(),
            builds: vec![None; pipeline.steps.len()],
            live: pipeline.liveness(),
            memory: settings.memory.clone(),
        };
        let domains = (0..pipeline.slots.len()).map(|slot| {
            let kind = Some(pipeline.slots[slot].kind.clone());
            if slot >= columns {
                return Domain { kind, range: None, nullable: true, dictionary: None };
            }
            let dictionary = match table.parts.first().map(|part| &part.columns[slot].data) {
                Some(Data::Dictionary { dictionary, .. }) => Some(dictionary.clone()),
                _ => None,
            };
            let range = match &dictionary {
                Some(dictionary) => Some((0, dictionary.len() as i64 - 1)).filter(|r| r.1 >= 0),
                None => table.statistics[slot].range,
            };
            // A float's range is in the order of its bits, not of its value.
            let range = range.filter(|_| dictionary.is_some() || pipeline.slots[slot].kind.repr() != Repr::Float);
            Domain { kind, range, nullable: filter::has_nulls(&table, slot), dictionary }
        });
        let most_rows = table.rows();
        Planner {
            query,
            pipeline,
            domains: domains.collect(),
            table,
            settings: settings.clone(),
            layout,
            direct: Vec::new(),
            first: Selection::default(),
            operations: Vec::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            outer: false,
            never: false,
            most_rows,
        }
    }

    fn label(&mut self, label: String) -> usize {
        self.labels.push(label);
        self.labels.len() - 1
    }

    fn describe(&self, expr: &Expr) -> String {
        expr.display(&self.pipeline.slots).to_string()
    }

    /// Plans a filter step.
    pub(crate) fn filter(&mut self, step: usize, expr: &Expr) {
        let expr = range::drop_checks(expr, &self.domains);
        // Statistics do not know the nulls of build rows without a source row, which reach this filter too.
        let filters = match self.outer {
            true => Some(vec![Filter::General(expr.clone())]),
            false => filter::compile(&expr, &self.layout, &self.table, &self.query.functions),
        };
        let Some(filters) = filters else {
            self.notes.push(format!("no row satisfies {}", self.describe(&expr)));
            self.never = true;
            return;
        };
        for filter in filters {
            let text = match &filter {
                Filter::Between { slot, low, high } if low == high => {
                    format!("filter {} at one code", self.layout.slots[*slot].name)
                }
                Filter::Between { slot, low, high } => {
                    format!("filter {} in a range of {} codes", self.layout.slots[*slot].name, high.wrapping_sub(*low))
                }
                Filter::Member { slot, set } => {
                    format!("filter {} in a set of {} codes", self.layout.slots[*slot].name, set.len())
                }
                Filter::General(expr) => format!("filter {}", self.describe(expr)),
            };
            let counter = self.label(text);
            self.select(filter, step, counter);
        }
    }

    /// Puts a filter where it runs: encoded ones at the very front, unless build rows without a source row come later
    /// and must pass it too.
    fn select(&mut self, filter: Filter, step: usize, counter: usize) {
        let encoded = !matches!(filter, Filter::General(_));
        // Other conjuncts of the same step may still read what is live before it.
        let placed = Placed { aligned: self.align(&filter), filter, step: step.saturating_sub(1), counter };
        if !self.outer && (encoded || self.operations.is_empty()) {
            return self.first.push(placed);
        }
        match self.operations.last_mut() {
            Some(Operation::Select(selection)) => selection.push(placed),
            _ => {
                let mut selection = Selection::default();
                selection.push(placed);
                self.operations.push(Operation::Select(selection));
            }
        }
    }

    /// Lays a set filter out for its column's codes, if every part counts them from the same value.
    fn align(&self, filter: &Filter) -> Option<CodeSet> {
        let Filter::Member { slot, set } = filter else { return None };
        let Origin::Source(column) = self.layout.origins[*slot] else { return None };
        let mut parts = self.table.parts.iter().map(|part| kernel::encoded(&part.columns[column]));
        let (base, codes) = parts.next()??;
        let mut width = codes.width();
        for part in parts {
            let (_, codes) = part.filter(|(other, _)| *other == base)?;
            width = width.max(codes.width());
        }
        let (low, high) = self.domains[*slot].range?;
        // Values below the base have codes that wrap around.
        let last = high.checked_sub(base).filter(|_| low >= base)?;
        // A set of more codes than the table has rows is not worth the laying out.
        u64::try_from(last)
            .ok()
            .filter(|last| *last <= self.table.rows() as u64)
            .map(|last| CodeSet::new(set, base, width, last))
    }

    /// Plans a step that adds slots.
    pub(crate) fn add(&mut self, first: SlotId, exprs: &[Expr]) {
        let exprs: Vec<Expr> = exprs.iter().map(|expr| range::drop_checks(expr, &self.domains)).collect();
        for (i, expr) in exprs.iter().enumerate() {
            let narrow = |range: Range| Some((i64::try_from(range.low).ok()?, i64::try_from(range.high).ok()?));
            let mut slots = expr.slots().into_iter();
            let nullable = match expr {
                Expr::Arithmetic(_) | Expr::Slot(_) | Expr::Cast { .. } | Expr::Literal(..) => {
                    slots.any(|slot| self.domains[slot].nullable) || expr.nullable(&self.known_slots())
                }
                _ => expr.nullable(&self.known_slots()),
            };
            let domain = match expr {
                Expr::Slot(slot) => self.domains[*slot].clone(),
                _ => Domain {
                    kind: Some(self.layout.slots[first + i].kind.clone()),
                    range: range::range(expr, &self.domains).and_then(narrow),
                    nullable,
                    dictionary: None,
                },
            };
            self.domains[first + i] = domain;
        }
        let text: Vec<String> = exprs.iter().map(|expr| self.describe(expr)).collect();
        let counter = self.label(format!("let {}", text.join(", ")));
        self.operations.push(Operation::Let { counter, first, exprs });
    }

    /// Returns the slots with what is known of their nulls.
    fn known_slots(&self) -> Vec<tandem_pipeline::Slot> {
        let mut slots = self.pipeline.slots.clone();
        slots.iter_mut().zip(&self.domains).for_each(|(slot, domain)| slot.nullable = domain.nullable);
        slots
    }

    /// Plans a probe.
    pub(crate) fn probe(&mut self, step: usize, first: SlotId, probe: &Probe, build: Arc<Build>) {
        let nullable = matches!(probe.kind, JoinKind::Left | JoinKind::Full);
        for (i, payload) in probe.adds.iter().enumerate() {
            if probe.kind == JoinKind::Mark {
                break;
            }
            let column = &build.payload[*payload];
            self.layout.origins[first + i] = Origin::Payload { step, payload: *payload };
            let dictionary = match &column.data {
                Data::Dictionary { dictionary, .. } => Some(dictionary.clone()),
                _ => None,
            };
            self.domains[first + i] = Domain {
                kind: Some(column.kind.clone()),
                range: build.ranges[*payload],
                nullable: nullable || column.validity.is_some(),
                dictionary,
            };
        }
        self.layout.builds[step] = Some(build.clone());
        let name = format!("probe {} {}", probe.kind.name(), probe.build);
        if self.probe_directly(step, probe, &build, &name) {
            return;
        }
        if probe.kind.emits_build_rows() {
            self.outer = true;
            self.domains[..first].iter_mut().for_each(|domain| domain.nullable = true);
        }
        let most = if build.is_unique() { 1 } else { build.rows.max(1) };
        self.most_rows = self.most_rows.saturating_mul(most).saturating_add(build.rows);
        let matched = probe.kind.emits_build_rows().then(|| (0..build.entries()).map(|_| AtomicU8::new(0)).collect());
        let keys: Vec<String> = probe.keys.iter().map(|key| self.describe(key)).collect();
        self.notes.push(format!("{name}: {}", build.note()));
        let counter = self.label(format!("{name} on {}", keys.join(", ")));
        self.operations.push(Operation::Probe(Box::new(ProbeStep {
            step,
            counter,
            build,
            kind: probe.kind,
            keys: probe.keys.iter().map(|key| range::drop_checks(key, &self.domains)).collect(),
            residual: probe.residual.clone(),
            first,
            null_equals_null: probe.null_equals_null,
            null_aware: probe.null_aware,
            matched,
        })));
    }

    /// Turns an inner or semi probe of a dense build by a source column into a filter; its payload is then found by the
    /// column's value alone.
    fn probe_directly(&mut self, step: usize, probe: &Probe, build: &Arc<Build>, name: &str) -> bool {
        let (Lookup::Unique(set), [Expr::Slot(key)], None) = (&build.lookup, probe.keys.as_slice(), &probe.residual)
        else {
            return false;
        };
        let Origin::Source(column) = self.layout.origins[*key] else { return false };
        let encoded = self.table.parts.iter().all(|part| matches!(part.columns[column].data, Data::Int { .. }));
        if self.outer || !encoded || !matches!(probe.kind, JoinKind::Inner | JoinKind::Semi) {
            return false;
        }
        if !probe.adds.is_empty() {
            self.direct.push(Direct { step, column, min: set.min });
        }
        let key_name = &self.layout.slots[*key].name;
        match filter::membership(*key, column, &self.table, set) {
            None => {
                self.notes.push(format!("{name}: no row has a match"));
                self.never = true;
            }
            Some(None) => self.notes.push(format!("{name}: {}; every {key_name} has a match", build.note())),
            Some(Some(filter)) => {
                let how = match &filter {
                    Filter::Between { .. } => format!("matches of {key_name} are one range of its values"),
                    _ => format!("matches of {key_name} are a set"),
                };
                self.notes.push(format!("{name}: {}; {how}", build.note()));
                let counter = self.label(format!("{name} on {key_name}"));
                self.select(filter, step, counter);
            }
        }
        true
    }

    pub(crate) fn finish(mut self, id: PipelineId) -> Result<Job> {
        let output: Arc<[Field]> = self
            .pipeline
            .output()
            .into_iter()
            .map(|slot| Field { name: slot.name, kind: slot.kind, nullable: slot.nullable })
            .collect();
        let kinds = |slots: &[SlotId]| slots.iter().map(|s| self.layout.slots[*s].kind.clone()).collect::<Vec<_>>();
        let mut enough = None;
        let sink = match &self.pipeline.sink {
            Sink::Build { keys, payload } => SinkPlan::Build {
                kinds: keys
                    .iter()
                    .map(|key| key.kind(&self.layout.slots))
                    .chain(payload.iter().map(|slot| self.layout.slots[*slot].kind.clone()))
                    .collect(),
                keys: keys.clone(),
                payload: payload.clone(),
                used: use_of(self.query, id, self.settings.force_collisions),
            },
            Sink::Aggregate { keys, aggregates, phase } => {
                let plan = AggregatePlan::new(
                    keys,
                    aggregates,
                    *phase,
                    &self.layout,
                    &self.domains,
                    self.most_rows,
                    output.clone(),
                    self.settings.force_collisions,
                    &self.settings.memory,
                )?;
                self.notes.push(plan.note());
                SinkPlan::Aggregate(Box::new(plan))
            }
            Sink::Sort { keys, skip, fetch, output } => {
                let slots: Vec<SlotId> = keys.iter().map(|key| key.slot).chain(output.iter().copied()).collect();
                SinkPlan::Sort {
                    keys: keys.clone(),
                    skip: *skip,
                    fetch: *fetch,
                    output: output.clone(),
                    kinds: kinds(&slots),
                }
            }
            Sink::Materialize { skip, fetch, output } => {
                enough = fetch.map(|fetch| skip.saturating_add(fetch));
                SinkPlan::Materialize { skip: *skip, fetch: *fetch, output: output.clone(), kinds: kinds(output) }
            }
            Sink::Window { .. } | Sink::Partition { .. } => unreachable!("`supports` refuses these sinks"),
        };
        let name = match &sink {
            SinkPlan::Build { .. } => "build",
            SinkPlan::Aggregate(_) => "aggregate",
            SinkPlan::Sort { .. } => "sort",
            SinkPlan::Materialize { .. } => "materialize",
        };
        self.label(name.into());
        let mut skipped = 0;
        let mut morsels = Vec::new();
        for (index, part) in self.table.parts.iter().enumerate() {
            for start in (0..part.rows).step_by(BLOCK_ROWS) {
                let count = BLOCK_ROWS.min(part.rows - start);
                if self.never || self.first.excludes(&self.layout, part, start) {
                    skipped += count;
                } else {
                    morsels.push(Morsel { part: index, start, count });
                }
            }
        }
        Ok(Job {
            domains: self.domains,
            layout: self.layout,
            functions: self.query.functions.clone(),
            table: self.table,
            direct: self.direct,
            first: self.first,
            operations: self.operations,
            sink,
            schema: output,
            morsels,
            skipped,
            settings: self.settings,
            labels: self.labels,
            notes: self.notes,
            enough,
            read_later: read_later(self.query, id),
            emitted: AtomicUsize::new(0),
        })
    }
}

/// Tells whether a later pipeline's source is this one's rows alone.
fn read_later(query: &Query, id: PipelineId) -> bool {
    query
        .pipelines
        .iter()
        .any(|pipeline| matches!(&pipeline.source, Source::Result { pipelines } if *pipelines == [id]))
}

/// Reads off the query what later probes ask of a build.
fn use_of(query: &Query, id: PipelineId, collide: bool) -> Use {
    let mut used = Use { existence: true, collide, ..Use::default() };
    for step in query.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        if let Step::Probe(probe) = step
            && probe.build == id
        {
            used.outer |= probe.kind.emits_build_rows();
            used.null_equals_null |= probe.null_equals_null;
            used.existence &= matches!(probe.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark);
        }
    }
    used
}
