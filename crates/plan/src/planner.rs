//! From a pipeline and statistics to a physical pipeline: which choice each step gets.

use std::sync::Arc;

use tandem_column::{BLOCK_ROWS, Error, Field, Part, Result, Table};
use tandem_pipeline::{
    Expr, JoinKind, Pipeline, PipelineId, Probe, Query, Sink, Slot, SlotId, Source, Step, UserFunction, range::Range,
};

use crate::{
    Action, Body, Build, Domain, KeyIndex, Narrowing, Origin, PhysicalProbe, PhysicalStep, Selector, Set, SinkPlan,
    Way, domain,
    filter::{self, Compiled, Compiler, Filter},
    outline::{Outline, OutlineItem, OutlineLine, dropped_checks, kept, waits_for},
    sink::{AggregatePlan, Bounds, BuildPlan, MaterializePlan, PartitionPlan, SortPlan, WindowPlan},
};

/// A pipeline with its physical choices made.
#[derive(Clone, Debug)]
pub struct Physical {
    /// What happens to each row.
    pub body: Body,
    /// Where rows go.
    pub sink: SinkPlan,
    /// The columns of the rows that the sink gives.
    pub schema: Arc<[Field]>,
    /// The sets that steps test.
    pub sets: Vec<Arc<Set>>,
    /// The build of each lookup.
    pub builds: Vec<Arc<Build>>,
    /// For each step of the pipeline, the slots still needed after it.
    pub live: Vec<Vec<bool>>,
    /// The user functions that expressions call.
    pub functions: Vec<Arc<UserFunction>>,
    /// The rows to compute.
    pub morsels: Vec<Morsel>,
    /// How many source rows no morsel covers because statistics exclude them.
    pub skipped: usize,
    /// A later pipeline reads the rows, and these alone.
    pub read_later: bool,
    /// The same in words.
    pub outline: Outline,
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

/// What planning asks others.
pub struct Planning<'p> {
    /// The builds that are there, by their pipelines.
    pub builds: &'p dyn Fn(PipelineId) -> Option<Arc<Build>>,
    /// Tells whether a column of a named table is in ascending order.
    pub sorted: &'p dyn Fn(&str, usize) -> bool,
    /// Evaluates predicates for all values of a column.
    pub selector: &'p dyn Selector,
    /// The bytes that the query may take.
    pub memory: usize,
    /// How many workers run it.
    pub workers: usize,
    /// All hashes are equal: a test of collisions.
    pub collide: bool,
}

/// Plans pipeline `id` of a verified query over `table`, whose columns are the source's slots.
///
/// # Errors
/// Unsupported for what no executor computes; internal if a build is missing.
pub fn plan(query: &Query, id: PipelineId, table: &Table, planning: &Planning<'_>) -> Result<Physical> {
    let planner = decide(query, id, table, planning);
    match planner.waiting.is_empty() {
        true => planner.finish(id),
        false => Err(Error::internal("a probe's build is missing")),
    }
}

/// Says what [`plan`] decides, before the query runs: what depends on builds that are not there yet waits for them.
///
/// # Errors
/// Unsupported for what no executor computes.
pub fn outline(query: &Query, id: PipelineId, table: &Table, planning: &Planning<'_>) -> Result<Outline> {
    Ok(decide(query, id, table, planning).finish(id)?.outline)
}

/// Decides about each step in turn.
fn decide<'q>(query: &'q Query, id: PipelineId, table: &'q Table, planning: &'q Planning<'q>) -> Planner<'q> {
    let pipeline = &query.pipelines[id];
    let mut planner = Planner::new(query, pipeline, table, planning);
    let mut columns = pipeline.source_columns();
    for (index, step) in pipeline.steps.iter().enumerate() {
        match step {
            Step::Filter(expr) => planner.filter(index, expr),
            Step::Let(exprs) => planner.add(index, columns, exprs),
            Step::Probe(probe) => match (planning.builds)(probe.build) {
                Some(build) => planner.probe(index, columns, probe, build),
                None => planner.wait(index, columns, probe),
            },
        }
        columns += step.adds();
    }
    planner
}

impl Physical {
    /// Tells whether a device may keep the rows: a later pipeline reads them, and all that it is given of them are they.
    pub fn may_stay(&self) -> bool {
        let cut = match &self.sink {
            SinkPlan::Sort(plan) => plan.skip > 0,
            SinkPlan::Materialize(plan) => plan.skip > 0 || plan.fetch.is_some(),
            SinkPlan::Build(_) | SinkPlan::Partition(_) | SinkPlan::Window(_) => true,
            SinkPlan::Aggregate(_) => false,
        };
        self.read_later && !cut && !self.body.emits_build_rows()
    }

