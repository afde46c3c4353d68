//! The verifier: whether a query is well-formed, before anything runs it.
//!
//! A verified query names only slots, columns, pipelines and functions that exist, in an order that can run, and every
//! operation gets operands of the types it is defined for. Executors rely on it and do not check again. Recursion is
//! bounded, so that a query from outside cannot exhaust the stack. What is wrong is said in one sentence with its place.

mod expression;
mod function;
mod sink;

use tandem_column::{Error, Result, Type};

use crate::{Expr, JoinKind, Pipeline, Probe, Query, Sink, Slot, Source, Step};

pub(crate) use expression::Checker;

/// How deeply expressions and statements may nest: a thread's usual 2 MiB of stack hold as much even in a debug build.
pub const DEPTH_LIMIT: usize = 128;

/// How deeply the statements and expressions of functions may nest together with those of the functions they call: they are
/// interpreted on the stack of one thread, above the expression that calls the first.
pub const CALL_DEPTH_LIMIT: usize = 256;

/// What is wrong, without its place.
pub(crate) type Check<T = ()> = std::result::Result<T, String>;

/// Checks a query.
///
/// # Errors
/// If it is not well-formed: the sentence names the function, or the pipeline and its source, step or sink.
pub fn verify(query: &Query) -> Result<()> {
    if query.pipelines.is_empty() {
        return Err(Error::input("a query needs at least one pipeline"));
    }
    let mut reaches = Vec::with_capacity(query.functions.len());
    for (index, function) in query.functions.iter().enumerate() {
        let reach = function::check(function, &query.functions[..index], &reaches).map_err(|reason| {
            Error::input(format!("function {index} ({}) is not well-formed: {reason}", function.name))
        })?;
        reaches.push(reach);
    }
    for (index, pipeline) in query.pipelines.iter().enumerate() {
        check_pipeline(query, pipeline, index).map_err(|(place, reason)| {
            Error::input(format!("pipeline {index} {place} is not well-formed: {reason}"))
        })?;
    }
    Ok(())
}

/// Checks one pipeline; an error is its place and the reason.
fn check_pipeline(query: &Query, pipeline: &Pipeline, index: usize) -> std::result::Result<(), (String, String)> {
    let at = |place: &str| {
        let place = place.to_owned();
        move |reason: String| (place, reason)
    };
    check_slots(pipeline).map_err(at("slots"))?;
    check_source(query, pipeline, index).map_err(at("source"))?;
    for (number, step) in pipeline.steps.iter().enumerate() {
        let defined = pipeline.defined_before(number);
        let checker = Checker { slots: &pipeline.slots[..defined], functions: &query.functions };
        let added = &pipeline.slots[defined..defined + step.adds()];
        match step {
            Step::Filter(condition) => checker.boolean(condition).map_err(at(&format!("step {number} (filter)")))?,
            Step::Let(exprs) => check_let(&checker, exprs, added).map_err(at(&format!("step {number} (let)")))?,
            Step::Probe(probe) => {
                check_probe(query, &checker, probe, added, index).map_err(at(&format!("step {number} (probe)")))?;
            }
        }
    }
    let checker = Checker { slots: &pipeline.slots, functions: &query.functions };
    sink::check(&checker, &pipeline.sink).map_err(at("sink"))
}

/// Checks the number of slots, and their types.
fn check_slots(pipeline: &Pipeline) -> Check {
    let added: usize = pipeline.steps.iter().map(Step::adds).sum();
    if pipeline.slots.len() < added {
        return Err(format!("steps add {added} slots, but only {} are declared", pipeline.slots.len()));
    }
    for (index, slot) in pipeline.slots.iter().enumerate() {
        check_type(&slot.kind).map_err(|reason| format!("slot ${index}: {reason}"))?;
        if matches!(slot.kind, Type::List(_)) {
            return Err(format!("slot ${index} is a list, which only user functions have"));
        }
    }
    Ok(())
}

/// Checks that a type's parameters are in range.
pub(crate) fn check_type(kind: &Type) -> Check {
    let mut kind = kind;
    for _ in 0..DEPTH_LIMIT {
        match kind {
            Type::List(of) => kind = of,
            Type::Decimal { precision, scale } => {
                let valid = (1..=38).contains(precision) && scale.unsigned_abs() <= 38;
                return valid.then_some(()).ok_or_else(|| format!("{kind} is not a decimal of 1 to 38 digits"));
            }
            _ => return Ok(()),
        }
    }
    Err(format!("a list type is nested more than {DEPTH_LIMIT} deep"))
}

