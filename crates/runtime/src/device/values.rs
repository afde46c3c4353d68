//! What a kernel computed of rows, as vectors: numbers, codes, and values that are fetched here by the numbers of their
//! rows or entries.

use std::{rc::Rc, sync::Arc};

use tandem_codegen::{TextBase, slice_bounds};
use tandem_column::{Column, Data, Dictionary, Error, Repr, Result, Table};
use tandem_cpu::{Values, Vector};
use tandem_pipeline::{Expr, SlotId};
use tandem_plan::{Origin, Physical};

/// The number that stands for no row, or no entry.
const NO_ROW: u32 = u32::MAX;

/// One column of rows that a kernel computed.
#[derive(Debug)]
pub(super) enum Collected {
    /// 64-bit numbers (codes, for text; bits, for floats), and bytes that are 1 where a value is null.
    Numbers(Vec<i64>, Option<Vec<u8>>),
    /// 128-bit integers, and bytes that are 1 where a value is null.
    Wide(Vec<i128>, Option<Vec<u8>>),
    /// Where computed texts lie among the bytes that they are slices of, and bytes that are 1 where a value is null.
    Slices(Vec<i64>, Option<Vec<u8>>),
    /// The rows whose values they are, counted through all parts; [`NO_ROW`] for none.
    Rows(Vec<u32>),
    /// The entries of a build whose payload they are; [`NO_ROW`] for none.
    Entries(Vec<u32>),
    /// As an earlier column.
    Same(usize),
}

/// Where the values of a pipeline's slots are.
#[derive(Clone, Copy)]
pub(super) struct Origins<'o> {
    pub(super) physical: &'o Physical,
    pub(super) table: &'o Table,
}

