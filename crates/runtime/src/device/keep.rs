//! Rows that stay on the device for the next pipeline, as compact columns. The host learns their number, ranges and nulls;
//! their values come back only if the CPU wants them.

use std::{rc::Rc, sync::Arc};

use tandem_codegen::{AccumulatorWords, Binding, KernelOutput, RowColumn};
use tandem_column::{
    AlignedVec, Bitmap, Class, Codes, Column, ColumnStatistics, Data, Dictionary, Error, Part, Remote, RemoteForm,
    Repr, Result, Table, Type,
};
use tandem_cpu::{Contents, Contribution, Job, Kept, Recall};
use tandem_device::{Argument, Memory};
use tandem_pipeline::Phase;
use tandem_plan::SinkPlan;

use super::{
    Accelerator,
    build::{Numbers, codes},
    data::HeldColumn,
    groups::GroupTables,
    launch::{DeviceRun, Goal},
    operators::small,
    rows::DeviceRows,
    streams,
};
use crate::Cancel;

impl DeviceRun<'_> {
    /// Makes rows of counted groups and keeps them; `false` if the CPU has to.
    pub(super) fn keep_groups(&mut self, counted: &GroupTables, into: &mut Contribution) -> Result<bool> {
        let GroupTables { output, places, tables, .. } = counted;
        // States of a partial aggregation come back: the CPU finishes them.
        let finished = matches!(&self.job.physical().sink, SinkPlan::Aggregate(plan) if plan.phase != Phase::Partial);
        // What other passes compute is put together by the CPU.
        let alone = self.goal == Goal::Sink && !output.accumulators().contains(&AccumulatorWords::Elsewhere);
        if !finished || !alone || !self.may_stay(places * tables * output.group_width() * 8) {
            return Ok(false);
        }
        let kept = self.finish_groups(output, *places, *tables).and_then(|rows| match rows {
            Some(rows) => {
                let unfinished = Unfinished::Groups(counted.clone());
                self.keep(into, &[], &rows, unfinished).map(|()| true)
            }
            None => Ok(false),
        });
        self.or_back(kept)
    }

    /// Computes the rows of all parts and keeps them; `false` if they have to come back.
    pub(super) fn keep_rows(&mut self, into: &mut Contribution) -> Result<bool> {
        let (pieces, parts) = (self.pieces(), self.homes());
        let read: usize = pieces.iter().map(|piece| self.rows_of(*piece)).sum();
        // What reaches a window is not what comes out of it.
        let collects = matches!(self.job.physical().sink, SinkPlan::Window(_));
        if collects || !self.may_stay(read * self.outputs_count() * 8) || !self.origins().shares_dictionaries(&parts) {
            return Ok(false);
        }
        let kept = self.compute(&pieces).and_then(|rows| {
            let unfinished = Unfinished::Rows { rows: rows.clone(), parts: parts.clone(), sorted: false };
            self.keep(into, &parts, &rows, unfinished)
        });
        self.or_back(kept.map(|()| true))
    }

    /// Keeps rows that are in order; `false` if they have to come back.
    pub(super) fn keep_sorted(&mut self, into: &mut Contribution, rows: &DeviceRows) -> Result<bool> {
        if rows.count == 0 || !self.may_stay(rows.count * self.outputs_count() * 8) {
            return Ok(false);
        }
        let parts = self.homes();
        let unfinished = Unfinished::Rows { rows: rows.clone(), parts: parts.clone(), sorted: true };
        let kept = self.keep(into, &parts, rows, unfinished);
        self.or_back(kept.map(|()| true))
    }

    /// Tells whether rows of so many bytes may stay: all of them are here, and it pays.
    fn may_stay(&self, bytes: usize) -> bool {
        (self.whole || self.accelerator.keep_shares)
            && self.job.physical().may_stay()
            && bytes >= self.accelerator.keep_from
    }

    /// Returns how many columns the pipeline's rows have.
    fn outputs_count(&self) -> usize {
        self.job.physical().schema.len()
    }

    /// What cannot stay comes back; what fails, fails.
    fn or_back(&self, kept: Result<bool>) -> Result<bool> {
        match kept {
            Err(error) if matches!(error.class, Class::Unsupported | Class::Exhausted) => {
                self.job.settings().cancel.check()?;
                Ok(false)
            }
            kept => kept,
        }
    }

    /// Makes rows of groups; `None` if some value is the CPU's to tell.
    fn finish_groups(&mut self, output: &KernelOutput, places: usize, tables: usize) -> Result<Option<DeviceRows>> {
        let (traits, target) = (self.accelerator.traits, self.accelerator.target());
        let kernel = tandem_codegen::finish(self.body(), self.sink, output, traits, target)?;
        let compiled = self.entry(&kernel.text, kernel.name)?;
        let text = &kernel.text[kernel.body..];
        self.metrics
            .texts
            .push(format!("// rows of {tables} tables of {places} groups, for the next pipeline\n{text}"));
        let KernelOutput::Rows { columns, .. } = kernel.output else { return Err(Error::internal("groups give rows")) };
        let shape = self.shape();
        let items = shape.groups * shape.items;
        let (counts, failed) = (self.allocate(items * 4)?, self.filled(4, 0)?);
        let mut rows = DeviceRows::of(columns);
        for writes in [false, true] {
            if writes {
                rows.count = self.scan(&counts, items)?;
                (rows.values, rows.nulls) = self.allocate_columns(&rows.columns, rows.count)?;
            }
            let first = self.before_first(&compiled)?;
            let mut arguments = Vec::with_capacity(kernel.bindings.len());
            for binding in &kernel.bindings {
                arguments.push(match binding {
                    Binding::Rows => Argument::U32(small(places)?),
                    Binding::Writes => Argument::U32(writes.into()),
                    Binding::Tables => Argument::U32(small(tables)?),
                    Binding::Constant(value) => Argument::I64(*value),
                    Binding::Groups => written(self.outputs.groups.as_ref()),
                    Binding::GroupNumbers => written(self.outputs.numbers.as_ref()),
                    Binding::EarlierNumbers(number) => written(self.outputs.earlier.get(*number)),
                    Binding::Counts => Argument::Memory(&counts),
                    Binding::Failed => Argument::Memory(&failed),
                    Binding::Values(at) => written(rows.values.get(*at).and_then(Option::as_ref)),
                    Binding::Nulls(at) => written(rows.nulls.get(*at).and_then(Option::as_ref)),
                    _ => return Err(Error::internal("a kernel's argument has no value")),
                });
            }
            let event = self.queue.launch(&compiled, &arguments, shape, &[])?;
            self.launched(event, first)?;
        }
        Ok((self.read_places(&failed, 1)? == [0]).then_some(rows))
    }

    /// Keeps rows, as the columns of a table that is on the device, with what they were made of.
    fn keep(
        &mut self,
        into: &mut Contribution,
        parts: &[usize],
        rows: &DeviceRows,
        unfinished: Unfinished,
    ) -> Result<()> {
        if rows.count == 0 {
            return Ok(());
        }
        let physical = self.job.physical();
        let (schema, first, outputs) = (&physical.schema, physical.sink.first_output(), physical.sink.outputs());
        let (mut columns, mut statistics) = (Vec::with_capacity(schema.len()), Vec::with_capacity(schema.len()));
        for (output, field) in schema.iter().enumerate() {
            let at = match rows.columns[first + output] {
                RowColumn::Same(earlier) => earlier,
                _ => first + output,
            };
            let (column, known) = match rows.columns[at] {
                RowColumn::Row | RowColumn::Entry(_) | RowColumn::Slice { .. } => {
                    let collected = self.read_column(rows, at)?;
                    let expr = outputs.get(output).and_then(Option::as_ref);
                    let expr = expr.ok_or_else(|| Error::internal("a computed value is not fetched"))?;
                    let vector = self.origins().vector(expr, parts, collected)?;
                    let column = Rc::unwrap_or_clone(vector).to_column(&field.kind);
                    let nulls = column.null_count();
                    (Arc::new(column), ColumnStatistics { nulls, ..ColumnStatistics::default() })
                }
                _ => self.keep_column(rows, at, &field.kind, output, parts)?,
            };
            columns.push(column);
            statistics.push(known);
        }
        let parts = vec![Arc::new(Part { rows: rows.count, columns })];
        let table = Table { schema: schema.clone(), parts, statistics: statistics.into() };
        let accelerator = self.accelerator.clone();
        into.contents = Contents::Kept(Kept { table, recall: Box::new(Keeper { accelerator, unfinished }) });
        into.rows += rows.count as u64;
        Ok(())
    }

    /// Returns what codes of an output column stand for.
    fn output_dictionary(&self, output: usize, parts: &[usize]) -> Option<Arc<Dictionary>> {
        match &self.job.physical().sink {
            SinkPlan::Aggregate(plan) => plan.output_dictionary(output),
            sink => self.origins().dictionary(sink.outputs()[output].as_ref()?, *parts.first()?),
        }
    }

    fn keep_column(
        &mut self,
        rows: &DeviceRows,
        at: usize,
        kind: &Type,
        output: usize,
        parts: &[usize],
    ) -> Result<(Arc<Column>, ColumnStatistics)> {
        let values = rows.values[at].clone().ok_or_else(|| Error::internal("a column was not computed"))?;
        let mut numbers = Numbers { values, nulls: rows.nulls[at].clone() };
        // Of wide numbers, it counts those that are not null.
        let range = self.range(&numbers, rows.count)?;
        let nulls = rows.count - range.present;
        numbers.nulls = numbers.nulls.filter(|_| nulls > 0);
        let known = Some((range.min, range.max)).filter(|_| range.present > 0);
        let (form, values, known) = match kind.repr() {
            Repr::Wide => (RemoteForm::Wide, numbers.values.clone(), None),
            // Kernels read floats of both widths alike.
            Repr::Float => (RemoteForm::Float64, numbers.values.clone(), None),
            repr => {
                let integer = repr == Repr::Int;
                let base = known.filter(|_| integer).map_or(0, |(low, _)| low);
                let width = Codes::width_for(known.map_or(0, |(_, high)| high.wrapping_sub(base) as u64));
                let values = self.narrow(&numbers, rows.count, base, width)?;
                match repr {
                    Repr::Bytes => {
                        let dictionary = self.output_dictionary(output, parts);
                        let missing = || Error::unsupported("codes without a dictionary come back");
                        (RemoteForm::Dictionary { width, dictionary: dictionary.ok_or_else(missing)? }, values, None)
                    }
                    _ => (RemoteForm::Int { base, width }, values, known),
                }
            }
        };
        let validity = match &numbers.nulls {
            Some(nulls) => Some(self.pack_validity(nulls, rows.count)?),
            None => None,
        };
        let data = Data::Remote(Remote { form, nullable: validity.is_some() });
        let column = Column { kind: kind.clone(), rows: rows.count, data, validity: None, blocks: Vec::new() };
        let column = Arc::new(column);
        self.accelerator.columns.keep(&column, HeldColumn { values, validity, bytes: None, ready: Vec::new() });
        Ok((column, ColumnStatistics { range: known, nulls, ..ColumnStatistics::default() }))
    }

    /// Returns numbers as codes of some bytes.
    fn narrow(&mut self, numbers: &Numbers, rows: usize, base: i64, width: usize) -> Result<Memory> {
        let out = self.allocate(rows * width)?;
        let name = ["narrow_8", "narrow_16", "narrow_32", "narrow_64"][width.trailing_zeros() as usize];
        let arguments = [
            Argument::Memory(&numbers.values),
            numbers.nulls.as_ref().map_or(Argument::Null, Argument::Memory),
            Argument::U32(small(rows)?),
            Argument::I64(base),
            Argument::Memory(&out),
        ];
        self.operate(name, &arguments, self.shape())?;
        Ok(out)
    }

    /// Returns null flags as a bitmap of what is valid.
    fn pack_validity(&mut self, nulls: &Memory, rows: usize) -> Result<Memory> {
        let words = self.allocate(rows.div_ceil(64) * 8)?;
        let arguments = [Argument::Memory(nulls), Argument::U32(small(rows)?), Argument::Memory(&words)];
        self.operate("pack_validity", &arguments, self.shape())?;
        Ok(words)
    }
}

