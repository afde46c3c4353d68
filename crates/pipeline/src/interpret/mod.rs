//! The reference interpreter: what a query means, row by row.
//!
//! Slow and obvious on purpose: it is the oracle that every executor is tested against. All rows of a step are computed
//! before the next step begins, and every value is a [`Value`]. Where the language leaves the order of rows open, rows
//! come in the order of their source; an executor may choose another.

mod call;
mod evaluate;
mod probe;
mod sink;
mod window;

use hashbrown::HashMap;
use tandem_column::{Error, Result, Scalar, Table, Type};

use crate::{Pipeline, Query, Source, Step, Value};

pub use evaluate::{Evaluator, STEP_LIMIT, evaluate};

/// One row's values, in the order of slots or columns.
pub type Row = Vec<Value>;

/// The rows that sources name.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The tables, by name, with all of their columns.
    pub tables: HashMap<String, Vec<Row>>,
    /// The blocks handed in with the query, by name.
    pub blocks: HashMap<String, Vec<Row>>,
}

/// What a pipeline leaves behind.
enum PipelineRows {
    Rows(Vec<Row>),
    Build(BuildRows),
}

/// The rows of a build: keys and payload side by side.
struct BuildRows {
    keys: Vec<Row>,
    payload: Vec<Row>,
}

/// Returns the rows of a resident table.
pub fn rows(table: &Table) -> Vec<Row> {
    let mut rows = Vec::with_capacity(table.rows());
    for part in &table.parts {
        rows.extend((0..part.rows).map(|row| part.columns.iter().map(|column| value(column, row)).collect::<Row>()));
    }
    rows
}

/// Returns one value of a column.
pub fn value(column: &tandem_column::Column, row: usize) -> Value {
    match (column.value(row), &column.kind) {
        (Scalar::Null, _) | (_, Type::Null) => Value::Null,
        (Scalar::Int(value), Type::Boolean) => Value::Boolean(value != 0),
        (Scalar::Int(value), _) => Value::Integer(value.into()),
        (Scalar::Wide(value), _) => Value::Integer(value),
        (Scalar::Float(value), _) => Value::Float(value),
        (Scalar::Bytes(bytes), Type::String) => Value::string(String::from_utf8_lossy(bytes)),
        (Scalar::Bytes(bytes), _) => Value::Binary(bytes.into()),
    }
}

/// Runs a query and returns the rows of its last pipeline; the rows of a build are its payload.
///
/// # Errors
/// If an input is missing or does not fit; if an operation fails that is told to.
pub fn interpret(query: &Query, inputs: &Inputs) -> Result<Vec<Row>> {
    let evaluator = Evaluator::new(&query.functions);
    let mut outcomes: Vec<PipelineRows> = Vec::with_capacity(query.pipelines.len());
    for pipeline in &query.pipelines {
        let mut rows = source(pipeline, inputs, &outcomes)?;
        for (index, step) in pipeline.steps.iter().enumerate() {
            let slots = &pipeline.slots[..pipeline.defined_before(index)];
            rows = match step {
                Step::Filter(condition) => {
                    let mut kept = Vec::with_capacity(rows.len());
                    for row in rows {
                        if evaluator.evaluate(condition, &row, slots)?.is_true() {
                            kept.push(row);
                        }
                    }
                    kept
                }
                Step::Let(exprs) => {
                    for row in &mut rows {
                        let added = exprs.iter().map(|expr| evaluator.evaluate(expr, row, slots));
                        let added = added.collect::<Result<Vec<_>>>()?;
                        row.extend(added);
                    }
                    rows
                }
                Step::Probe(probe) => match outcomes.get(probe.build) {
                    Some(PipelineRows::Build(build)) => {
                        let scope = query.residual_scope(&pipeline.slots, slots.len(), probe.build);
                        probe::probe(&evaluator, probe, build, rows, slots, &scope)?
                    }
                    _ => return Err(Error::internal(format!("pipeline {} is not an earlier build", probe.build))),
                },
            };
        }
        outcomes.push(sink::sink(&evaluator, pipeline, rows)?);
    }
    match outcomes.pop() {
        Some(PipelineRows::Rows(rows)) => Ok(rows),
        Some(PipelineRows::Build(build)) => Ok(build.payload),
        None => Err(Error::internal("a query has no pipeline")),
    }
}

/// Returns the rows of a source.
fn source(pipeline: &Pipeline, inputs: &Inputs, outcomes: &[PipelineRows]) -> Result<Vec<Row>> {
    let rows = match &pipeline.source {
        Source::Table { table, columns } => {
            let rows = inputs.tables.get(table).ok_or_else(|| Error::input(format!("there is no table {table}")))?;
            let pick = |row: &Row| -> Result<Row> {
                let picked = columns.iter().map(|column| row.get(*column).cloned());
                picked.collect::<Option<Row>>().ok_or_else(|| Error::input(format!("table {table} lacks a column")))
            };
            rows.iter().map(pick).collect::<Result<Vec<Row>>>()?
        }
        Source::Result { pipelines } => {
            let mut all = Vec::new();
            for id in pipelines {
                match outcomes.get(*id) {
                    Some(PipelineRows::Rows(rows)) => all.extend_from_slice(rows),
                    _ => return Err(Error::internal(format!("pipeline {id} is not an earlier one with rows"))),
                }
            }
            all
        }
        Source::Block { name } => {
            inputs.blocks.get(name).ok_or_else(|| Error::input(format!("there is no block {name}")))?.clone()
        }
        Source::Values { rows } => rows.clone(),
    };
    let width = pipeline.source_columns();
    match rows.iter().find(|row| row.len() != width) {
        Some(row) => Err(Error::input(format!("a source gave {} columns where {width} were expected", row.len()))),
        None => Ok(rows),
    }
}

#[cfg(test)]
mod tests;
