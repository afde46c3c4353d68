//! The side of a join that rows are looked up in: collected as rows, then turned into an array, a bitmap or a hash table once.
//!
//! Integer keys that lie densely become an array index (and, where only existence matters, one bit each); other keys go
//! through a static hash table.

mod collect;
mod index;
mod order;
mod places;
mod rows_of_build;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use tandem_column::{Result, Type};
use tandem_pipeline::UserFunction;
use tandem_plan::{
    Build, KeyIndex, RunColumns,
    sink::{BuildPlan, BuildUse},
};

use super::{Finishing, SinkOperator};
use crate::{
    Contents, Error, MemoryBudget, ParallelTasks, PipelineOutput, Rows, Vector,
    arrange::{EntryOrder, arrange_parallel},
    evaluate::{self, Slots},
    frame::Frame,
};
use collect::collect;
use index::Layout;
use order::order_runs;
use rows_of_build::rows_of_build;

pub(super) struct BuildSink {
    pub(super) plan: BuildPlan,
    pub(super) functions: Vec<Arc<UserFunction>>,
    pub(super) memory: Arc<MemoryBudget>,
}

impl SinkOperator for BuildSink {
    fn state(&self) -> Contents {
        Contents::Rows(Rows::new(self.plan.kinds.clone(), &self.memory, "the build side of a join"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let keys = self.plan.keys.iter().map(|key| evaluate::evaluate(key, frame, &self.functions));
        let payload = self.plan.payload.iter().map(|slot| frame.vector(*slot));
        contents.rows()?.push(morsel, frame.count(), &keys.chain(payload).collect::<Result<Vec<_>>>()?)
    }

    fn copies(&self) -> usize {
        2
    }

    fn finish(&self, mut contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        // One that is finished already is the build; beside others it is rows again.
        if let [Contents::Build(_)] = contents.as_slice()
            && let Some(Contents::Build(build)) = contents.pop()
        {
            return Ok(PipelineOutput::Build(Arc::new(*build)));
        }
        let BuildPlan { keys, kinds, used, order, .. } = &self.plan;
        let rows = contents.into_iter().enumerate().map(|(at, contents)| match contents {
            Contents::Build(build) => Ok(Rows::of(rows_of_build(&build, kinds), at, kinds, &self.memory)),
            other => other.into_rows(),
        });
        let (rows, mut vectors) = collect(kinds, rows.collect::<Result<Vec<_>>>()?, finishing.parallel)?;
        let payload = vectors.split_off(keys.len());
        let build = lay_out(rows, (vectors, payload), kinds, (*used, *order), finishing.parallel)?;
        Ok(PipelineOutput::Build(Arc::new(build)))
    }
}

/// Lays out collected rows.
fn lay_out(
    rows: usize,
    (keys, payload): (Vec<Vector>, Vec<Vector>),
    kinds: &[Type],
    (used, searched): (BuildUse, Option<RunColumns>),
    parallel: ParallelTasks<'_>,
) -> Result<Build> {
    if rows >= u32::MAX as usize {
        return Err(Error::exhausted(format!("the build side of a join has too many rows: {rows}")));
    }
    let null_key = keys.iter().any(|k| k.valid.as_ref().is_some_and(|v| v.contains(&0)));
    let (key_kinds, kinds) = kinds.split_at(keys.len());
    let (index, mut order) = if keys.is_empty() {
        (KeyIndex::All, EntryOrder::Each((0..rows as u32).collect()))
    } else {
        Layout { kinds: key_kinds, existence: payload.is_empty() && used.existence, null_key, used, parallel }
            .lay_out(rows, keys)?
    };
    let searched = match (searched, &mut order) {
        (Some(columns), EntryOrder::Each(entries)) => order_runs(&index, entries, &payload, columns, parallel)?,
        _ => None,
    };
    let mut build = Build::new(rows, null_key, index, order.entries());
    build.order = searched;
    for (vector, kind) in payload.iter().zip(kinds) {
        let (column, range) = arrange_parallel(vector, kind, &order, parallel)?;
        build.push(Arc::new(column), range);
    }
    Ok(build)
}
