//! A join with its sides swapped: the same query, in which what was built is what looks rows up.
//!
//! Whoever made a query chose the smaller side by estimates. When the build's rows are there and are many more than expected, an executor
//! may go on with the query that this gives: the build's pipeline leaves rows instead ([`Query::build_as_rows`] are its columns),
//! a pipeline behind all others builds the other side, and the one that probed takes those rows, joins them and goes on as before.

use crate::{Aggregate, Expr, JoinKind, Phase, Pipeline, PipelineId, Probe, Query, Sink, Slot, SlotId, Source, Step};

/// A query whose sides are swapped.
#[derive(Clone, Debug, PartialEq)]
pub struct Swapped {
    /// The query; pipelines keep their numbers.
    pub query: Query,
    /// The pipeline that joins.
    pub probe: PipelineId,
    /// The pipeline that builds what was the probing side. It is the last, and runs before the one that joins.
    pub build: PipelineId,
}

impl JoinKind {
    /// Returns the kind that gives the same rows when rows and build rows change places; `None` for `Mark`.
    pub fn swapped(self) -> Option<JoinKind> {
        Some(match self {
            JoinKind::Inner => JoinKind::Inner,
            JoinKind::Left => JoinKind::Right,
            JoinKind::Right => JoinKind::Left,
            JoinKind::Full => JoinKind::Full,
            JoinKind::Semi => JoinKind::RightSemi,
            JoinKind::Anti => JoinKind::RightAnti,
            JoinKind::RightSemi => JoinKind::Semi,
            JoinKind::RightAnti => JoinKind::Anti,
            JoinKind::Mark => return None,
        })
    }
}