impl Origins<'_> {
    /// Makes vectors of the values that a sink collects. Several parts may have rows at once if codes of text mean the same
    /// in all of them; rows that are of none have nulls in its place.
    ///
    /// # Errors
    /// Unsupported if they do not.
    pub(super) fn vectors(&self, parts: &[usize], columns: Vec<Collected>) -> Result<Vec<Rc<Vector>>> {
        let exprs = self.physical.sink.values();
        if exprs.len() != columns.len() {
            return Err(Error::internal("a sink collects other values"));
        }
        let mut vectors: Vec<Rc<Vector>> = Vec::with_capacity(columns.len());
        for (expr, column) in exprs.iter().zip(columns) {
            let vector = match column {
                Collected::Same(earlier) => vectors[earlier].clone(),
                column => self.vector(expr, parts, column)?,
            };
            vectors.push(vector);
        }
        Ok(vectors)
    }

    /// Makes vectors of the columns that come out of a sink.
    ///
    /// # Errors
    /// As [`Origins::vectors`].
    pub(super) fn outputs(&self, parts: &[usize], columns: Vec<Collected>) -> Result<Vec<Rc<Vector>>> {
        let outputs = self.physical.sink.outputs().into_iter().zip(self.physical.schema.iter());
        let vectors = outputs.zip(columns).map(|((expr, field), column)| match (expr, column) {
            (Some(expr), column) => self.vector(&expr, parts, column),
            (None, Collected::Numbers(numbers, nulls)) => {
                let values = plain_values(field.kind.repr(), &numbers);
                let values = values.ok_or_else(|| Error::internal("a computed value has no codes"))?;
                Ok(Rc::new(Vector { values, valid: valid(nulls) }))
            }
            (None, Collected::Wide(values, nulls)) => {
                Ok(Rc::new(Vector { values: Values::Wide(values), valid: valid(nulls) }))
            }
            (None, _) => Err(Error::internal("a computed value is not fetched")),
        });
        vectors.collect()
    }

    /// Makes a vector of a column.
    pub(super) fn vector(&self, expr: &Expr, parts: &[usize], column: Collected) -> Result<Rc<Vector>> {
        match (column, parts) {
            (Collected::Numbers(numbers, nulls), parts) => Ok(Rc::new(self.vector_of(expr, parts, &numbers, nulls)?)),
            (Collected::Wide(values, nulls), _) => {
                Ok(Rc::new(Vector { values: Values::Wide(values), valid: valid(nulls) }))
            }
            (Collected::Slices(slices, nulls), parts) => {
                let source =
                    matches!(TextBase::of(expr, &self.physical.body), Some(TextBase::Stored(Origin::Column(_))));
                match parts {
                    [part] => Ok(Rc::new(self.slices(expr, Some(*part), &slices, nulls)?)),
                    _ if source => Err(Error::unsupported("computed text of several parts is put together by the CPU")),
                    _ => Ok(Rc::new(self.slices(expr, None, &slices, nulls)?)),
                }
            }
            (Collected::Rows(mut list), parts) => {
                let Expr::Slot(slot) = expr else { return Err(Error::internal("rows of a computed value")) };
                let Origin::Column(column) = self.physical.body.origins[*slot] else {
                    return Err(Error::internal("rows of a value that is not the source's"));
                };
                if self.table.rows() >= NO_ROW as usize {
                    return Err(Error::unsupported("so many rows are put together by the CPU"));
                }
                let [part] = parts else {
                    let rows: Vec<u64> = list.iter().map(|row| (*row).into()).collect();
                    return Ok(Rc::new(self.source_values(*slot, column, &rows)));
                };
                let first: usize = self.table.parts[..*part].iter().map(|part| part.rows).sum();
                list.iter_mut().filter(|row| **row != NO_ROW).for_each(|row| *row = row.wrapping_sub(first as u32));
                Ok(Rc::new(Vector::fetch(&self.table.parts[*part].columns[column], &list)))
            }
            (Collected::Entries(list), _) => {
                let payload = self.payload_of(expr).ok_or_else(|| Error::internal("entries without payload"))?;
                Ok(Rc::new(Vector::fetch(payload, &list)))
            }
            (Collected::Same(_), _) => Err(Error::internal("a column is the same as none")),
        }
    }

    fn vector_of(&self, expr: &Expr, parts: &[usize], numbers: &[i64], nulls: Option<Vec<u8>>) -> Result<Vector> {
        if let Some(values) = plain_values(expr.kind(&self.physical.body.slots).repr(), numbers) {
            return Ok(Vector { values, valid: valid(nulls) });
        }
        // Payload has its dictionary whatever part rows are of.
        let parts = if parts.is_empty() { &[0] } else { parts };
        let mut all = parts.iter().map(|part| self.dictionary(expr, *part));
        let dictionary = all.next().flatten().ok_or_else(|| Error::internal("codes without a dictionary"))?;
        if all.any(|other| !other.is_some_and(|other| Arc::ptr_eq(&other, &dictionary))) {
            return Err(Error::unsupported("parts with other dictionaries are put together by the CPU"));
        }
        // Nulls have any code.
        let last = dictionary.len().saturating_sub(1) as i64;
        let codes = numbers.iter().map(|number| (*number).clamp(0, last) as u32).collect();
        Ok(Vector { values: Values::Code { codes, dictionary }, valid: valid(nulls) })
    }

    /// Returns the payload column behind a slot.
    pub(super) fn payload_of(&self, expr: &Expr) -> Option<&Column> {
        let Expr::Slot(slot) = expr else { return None };
        match self.physical.body.origins[*slot] {
            Origin::Payload { lookup, payload } => {
                self.physical.builds.get(lookup)?.payload.get(payload).map(Arc::as_ref)
            }
            _ => None,
        }
    }

    /// Returns the dictionary of a slot's codes in a part.
    pub(super) fn dictionary(&self, expr: &Expr, part: usize) -> Option<Arc<Dictionary>> {
        let Expr::Slot(slot) = expr else { return None };
        let column = match self.physical.body.origins[*slot] {
            Origin::Column(column) => &*self.table.parts.get(part)?.columns[column],
            _ => self.payload_of(expr)?,
        };
        column.dictionary().cloned()
    }

    /// Tells whether codes of text mean the same in all parts, for every value that is collected.
    pub(super) fn shares_dictionaries(&self, parts: &[usize]) -> bool {
        self.physical.sink.values().iter().all(|expr| {
            let mut all = parts.iter().map(|part| self.dictionary(expr, *part));
            let first = all.next().flatten();
            all.all(|other| match (&first, &other) {
                (Some(first), Some(other)) => Arc::ptr_eq(first, other),
                (None, None) => true,
                _ => false,
            })
        })
    }

    /// Returns the dictionary of a source column or of a payload column.
    ///
    /// # Errors
    /// Unsupported if parts have different ones.
    pub(super) fn dictionary_of(&self, origin: Origin) -> Result<Arc<Dictionary>> {
        let columns: Vec<&Column> = match origin {
            Origin::Column(column) => self.table.parts.iter().map(|part| &*part.columns[column]).collect(),
            Origin::Payload { lookup, payload } => vec![&self.physical.builds[lookup].payload[payload]],
            Origin::Computed => Vec::new(),
        };
        let mut all = columns.into_iter().map(Column::dictionary);
        let first = all.next().flatten().ok_or_else(|| Error::internal("codes without a dictionary"))?;
        match all.all(|other| other.is_some_and(|other| Arc::ptr_eq(other, first))) {
            true => Ok(first.clone()),
            false => Err(Error::unsupported("parts with other dictionaries are not on the device yet")),
        }
    }

    /// Fetches computed texts from the bytes that they are slices of; those of a source column are of one part.
    ///
    /// # Errors
    /// Internal if the expression's values are no slices.
    pub(super) fn slices(
        &self,
        expr: &Expr,
        part: Option<usize>,
        slices: &[i64],
        nulls: Option<Vec<u8>>,
    ) -> Result<Vector> {
        let mapped: Vec<u8>;
        let missing = || Error::internal("the bytes of a computed text are nowhere");
        let bytes: &[u8] = match TextBase::of(expr, &self.physical.body).ok_or_else(missing)? {
            TextBase::Mapped(mapping) => {
                mapped = mapping.texts(&*self.dictionary_of(mapping.words)?)?.into_iter().flatten().flatten().collect();
                &mapped
            }
            TextBase::Stored(Origin::Payload { lookup, payload }) => {
                bytes_of(&self.physical.builds[lookup].payload[payload])
            }
            // Build rows have no text of a source row.
            TextBase::Stored(Origin::Column(column)) => {
                part.map_or(&[], |part| bytes_of(&self.table.parts[part].columns[column]))
            }
            TextBase::Stored(Origin::Computed) => return Err(missing()),
        };
        let texts = slices.iter().map(|slice| {
            let (begin, length) = slice_bounds(*slice as u64);
            bytes.get(begin..begin + length).ok_or_else(missing)
        });
        let texts = texts.collect::<Result<Vec<&[u8]>>>()?;
        Ok(Vector { values: Values::Bytes(texts.into_iter().collect()), valid: valid(nulls) })
    }

    /// Fetches the values of a source column at rows that are counted through all parts, null behind the last.
    pub(super) fn source_values(&self, slot: SlotId, column: usize, rows: &[u64]) -> Vector {
        let kind = &self.physical.body.slots[slot].kind;
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_unstable_by_key(|at| rows[*at as usize]);
        let mut values = Vector::empty(kind);
        let (mut rest, mut first) = (order.as_slice(), 0u64);
        for part in &self.table.parts {
            let end = first + part.rows as u64;
            let within = rest.partition_point(|at| rows[*at as usize] < end);
            let (here, later) = rest.split_at(within);
            let list: Vec<u32> = here.iter().map(|at| (rows[*at as usize] - first) as u32).collect();
            if !list.is_empty() {
                values.append(&Vector::fetch(&part.columns[column], &list));
            }
            (rest, first) = (later, end);
        }
        if !rest.is_empty() {
            values.append(&Vector::nulls(kind, rest.len()));
        }
        let mut place = vec![0; rows.len()];
        order.iter().zip(0u32..).for_each(|(at, sorted)| place[*at as usize] = sorted);
        values.take(&place)
    }
}

/// Returns the bytes of a column of plain text; none of others.
fn bytes_of(column: &Column) -> &[u8] {
    match &column.data {
        Data::Bytes { bytes, .. } => bytes,
        _ => &[],
    }
}

/// Returns the values that numbers are, where they are not codes.
fn plain_values(repr: Repr, numbers: &[i64]) -> Option<Values> {
    Some(match repr {
        Repr::Boolean => Values::Boolean(numbers.iter().map(|number| *number as u8).collect()),
        Repr::Int => Values::Int(numbers.to_vec()),
        Repr::Float => Values::Float(numbers.iter().map(|number| f64::from_bits(*number as u64)).collect()),
        _ => return None,
    })
}

/// Returns which values are not null, if some are.
pub(super) fn valid(nulls: Option<Vec<u8>>) -> Option<Vec<u8>> {
    nulls.filter(|nulls| nulls.contains(&1)).map(|nulls| nulls.iter().map(|null| 1 - null).collect())
}
