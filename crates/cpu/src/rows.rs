//! Rows kept by a sink until its last morsel: chunks of vectors, and the tables made of them.

use std::{ops::Range, rc::Rc, sync::Arc};

use tandem_column::{
    AlignedVec, Buffer, Codes, Column, ColumnStatistics, Data, Field, PART_ROWS, Part, Result, Table, Type,
};
use tandem_pipeline::{Slot, SlotId, Value};

use crate::{
    MemoryBudget, Reservation, Values, Vector, arrange::validity, evaluate::Slots, parallel, settings::ParallelTasks,
    sink::FirstRows,
};

/// Rows of some values, in chunks that remember their morsel.
#[derive(Debug)]
pub struct Rows {
    kinds: Vec<Type>,
    chunks: Vec<Chunk>,
    bytes: usize,
    reservation: Reservation,
    /// They are in the sink's order already; of windows, they are what comes out.
    pub sorted: bool,
    /// How many rows were left when some were dropped last.
    pub(crate) kept: usize,
    /// What tells rows apart that are not among the first of their partition, of a window that wants only those.
    pub(crate) first: Option<Box<FirstRows>>,
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
            first: None,
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
        self.bytes += vectors.iter().map(|vector| vector.held_bytes()).sum::<usize>();
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

    /// Appends rows of which nothing else is known: any may be among the first of its partition.
    ///
    /// # Errors
    /// Exhausted if the memory budget is used up.
    pub fn push_all(&mut self, morsel: usize, rows: usize, vectors: &[Rc<Vector>]) -> Result<()> {
        self.first = None;
        self.push(morsel, rows, vectors)
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
        self.bytes = vectors.iter().map(Vector::held_bytes).sum();
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
    workers: ParallelTasks<'_>,
) -> Result<(usize, Vec<Vector>)> {
    let rows = collected.iter().map(Rows::count).sum();
    let chunks = in_order(collected);
    let all = parallel::map(workers, kinds.len(), |column| {
        let mut whole = Vector::empty(&kinds[column]);
        for chunk in &chunks {
            whole.append(&chunk.vectors[column]);
            // Once, when the representation is known.
            let left = rows - whole.len();
            whole.reserve(left);
        }
        whole
    })?;
    Ok((rows, all))
}

/// Makes a table of `rows` rows, of which `make` gives those of a range as vectors: ranges are tasks, and parts of the table. What all
/// ranges give of a column has one representation, with one dictionary.
///
/// # Errors
/// Those of `make`, or cancellation.
pub(crate) fn to_table_in_parallel(
    schema: &Arc<[Field]>,
    ranges: &[Range<usize>],
    workers: ParallelTasks<'_>,
    make: &(dyn Fn(Range<usize>) -> Result<(usize, Vec<Vector>)> + Sync),
) -> Result<Table> {
    let shared = vec![true; schema.len()];
    let parts = parallel::map(workers, ranges.len(), |task| {
        let (rows, vectors) = make(ranges[task].clone())?;
        Ok(to_part(schema, vec![Chunk { morsel: task, rows, vectors }], &shared))
    })?;
    Ok(of_parts(schema.clone(), parts.into_iter().collect::<Result<_>>()?))
}

/// Divides rows into the ranges of parts, of which there are enough for all workers.
pub(crate) fn part_ranges(rows: usize) -> Vec<Range<usize>> {
    (0..rows).step_by(PART_ROWS / 4).map(|start| start..rows.min(start + PART_ROWS / 4)).collect()
}

impl Vector {
    /// Makes a column of the values, without block statistics.
    pub fn to_column(&mut self, kind: &Type) -> Column {
        self.clear_nulls();
        let valid = validity(self.valid.as_ref());
        match &self.values {
            Values::Boolean(values) => {
                Column::from_offsets(kind.clone(), 0, Codes::U8(Buffer::from_slice(values)), valid)
            }
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
}

/// Makes a table of chunks on all workers, joining small ones; strings keep their dictionary only if all chunks share it.
///
/// # Errors
/// What stops the workers: cancellation.
pub(crate) fn to_table(schema: Arc<[Field]>, chunks: Vec<Chunk>, workers: ParallelTasks<'_>) -> Result<Table> {
    let mut joined: Vec<Vec<Chunk>> = Vec::new();
    let mut last_rows = 0;
    for chunk in chunks.into_iter().filter(|chunk| chunk.rows > 0) {
        match joined.last_mut() {
            Some(last) if last_rows + chunk.rows <= PART_ROWS / 4 => {
                last_rows += chunk.rows;
                last.push(chunk);
            }
            _ => {
                last_rows = chunk.rows;
                joined.push(vec![chunk]);
            }
        }
    }
    let shared: Vec<bool> = (0..schema.len()).map(|column| share_dictionary(joined.iter().flatten(), column)).collect();
    let parts: Vec<PartWithRanges> = parallel::map_each(workers, joined, |chunks| to_part(&schema, chunks, &shared))?;
    Ok(of_parts(schema, parts))
}

/// Makes a table of parts, without those that have no rows.
fn of_parts(schema: Arc<[Field]>, mut parts: Vec<PartWithRanges>) -> Table {
    parts.retain(|(part, _)| part.rows > 0);
    let statistics = (0..schema.len()).map(|column| {
        let nulls = parts.iter().map(|(part, _)| part.columns[column].null_count()).sum();
        let whole = parts.iter().all(|(part, _)| matches!(part.columns[column].data, Data::Int { .. }));
        let ranges = parts.iter().filter(|_| whole).filter_map(|(_, ranges)| ranges[column]);
        let range = ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)));
        ColumnStatistics { range, nulls, ..Default::default() }
    });
    let statistics = statistics.collect();
    Table { statistics, schema, parts: parts.into_iter().map(|(part, _)| part).collect() }
}

