//! What this executor cannot run yet, with the reason.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{Expr, Pipeline, Query, Sink, Slot, Step, Window, WindowFunction};

use crate::evaluate;

/// Tells whether this executor runs a query.
///
/// # Errors
/// Unsupported, with a sentence that names what is missing.
pub fn supports(query: &Query) -> Result<()> {
    query.pipelines.iter().try_for_each(|pipeline| pipeline_supported(query, pipeline))
}

fn pipeline_supported(query: &Query, pipeline: &Pipeline) -> Result<()> {
    for slot in &pipeline.slots {
        if slot.kind.repr() == Repr::Other {
            return Err(Error::unsupported(format!("values of type {} run on the host", slot.kind)));
        }
    }
    let mut defined = pipeline.source_columns();
    let expression = |expr: &Expr, slots: &[Slot]| evaluate::supports(expr, slots);
    for step in &pipeline.steps {
        let slots = &pipeline.slots[..defined];
        match step {
            Step::Filter(expr) => expression(expr, slots)?,
            Step::Let(list) => {
                list.iter().try_for_each(|expr| expression(expr, slots))?;
                defined += list.len();
            }
            Step::Probe(probe) => {
                probe.keys.iter().try_for_each(|expr| expression(expr, slots))?;
                if let Some(residual) = &probe.residual {
                    if probe.null_aware {
                        return Err(Error::unsupported("NOT IN with a further condition runs on the host"));
                    }
                    let mut all = slots.to_vec();
                    all.extend(query.pipelines[probe.build].output());
                    expression(residual, &all)?;
                }
                if probe.null_aware && probe.keys.len() > 1 {
                    return Err(Error::unsupported("NOT IN of several columns runs on the host"));
                }
                defined += if probe.kind == tandem_pipeline::JoinKind::Mark { 1 } else { probe.adds.len() };
            }
        }
    }
    match &pipeline.sink {
        Sink::Build { keys, .. } | Sink::Partition { keys, .. } => {
            keys.iter().try_for_each(|expr| expression(expr, &pipeline.slots))
        }
        Sink::Aggregate { aggregates, .. } => {
            for aggregate in aggregates {
                let arguments = aggregate.argument.into_iter().chain(aggregate.second);
                if arguments.into_iter().any(|slot| pipeline.slots[slot].kind == Type::Null) {
                    return Err(Error::unsupported("aggregates of an untyped null run on the host"));
                }
            }
            Ok(())
        }
        Sink::Window { functions, .. } => {
            let untyped = |window: &Window| match &window.function {
                WindowFunction::Aggregate { aggregate, .. } => {
                    let mut arguments = aggregate.argument.into_iter().chain(aggregate.second);
                    arguments.any(|slot| pipeline.slots[slot].kind == Type::Null)
                }
                _ => false,
            };
            match functions.iter().any(untyped) {
                true => Err(Error::unsupported("aggregates of an untyped null run on the host")),
                false => Ok(()),
            }
        }
        Sink::Sort { .. } | Sink::Materialize { .. } => Ok(()),
    }
}