    /// Tells whether the rows are those of a table that others look up: its columns are worth a copy on a device.
    pub fn is_reference(&self) -> bool {
        matches!(self.sink, SinkPlan::Build(_)) && self.body.lookups.is_empty()
    }

    /// Returns the parts that have rows to compute, in order.
    pub fn parts(&self) -> Vec<usize> {
        let mut parts: Vec<usize> = self.morsels.iter().map(|morsel| morsel.part).collect();
        parts.dedup();
        parts
    }
}

/// What is decided of a step, or of a part of one.
struct Decided {
    of: usize,
    text: String,
    choice: Option<String>,
    fate: Fate,
}

/// What becomes of a step.
enum Fate {
    /// It runs at the front, on codes; with the share of rows that it is likely to keep.
    Front(f64, Action),
    /// It runs where it is.
    Runs(Action),
    /// It need not run.
    Removed,
    /// It waits for its build.
    Waits,
}

/// What is decided so far.
struct Planner<'q> {
    query: &'q Query,
    pipeline: &'q Pipeline,
    table: &'q Table,
    planning: &'q Planning<'q>,
    /// The source, each step and the sink in the words of the pipeline.
    texts: Vec<String>,
    body: Body,
    decided: Vec<Decided>,
    sets: Vec<Arc<Set>>,
    builds: Vec<Arc<Build>>,
    /// Builds that are not there yet.
    waiting: Vec<PipelineId>,
    /// For each slot, whether its values depend on one of them.
    open: Vec<bool>,
    /// A step before emits build rows at the end: later filters must see those too and stay in place.
    outer: bool,
    /// Some filter is false for every row.
    never: bool,
    /// Rows may repeat, so sums may be larger than the source's rows suggest.
    most_rows: usize,
}

impl<'q> Planner<'q> {
    fn new(query: &'q Query, pipeline: &'q Pipeline, table: &'q Table, planning: &'q Planning<'q>) -> Self {
        let columns = pipeline.source_columns();
        let slots = pipeline.slots.iter().enumerate();
        let (origins, domains) = slots
            .map(|(at, slot)| match at < columns {
                true => (Origin::Column(at), Domain::of_column(table, at, slot)),
                false => {
                    (Origin::Computed, Domain { kind: Some(slot.kind.clone()), nullable: true, ..Domain::default() })
                }
            })
            .unzip();
        let (lookups, steps) = (Vec::new(), Vec::new());
        Planner {
            query,
            pipeline,
            table,
            planning,
            texts: pipeline.describe(query),
            body: Body { slots: pipeline.slots.clone(), domains, origins, lookups, steps },
            decided: Vec::new(),
            sets: Vec::new(),
            builds: Vec::new(),
            waiting: Vec::new(),
            open: vec![false; pipeline.slots.len()],
            outer: false,
            never: false,
            most_rows: table.rows(),
        }
    }

    /// Notes what was decided of a whole step.
    fn push(&mut self, of: usize, choice: Option<String>, fate: Fate) {
        let text = self.texts[of + 1].clone();
        self.decided.push(Decided { of, text, choice, fate });
    }

    /// Plans a filter step.
    fn filter(&mut self, step: usize, expr: &Expr) {
        let rewritten = domain::drop_checks(expr, &self.body.domains);
        let unchecked = dropped_checks(std::slice::from_ref(expr), std::slice::from_ref(&rewritten));
        // Statistics do not know the nulls of unmatched build rows, which reach this filter too.
        if self.outer {
            return self.push(step, unchecked, Fate::Runs(Action::Filter(rewritten)));
        }
        let (slots, origins) = (&self.pipeline.slots, &self.body.origins);
        let compiler = Compiler { slots, origins, table: self.table, selector: self.planning.selector };
        let Some(compiled) = compiler.compile(&rewritten) else {
            self.never = true;
            return self.push(step, Some("no row satisfies it".into()), Fate::Removed);
        };
        for Compiled { of, filter } in compiled {
            let display = |expr: &Expr| expr.display_with(slots, &self.query.functions).to_string();
            let text = format!("filter {}", of.iter().map(display).collect::<Vec<_>>().join(" and "));
            let (choice, fate) = match filter {
                None => (Some("every row satisfies it".into()), Fate::Removed),
                Some(Filter::General(expr)) => (unchecked.clone(), Fate::Runs(Action::Filter(expr))),
                Some(filter) => (kept(&filter, slots, &self.body.domains), self.select(filter)),
            };
            self.decided.push(Decided { of: step, text, choice, fate });
        }
    }