/// A part, and the ranges of its integer columns, which later pipelines make their choices by.
type PartWithRanges = (Arc<Part>, Vec<Option<(i64, i64)>>);

/// Tells whether all chunks have codes of one dictionary in a column, or none has codes.
fn share_dictionary<'c>(chunks: impl Iterator<Item = &'c Chunk>, column: usize) -> bool {
    let mut dictionaries = chunks.map(|chunk| match &chunk.vectors[column].values {
        Values::Code { dictionary, .. } => Some(dictionary),
        _ => None,
    });
    let first = dictionaries.next().flatten();
    dictionaries.all(|dictionary| match (dictionary, first) {
        (Some(dictionary), Some(first)) => Arc::ptr_eq(dictionary, first),
        (None, None) => true,
        _ => false,
    })
}

/// Makes one part of chunks; columns that do not share their dictionary lose it.
fn to_part(schema: &[Field], chunks: Vec<Chunk>, shared: &[bool]) -> PartWithRanges {
    let rows = chunks.iter().map(|chunk| chunk.rows).sum();
    let mut chunks = chunks.into_iter();
    let mut vectors = chunks.next().map_or_else(Vec::new, |chunk| chunk.vectors);
    for chunk in chunks {
        vectors.iter_mut().zip(&chunk.vectors).for_each(|(to, from)| to.append(from));
    }
    vectors.iter_mut().zip(shared).filter(|(_, shared)| !**shared).for_each(|(vector, _)| vector.decode());
    let columns = vectors.iter_mut().zip(schema).map(|(vector, field)| Arc::new(vector.to_column(&field.kind)));
    let columns: Vec<Arc<Column>> = columns.collect();
    let range = |column: &Arc<Column>| match column.data {
        Data::Int { .. } => {
            let ranges = column.compute_blocks().into_iter().filter_map(|block| block.range);
            ranges.reduce(|(low, high), (l, h)| (low.min(l), high.max(h)))
        }
        _ => None,
    };
    let ranges = columns.iter().map(range).collect();
    (Arc::new(Part { rows, columns }), ranges)
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
    let chunk = Chunk { morsel: 0, rows: rows.len(), vectors };
    to_table(schema, vec![chunk], &parallel::serially).expect("nothing stops this thread")
}
