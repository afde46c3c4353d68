//! Emits joins: the probing side goes on in the current pipeline, the other becomes a pipeline that ends in a build.

use std::collections::BTreeMap;

use tandem_column::Type;
use tandem_pipeline::{Expr, JoinKind, Probe, Sink, Slot, Step};

use super::{Emitter, Open, Stream, dedup, union};
use crate::planning::tree::{
    node::{ColumnId, Join, JoinRows, Node, references},
    substitute,
};

impl Emitter<'_> {
    /// Emits a join, of which the given columns are needed.
    pub(super) fn join(&mut self, join: &Join, need: &[ColumnId], rows: f64) -> Result<Open, String> {
        let (probe, build) = if join.swap { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let keys: Vec<(&Expr, &Expr)> =
            join.on.iter().map(|(left, right)| if join.swap { (right, left) } else { (left, right) }).collect();
        let from_build = self.estimator.produced(build);
        let residual_needs: Vec<ColumnId> = join.residual.iter().flat_map(references).collect();
        let (mut kind, keeps_probe, keeps_build) = sides(join)?;

        // An inner join's keys are equal: a key column of the build is the probe's column under another id.
        let mut aliases: BTreeMap<ColumnId, ColumnId> = BTreeMap::new();
        if join.kind == JoinRows::Inner && !join.null_equals_null {
            for (probe_key, build_key) in &keys {
                if let (Expr::Slot(probe_key), Expr::Slot(build_key)) = (probe_key, build_key) {
                    aliases.insert(*build_key, *probe_key);
                }
            }
        }
        let adds: Vec<ColumnId> = dedup(need)
            .into_iter()
            .filter(|column| keeps_build && from_build.contains(column) && !aliases.contains_key(column))
            .collect();
        let mut payload = adds.clone();
        payload.extend(dedup(&residual_needs).into_iter().filter(|c| from_build.contains(c) && !adds.contains(c)));
        if kind == JoinKind::Inner && payload.is_empty() && join.residual.is_none() && !join.null_equals_null {
            let build_keys: Vec<&Expr> = keys.iter().map(|(_, build_key)| *build_key).collect();
            if self.estimator.unique(build, &build_keys) {
                kind = JoinKind::Semi;
            }
        }

        let mut probe_need: Vec<ColumnId> =
            need.iter().filter_map(|column| aliases.get(column).or(Some(column))).copied().collect();
        if !keeps_probe {
            probe_need.clear();
        }
        probe_need.extend(&residual_needs);
        let probe_need: Vec<ColumnId> = probe_need
            .into_iter()
            .filter(|column| !from_build.contains(column) && join.kind != JoinRows::Mark(*column))
            .collect();
        let mut open = self.open(probe, &union(&probe_need, keys.iter().map(|(key, _)| *key)))?;
        let build_keys: Vec<&Expr> = keys.iter().map(|(_, key)| *key).collect();
        let (built, payload) = self.build(build, &build_keys, &payload)?;

        let mut step = Probe {
            build: built,
            kind,
            keys: keys.iter().map(|(key, _)| open.lower(key)).collect::<Result<_, _>>()?,
            residual: None,
            adds: adds.iter().filter_map(|column| payload.iter().position(|held| held == column)).collect(),
            null_equals_null: join.null_equals_null,
            null_aware: join.null_aware,
        };
        if let Some(residual) = &join.residual {
            let behind = open.slots.len();
            let mut map = open.map.clone();
            map.extend(payload.iter().enumerate().map(|(position, column)| (*column, behind + position)));
            if let Some(missing) = references(residual).into_iter().find(|column| !map.contains_key(column)) {
                return Err(format!("column {missing} of a join condition is on neither side"));
            }
            step.residual = Some(substitute(residual, &|column| Expr::Slot(map[&column])));
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti) {
            open.slots.iter_mut().for_each(|slot| slot.nullable = true);
        }
        if !keeps_probe {
            open.map.clear();
        }
        let output = self.pipelines[built].output();
        for (column, slot) in adds.iter().zip(step.adds.iter().map(|position| output[*position].clone())) {
            let nullable = slot.nullable || matches!(kind, JoinKind::Left | JoinKind::Full);
            open.add(*column, Slot { nullable, ..slot });
        }
        if let JoinRows::Mark(column) = join.kind {
            let nullable = join.null_aware;
            let name = self.registry.columns[column].name.clone();
            open.add(column, Slot { name, kind: Type::Boolean, nullable });
        }
        for (build_key, probe_key) in aliases {
            if let Some(slot) = open.map.get(&probe_key) {
                open.map.insert(build_key, *slot);
            }
        }
        open.steps.push(Step::Probe(step));
        open.rows = rows;
        Ok(open)
    }

    /// Emits a build of a node's rows.
    pub(super) fn build_once(&mut self, node: &Node, keys: &[&Expr], payload: &[ColumnId]) -> Result<usize, String> {
        let open = self.open(node, &union(payload, keys.iter().copied()))?;
        let keys = keys.iter().map(|key| open.lower(key)).collect::<Result<Vec<_>, _>>()?;
        let sink = Sink::Build { keys, payload: open.slots_of(payload)? };
        let rows = open.rows;
        match self.sink(open, sink, vec![], rows) {
            Stream::Sunk { pipeline, .. } => Ok(pipeline),
            Stream::Open(_) => Err("a build ends its pipeline".to_string()),
        }
    }
}

/// Returns the kind of a join seen from its probing side, and of which side, probe and build, its rows have columns.
fn sides(join: &Join) -> Result<(JoinKind, bool, bool), String> {
    Ok(match (join.kind, join.swap) {
        (JoinRows::Inner, _) => (JoinKind::Inner, true, true),
        (JoinRows::Left, false) => (JoinKind::Left, true, true),
        (JoinRows::Left, true) => (JoinKind::Right, true, true),
        (JoinRows::Full, _) => (JoinKind::Full, true, true),
        (JoinRows::Semi, false) => (JoinKind::Semi, true, false),
        (JoinRows::Semi, true) => (JoinKind::RightSemi, false, true),
        (JoinRows::Anti, false) => (JoinKind::Anti, true, false),
        (JoinRows::Anti, true) => (JoinKind::RightAnti, false, true),
        (JoinRows::Mark(_), false) => (JoinKind::Mark, true, false),
        (JoinRows::Mark(_), true) => return Err("a mark join cannot build its left side".to_string()),
    })
}