    /// Puts a filter where it runs: on codes at the very front, others where they are.
    fn select(&mut self, filter: Filter) -> Fate {
        // As if values were spread evenly.
        let span = |low: i64, high: i64| high as f64 - low as f64 + 1.0;
        let whole =
            |column: usize| self.body.domains[column].range.map_or(f64::INFINITY, |(low, high)| span(low, high));
        match filter {
            Filter::General(expr) => Fate::Runs(Action::Filter(expr)),
            Filter::Between { column, low, high } => {
                Fate::Front(span(low, high) / whole(column), Action::Between { column, low, high })
            }
            Filter::Member { column, set } => {
                let kept = set.len() as f64 / whole(column);
                self.sets.push(set);
                Fate::Front(kept, Action::Member { column, set: self.sets.len() - 1 })
            }
        }
    }

    /// Plans a step that adds slots.
    fn add(&mut self, step: usize, first: SlotId, exprs: &[Expr]) {
        let given = exprs;
        let exprs: Vec<Expr> = exprs.iter().map(|expr| domain::drop_checks(expr, &self.body.domains)).collect();
        for (i, expr) in exprs.iter().enumerate() {
            let domains = &self.body.domains;
            let narrow = |range: Range| Some((i64::try_from(range.low).ok()?, i64::try_from(range.high).ok()?));
            let mut slots = expr.slots().into_iter();
            let nullable = match expr {
                Expr::Arithmetic(_) | Expr::Slot(_) | Expr::Cast { .. } | Expr::Literal(..) => {
                    slots.any(|slot| domains[slot].nullable) || expr.nullable(&self.known_slots())
                }
                _ => expr.nullable(&self.known_slots()),
            };
            let domain = match expr {
                Expr::Slot(slot) => domains[*slot].clone(),
                _ => Domain {
                    kind: Some(self.body.slots[first + i].kind.clone()),
                    range: domain::range(expr, domains).and_then(narrow),
                    nullable,
                    dictionary: None,
                },
            };
            self.body.domains[first + i] = domain;
            self.open[first + i] = expr.slots().into_iter().any(|slot| self.open[slot]);
        }
        let choice = dropped_checks(given, &exprs);
        self.push(step, choice, Fate::Runs(Action::Let { first, exprs }));
    }

    /// Returns the slots with what is known of their nulls.
    fn known_slots(&self) -> Vec<Slot> {
        let mut slots = self.pipeline.slots.clone();
        slots.iter_mut().zip(&self.body.domains).for_each(|(slot, domain)| slot.nullable = domain.nullable);
        slots
    }

    /// Plans a probe.
    fn probe(&mut self, step: usize, first: SlotId, probe: &Probe, build: Arc<Build>) {
        let lookup = self.body.lookups.len();
        let nullable = matches!(probe.kind, JoinKind::Left | JoinKind::Full);
        for (i, payload) in probe.adds.iter().enumerate() {
            if probe.kind == JoinKind::Mark {
                break;
            }
            let column = &build.payload[*payload];
            self.body.origins[first + i] = Origin::Payload { lookup, payload: *payload };
            self.body.domains[first + i] = Domain {
                kind: Some(column.kind.clone()),
                range: build.ranges[*payload],
                nullable: nullable || column.is_nullable(),
                dictionary: column.dictionary().cloned(),
            };
        }
        if self.probe_directly(step, probe, &build) {
            return;
        }
        self.keep_unmatched(first, probe);
        let most = if build.is_unique() { 1 } else { build.rows.max(1) };
        self.most_rows = self.most_rows.saturating_mul(most).saturating_add(build.rows);
        let payload: Vec<_> = build.payload.iter().map(|column| column.kind.clone()).collect();
        let search = |order| Narrowing::new(order, probe, first, &self.body.slots, &payload);
        let narrowing = build.order.as_ref().and_then(search);
        let searched = if narrowing.is_some() { ", searched by inequality" } else { "" };
        let choice = Some(format!("{}{searched}", build.note()));
        self.body.lookups.push(build.lookup(None));
        self.builds.push(build);
        let physical = PhysicalProbe {
            lookup,
            kind: probe.kind,
            keys: probe.keys.iter().map(|key| domain::drop_checks(key, &self.body.domains)).collect(),
            residual: probe.residual.clone(),
            narrowing,
            first,
            null_equals_null: probe.null_equals_null,
            null_aware: probe.null_aware,
        };
        self.push(step, choice, Fate::Runs(Action::Probe(physical)));
    }

