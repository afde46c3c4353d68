//! Loading: rows from many threads become parts of compact columns.
//!
//! Rows arrive as numbered Arrow batches, in any order. As soon as the rows of a part are complete they are encoded, each
//! part on its own, by whichever thread is in [`Loader::append`], and the Arrow memory is freed; what waits is at most
//! what arrived early. [`Loader::finish`] then brings all parts to one encoding per column and computes statistics.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, RecordBatch, cast::AsArray};
use arrow_schema::DataType;

use crate::from_arrow::encode;
use crate::table::check_width;
use crate::unify::unify;
use crate::{Column, Error, Field, MemoryBudget, PART_ROWS, Parallel, Part, Repr, Reservation, Result, Table, serial};

/// How a [`Loader`] works.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The table's name, for messages.
    pub name: String,
    /// Rows of a part.
    pub part_rows: usize,
    /// What encoded and waiting rows count against.
    pub memory: Arc<MemoryBudget>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { name: "table".into(), part_rows: PART_ROWS, memory: Arc::default() }
    }
}

/// Takes rows from many threads and makes a table of them.
pub struct Loader {
    schema: Arc<[Field]>,
    options: LoadOptions,
    /// Per column: a part had too many distinct values for a dictionary, so later parts do not try.
    plain: Vec<AtomicBool>,
    held: Mutex<Reservation>,
    rows: AtomicUsize,
    state: Mutex<State>,
}

/// What arrived under one sequence number.
enum Item {
    Batch(RecordBatch),
    Part(Arc<Part>),
}

/// Rows of one part that are complete but not encoded.
struct EncodeJob {
    part: usize,
    batches: Vec<RecordBatch>,
}

#[derive(Default)]
struct State {
    /// The sequence number that is next in order.
    next: u64,
    /// Items that arrived before their turn.
    waiting: BTreeMap<u64, Item>,
    /// Rows in order that do not fill a part yet.
    open: Vec<RecordBatch>,
    open_rows: usize,
    jobs: VecDeque<EncodeJob>,
    /// Parts in order; `None` while a part is a job.
    parts: Vec<Option<Arc<Part>>>,
    failure: Option<Error>,
}

impl State {
    /// Takes every item whose turn it is, or, at the end, all.
    fn advance(&mut self, part_rows: usize, all: bool) {
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next && !all {
                break;
            }
            self.next = entry.key() + 1;
            match entry.remove() {
                Item::Batch(batch) => self.take(batch, part_rows),
                Item::Part(part) => {
                    self.close();
                    self.parts.push(Some(part));
                }
            }
        }
    }

    /// Adds rows to the open part, and closes it as often as it is full.
    fn take(&mut self, mut batch: RecordBatch, part_rows: usize) {
        while batch.num_rows() > 0 {
            let rows = batch.num_rows().min(part_rows - self.open_rows);
            self.open.push(batch.slice(0, rows));
            self.open_rows += rows;
            batch = batch.slice(rows, batch.num_rows() - rows);
            if self.open_rows == part_rows {
                self.close();
            }
        }
    }

    /// Makes a job of the open part, if it has rows.
    fn close(&mut self) {
        if self.open_rows > 0 {
            self.jobs.push_back(EncodeJob { part: self.parts.len(), batches: std::mem::take(&mut self.open) });
            self.parts.push(None);
            self.open_rows = 0;
        }
    }
}

impl Loader {
    /// Makes a loader of an empty table.
    pub fn new(schema: Arc<[Field]>, options: LoadOptions) -> Loader {
        let plain = schema.iter().map(|_| AtomicBool::new(false)).collect();
        let options = LoadOptions { part_rows: options.part_rows.max(1), ..options };
        let held = Reservation::new(&options.memory, format!("loading table {}", options.name));
        Loader { schema, options, plain, held: Mutex::new(held), rows: AtomicUsize::new(0), state: Mutex::default() }
    }

    /// Returns the table's columns.
    pub fn schema(&self) -> &Arc<[Field]> {
        &self.schema
    }

