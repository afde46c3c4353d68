//! Rows from a device: counted in all parts, their places summed up, written, put in order, and only then read back.

use std::{iter, rc::Rc};

use tandem_codegen::{KernelOutput, RowColumn};
use tandem_column::{Error, Result};
use tandem_cpu::{Contribution, Job, Values, Vector};
use tandem_device::Memory;
use tandem_plan::SinkPlan;

use super::{
    bind::Outputs,
    launch::{DeviceRun, ReadBack, numbers, places},
    operators::small,
    unmatched::Piece,
    values::{Collected, Origins},
};

/// Memory for each column that has its own.
type Columns = Vec<Option<Memory>>;

/// The rows of some parts on the device.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceRows {
    pub(super) count: usize,
    pub(super) columns: Vec<RowColumn>,
    /// Values, or numbers of rows or entries; none for columns that are the same as another.
    pub(super) values: Vec<Option<Memory>>,
    /// Null flags.
    pub(super) nulls: Vec<Option<Memory>>,
    pub(super) ordinals: Vec<Memory>,
    /// How many rows each partition has, if they are in the order of such.
    pub(super) partitions: Option<Vec<usize>>,
    /// Which key of the order each ordinal is of.
    pub(super) keys: Vec<usize>,
}

impl DeviceRun<'_> {
    /// Computes the rows of all parts and adds them to the contribution.
    pub(super) fn rows(&mut self, into: &mut Contribution) -> Result<()> {
        self.describe(self.shape(), "rows counted, places summed up, rows written");
        let wanted = match &self.job.physical().sink {
            SinkPlan::Sort(plan) if self.whole => Some(plan.wanted()),
            _ => None,
        };
        if let Some(wanted) = wanted {
            let mut rows = self.compute(&self.pieces())?;
            if rows.count == 0 {
                return Ok(());
            }
            let order = self.sort(&rows.ordinals, rows.count)?;
            let beyond = rows.count.saturating_sub(wanted);
            rows.count -= beyond;
            self.put_in_order(&mut rows, &order)?;
            if !self.keep_sorted(into, &rows)? {
                self.bring(into, &self.homes(), rows, true)?;
            }
            // The sink took these in, too.
            into.rows += beyond as u64;
            return Ok(());
        }
        if self.keep_rows(into)? {
            return Ok(());
        }
        // Part by part: each has dictionaries of its own, and a limit may have enough after the first.
        for piece in self.pieces() {
            self.job.settings().cancel.check()?;
            if self.job.has_enough() {
                return Ok(());
            }
            let rows = self.compute(&[piece])?;
            if rows.count > 0 {
                self.bring(into, &self.homes_of(piece), rows, false)?;
            }
        }
        Ok(())
    }

    /// Returns the parts that rows of a piece are of.
    pub(super) fn homes_of(&self, piece: Piece) -> Vec<usize> {
        match piece {
            Piece::Part(part) => vec![part],
            Piece::Unmatched(_) => self.home().into_iter().collect(),
        }
    }

    /// Puts rows in an order, all or the first of them.
    pub(super) fn put_in_order(&mut self, rows: &mut DeviceRows, order: &Memory) -> Result<()> {
        for (memory, column) in rows.values.iter_mut().zip(&rows.columns) {
            if let Some(memory) = memory {
                *memory = self.gather(memory, order, rows.count, width(*column))?;
            }
        }
        for memory in rows.nulls.iter_mut().flatten() {
            *memory = self.gather(memory, order, rows.count, 1)?;
        }
        Ok(())
    }

    /// Computes some rows.
    pub(super) fn compute(&mut self, pieces: &[Piece]) -> Result<DeviceRows> {
        let shape = self.shape();
        let items = shape.groups * shape.items;
        // Parts that statistics exclude keep no row.
        let counts = self.filled(pieces.len() * items * 4, 0)?;
        self.outputs.counts = Some(counts.clone());
        let lanes = self.lanes();
        let counts_from = |outputs: &mut Outputs, at: usize, _| {
            outputs.counts_from = small(at * items)?;
            Ok(())
        };
        self.outputs.writes = false;
        self.launch_each(pieces, (shape, lanes), counts_from)?;
        let count = self.scan(&counts, pieces.len() * items)?;
        small(count)?;
        let (columns, keys) = self.columns_of(pieces)?;
        let (values, nulls) = self.allocate_columns(&columns, count)?;
        let ordinals: Vec<Memory> = keys.iter().map(|_| self.allocate(count * 8)).collect::<Result<_>>()?;
        self.outputs.values = values.clone();
        self.outputs.nulls = nulls.clone();
        self.outputs.ordinals = ordinals.clone();
        if count > 0 {
            self.outputs.writes = true;
            self.launch_each(pieces, (shape, lanes), counts_from)?;
        }
        Ok(DeviceRows { count, columns, values, nulls, ordinals, keys, partitions: None })
    }

    /// Returns the columns of the rows of some pieces, and the key of each ordinal.
    pub(super) fn columns_of(&self, pieces: &[Piece]) -> Result<(Vec<RowColumn>, Vec<usize>)> {
        let mut columns: Vec<RowColumn> = Vec::new();
        let mut keys = Vec::new();
        for piece in pieces {
            let KernelOutput::Rows { columns: of_part, ordinals } = &self.kernel(*piece).0.output else {
                return Err(Error::internal("all parts of a job give rows"));
            };
            keys.clone_from(ordinals);
            columns = match columns.is_empty() {
                true => of_part.clone(),
                false => columns.iter().zip(of_part).map(|(a, b)| both(*a, *b)).collect::<Result<_>>()?,
            };
        }
        Ok((columns, keys))
    }

    /// Allocates the values of columns, and null flags that are 0.
    pub(super) fn allocate_columns(&mut self, columns: &[RowColumn], count: usize) -> Result<(Columns, Columns)> {
        let values = columns.iter().map(|column| match column {
            RowColumn::Same(_) => Ok(None),
            column => self.allocate(count * width(*column)).map(Some),
        });
        let values = values.collect::<Result<_>>()?;
        let nulls = columns.iter().map(|column| match column {
            RowColumn::Numbers { nullable: true }
            | RowColumn::Wide { nullable: true }
            | RowColumn::Slice { nullable: true } => self.filled(count, 0).map(Some),
            _ => Ok(None),
        });
        Ok((values, nulls.collect::<Result<_>>()?))
    }

    /// Reads rows back and adds them to the contribution; `sorted` tells that they are all there are, in the sink's order.
    pub(super) fn bring(
        &mut self,
        into: &mut Contribution,
        parts: &[usize],
        rows: DeviceRows,
        sorted: bool,
    ) -> Result<()> {
        let job = self.job;
        rows.add_to(job, into, (parts, sorted), &mut |from| self.read_each(from))?;
        job.note_rows(rows.count);
        Ok(())
    }

    /// Reads one column of rows back.
    pub(super) fn read_column(&mut self, rows: &DeviceRows, column: usize) -> Result<Collected> {
        let read = rows.read(&[column], &mut |from| self.read_each(from))?.pop();
        read.ok_or_else(|| Error::internal("a column was not read"))
    }
}

