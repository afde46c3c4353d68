//! Rows kept by a sink until its last morsel: chunks of vectors, and the tables made of them.

use std::{
    ops::Range,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
};

use tandem_column::{
    AlignedVec, Buffer, Codes, Column, ColumnStatistics, Data, Field, PART_ROWS, Part, Result, Table, Type,
};
use tandem_pipeline::{Slot, SlotId, Value};

use crate::{MemoryBudget, Reservation, Values, Vector, arrange::validity, evaluate::Slots, settings::ParallelTasks};

/// Rows of some values, in chunks that remember their morsel.
#[derive(Debug)]
pub struct Rows {
    kinds: Vec<Type>,
    chunks: Vec<Chunk>,
    bytes: usize,
    reservation: Reservation,
    /// They are in the sink's order already.
    pub sorted: bool,
    /// How many rows were left when some were dropped last.
    pub(crate) kept: usize,
}

/// Rows of one morsel.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) morsel: usize,
    pub(crate) rows: usize,
    pub(crate) vectors: Vec<Vector>,
}

impl Rows {
    pub(crate) fn new(kinds: Vec<Type>, budget: &Arc<MemoryBudget>, what: &'static str) -> Rows {
        Rows {
            kinds,
            chunks: Vec::new(),
            bytes: 0,
            reservation: Reservation::new(budget, what),
            sorted: false,
            kept: 0,
        }
    }

    /// Makes rows of one vector per column.
    pub(crate) fn of(
        (rows, vectors): (usize, Vec<Vector>),
        morsel: usize,
        kinds: &[Type],
        budget: &Arc<MemoryBudget>,
    ) -> Rows {
        let chunks = vec![Chunk { morsel, rows, vectors }];
        Rows { chunks, ..Rows::new(kinds.to_vec(), budget, "the build side of a join") }
    }

    /// Appends rows given as one vector per column. Rows come out in the order of morsels.
    ///
    /// # Errors
    /// Exhausted if the memory budget is used up.
    pub fn push(&mut self, morsel: usize, rows: usize, vectors: &[Rc<Vector>]) -> Result<()> {
        self.bytes += vectors.iter().map(|v| byte_len(v)).sum::<usize>();
        self.reservation.grow_to(self.bytes)?;
        match self.chunks.last_mut() {
            Some(chunk) if chunk.morsel == morsel => {
                chunk.rows += rows;
                chunk.vectors.iter_mut().zip(vectors).for_each(|(to, from)| to.append(from));
            }
            _ => {
                let vectors = vectors.iter().map(|v| v.as_ref().clone()).collect();
                self.chunks.push(Chunk { morsel, rows, vectors });
            }
        }
        Ok(())
    }

    /// Appends the active rows of a frame.
    pub(crate) fn push_slots(&mut self, morsel: usize, frame: &dyn Slots, slots: &[SlotId]) -> Result<()> {
        let vectors = slots.iter().map(|slot| frame.vector(*slot)).collect::<Result<Vec<_>>>()?;
        self.push(morsel, frame.rows(), &vectors)
    }

    /// Returns how many rows there are.
    pub fn count(&self) -> usize {
        self.chunks.iter().map(|c| c.rows).sum()
    }

    /// Takes the memory of the rows out, to hold it while something is made of them.
    pub(crate) fn hand_over(&mut self) -> Reservation {
        self.reservation.split_off(usize::MAX)
    }

    /// Replaces everything by the given rows.
    pub(crate) fn replace(&mut self, rows: usize, vectors: Vec<Vector>) {
        self.bytes = vectors.iter().map(byte_len).sum();
        self.chunks = vec![Chunk { morsel: 0, rows, vectors }];
    }

    /// Returns all rows as one vector per column.
    pub(crate) fn concat(&mut self) -> Vec<Vector> {
        let mut chunks = std::mem::take(&mut self.chunks).into_iter();
        let Some(first) = chunks.next() else { return self.kinds.iter().map(Vector::empty).collect() };
        let mut all = first.vectors;
        for chunk in chunks {
            all.iter_mut().zip(&chunk.vectors).for_each(|(to, from)| to.append(from));
        }
        all
    }
}