/// What kept rows were made of, on the device: it is there until the job has ended, in case that other contributions are.
#[derive(Debug)]
enum Unfinished {
    Groups(GroupTables),
    Rows { rows: DeviceRows, parts: Vec<usize>, sorted: bool },
}

/// The way back of rows that a device keeps.
#[derive(Debug)]
struct Keeper {
    accelerator: Arc<Accelerator>,
    unfinished: Unfinished,
}

impl Keeper {
    fn read(&self, job: &Job) -> Result<Contribution> {
        let mut queue = streams::queue(&self.accelerator, &job.settings().cancel)?;
        let mut read = |from: &[(&Memory, usize, usize)]| {
            let read = queue.read_each(from, &[])?;
            Ok(read.into_iter().map(|(bytes, _)| bytes).collect())
        };
        let mut into = job.contribution();
        match &self.unfinished {
            Unfinished::Groups(counted) => counted.add_to(job, &mut into, &mut read)?,
            Unfinished::Rows { rows, parts, sorted } => {
                rows.add_to(job, &mut into, (parts, *sorted), &mut read)?;
            }
        }
        Ok(into)
    }
}

impl Recall for Keeper {
    fn recall(&self, job: &Job) -> Result<Contribution> {
        self.accelerator.check()?;
        let read = self.read(job);
        self.accelerator.note_failure(&read);
        read
    }
}

