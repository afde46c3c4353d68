//! Rows by the hash of their keys, for an exchange: those of one partition next to each other, partition after partition.

use std::{borrow::Borrow, iter, rc::Rc, sync::Arc};

use tandem_column::{Error, Result, Type};
use tandem_pipeline::{UserFunction, partition};
use tandem_plan::sink::PartitionPlan;

use super::{Finishing, SinkOperator};
use crate::{
    Contents, MemoryBudget, PipelineOutput, Rows, Values, Vector,
    evaluate::{self, Slots},
    frame::Frame,
    rows::{Chunk, in_order, to_table},
};

pub(super) struct PartitionSink {
    pub(super) plan: PartitionPlan,
    pub(super) functions: Vec<Arc<UserFunction>>,
    pub(super) memory: Arc<MemoryBudget>,
}

impl SinkOperator for PartitionSink {
    fn state(&self) -> Contents {
        // The number of a row's partition comes first.
        let kinds = iter::once(Type::Int64).chain(self.plan.kinds.iter().cloned());
        Contents::Rows(Rows::new(kinds.collect(), &self.memory, "the rows of partitions"))
    }

    fn consume(&self, contents: &mut Contents, frame: &Frame<'_>, morsel: usize) -> Result<()> {
        let keys = self.plan.keys.iter().map(|key| evaluate::evaluate(key, frame, &self.functions));
        let hashes = hashes(&keys.collect::<Result<Vec<_>>>()?, frame.count());
        let numbers = hashes.into_iter().map(|hash| partition::part(hash, self.plan.parts) as i64);
        let numbers = Rc::new(Vector { values: Values::Int(numbers.collect()), valid: None });
        let output = self.plan.output.iter().map(|slot| frame.vector(*slot));
        let vectors = iter::once(Ok(numbers)).chain(output).collect::<Result<Vec<Rc<Vector>>>>()?;
        contents.rows()?.push(morsel, frame.count(), &vectors)
    }

    fn finish(&self, contents: Vec<Contents>, finishing: &Finishing<'_>) -> Result<PipelineOutput> {
        let rows = contents.into_iter().map(Contents::into_rows).collect::<Result<Vec<Rows>>>()?;
        let mut parts: Vec<Vec<Chunk>> = (0..self.plan.parts).map(|_| Vec::new()).collect();
        for chunk in in_order(rows) {
            let mut of_part = vec![Vec::new(); self.plan.parts];
            let Some((Vector { values: Values::Int(numbers), .. }, output)) = chunk.vectors.split_first() else {
                return Err(Error::internal("rows of partitions come with the numbers of theirs"));
            };
            for (row, number) in numbers.iter().enumerate() {
                of_part[*number as usize].push(row as u32);
            }
            for (chunks, rows) in parts.iter_mut().zip(of_part).filter(|(_, rows)| !rows.is_empty()) {
                let vectors = output.iter().map(|vector| vector.take(&rows)).collect();
                chunks.push(Chunk { morsel: chunk.morsel, rows: rows.len(), vectors });
            }
        }
        let rows = parts.iter().map(|chunks| chunks.iter().map(|chunk| chunk.rows).sum()).collect();
        let chunks = parts.into_iter().flatten().collect();
        Ok(PipelineOutput::Partitions(to_table(finishing.schema.clone(), chunks, finishing.parallel)?, rows))
    }
}

/// Returns the hash of each row's keys.
pub(super) fn hashes(keys: &[impl Borrow<Vector>], rows: usize) -> Vec<u64> {
    let mut hashes = vec![partition::SEED; rows];
    for key in keys {
        let key: &Vector = key.borrow();
        match (&key.values, &key.valid) {
            (Values::Int(values), None) => take(&mut hashes, values, |value| *value),
            (Values::Float(values), None) => take(&mut hashes, values, |value| value.to_bits() as i64),
            (Values::Boolean(values), None) => take(&mut hashes, values, |value| (*value).into()),
            _ => hashes.iter_mut().enumerate().for_each(|(row, hash)| *hash = take_one(*hash, key, row)),
        }
    }
    hashes
}

/// Takes integers in, none of them null: a loop without branches.
fn take<T>(hashes: &mut [u64], values: &[T], integer: impl Fn(&T) -> i64) {
    hashes.iter_mut().zip(values).for_each(|(hash, value)| *hash = partition::hash_integer(*hash, integer(value)));
}

/// Takes one value in.
fn take_one(hash: u64, key: &Vector, row: usize) -> u64 {
    match &key.values {
        _ if !key.is_valid(row) => partition::hash_null(hash),
        Values::Boolean(values) => partition::hash_integer(hash, values[row].into()),
        Values::Int(values) => partition::hash_integer(hash, values[row]),
        Values::Wide(values) => partition::hash_wide(hash, values[row]),
        Values::Float(values) => partition::hash_integer(hash, values[row].to_bits() as i64),
        Values::Code { .. } | Values::Bytes(_) => partition::hash_bytes(hash, key.values.bytes(row)),
    }
}