impl Query {
    /// Returns the only pipeline that probes a build, and its step.
    pub fn only_probe(&self, build: PipelineId) -> Option<(PipelineId, usize)> {
        let mut found = self.pipelines.iter().enumerate().flat_map(|(id, pipeline)| {
            let probes = |step: &Step| matches!(step, Step::Probe(probe) if probe.build == build);
            (0..pipeline.steps.len()).filter(move |step| probes(&pipeline.steps[*step])).map(move |step| (id, step))
        });
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns the columns of a build's rows: its keys, then its payload.
    pub fn build_as_rows(&self, build: PipelineId) -> Option<Vec<Slot>> {
        let pipeline = self.pipelines.get(build)?;
        let Sink::Build { keys, .. } = &pipeline.sink else { return None };
        let scope = pipeline.scope(pipeline.steps.len());
        let key = |key: &Expr| Slot { name: "key".into(), kind: key.kind(&scope), nullable: key.nullable(&scope) };
        Some(keys.iter().map(key).chain(pipeline.output()).collect())
    }

    /// Swaps the sides of the only join of a build; `None` if there are several, or if its kind or what follows needs the sides as
    /// they are.
    pub fn swap_sides(&self, build: PipelineId) -> Option<Swapped> {
        let (probe, at) = self.only_probe(build)?;
        let rows = self.build_as_rows(build)?;
        let Sink::Build { keys, .. } = &self.pipelines[build].sink else { return None };
        let before = &self.pipelines[probe];
        let Step::Probe(step) = &before.steps[at] else { return None };
        let (kind, first) = (step.kind.swapped()?, before.defined_before(at));
        let of_states = matches!(before.sink, Sink::Aggregate { phase: Phase::Final, .. });
        if step.null_aware || of_states {
            return None;
        }
        // What the other side's build has to hold: what is read behind the join, or by its condition.
        let live = &before.liveness()[at];
        let in_condition = |slot: SlotId| step.residual.iter().any(|residual| residual.slots().contains(&slot));
        let payload: Vec<SlotId> = (0..first).filter(|slot| live[*slot] || in_condition(*slot)).collect();
        let given = if matches!(kind, JoinKind::Semi | JoinKind::Anti) { 0 } else { payload.len() };
        if payload.iter().any(|slot| given == 0 && live[*slot]) {
            return None;
        }
        let (key_count, defined) = (keys.len(), rows.len());
        let place = |slot: SlotId| payload.iter().position(|held| *held == slot).unwrap_or(usize::MAX);
        let behind = first + step.adds.len();
        let map = |slot: SlotId| match slot {
            slot if slot < first => defined + place(slot),
            slot if slot < behind => key_count + step.adds[slot - first],
            slot => slot - behind + defined + given,
        };
        let in_pair = |slot: SlotId| if slot < first { defined + place(slot) } else { key_count + slot - first };
        let swapped = Probe {
            build: self.pipelines.len(),
            kind,
            keys: (0..key_count).map(Expr::Slot).collect(),
            residual: step.residual.as_ref().map(|residual| residual.map_slots(&in_pair)),
            adds: (0..given).collect(),
            ..step.clone()
        };
        let scope = before.scope(at);
        let null = matches!(kind, JoinKind::Left | JoinKind::Full);
        let added = payload[..given]
            .iter()
            .map(|slot| Slot { nullable: null || scope[*slot].nullable, ..scope[*slot].clone() });
        let slots = rows.into_iter().chain(added).chain(before.slots[behind..].iter().cloned()).collect();
        let mut steps = vec![Step::Probe(swapped)];
        for (step, number) in before.steps[at + 1..].iter().zip(at + 1..) {
            steps.push(step.map_slots(before.defined_before(number), &map));
        }
        let joining = Pipeline {
            source: Source::Result { pipelines: vec![build] },
            steps,
            sink: before.sink.map_slots(&map),
            slots,
        };
        let building = Pipeline {
            source: before.source.clone(),
            steps: before.steps[..at].to_vec(),
            sink: Sink::Build { keys: step.keys.clone(), payload },
            slots: before.slots[..first].to_vec(),
        };
        let mut query = self.clone();
        query.pipelines[probe] = joining;
        query.pipelines.push(building);
        Some(Swapped { query, probe, build: self.pipelines.len() })
    }
}

impl Step {
    /// Returns the step over other slots; `defined` is how many there are before it.
    fn map_slots(&self, defined: usize, map: &dyn Fn(SlotId) -> SlotId) -> Step {
        match self {
            Step::Filter(condition) => Step::Filter(condition.map_slots(map)),
            Step::Let(exprs) => Step::Let(exprs.iter().map(|expr| expr.map_slots(map)).collect()),
            Step::Probe(probe) => {
                // Behind the row's slots a residual sees the build's payload.
                let in_pair = |slot: SlotId| if slot < defined { map(slot) } else { map(defined) + (slot - defined) };
                Step::Probe(Probe {
                    keys: probe.keys.iter().map(|key| key.map_slots(map)).collect(),
                    residual: probe.residual.as_ref().map(|residual| residual.map_slots(&in_pair)),
                    ..probe.clone()
                })
            }
        }
    }
}

impl Sink {
    /// Returns the sink of other slots.
    fn map_slots(&self, map: &dyn Fn(SlotId) -> SlotId) -> Sink {
        let all = |slots: &mut Vec<SlotId>| slots.iter_mut().for_each(|slot| *slot = map(*slot));
        let exprs = |exprs: &mut Vec<Expr>| exprs.iter_mut().for_each(|expr| *expr = expr.map_slots(map));
        let mut mapped = self.clone();
        match &mut mapped {
            Sink::Build { keys, payload } => {
                exprs(keys);
                all(payload);
            }
            Sink::Aggregate { keys, aggregates, .. } => {
                all(keys);
                aggregates.iter_mut().for_each(|aggregate| aggregate.renumber(map));
            }
            Sink::Sort { keys, output, .. } => {
                keys.iter_mut().for_each(|key| key.slot = map(key.slot));
                all(output);
            }
            Sink::Window { partition, order, functions, output, .. } => {
                all(partition);
                order.iter_mut().for_each(|key| key.slot = map(key.slot));
                functions.iter_mut().for_each(|window| window.function = window.function.map_slots(map));
                all(output);
            }
            Sink::Partition { keys, output, .. } => {
                exprs(keys);
                all(output);
            }
            Sink::Materialize { output, .. } => all(output),
        }
        mapped
    }
}

impl Aggregate {
    /// Names other slots.
    pub(crate) fn renumber(&mut self, map: &dyn Fn(SlotId) -> SlotId) {
        self.argument = self.argument.map(map);
        self.second = self.second.map(map);
        self.order.iter_mut().for_each(|key| key.slot = map(key.slot));
        self.filter = self.filter.map(map);
    }
}