impl Accelerator {
    /// Tells whether some of a table's values are kept here and nowhere else.
    pub(crate) fn keeps(&self, table: &Table) -> bool {
        let columns = table.parts.iter().flat_map(|part| &part.columns);
        columns.filter(|column| column.is_remote()).any(|column| self.columns.known(column).is_some())
    }

    /// Reads what it keeps of a table back; returns it whole, with the number of bytes read.
    ///
    /// # Errors
    /// Device if it failed, after which it gets no more work: the rows are lost.
    pub(crate) fn fetch(&self, table: &Table, cancel: &Cancel) -> Result<(Table, u64)> {
        self.check()?;
        let fetched = self.fetch_all(table, cancel);
        self.note_failure(&fetched);
        fetched
    }

    fn fetch_all(&self, table: &Table, cancel: &Cancel) -> Result<(Table, u64)> {
        let mut queue = streams::queue(self, cancel)?;
        let mut read = 0;
        let mut bytes = |memory: &Memory, count: usize| {
            let mut bytes = vec![0; count];
            queue.read(memory, 0, &mut bytes, &[])?;
            read += count as u64;
            Ok::<_, Error>(bytes)
        };
        let mut parts = Vec::with_capacity(table.parts.len());
        for part in &table.parts {
            let mut columns = Vec::with_capacity(part.columns.len());
            for column in &part.columns {
                let Data::Remote(Remote { form, .. }) = &column.data else {
                    columns.push(column.clone());
                    continue;
                };
                let held = self.columns.known(column);
                let held = held.ok_or_else(|| Error::internal("the values of a column are nowhere"))?;
                let validity = match &held.validity {
                    Some(words) => {
                        let words = bytes(words, column.rows.div_ceil(64) * 8)?;
                        let words: AlignedVec<u64> =
                            words.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
                        Some(Bitmap::new(words, column.rows))
                    }
                    None => None,
                };
                let values = bytes(&held.values, column.rows * column.width())?;
                let found = Arc::new(with_values(&column.kind, form, &values, validity));
                if column.kind != Type::Float32 {
                    self.columns.keep(&found, held);
                }
                columns.push(found);
            }
            parts.push(Arc::new(Part { rows: part.rows, columns }));
        }
        let (schema, statistics) = (table.schema.clone(), table.statistics.clone());
        Ok((Table { schema, parts, statistics }, read))
    }
}