impl DeviceRows {
    /// Makes no rows of some columns.
    pub(super) fn of(columns: Vec<RowColumn>) -> DeviceRows {
        DeviceRows { columns, ..DeviceRows::default() }
    }

    /// Reads the rows, which are of some parts, back and adds them to a contribution; `sorted` tells that they are all there
    /// are, in the sink's order.
    pub(super) fn add_to(
        &self,
        job: &Job,
        into: &mut Contribution,
        (parts, sorted): (&[usize], bool),
        read: ReadBack<'_>,
    ) -> Result<()> {
        let columns = self.read(&(0..self.columns.len()).collect::<Vec<_>>(), read)?;
        let origins = Origins { physical: job.physical(), table: job.table() };
        let mut vectors = match &job.physical().sink {
            SinkPlan::Window(_) if sorted => origins.outputs(parts, columns)?,
            _ => origins.vectors(parts, columns)?,
        };
        if let Some(partitions) = &self.partitions {
            // The number of a row's partition comes first.
            let numbers = partitions.iter().enumerate().flat_map(|(number, rows)| iter::repeat_n(number as i64, *rows));
            vectors.insert(0, Rc::new(Vector { values: Values::Int(numbers.collect()), valid: None }));
        }
        // Rows are as those of the part's first morsel, so that they come out in the order of the source.
        let first = parts.first().copied().unwrap_or(0);
        let morsels = &job.physical().morsels;
        let morsel = morsels.iter().position(|morsel| morsel.part >= first).unwrap_or(morsels.len());
        let collected = into.contents.rows()?;
        collected.push_all(morsel, self.count, &vectors)?;
        collected.sorted = sorted;
        into.rows += self.count as u64;
        Ok(())
    }