    /// Takes rows. Sequence numbers are 0, 1, 2, … and give the order of rows; they may arrive in any order and from many
    /// threads. The caller may be made to encode a part before this returns. Rows behind a gap wait for the gap to be
    /// filled, or for the end.
    ///
    /// # Errors
    /// If a value does not fit its column, a type is not supported, or the memory budget is used up.
    pub fn append(&self, sequence: u64, batch: RecordBatch) -> Result<()> {
        check_width(&self.schema, batch.num_columns())?;
        self.charge(batch_bytes(&batch))?;
        self.rows.fetch_add(batch.num_rows(), Ordering::Relaxed);
        self.add(sequence, Item::Batch(batch))?;
        self.work()
    }

    /// Takes rows that are already columns, as a part of their own; shares sequence numbers with [`Self::append`].
    /// Dictionaries that parts share by pointer stay as they are.
    ///
    /// # Errors
    /// If the columns do not fit the schema, or the memory budget is used up.
    pub fn append_part(&self, sequence: u64, columns: Vec<Column>) -> Result<()> {
        check_width(&self.schema, columns.len())?;
        let rows = columns.first().map_or(0, |column| column.rows);
        for (column, field) in columns.iter().zip(self.schema.iter()) {
            if column.rows != rows || column.kind != field.kind {
                return Err(Error::internal(format!(
                    "a part with {rows} rows has a column for {} of type {} with {} rows",
                    field.name, column.kind, column.rows
                )));
            }
        }
        let part = Part::new(rows, columns.into_iter().map(Column::with_blocks).collect());
        self.charge(part.byte_len())?;
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.add(sequence, Item::Part(Arc::new(part)))?;
        self.work()
    }

    /// Returns the memory that encoded and waiting rows take, in bytes.
    pub fn byte_len(&self) -> usize {
        self.held().bytes()
    }

    /// Returns how many rows arrived.
    pub fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    /// Makes the table, on this thread alone.
    ///
    /// # Errors
    /// As [`Self::append`], for the rows still waiting.
    pub fn finish(self) -> Result<Table> {
        self.finish_with(&serial)
    }

    /// Makes the table in parallel.
    ///
    /// # Errors
    /// As [`Self::append`], for the rows still waiting.
    pub fn finish_with(self, parallel: &Parallel<'_>) -> Result<Table> {
        self.finish_held(parallel).map(|(table, _)| table)
    }