/// Returns the chunks of several workers in the order of their morsels.
pub(crate) fn in_order(rows: Vec<Rows>) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = rows.into_iter().flat_map(|rows| rows.chunks).collect();
    chunks.sort_by_key(|c| c.morsel);
    chunks
}

/// Joins the rows of several workers into one vector per column.
pub(crate) fn concat_all(kinds: &[Type], collected: Vec<Rows>) -> (usize, Vec<Vector>) {
    let rows = collected.iter().map(Rows::count).sum();
    let mut all: Vec<Vector> = kinds.iter().map(Vector::empty).collect();
    for chunk in in_order(collected) {
        all.iter_mut().zip(&chunk.vectors).for_each(|(to, from)| to.append(from));
    }
    (rows, all)
}

/// Joins the rows of several workers into one vector per column, each column a task.
///
/// # Errors
/// Cancellation.
pub(crate) fn concat_in_parallel(
    kinds: &[Type],
    collected: Vec<Rows>,
    parallel: ParallelTasks<'_>,
) -> Result<(usize, Vec<Vector>)> {
    let rows = collected.iter().map(Rows::count).sum();
    let chunks = in_order(collected);
    let all: Vec<Mutex<Vector>> = kinds.iter().map(|kind| Mutex::new(Vector::empty(kind))).collect();
    parallel(kinds.len(), &|column| {
        let mut whole = all[column].lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in &chunks {
            whole.append(&chunk.vectors[column]);
            // Once, when the representation is known.
            let left = rows - whole.len();
            whole.reserve(left);
        }
        Ok(())
    })?;
    Ok((rows, all.into_iter().map(|vector| vector.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()))
}

/// Makes a table of `rows` rows, of which `make` gives those of a range as vectors: ranges are tasks, and parts of the table. What all
/// ranges give of a column has one representation, with one dictionary.
///
/// # Errors
/// Those of `make`, or cancellation.
pub(crate) fn to_table_in_parallel(
    schema: &Arc<[Field]>,
    ranges: &[Range<usize>],
    parallel: ParallelTasks<'_>,
    make: &(dyn Fn(Range<usize>) -> Result<(usize, Vec<Vector>)> + Sync),
) -> Result<Table> {
    let parts: Vec<Mutex<Option<Arc<Part>>>> = ranges.iter().map(|_| Mutex::new(None)).collect();
    parallel(ranges.len(), &|task| {
        let (rows, mut vectors) = make(ranges[task].clone())?;
        let columns = vectors.iter_mut().zip(schema.iter());
        let columns = columns.map(|(vector, field)| match to_column(vector, &field.kind) {
            // The ranges of columns are wanted below.
            column if matches!(column.data, Data::Int { .. }) => Arc::new(column.with_blocks()),
            column => Arc::new(column),
        });
        let part = Part { rows, columns: columns.collect() };
        *parts[task].lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(part)).filter(|part| part.rows > 0);
        Ok(())
    })?;
    let parts = parts.into_iter().filter_map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner));
    let parts: Vec<Arc<Part>> = parts.collect();
    Ok(Table { statistics: statistics(schema, &parts), schema: schema.clone(), parts })
}

/// Divides rows into the ranges of parts, of which there are enough for all workers.
pub(crate) fn part_ranges(rows: usize) -> Vec<Range<usize>> {
    (0..rows).step_by(PART_ROWS / 4).map(|start| start..rows.min(start + PART_ROWS / 4)).collect()
}

fn byte_len(vector: &Vector) -> usize {
    let values = match &vector.values {
        Values::Boolean(v) => v.len(),
        Values::Int(v) => v.len() * 8,
        Values::Wide(v) => v.len() * 16,
        Values::Float(v) => v.len() * 8,
        Values::Code { codes, .. } => codes.len() * 4,
        Values::Bytes(v) => v.parts().1.len() + v.len() * 8,
    };
    values + vector.valid.as_ref().map_or(0, Vec::len)
}