    /// Reads columns back.
    fn read(&self, columns: &[usize], read: ReadBack<'_>) -> Result<Vec<Collected>> {
        let own = columns.iter().filter(|column| !matches!(self.columns[**column], RowColumn::Same(_)));
        let memories = own.flat_map(|column| {
            let values =
                self.values[*column].as_ref().map(|memory| (memory, 0, self.count * width(self.columns[*column])));
            let nulls = self.nulls[*column].as_ref().map(|memory| (memory, 0, self.count));
            values.into_iter().chain(nulls)
        });
        let mut read = read(&memories.collect::<Vec<_>>())?.into_iter();
        let collected = columns.iter().map(|column| {
            let mut values = || read.next().ok_or_else(|| Error::internal("a column was not computed"));
            let of = self.columns[*column];
            Ok(match of {
                RowColumn::Same(earlier) => Collected::Same(earlier),
                RowColumn::Row => Collected::Rows(places(&values()?)),
                RowColumn::Entry(_) => Collected::Entries(places(&values()?)),
                RowColumn::Numbers { .. } | RowColumn::Wide { .. } | RowColumn::Slice { .. } => {
                    let values = values()?;
                    let nulls = if self.nulls[*column].is_some() { read.next() } else { None };
                    match of {
                        RowColumn::Wide { .. } => {
                            let wide = values.as_chunks::<16>().0.iter().map(|value| i128::from_le_bytes(*value));
                            Collected::Wide(wide.collect(), nulls)
                        }
                        RowColumn::Slice { .. } => Collected::Slices(numbers(&values), nulls),
                        _ => Collected::Numbers(numbers(&values), nulls),
                    }
                }
            })
        });
        collected.collect()
    }
}

/// Returns the bytes of a column's numbers.
pub(super) fn width(column: RowColumn) -> usize {
    match column {
        RowColumn::Row | RowColumn::Entry(_) => 4,
        RowColumn::Wide { .. } => 16,
        _ => 8,
    }
}

/// Returns a column that two parts' kernels can write: one of them may have no nulls.
fn both(a: RowColumn, b: RowColumn) -> Result<RowColumn> {
    match (a, b) {
        (RowColumn::Numbers { nullable: a }, RowColumn::Numbers { nullable: b }) => {
            Ok(RowColumn::Numbers { nullable: a | b })
        }
        (RowColumn::Wide { nullable: a }, RowColumn::Wide { nullable: b }) => Ok(RowColumn::Wide { nullable: a | b }),
        (RowColumn::Slice { nullable: a }, RowColumn::Slice { nullable: b }) => {
            Ok(RowColumn::Slice { nullable: a | b })
        }
        (a, b) if a == b => Ok(a),
        _ => Err(Error::unsupported("parts of different forms are put together by the CPU")),
    }
}
