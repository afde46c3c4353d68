//! From a pipeline and statistics to a physical pipeline: which choice each step gets.
//!
//! [`decide`] goes through the steps; filters, probes and the sink have files of their own. Then steps are put in the order in which they
//! run, and the rows that statistics do not exclude are cut into morsels.

mod filter;
mod probe;
mod sink;

use std::sync::Arc;

use tandem_column::{BLOCK_ROWS, Error, Field, Part, Result, Table};
use tandem_pipeline::{Expr, Pipeline, PipelineId, Query, Slot, SlotId, Source, Step, range::Range};

use crate::{
    Action, Body, Build, Domain, Morsel, Origin, Physical, PhysicalStep, Selector, Set, domain,
    outline::{Outline, OutlineItem, OutlineLine, dropped_checks},
};

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
