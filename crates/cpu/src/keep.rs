//! Rows that a device keeps for a later pipeline. The processor gets a table that says all of them but the values: their
//! number, forms, ranges and nulls, from which it plans that pipeline.
//!
//! A column whose values are elsewhere is *away*: it has rows, and no values. Whoever wants these asks the device for them
//! first (`runtime/src/device/keep.rs`).

use std::{rc::Rc, sync::Arc};

use tandem_column::{Column, ColumnStatistics, Data, Dictionary, Field, Part, Result, Table};
use tandem_pipeline::fused::{FusedSink, KeyOf};

use crate::{
    Collected, Error, Job,
    collect::to_column,
    job::{SinkPlan, Worker},
};

/// Tells whether a column's values are not here.
pub fn is_away(column: &Column) -> bool {
    let empty = match &column.data {
        Data::Int { codes, .. } | Data::Dictionary { codes, .. } => codes.is_empty(),
        Data::Wide(values) => values.is_empty(),
        Data::Float32(values) => values.is_empty(),
        Data::Float64(values) => values.is_empty(),
        Data::Bytes { .. } => false,
    };
    empty && column.rows > 0
}

impl Job {
    /// Tells whether a device may keep the rows: a later pipeline reads them, and all that it is given of them are they.
    pub fn may_stay(&self) -> bool {
        let cut = match &self.sink {
            SinkPlan::Sort { skip, .. } => *skip > 0,
            SinkPlan::Materialize { skip, fetch, .. } => *skip > 0 || fetch.is_some(),
            SinkPlan::Build { .. } => true,
            SinkPlan::Aggregate(_) => false,
        };
        self.read_later && !cut && !self.has_leftovers()
    }

    /// Tells whether a device's part of the job ends with values of source columns that are fetched here.
    pub fn fetches_source(&self) -> bool {
        let fetched = |sink: FusedSink| match sink {
            FusedSink::Hashed { keys, .. } => keys.iter().any(|key| key.of == KeyOf::Row),
            _ => false,
        };
        self.fused().is_ok_and(|fused| fetched(fused.sink))
    }

    /// Returns the columns of the rows that the job gives.
    pub fn schema(&self) -> &Arc<[Field]> {
        &self.schema
    }

    /// Returns which of the values that a sink collects is its first output.
    pub fn first_output(&self) -> usize {
        match &self.sink {
            SinkPlan::Sort { keys, .. } => keys.len(),
            _ => 0,
        }
    }

    /// Returns what codes of an output column stand for.
    pub fn output_words(&self, output: usize, parts: &[usize]) -> Option<Arc<Dictionary>> {
        match &self.sink {
            SinkPlan::Aggregate(plan) => plan.output_words(output),
            _ => self.dictionary(&self.collected()[self.first_output() + output], *parts.first()?),
        }
    }

    /// Makes an output column of values that a kernel did not write.
    ///
    /// # Errors
    /// Unsupported for tables of too many rows.
    pub fn output_column(&self, output: usize, parts: &[usize], collected: Collected) -> Result<Column> {
        let exprs = self.collected();
        let expr = exprs.get(self.first_output() + output).ok_or_else(|| Error::internal("no such output"))?;
        let vector = self.vector(expr, parts, collected)?;
        Ok(to_column(&mut Rc::unwrap_or_clone(vector), &self.schema[output].kind))
    }

    /// Gives a worker the rows that a device keeps.
    pub fn keep(&self, worker: &mut Worker, rows: usize, columns: Vec<(Arc<Column>, ColumnStatistics)>) {
        let (columns, statistics): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let parts = vec![Arc::new(Part { rows, columns })];
        worker.kept = Some(Table { schema: self.schema.clone(), parts, statistics: statistics.into() });
        worker.sorted = true;
        worker.rows_out += rows as u64;
        let counter = worker.counters.last_mut().expect("the sink has a counter");
        counter.rows_in += rows as u64;
    }
}