    /// Makes the table in parallel; the reservation stands for its memory.
    ///
    /// # Errors
    /// As [`Self::append`], for the rows still waiting.
    pub fn finish_held(self, parallel: &Parallel<'_>) -> Result<(Table, Reservation)> {
        let jobs = {
            let mut state = self.lock();
            state.advance(self.options.part_rows, true);
            state.close();
            state.jobs.len()
        };
        // An error is kept in the state, so that those of other threads are seen here too.
        parallel(jobs, &|_| {
            let _ = self.work();
        });
        let mut state = self.lock();
        if let Some(error) = state.failure.take() {
            return Err(error);
        }
        let parts = std::mem::take(&mut state.parts);
        drop(state);
        let lost = || Error::internal("a part of the table was not encoded");
        let parts = parts.into_iter().map(|part| part.ok_or_else(lost)).collect::<Result<Vec<_>>>()?;
        let mut held = self.held.into_inner().unwrap_or_else(PoisonError::into_inner);
        let parts = unify(&self.schema, parts, true, parallel, Some(&mut held))?;
        let table = Table::with_statistics_on(self.schema, parts, parallel);
        held.resize(table.byte_len())?;
        Ok((table, held))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Reservation> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts memory, and refuses what exceeds the limit.
    fn charge(&self, bytes: usize) -> Result<()> {
        self.held().add(bytes)
    }

    fn release(&self, bytes: usize) -> Result<()> {
        // The sizes of slices need not add up to that of the whole: never below zero.
        let mut held = self.held();
        let left = held.bytes().saturating_sub(bytes);
        held.resize(left)
    }

    fn add(&self, sequence: u64, item: Item) -> Result<()> {
        let mut state = self.lock();
        if sequence < state.next || state.waiting.contains_key(&sequence) {
            let message = format!("table {} was given sequence number {sequence} twice", self.options.name);
            return Err(Error::internal(message));
        }
        state.waiting.insert(sequence, item);
        state.advance(self.options.part_rows, false);
        Ok(())
    }

    /// Encodes complete parts until none is left.
    fn work(&self) -> Result<()> {
        loop {
            let Some(job) = self.lock().jobs.pop_front() else { return Ok(()) };
            let before: usize = job.batches.iter().map(batch_bytes).sum();
            // Text that rows share in Arrow may have to be written out for each of them.
            let spread: usize = job.batches.iter().map(spread_bytes).sum();
            let encoded = self.charge(spread).and_then(|()| {
                let encoded = self.encode(&job.batches);
                self.release(spread)?;
                let part = encoded?;
                let dictionaries = part.columns.iter().filter_map(|column| column.dictionary());
                self.charge(part.byte_len() + dictionaries.map(|dictionary| dictionary.byte_len()).sum::<usize>())?;
                Ok(part)
            });
            drop(job.batches);
            self.release(before)?;
            match encoded {
                Ok(part) => self.lock().parts[job.part] = Some(Arc::new(part)),
                Err(error) => {
                    self.lock().failure.get_or_insert_with(|| error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn encode(&self, batches: &[RecordBatch]) -> Result<Part> {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        let columns = self.schema.iter().enumerate().map(|(at, field)| {
            let column = encode_column(field, batches, at, !self.plain[at].load(Ordering::Relaxed))?;
            if field.kind.repr() == Repr::Bytes && column.dictionary().is_none() {
                self.plain[at].store(true, Ordering::Relaxed);
            }
            Ok(column)
        });
        Ok(Part::new(rows, columns.collect::<Result<_>>()?))
    }
}

fn encode_column(field: &Field, batches: &[RecordBatch], at: usize, intern: bool) -> Result<Column> {
    let chunks: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(at).as_ref()).collect();
    encode(&field.kind, &chunks, intern)
        .map_err(|error| Error::new(error.class, format!("column {} cannot be loaded: {}", field.name, error.message)))
}

/// Returns about how much memory the rows of a batch take, not counting what slices of one array share twice.
fn batch_bytes(batch: &RecordBatch) -> usize {
    let bytes = |column: &Arc<dyn Array>| {
        column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
    };
    batch.columns().iter().map(bytes).sum()
}

/// Returns how many bytes the text of a batch takes when each row has its own.
fn spread_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| text_bytes(column.as_ref())).sum()
}

/// Adds up the lengths of the texts that rows share: those of views and of dictionaries.
fn text_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => array.as_string_view().lengths().map(|length| length as usize).sum(),
        DataType::BinaryView => array.as_binary_view().lengths().map(|length| length as usize).sum(),
        DataType::Dictionary(..) => {
            let array = array.as_any_dictionary();
            let length: Box<dyn Fn(usize) -> usize> = match array.values().data_type() {
                DataType::Utf8 => Box::new(|at| array.values().as_string::<i32>().value_length(at) as usize),
                DataType::LargeUtf8 => Box::new(|at| array.values().as_string::<i64>().value_length(at) as usize),
                DataType::Binary => Box::new(|at| array.values().as_binary::<i32>().value_length(at) as usize),
                DataType::LargeBinary => Box::new(|at| array.values().as_binary::<i64>().value_length(at) as usize),
                DataType::Utf8View => Box::new(|at| array.values().as_string_view().views()[at] as u32 as usize),
                DataType::BinaryView => Box::new(|at| array.values().as_binary_view().views()[at] as u32 as usize),
                _ => return 0,
            };
            if array.values().is_empty() {
                return 0;
            }
            array.normalized_keys().into_iter().map(length).sum()
        }
        _ => 0,
    }
}

/// Collects the rows of one part and encodes them in their narrowest encoding, for scanners that hand whole parts to
/// [`Loader::append_part`].
#[derive(Clone, Debug)]
pub struct PartBuilder {
    schema: Arc<[Field]>,
    batches: Vec<RecordBatch>,
}

impl PartBuilder {
    /// Makes an empty one.
    pub fn new(schema: Arc<[Field]>) -> PartBuilder {
        PartBuilder { schema, batches: Vec::new() }
    }

    /// Takes rows.
    ///
    /// # Errors
    /// If the batch has another number of columns.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        check_width(&self.schema, batch.num_columns())?;
        self.batches.push(batch);
        Ok(())
    }

    /// Returns how many rows there are.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Encodes the rows, text with a dictionary where it pays; with block statistics.
    ///
    /// # Errors
    /// If a value does not fit its column or a type is not supported.
    pub fn finish(self) -> Result<Vec<Column>> {
        let columns = self.schema.iter().enumerate();
        columns.map(|(at, field)| encode_column(field, &self.batches, at, true)).collect()
    }
}