/// Checks the source against the slots it defines.
fn check_source(query: &Query, pipeline: &Pipeline, index: usize) -> Check {
    let slots = &pipeline.slots[..pipeline.source_columns()];
    match &pipeline.source {
        // What a message has room for, and more than a table has.
        Source::Table { table, columns } if columns.iter().any(|column| u32::try_from(*column).is_err()) => {
            Err(format!("table {table} has no columns beyond the first {}", u32::MAX))
        }
        Source::Table { table, columns } if columns.len() != slots.len() => {
            Err(format!("table {table} gives {} columns to {} slots", columns.len(), slots.len()))
        }
        Source::Table { .. } | Source::Block { .. } => Ok(()),
        Source::Result { pipelines } => {
            if pipelines.is_empty() {
                return Err("it names no pipeline".to_owned());
            }
            for id in pipelines {
                let earlier = earlier(query, *id, index)?;
                if matches!(earlier.sink, Sink::Build { .. }) {
                    return Err(format!("pipeline {id} ends in a build, which has no rows"));
                }
                let given = earlier.output();
                if !given.iter().map(|slot| &slot.kind).eq(slots.iter().map(|slot| &slot.kind)) {
                    return Err(format!("the columns of pipeline {id} do not have the types of the slots"));
                }
            }
            Ok(())
        }
        Source::Values { rows } => {
            for (number, row) in rows.iter().enumerate() {
                if row.len() != slots.len() {
                    return Err(format!("row {number} has {} values for {} slots", row.len(), slots.len()));
                }
                let wrong = row
                    .iter()
                    .zip(slots)
                    .find(|(value, slot)| !value.fits(&slot.kind) || value.is_null() && !slot.nullable);
                if let Some((value, slot)) = wrong {
                    return Err(format!("row {number} has {value} for {} of type {}", slot.name, slot.kind));
                }
            }
            Ok(())
        }
    }
}

/// Finds an earlier pipeline.
fn earlier(query: &Query, id: usize, index: usize) -> Check<&Pipeline> {
    if id < index { Ok(&query.pipelines[id]) } else { Err(format!("pipeline {id} does not come before it")) }
}

/// Checks expressions against the slots they define.
fn check_let(checker: &Checker<'_>, exprs: &[Expr], added: &[Slot]) -> Check {
    for (expr, slot) in exprs.iter().zip(added) {
        let kind = checker.expr(expr)?;
        same(&kind, &slot.kind, &format!("slot {}", slot.name))?;
    }
    Ok(())
}

/// Checks a join against its build.
fn check_probe(query: &Query, checker: &Checker<'_>, probe: &Probe, added: &[Slot], index: usize) -> Check {
    let build = earlier(query, probe.build, index)?;
    let Sink::Build { keys, .. } = &build.sink else {
        return Err(format!("pipeline {} does not end in a build", probe.build));
    };
    if keys.len() != probe.keys.len() {
        return Err(format!("it has {} keys for the {} of pipeline {}", probe.keys.len(), keys.len(), probe.build));
    }
    for (key, other) in probe.keys.iter().zip(keys) {
        let kind = checker.expr(key)?;
        same(&kind, &other.kind(&build.slots), "a key")?;
    }
    let payload = build.output();
    if probe.kind == JoinKind::Mark {
        same(&added[0].kind, &Type::Boolean, "the mark")?;
    }
    if matches!(probe.kind, JoinKind::Mark | JoinKind::Semi | JoinKind::Anti) && !probe.adds.is_empty() {
        return Err(format!("a {} join adds no payload", probe.kind.name()));
    }
    for (add, slot) in probe.adds.iter().zip(added) {
        let given = payload
            .get(*add)
            .ok_or_else(|| format!("payload {add} does not exist: pipeline {} has {}", probe.build, payload.len()))?;
        same(&given.kind, &slot.kind, &format!("slot {}", slot.name))?;
    }
    if let Some(residual) = &probe.residual {
        let scope = query.residual_scope(checker.slots, checker.slots.len(), probe.build);
        Checker { slots: &scope, functions: checker.functions }.boolean(residual)?;
    }
    if probe.null_aware && (!matches!(probe.kind, JoinKind::Anti | JoinKind::Mark) || probe.null_equals_null) {
        return Err("only anti and mark joins whose nulls do not match are null aware".to_owned());
    }
    Ok(())
}

/// Requires two types to be the same; an untyped null is of any type.
pub(crate) fn same(found: &Type, wanted: &Type, what: &str) -> Check {
    if found == wanted || *found == Type::Null {
        Ok(())
    } else {
        Err(format!("{what} must be of type {wanted}, not {found}"))
    }
}

#[cfg(test)]
mod tests;
