//! Builds laid out on a device: the range of the key, a bit for each, entries by two scans, payload as compact columns.
//!
//! What is laid out stays on the device for the probes to come; the processor gets a copy, from whose statistics it plans
//! those probes.

use std::sync::Arc;

use tandem_codegen::RowColumn;
use tandem_column::{AlignedVec, Bitmap, Code, Codes, Repr, Result, Type};
use tandem_cpu::{Arranged, Collected, LaidOut, LaidOutWay, Worker};
use tandem_device::{Argument, Memory};
use tandem_pipeline::fused::Packed;

use super::{data::Held, launch::Run, operators::small, rows::Rows};

/// Rows of one column on the device.
pub(super) struct Numbers {
    pub(super) values: Memory,
    pub(super) nulls: Option<Memory>,
}

/// What is known of them.
pub(super) struct Range {
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) present: usize,
}

impl Run<'_> {
    /// Computes the rows of a build and lays them out by places of the only key's values, if those lie close together, or by
    /// hash. What does not fit goes to the worker as rows, and the processor lays it out.
    pub(super) fn build(&mut self, worker: &mut Worker, keys: usize, existence: bool) -> Result<()> {
        if !self.job.shares_dictionaries(&self.parts) {
            return self.rows(worker);
        }
        self.describe(self.shape(), "rows counted, places summed up, rows written; then laid out by key");
        let rows = self.compute(&self.pieces())?;
        let parts = self.homes();
        let columns: Option<Vec<Numbers>> = (0..keys).map(|key| self.numbers(&rows, key)).collect();
        let Some(columns) = columns.filter(|_| rows.count > 0) else {
            return self.bring(worker, &parts, rows, false);
        };
        let ranges = columns.iter().map(|key| self.range(key, rows.count)).collect::<Result<Vec<_>>>()?;
        let null_key = ranges.iter().any(|range| range.present < rows.count);
        let Range { min, max, present } = ranges[0];
        let places = self.job.places(present, null_key, min, max).filter(|_| present > 0);
        let (way, entries) = match places {
            Some(domain) => self.by_places(&columns[0], &ranges[0], domain, rows.count, existence)?,
            None => {
                let bounds = |range: &Range| if range.present > 0 { (range.min, range.max) } else { (0, 0) };
                let bounds: Vec<(i64, i64)> = ranges.iter().map(bounds).collect();
                let Some((packing, nulls_match, kept)) = self.job.packing(&bounds) else {
                    return self.bring(worker, &parts, rows, false);
                };
                match self.job.merges() && !null_key {
                    true => self.by_order(&columns[0], packing, rows.count)?,
                    false => self.by_hash(&columns, packing, (nulls_match, kept), rows.count)?,
                }
            }
        };
        let mut build = LaidOut { rows: rows.count, null_key, way, payload: Vec::new(), ranges: Vec::new() };
        if let Some((entries, places)) = entries {
            for column in keys..rows.columns.len() {
                self.payload(&rows, (column, column - keys), &entries, places, &parts, &mut build)?;
            }
        }
        self.job.laid_out(worker, build);
        Ok(())
    }

    /// Lays rows out by the places of the only key's values; returns the entry of each row, and how many entries there are,
    /// unless only existence matters.
    fn by_places(
        &mut self,
        key: &Numbers,
        range: &Range,
        domain: usize,
        rows: usize,
        existence: bool,
    ) -> Result<(LaidOutWay, Option<(Memory, usize)>)> {
        let nulls = key.nulls.as_ref().map_or(Argument::Null, Argument::Memory);
        let count = Argument::U32(small(rows)?);
        let by_key = [Argument::Memory(&key.values), nulls, count, Argument::I64(range.min)];
        let words = domain / 32 + 1;
        let (bits, repeats) = (self.filled(words * 4, 0)?, self.filled(4, 0)?);
        let shape = self.shape();
        let arguments = [&by_key[..], &[Argument::Memory(&bits), Argument::Memory(&repeats)]].concat();
        self.operate("set_bits", &arguments, shape)?;
        let repeats = self.read_places(&repeats, 1)? != [0];
        let mut set = vec![0; words * 4];
        self.read(&bits, 0, &mut set)?;
        let mut starts = None;
        let mut found = None;
        if !existence {
            let next = if repeats { Some(self.filled((domain + 1) * 4, 0)?) } else { None };
            if let Some(next) = &next {
                self.operate("count_places", &[&by_key[..], &[Argument::Memory(next)]].concat(), shape)?;
                self.scan(next, domain + 1)?;
                starts = Some(self.read_places(next, domain + 1)?);
            }
            let entries = self.allocate(rows * 4)?;
            let next = next.as_ref().map_or(Argument::Null, Argument::Memory);
            self.operate("find_entries", &[&by_key[..], &[next, Argument::Memory(&entries)]].concat(), shape)?;
            found = Some((entries, if repeats { range.present } else { domain }));
        }
        Ok((LaidOutWay::Places { min: range.min, domain, bits: set, starts }, found))
    }

    /// Lays rows out by hash of their packed keys, those with null keys, which may match or be kept, behind all; returns the
    /// entry of each row, and how many entries there are.
    fn by_hash(
        &mut self,
        keys: &[Numbers],
        packing: Vec<Packed>,
        (nulls_match, kept): (bool, bool),
        rows: usize,
    ) -> Result<(LaidOutWay, Option<(Memory, usize)>)> {
        let shape = self.shape();
        let count = Argument::U32(small(rows)?);
        let (packed, dropped) = self.pack(keys, &packing, nulls_match, rows)?;
        let bits = rows.next_power_of_two().trailing_zeros();
        let (buckets, starts) = (self.allocate(rows * 8)?, self.filled(((1 << bits) + 1) * 4, 0)?);
        let arguments = [
            Argument::Memory(&packed),
            Argument::Memory(&dropped),
            count,
            Argument::U32(bits),
            Argument::Memory(&buckets),
            Argument::Memory(&starts),
        ];
        self.operate("find_buckets", &arguments, shape)?;
        let keyed = self.scan(&starts, (1 << bits) + 1)?;
        let entries = if kept { rows } else { keyed };
        let starts = self.read_places(&starts, (1 << bits) + 1)?;
        let order = self.sort(&[buckets, packed.clone()], rows)?;
        let sorted = self.gather(&packed, &order, keyed, 8)?;
        let keys = self.read_numbers(&sorted, keyed)?.iter().map(|key| *key as u64).collect();
        let places = self.filled(rows * 4, 0xff)?;
        let arguments = [Argument::Memory(&order), Argument::U32(small(entries)?), Argument::Memory(&places)];
        self.operate("invert", &arguments, shape)?;
        Ok((LaidOutWay::Hash { packing, keys, starts, entries }, Some((places, entries))))
    }

    /// Packs the keys of each row; tells, too, which rows have none.
    fn pack(
        &mut self,
        keys: &[Numbers],
        packing: &[Packed],
        nulls_match: bool,
        rows: usize,
    ) -> Result<(Memory, Memory)> {
        let (packed, dropped) = (self.filled(rows * 8, 0)?, self.filled(rows, 0)?);
        for (key, Packed { min, shift, .. }) in keys.iter().zip(packing) {
            let arguments = [
                Argument::Memory(&key.values),
                key.nulls.as_ref().map_or(Argument::Null, Argument::Memory),
                Argument::U32(small(rows)?),
                Argument::I64(*min),
                Argument::U32(*shift),
                Argument::U32(nulls_match.into()),
                Argument::Memory(&packed),
                Argument::Memory(&dropped),
            ];
            self.operate("pack_keys", &arguments, self.shape())?;
        }
        Ok((packed, dropped))
    }

    /// Lays rows out in the order of their only key, none of which is null. They come in that order, and stay as they are,
    /// where each work-item has a run of them; otherwise they are sorted. Nothing is hashed.
    fn by_order(
        &mut self,
        key: &Numbers,
        packing: Vec<Packed>,
        rows: usize,
    ) -> Result<(LaidOutWay, Option<(Memory, usize)>)> {
        let (mut packed, _) = self.pack(std::slice::from_ref(key), &packing, false, rows)?;
        let count = Argument::U32(small(rows)?);
        let places = self.allocate(rows * 4)?;
        if self.accelerator.traits.chunked {
            self.operate("number_rows", &[Argument::Memory(&places), count], self.shares())?;
        } else {
            let order = self.sort(std::slice::from_ref(&packed), rows)?;
            packed = self.gather(&packed, &order, rows, 8)?;
            self.operate("invert", &[Argument::Memory(&order), count, Argument::Memory(&places)], self.shape())?;
        }
        let keys = self.read_numbers(&packed, rows)?.iter().map(|key| *key as u64).collect();
        let starts = vec![0, small(rows)?];
        Ok((LaidOutWay::Hash { packing, keys, starts, entries: rows }, Some((places, rows))))
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

    /// Lays one payload column out.
    fn payload(
        &mut self,
        rows: &Rows,
        (column, payload): (usize, usize),
        entries: &Memory,
        places: usize,
        parts: &[usize],
        build: &mut LaidOut,
    ) -> Result<()> {
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
        self.accelerator.columns.keep(&column, Held { values: out, validity: held, bytes: None, ready: Vec::new() });
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
        if let (Some(last), true) = (words.last_mut(), !places.is_multiple_of(64)) {
            *last &= ((1u64 << (places % 64)) - 1) as i64;
        }
        let words: AlignedVec<u64> = words.iter().map(|word| *word as u64).collect();
        Ok((bits, Bitmap::new(words, places)))
    }

    /// Finds the smallest and largest number, and how many there are.
    pub(super) fn range(&mut self, numbers: &Numbers, rows: usize) -> Result<Range> {
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
pub(super) fn codes(bytes: &[u8], width: usize) -> Codes {
    match width {
        1 => u8::codes(bytes.iter().copied().collect()),
        2 => u16::codes(bytes.as_chunks::<2>().0.iter().map(|code| u16::from_le_bytes(*code)).collect()),
        4 => u32::codes(bytes.as_chunks::<4>().0.iter().map(|code| u32::from_le_bytes(*code)).collect()),
        _ => u64::codes(bytes.as_chunks::<8>().0.iter().map(|code| u64::from_le_bytes(*code)).collect()),
    }
}