/// Makes a column of a vector's values, without block statistics.
pub fn to_column(vector: &mut Vector, kind: &Type) -> Column {
    vector.clear_nulls();
    let valid = validity(vector.valid.as_ref());
    match &vector.values {
        Values::Boolean(values) => Column::from_offsets(kind.clone(), 0, Codes::U8(Buffer::from_slice(values)), valid),
        Values::Int(values) => Column::from_i64(kind.clone(), AlignedVec::from(values.as_slice()), valid),
        Values::Wide(values) => Column::from_i128(kind.clone(), AlignedVec::from(values.as_slice()), valid),
        Values::Float(values) if *kind == Type::Float32 => {
            Column::from_f32(values.iter().map(|v| *v as f32).collect::<AlignedVec<f32>>(), valid)
        }
        Values::Float(values) => Column::from_f64(AlignedVec::from(values.as_slice()), valid),
        Values::Code { codes, dictionary } => {
            Column::from_codes(kind.clone(), Codes::U32(Buffer::from_slice(codes)), dictionary.clone(), valid)
        }
        Values::Bytes(values) => {
            let (offsets, bytes) = values.parts();
            let offsets: AlignedVec<u64> = offsets.iter().map(|o| *o as u64).collect();
            Column::from_bytes(kind.clone(), offsets.into(), Buffer::from_slice(bytes), valid)
        }
    }
}

/// Makes a table of chunks, joining small ones; strings keep their dictionary only if all chunks share it.
pub(crate) fn to_table(schema: Arc<[Field]>, chunks: Vec<Chunk>) -> Table {
    let mut joined: Vec<Chunk> = Vec::new();
    for chunk in chunks.into_iter().filter(|c| c.rows > 0) {
        match joined.last_mut() {
            Some(last) if last.rows + chunk.rows <= PART_ROWS / 4 => {
                last.rows += chunk.rows;
                last.vectors.iter_mut().zip(&chunk.vectors).for_each(|(to, from)| to.append(from));
            }
            _ => joined.push(chunk),
        }
    }
    for column in 0..schema.len() {
        let mut dictionaries = joined.iter().map(|c| match &c.vectors[column].values {
            Values::Code { dictionary, .. } => Some(dictionary.clone()),
            _ => None,
        });
        let first = dictionaries.next().flatten();
        let shared = dictionaries.all(|d| match (&d, &first) {
            (Some(d), Some(first)) => Arc::ptr_eq(d, first),
            (None, None) => true,
            _ => false,
        });
        if !shared {
            joined.iter_mut().for_each(|chunk| chunk.vectors[column].decode());
        }
    }
    let parts = joined.into_iter().map(|mut chunk| {
        let columns = chunk.vectors.iter_mut().zip(schema.iter());
        let columns = columns.map(|(vector, field)| Arc::new(to_column(vector, &field.kind))).collect();
        Arc::new(Part { rows: chunk.rows, columns })
    });
    let parts: Vec<Arc<Part>> = parts.collect();
    Table { statistics: statistics(&schema, &parts), schema: schema.clone(), parts }
}

/// Makes a table of literal rows.
pub fn values_table(slots: &[Slot], rows: &[Vec<Value>]) -> Table {
    let schema: Arc<[Field]> = slots
        .iter()
        .map(|slot| Field { name: slot.name.clone(), kind: slot.kind.clone(), nullable: slot.nullable })
        .collect();
    let vectors = slots
        .iter()
        .enumerate()
        .map(|(column, slot)| Vector::from_values(&slot.kind, rows.iter().map(|row| &row[column])))
        .collect();
    to_table(schema, vec![Chunk { morsel: 0, rows: rows.len(), vectors }])
}

/// Returns the range of integer columns, which later pipelines make their choices by.
fn statistics(schema: &[Field], parts: &[Arc<Part>]) -> Arc<[ColumnStatistics]> {
    let column = |index: usize| {
        let mut range: Option<(i64, i64)> = None;
        let mut nulls = 0;
        for part in parts {
            let column = &part.columns[index];
            nulls += column.null_count();
            let Data::Int { .. } = column.data else { return ColumnStatistics { nulls, ..Default::default() } };
            let computed = if column.blocks.is_empty() { column.compute_blocks() } else { Vec::new() };
            for block in column.blocks.iter().chain(&computed) {
                if let Some((low, high)) = block.range {
                    range = Some(range.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
                }
            }
        }
        ColumnStatistics { range, nulls, ..Default::default() }
    };
    (0..schema.len()).map(column).collect()
}
