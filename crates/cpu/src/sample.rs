//! Predicates tried on a few rows of a table, for estimates that statistics cannot give.

use std::{cell::RefCell, rc::Rc};

use tandem_column::{Error, Field, Part, Result, Table, Type};
use tandem_pipeline::{Expr, SlotId};

use crate::{
    Vector,
    evaluate::{self, Slots},
};

/// Counts the rows among about `wanted` ones on which a predicate is true; gives that and the rows tried. The rows are
/// spread over the whole table, not at equal distances, so that no period of the values can hide. The same rows are
/// tried whenever it is asked. Slots are the table's columns by position.
///
/// # Errors
/// If the predicate fails on a row; if columns that it reads are on a device.
pub fn try_rows(table: &Table, predicate: &Expr, wanted: usize) -> Result<(usize, usize)> {
    let all: usize = table.parts.iter().map(|part| part.rows).sum();
    let stride = (all / wanted.max(1)).max(1);
    let (mut before, mut place) = (0, 0);
    let (mut passed, mut tried) = (0, 0);
    for part in &table.parts {
        let end = before + part.rows;
        let mut rows = Vec::new();
        loop {
            let row = place * stride + scatter(place) % stride;
            if row >= end {
                break;
            }
            rows.push((row - before) as u32);
            place += 1;
        }
        if !rows.is_empty() {
            tried += rows.len();
            let rows = TriedRows { part, fields: &table.schema, rows, fetched: RefCell::default() };
            passed += evaluate::select(predicate, &rows, &[])?.len();
        }
        before = end;
    }
    Ok((passed, tried))
}

/// Scatters numbers that follow each other.
fn scatter(number: usize) -> usize {
    ((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize
}

/// Some rows of a part.
struct TriedRows<'a> {
    part: &'a Part,
    fields: &'a [Field],
    rows: Vec<u32>,
    fetched: RefCell<Vec<(SlotId, Rc<Vector>)>>,
}

impl Slots for TriedRows<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn vector(&self, slot: SlotId) -> Result<Rc<Vector>> {
        if let Some((_, vector)) = self.fetched.borrow().iter().find(|(fetched, _)| *fetched == slot) {
            return Ok(vector.clone());
        }
        let column = &self.part.columns[slot];
        if column.is_remote() {
            return Err(Error::unsupported("a column on a device has no rows to try"));
        }
        let vector = Rc::new(Vector::fetch(column, &self.rows));
        self.fetched.borrow_mut().push((slot, vector.clone()));
        Ok(vector)
    }

    fn kind(&self, slot: SlotId) -> &Type {
        &self.fields[slot].kind
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use tandem_pipeline::{Comparison, Value};

    use super::*;

    fn table(values: impl Iterator<Item = i64>) -> Table {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        Table::from_batches(&batch.schema(), &[batch]).unwrap()
    }

    fn equal(value: i128) -> Expr {
        let value = Expr::Literal(Value::Integer(value), Type::Int64);
        Expr::Compare(Comparison::Equal, Box::new(Expr::Slot(0)), Box::new(value))
    }

    #[test]
    fn rows_of_a_small_table_are_all_tried() {
        for rows in [0, 1, 7, 1000] {
            let tried = try_rows(&table(0..rows), &equal(0), 1024).unwrap();
            assert_eq!(tried, (usize::from(rows > 0), rows as usize));
        }
    }

    #[test]
    fn a_period_of_the_values_does_not_hide() {
        // With equal distances, of 100,000 rows every 97th is tried: always or never one of the matches.
        let periodic = table((0..100_000).map(|row| row % 97));
        let (passed, tried) = try_rows(&periodic, &equal(0), 1024).unwrap();
        assert!((1000..=1100).contains(&tried), "{tried}");
        assert!((1..=40).contains(&passed), "{passed} of {tried}");
        assert_eq!(try_rows(&periodic, &equal(0), 1024).unwrap(), (passed, tried), "the same rows each time");
    }
}