    /// Leaves a probe, and what depends on its payload, until its build is there.
    fn wait(&mut self, step: usize, first: SlotId, probe: &Probe) {
        self.open[first..first + Step::Probe(probe.clone()).adds()].fill(true);
        self.keep_unmatched(first, probe);
        self.most_rows = usize::MAX;
        self.waiting.push(probe.build);
        self.push(step, Some(waits_for(&[probe.build])), Fate::Waits);
    }

    /// Notes what a probe that emits build rows at the end means for what comes before and behind it.
    fn keep_unmatched(&mut self, first: SlotId, probe: &Probe) {
        if probe.kind.emits_build_rows() {
            self.outer = true;
            self.body.domains[..first].iter_mut().for_each(|domain| domain.nullable = true);
        }
    }

    /// Turns an inner or semi probe of a dense build by a source column into a filter; its payload is then found by the
    /// column's value alone.
    fn probe_directly(&mut self, step: usize, probe: &Probe, build: &Arc<Build>) -> bool {
        let (KeyIndex::Unique(set), [Expr::Slot(key)], None) = (&build.index, probe.keys.as_slice(), &probe.residual)
        else {
            return false;
        };
        let Origin::Column(column) = self.body.origins[*key] else { return false };
        let encoded = self.table.parts.iter().map(|part| &part.columns[column]);
        let encoded = encoded.into_iter().all(|column| column.code_form().is_some() && column.dictionary().is_none());
        if self.outer || !encoded || !matches!(probe.kind, JoinKind::Inner | JoinKind::Semi) {
            return false;
        }
        if !probe.adds.is_empty() {
            self.body.lookups.push(build.lookup(Some(Way::Column { column, min: set.min })));
            self.builds.push(build.clone());
        }
        let (slots, note) = (&self.pipeline.slots, build.note());
        let name = &slots[*key].name;
        let (choice, fate) = match filter::membership(column, self.table, set) {
            None => {
                self.never = true;
                ("no row has a match".to_string(), Fate::Removed)
            }
            Some(None) => (format!("{note}; every {name} has a match"), Fate::Removed),
            Some(Some(filter)) => {
                let kept = kept(&filter, slots, &self.body.domains).unwrap_or_default();
                (format!("{note}; a filter of {name}: {kept}"), self.select(filter))
            }
        };
        self.push(step, Some(choice), fate);
        true
    }

    fn finish(mut self, id: PipelineId) -> Result<Physical> {
        let output = self.pipeline.output().into_iter();
        let schema = output.map(|slot| Field { name: slot.name, kind: slot.kind, nullable: slot.nullable }).collect();
        let (sink, choice) = self.sink(id)?;
        let mut lines = self.arrange_steps();
        let (morsels, skipped) = self.cut_morsels();
        let blocks = (skipped > 0).then(|| format!("{skipped} of {} rows skipped", self.table.rows()));
        let mut texts = self.texts;
        let sink_text = texts.pop().unwrap_or_default();
        lines.insert(0, OutlineLine { of: OutlineItem::Source, text: texts.swap_remove(0), choice: blocks });
        lines.push(OutlineLine { of: OutlineItem::Sink, text: sink_text, choice });
        let mut body = self.body;
        if self.outer {
            // In unmatched build rows, all slots before their join are null.
            body.slots.iter_mut().zip(&body.domains).for_each(|(slot, domain)| slot.nullable |= domain.nullable);
        }
        Ok(Physical {
            body,
            sink,
            schema,
            sets: self.sets,
            builds: self.builds,
            live: self.pipeline.liveness(),
            functions: self.query.functions.clone(),
            morsels,
            skipped,
            read_later: read_later(self.query, id),
            outline: Outline { lines },
        })
    }