/// Binds memory, if there is some already.
fn written(memory: Option<&Memory>) -> Argument<'_> {
    memory.map_or(Argument::Null, Argument::Memory)
}

/// Makes a column of its values.
fn with_values(kind: &Type, form: &RemoteForm, bytes: &[u8], validity: Option<Bitmap>) -> Column {
    let kind = kind.clone();
    let floats = || bytes.as_chunks::<8>().0.iter().map(|value| f64::from_le_bytes(*value));
    match form {
        RemoteForm::Int { base, width } => Column::from_offsets(kind, *base, codes(bytes, *width), validity),
        RemoteForm::Dictionary { width, dictionary } => {
            Column::from_codes(kind, codes(bytes, *width), dictionary.clone(), validity)
        }
        RemoteForm::Wide => {
            let values = bytes.as_chunks::<16>().0.iter().map(|value| i128::from_le_bytes(*value));
            Column::from_i128(kind, values.collect::<AlignedVec<i128>>(), validity)
        }
        RemoteForm::Float64 if kind == Type::Float32 => {
            Column::from_f32(floats().map(|value| value as f32).collect::<AlignedVec<f32>>(), validity)
        }
        RemoteForm::Float64 => Column::from_f64(floats().collect::<AlignedVec<f64>>(), validity),
    }
}
