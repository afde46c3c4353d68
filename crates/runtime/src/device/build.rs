//! Builds laid out on a device: the range of the key, a bit for each, entries by two scans, payload as compact columns.
//!
//! What is laid out stays on the device for the probes to come; the processor gets a copy, from whose statistics it plans
//! those probes.

use std::sync::Arc;

use tandem_codegen::RowColumn;
use tandem_column::{AlignedVec, Bitmap, Code, Codes, Repr, Result, Type};
use tandem_cpu::{Arranged, Collected, LaidOut, Worker};
use tandem_device::{Argument, Memory};

use super::{data::Held, launch::Run, operators::small, rows::Rows};

/// Rows of one column on the device.
struct Numbers {
    values: Memory,
    nulls: Option<Memory>,
}

/// What is known of them.
struct Range {
    min: i64,
    max: i64,
    present: usize,
}

impl Run<'_> {
    /// Computes the rows of a build and lays them out, if its key is one integer whose values lie close together. Otherwise
    /// the worker gets the rows, and the processor lays them out.
    pub(super) fn build(&mut self, worker: &mut Worker, existence: bool) -> Result<()> {
        let parts = self.parts.clone();
        // Values that are fetched later are found by their row within one part.
        let late = parts.len() > 1 && self.writes_rows();
        if late || !self.job.shares_dictionaries(&parts) {
            return self.rows(worker);
        }
        self.describe(self.shape(), "rows counted, places summed up, rows written; then laid out by key");
        let rows = self.compute(&parts)?;
        let Some(keys) = self.numbers(&rows, 0).filter(|_| rows.count > 0) else {
            return self.bring(worker, &parts, rows, false);
        };
        let range = self.range(&keys, rows.count)?;
        let null_key = range.present < rows.count;
        let domain = self.job.places(range.present, null_key, range.min, range.max);
        let Some(domain) = domain.filter(|_| range.present > 0) else {
            return self.bring(worker, &parts, rows, false);
        };
        let (count, min) = (Argument::U32(small(rows.count)?), Argument::I64(range.min));
        let nulls = keys.nulls.clone();
        let by_key =
            [Argument::Memory(&keys.values), nulls.as_ref().map_or(Argument::Null, Argument::Memory), count, min];
        let words = domain / 32 + 1;
        let bits = self.filled(words * 4, 0)?;
        let repeats = self.filled(4, 0)?;
        let shape = self.shape();
        self.operate(
            "set_bits",
            &[&by_key[..], &[Argument::Memory(&bits), Argument::Memory(&repeats)]].concat(),
            shape,
        )?;
        let repeats = self.read_places(&repeats, 1)? != [0];
        let mut set = vec![0; words * 4];
        self.read(&bits, 0, &mut set)?;
        let mut build = LaidOut {
            rows: rows.count,
            null_key,
            min: range.min,
            domain,
            bits: set,
            starts: None,
            payload: Vec::new(),
            ranges: Vec::new(),
        };
        if !existence {
            let next = if repeats { Some(self.starts(&by_key, domain, &mut build)?) } else { None };
            let entries = self.allocate(rows.count * 4)?;
            let next = next.as_ref().map_or(Argument::Null, Argument::Memory);
            self.operate("find_entries", &[&by_key[..], &[next, Argument::Memory(&entries)]].concat(), shape)?;
            let places = if repeats { range.present } else { domain };
            for column in 1..rows.columns.len() {
                self.payload(&rows, column, &entries, places, &parts, &mut build)?;
            }
        }
        self.job.laid_out(worker, build);
        Ok(())
    }

    /// Returns the numbers of a column, if it has some.
    fn numbers(&self, rows: &Rows, column: usize) -> Option<Numbers> {
        let column = match rows.columns[column] {
            RowColumn::Same(earlier) => earlier,
            _ => column,
        };
        match rows.columns[column] {
            RowColumn::Numbers { .. } => {
                Some(Numbers { values: rows.values[column].clone()?, nulls: rows.nulls[column].clone() })
            }
            _ => None,
        }
    }

    /// Counts keys of each place and sums them up; returns where the next entry of each place goes.
    fn starts(&mut self, by_key: &[Argument<'_>], domain: usize, build: &mut LaidOut) -> Result<Memory> {
        let starts = self.filled((domain + 1) * 4, 0)?;
        self.operate("count_places", &[by_key, &[Argument::Memory(&starts)]].concat(), self.shape())?;
        self.scan(&starts, domain + 1)?;
        build.starts = Some(self.read_places(&starts, domain + 1)?);
        Ok(starts)
    }

    /// Lays one payload column out.
    fn payload(
        &mut self,
        rows: &Rows,
        column: usize,
        entries: &Memory,
        places: usize,
        parts: &[usize],
        build: &mut LaidOut,
    ) -> Result<()> {
        let payload = column - 1;
        let kind = self.job.payload_kind(payload).cloned().unwrap_or(Type::Int64);
        let numbers = self.numbers(rows, column).filter(|_| kind != Type::Float32);
        let Some(numbers) = numbers else {
            let entry_of = self.read_places(entries, rows.count)?;
            let collected = self.collected(rows, column)?;
            let arranged = Arranged::Rows(collected, entry_of);
            let (column, range) = self.job.payload_column(payload, parts, places, arranged)?;
            build.payload.push(Arc::new(column));
            build.ranges.push(range);
            return Ok(());
        };
        let validity = match &numbers.nulls {
            Some(nulls) => Some(self.validity(nulls, entries, rows.count, places)?),
            None => None,
        };
        let (held, valid) = validity.map_or((None, None), |(memory, bits)| (Some(memory), Some(bits)));
        let float = kind == Type::Float64;
        let range =
            if float { None } else { Some(self.range(&numbers, rows.count)?).filter(|range| range.present > 0) };
        let text = kind.repr() == Repr::Bytes;
        // Codes of text are as they are.
        let base = if text { 0 } else { range.as_ref().map_or(0, |range| range.min) };
        let width = match &range {
            _ if float => 8,
            Some(range) => Codes::width_for(range.max.wrapping_sub(base) as u64),
            None => 1,
        };
        let out = self.filled(places * width, 0)?;
        let name = ["scatter_8", "scatter_16", "scatter_32", "scatter_64"][width.trailing_zeros() as usize];
        let count = Argument::U32(small(rows.count)?);
        let arguments = [
            Argument::Memory(&numbers.values),
            Argument::Memory(entries),
            count,
            Argument::I64(base),
            Argument::Memory(&out),
        ];
        self.operate(name, &arguments, self.shape())?;
        let mut bytes = vec![0; places * width];
        self.read(&out, 0, &mut bytes)?;
        let arranged = match float {
            true => {
                let bits = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                Arranged::Floats(bits.collect(), valid)
            }
            false => Arranged::Codes { codes: codes(&bytes, width), base, validity: valid },
        };
        let (column, _) = self.job.payload_column(payload, parts, places, arranged)?;
        let column = Arc::new(column);
        self.accelerator.columns.keep(&column, Held { values: out, validity: held, bytes: None });
        build.payload.push(column);
        build.ranges.push(range.map(|range| (range.min, range.max)));
        Ok(())
    }

    /// Returns the validity of entries, on the device and here.
    fn validity(&mut self, nulls: &Memory, entries: &Memory, rows: usize, places: usize) -> Result<(Memory, Bitmap)> {
        let words = places.div_ceil(64).max(1);
        let bits = self.filled(words * 8, 0xff)?;
        let arguments =
            [Argument::Memory(nulls), Argument::Memory(entries), Argument::U32(small(rows)?), Argument::Memory(&bits)];
        self.operate("clear_bits", &arguments, self.shape())?;
        let mut words = self.read_numbers(&bits, words)?;
        words.truncate(places.div_ceil(64));
        if let (Some(last), true) = (words.last_mut(), places % 64 != 0) {
            *last &= (1 << (places % 64)) - 1;
        }
        let words: AlignedVec<u64> = words.iter().map(|word| *word as u64).collect();
        Ok((bits, Bitmap::new(words, places)))
    }

    /// Finds the smallest and largest number, and how many there are.
    fn range(&mut self, numbers: &Numbers, rows: usize) -> Result<Range> {
        let shape = self.shares();
        let shares = shape.groups * shape.items;
        let out = self.allocate(shares * 24)?;
        let nulls = numbers.nulls.as_ref().map_or(Argument::Null, Argument::Memory);
        let arguments = [Argument::Memory(&numbers.values), nulls, Argument::U32(small(rows)?), Argument::Memory(&out)];
        self.operate("find_range", &arguments, shape)?;
        let found = self.read_numbers(&out, shares * 3)?;
        let fold = |range: Range, share: &[i64; 3]| Range {
            min: range.min.min(share[0]),
            max: range.max.max(share[1]),
            present: range.present + share[2] as usize,
        };
        let none = Range { min: i64::MAX, max: i64::MIN, present: 0 };
        Ok(found.as_chunks::<3>().0.iter().fold(none, fold))
    }

    /// Reads one column back.
    fn collected(&mut self, rows: &Rows, column: usize) -> Result<Collected> {
        match rows.columns[column] {
            RowColumn::Same(earlier) => self.read_column(rows, earlier),
            _ => self.read_column(rows, column),
        }
    }
}

/// Reads codes of a width.
fn codes(bytes: &[u8], width: usize) -> Codes {
    match width {
        1 => u8::codes(bytes.iter().copied().collect()),
        2 => u16::codes(bytes.as_chunks::<2>().0.iter().map(|code| u16::from_le_bytes(*code)).collect()),
        4 => u32::codes(bytes.as_chunks::<4>().0.iter().map(|code| u32::from_le_bytes(*code)).collect()),
        _ => u64::codes(bytes.as_chunks::<8>().0.iter().map(|code| u64::from_le_bytes(*code)).collect()),
    }
}
