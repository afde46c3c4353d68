//! What later probes ask of a build.

use tandem_column::Type;
use tandem_pipeline::{Expr, JoinKind, Pipeline, PipelineId, Probe, Query, Slot, SlotId, Source, Step};

use crate::RunColumns;

/// A build with its choices made.
#[derive(Clone, Debug)]
pub struct BuildPlan {
    /// The keys.
    pub keys: Vec<Expr>,
    /// The slots that probes may read.
    pub payload: Vec<SlotId>,
    /// The types of keys, then of payload.
    pub kinds: Vec<Type>,
    /// What probes ask of it.
    pub used: BuildUse,
    /// The payload columns that probes search among the entries of a key.
    pub order: Option<RunColumns>,
}

/// What probes ask of a build.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildUse {
    /// Some probe emits build rows, matched or not: rows with null keys must be kept.
    pub outer: bool,
    /// Null keys match null keys.
    pub null_equals_null: bool,
    /// Every probe only asks whether a match exists.
    pub existence: bool,
    /// All keys get the same hash, to test collisions.
    pub collide: bool,
    /// Rows come in the order of the only key, and so do all rows that look it up: nothing needs to be hashed.
    pub merge: bool,
}

impl BuildPlan {
    /// Plans the build that pipeline `id` ends in. `sorted` tells whether a table's column is in ascending order, and
    /// `in_order` whether a column of the pipeline's own source is.
    pub(crate) fn new(
        (query, id): (&Query, PipelineId),
        keys: &[Expr],
        payload: &[SlotId],
        slots: &[Slot],
        collide: bool,
        (sorted, in_order): (&dyn Fn(&str, usize) -> bool, &dyn Fn(SlotId) -> bool),
    ) -> BuildPlan {
        let kinds = keys.iter().map(|key| key.kind(slots)).chain(payload.iter().map(|slot| slots[*slot].kind.clone()));
        let kinds: Vec<Type> = kinds.collect();
        let mut used = BuildUse { existence: true, collide, ..BuildUse::default() };
        for (_, _, probe) in probes(query, id) {
            used.outer |= probe.kind.emits_build_rows();
            used.null_equals_null |= probe.null_equals_null;
            used.existence &= matches!(probe.kind, JoinKind::Semi | JoinKind::Anti | JoinKind::Mark);
        }
        let emits = |step: &Step| matches!(step, Step::Probe(probe) if probe.kind.emits_build_rows());
        used.merge = matches!(keys, [Expr::Slot(key)] if in_order(*key))
            && !query.pipelines[id].steps.iter().any(emits)
            && probes(query, id).all(|(pipeline, _, probe)| match (&pipeline.source, probe.keys.as_slice()) {
                (Source::Table { table, columns }, [Expr::Slot(slot)]) => {
                    columns.get(*slot).is_some_and(|column| sorted(table, *column))
                }
                _ => false,
            });
        let search = |(pipeline, first, probe): (&Pipeline, SlotId, &Probe)| {
            RunColumns::new(probe, first, &pipeline.slots, &kinds[keys.len()..])
        };
        let order = probes(query, id).find_map(search);
        BuildPlan { keys: keys.to_vec(), payload: payload.to_vec(), kinds, used, order }
    }

    /// Describes what probes make of it, for people.
    pub(crate) fn note(&self) -> Option<String> {
        match (self.used.merge, self.only_existence()) {
            (true, _) => Some("rows come in the order of the key: nothing is hashed".into()),
            (false, true) => Some("only whether a key exists is asked".into()),
            (false, false) => None,
        }
    }

    /// Tells whether no probe asks for more than whether a key exists.
    pub fn only_existence(&self) -> bool {
        self.payload.is_empty() && self.used.existence
    }
}

/// Returns the probes of a pipeline's build, with their pipelines and how many slots there are before each.
fn probes(query: &Query, id: PipelineId) -> impl Iterator<Item = (&Pipeline, SlotId, &Probe)> {
    let steps = query.pipelines.iter().flat_map(|pipeline| {
        let mut defined = pipeline.source_columns();
        pipeline.steps.iter().map(move |step| {
            let before = defined;
            defined += step.adds();
            (pipeline, before, step)
        })
    });
    steps.filter_map(move |(pipeline, before, step)| match step {
        Step::Probe(probe) if probe.build == id => Some((pipeline, before, probe)),
        _ => None,
    })
}