    /// Plans the sink; with it, what the outline says of the choice.
    fn sink(&self, id: PipelineId) -> Result<(SinkPlan, Option<String>)> {
        let (slots, domains, collide) = (&self.body.slots, &self.body.domains, self.planning.collide);
        let bounds =
            Bounds { rows: self.most_rows, memory: self.planning.memory, workers: self.planning.workers, collide };
        let mut choice = None;
        let sink = match &self.pipeline.sink {
            Sink::Build { keys, payload } => {
                let in_order =
                    |slot: SlotId| self.table.statistics.get(slot).is_some_and(|statistics| statistics.sorted);
                let order: (&dyn Fn(&str, usize) -> bool, &dyn Fn(SlotId) -> bool) = (self.planning.sorted, &in_order);
                let plan = BuildPlan::new((self.query, id), keys, payload, slots, collide, order);
                choice = plan.note();
                SinkPlan::Build(plan)
            }
            Sink::Aggregate { keys, aggregates, phase } => {
                let plan = AggregatePlan::new(keys, aggregates, *phase, (slots, domains), bounds)?;
                // Without the builds, it is not known what keys may be, or how many rows.
                let known =
                    self.waiting.is_empty() || plan.layout.is_small() && !keys.iter().any(|slot| self.open[*slot]);
                choice = Some(if known { plan.note() } else { waits_for(&self.waiting) });
                SinkPlan::Aggregate(Arc::new(plan))
            }
            Sink::Sort { keys, skip, fetch, output } => {
                SinkPlan::Sort(SortPlan::new(keys, (*skip, *fetch), output, slots))
            }
            Sink::Materialize { skip, fetch, output } => {
                SinkPlan::Materialize(MaterializePlan::new((*skip, *fetch), output, slots))
            }
            Sink::Partition { keys, parts, output } => {
                SinkPlan::Partition(PartitionPlan::new(keys, *parts, output, slots))
            }
            Sink::Window { partition, order, functions, fetch, output } => {
                let mut plan = WindowPlan::new((partition, order), functions, *fetch, output, slots);
                if plan.looks_back_only() {
                    plan.number_partitions((slots, domains), bounds)?;
                }
                SinkPlan::Window(Arc::new(plan))
            }
        };
        Ok((sink, choice))
    }

    /// Puts the steps in the order in which they run, and returns a line of the outline for each.
    fn arrange_steps(&mut self) -> Vec<OutlineLine> {
        // What drops most rows comes first: later columns are read only for the rows that are left.
        let place = |decided: &Decided| match decided.fate {
            Fate::Front(kept, _) => (false, kept),
            _ => (true, 0.0),
        };
        self.decided.sort_by(|left, right| {
            let (left, right) = (place(left), place(right));
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1))
        });
        let mut lines = Vec::with_capacity(self.decided.len() + 2);
        for Decided { of, text, choice, fate } in self.decided.drain(..) {
            let item = match fate {
                Fate::Front(_, action) | Fate::Runs(action) => {
                    self.body.steps.push(PhysicalStep { of, action });
                    OutlineItem::Step(self.body.steps.len() - 1)
                }
                Fate::Removed => OutlineItem::Removed,
                Fate::Waits => OutlineItem::Waiting,
            };
            lines.push(OutlineLine { of: item, text, choice });
        }
        lines
    }

    /// Returns the morsels that statistics of blocks do not exclude, and how many rows they exclude.
    fn cut_morsels(&self) -> (Vec<Morsel>, usize) {
        let (mut skipped, mut morsels) = (0, Vec::new());
        for (index, part) in self.table.parts.iter().enumerate() {
            for start in (0..part.rows).step_by(BLOCK_ROWS) {
                let count = BLOCK_ROWS.min(part.rows - start);
                if self.never || self.body.steps.iter().any(|step| excludes(&step.action, &self.sets, part, start)) {
                    skipped += count;
                } else {
                    morsels.push(Morsel { part: index, start, count });
                }
            }
        }
        (morsels, skipped)
    }
}

/// Tells whether block statistics exclude every row of a morsel.
fn excludes(action: &Action, sets: &[Arc<Set>], part: &Part, start: usize) -> bool {
    let (column, low, high) = match action {
        Action::Between { column, low, high } => (*column, *low, *high),
        Action::Member { column, set } => {
            let set = &sets[*set];
            (*column, set.min, set.min.saturating_add_unsigned(set.domain.saturating_sub(1)))
        }
        _ => return false,
    };
    let block = part.columns[column].blocks.get(start / BLOCK_ROWS);
    block.and_then(|block| block.range).is_some_and(|(min, max)| max < low || min > high)
}

/// Tells whether a later pipeline's source is this one's rows alone.
fn read_later(query: &Query, id: PipelineId) -> bool {
    query
        .pipelines
        .iter()
        .any(|pipeline| matches!(&pipeline.source, Source::Result { pipelines } if *pipelines == [id]))
}
