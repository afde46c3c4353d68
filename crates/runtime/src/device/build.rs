//! Builds laid out on a device: the range of the key, a bit for each, entries by two scans, payload as compact columns.
//!
//! What is laid out stays on the device for the probes to come; the CPU gets a copy, from whose statistics it plans
//! those probes.

use std::sync::Arc;

use tandem_codegen::RowColumn;
use tandem_column::{AlignedVec, Bitmap, Code, Codes, Column, Error, Repr, Result, Type};
use tandem_cpu::{Contents, Contribution, EntryOrder};
use tandem_device::{Argument, Memory};
use tandem_plan::{Build, HashTable, KeyIndex, Packed, Set, dense_domain, sink::BuildPlan};

use super::{
    data::HeldColumn,
    launch::{DeviceRun, numbers},
    operators::small,
    rows::DeviceRows,
    values::Collected,
};

/// Rows of one column on the device.
pub(super) struct Numbers {
    pub(super) values: Memory,
    pub(super) nulls: Option<Memory>,
}

/// What is known of them.
#[derive(Clone, Copy)]
pub(super) struct KeyRange {
    pub(super) min: i64,
    pub(super) max: i64,
    pub(super) present: usize,
}

/// A payload column laid out on the device.
struct Scattered {
    values: Memory,
    validity: Option<Memory>,
    /// The smallest and the largest number, of some.
    range: Option<(i64, i64)>,
    /// What code 0 stands for.
    base: i64,
    /// Bytes of a value.
    width: usize,
    float: bool,
}

impl DeviceRun<'_> {
    /// Computes the rows of a build and lays them out by places of the only key's values, if those lie close together, or by
    /// hash. What does not fit is contributed as rows, and the CPU lays it out.
    pub(super) fn build(&mut self, into: &mut Contribution, plan: &BuildPlan) -> Result<()> {
        if !self.origins().shares_dictionaries(&self.parts) {
            return self.rows(into);
        }
        let keys = plan.keys.len();
        self.describe(self.shape(), "rows counted, places summed up, rows written; then laid out by key");
        let rows = self.compute(&self.pieces())?;
        let parts = self.homes();
        let columns: Option<Vec<Numbers>> = (0..keys).map(|key| self.numbers(&rows, key)).collect();
        let Some(columns) = columns.filter(|_| rows.count > 0) else {
            return self.bring(into, &parts, rows, false);
        };
        let payload = (keys..rows.columns.len())
            .map(|column| self.numbers(&rows, column).filter(|_| plan.kinds[column] != Type::Float32));
        let payload: Vec<Option<Numbers>> = payload.collect();
        let mut found = self.ranges(columns.iter().chain(payload.iter().flatten()), rows.count)?.into_iter();
        let ranges: Vec<KeyRange> = found.by_ref().take(keys).collect();
        let payload = payload.into_iter().map(|numbers| numbers.and_then(|numbers| Some((numbers, found.next()?))));
        let payload: Vec<Option<(Numbers, KeyRange)>> = payload.collect();
        let null_key = ranges.iter().any(|range| range.present < rows.count);
        let kept = null_key && (plan.used.null_equals_null || plan.used.outer);
        let places = match ranges.as_slice() {
            [KeyRange { min, max, present }] if !kept && *present > 0 => {
                dense_domain(*present, *min, *max, plan.only_existence())
            }
            _ => None,
        };
        let (index, entries) = match places {
            _ if keys == 0 => self.as_they_are(rows.count)?,
            Some(domain) => self.by_places(&columns[0], &ranges[0], domain, rows.count, plan.only_existence())?,
            None => {
                let bounds = |range: &KeyRange| if range.present > 0 { (range.min, range.max) } else { (0, 0) };
                let bounds: Vec<(i64, i64)> = ranges.iter().map(bounds).collect();
                let Some(packing) = Packed::all(&bounds) else {
                    return self.bring(into, &parts, rows, false);
                };
                match plan.used.merge && !null_key {
                    true => self.by_order(&columns[0], packing, rows.count)?,
                    false => {
                        let nulls = (plan.used.null_equals_null, plan.used.outer);
                        self.by_hash(&columns, packing, nulls, rows.count)?
                    }
                }
            }
        };
        let stored = entries.as_ref().map_or(0, |(_, places)| *places);
        let mut build = Build::new(rows.count, null_key, index, stored);
        if let Some((entries, places)) = entries.filter(|_| !payload.is_empty()) {
            let mut scattered = Vec::with_capacity(payload.len());
            for (at, payload) in payload.iter().enumerate() {
                scattered.push(match payload {
                    Some((numbers, range)) => {
                        let kind = &plan.kinds[keys + at];
                        Some(self.scatter(kind, numbers, range, &entries, (rows.count, places))?)
                    }
                    None => None,
                });
            }
            self.bring_payload(&rows, plan, scattered, (&entries, places), &parts, &mut build)?;
        }
        into.rows += rows.count as u64;
        into.contents = Contents::Build(Box::new(build));
        Ok(())
    }

    /// Leaves rows without a key as they are: every one matches.
    fn as_they_are(&mut self, rows: usize) -> Result<(KeyIndex, Option<(Memory, usize)>)> {
        let entries = self.allocate(rows * 4)?;
        self.operate("number_rows", &[Argument::Memory(&entries), Argument::U32(small(rows)?)], self.shape())?;
        Ok((KeyIndex::All, Some((entries, rows))))
    }

    /// Lays rows out by the places of the only key's values; returns the entry of each row, and how many entries there are,
    /// unless only existence matters.
    fn by_places(
        &mut self,
        key: &Numbers,
        range: &KeyRange,
        domain: usize,
        rows: usize,
        existence: bool,
    ) -> Result<(KeyIndex, Option<(Memory, usize)>)> {
        let nulls = key.nulls.as_ref().map_or(Argument::Null, Argument::Memory);
        let count = Argument::U32(small(rows)?);
        let by_key = [Argument::Memory(&key.values), nulls, count, Argument::I64(range.min)];
        let words = domain / 32 + 1;
        let (bits, repeats) = (self.filled(words * 4, 0)?, self.filled(4, 0)?);
        let shape = self.shape();
        let arguments = [&by_key[..], &[Argument::Memory(&bits), Argument::Memory(&repeats)]].concat();
        self.operate("set_bits", &arguments, shape)?;
        let mut read = self.read_each(&[(&repeats, 0, 4), (&bits, 0, words * 4)])?.into_iter();
        let repeats = read.next() != Some(vec![0; 4]);
        let set = read.next().unwrap_or_default();
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
        let set = Set { min: range.min, domain: domain as u64, bits: set };
        let index = match starts {
            Some(starts) => KeyIndex::Dense { set: Arc::new(set), starts },
            None => KeyIndex::Unique(Arc::new(set)),
        };
        Ok((index, found))
    }

    /// Lays rows out by hash of their packed keys, those with null keys, which may match or be kept, behind all; returns the
    /// entry of each row, and how many entries there are.
    fn by_hash(
        &mut self,
        keys: &[Numbers],
        packing: Vec<Packed>,
        (nulls_match, kept): (bool, bool),
        rows: usize,
    ) -> Result<(KeyIndex, Option<(Memory, usize)>)> {
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
        Ok((hashed(packing, keys, starts), Some((places, entries))))
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
    ) -> Result<(KeyIndex, Option<(Memory, usize)>)> {
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
        Ok((hashed(packing, keys, starts), Some((places, rows))))
    }

    /// Returns the numbers of a column, if it has some.
    fn numbers(&self, rows: &DeviceRows, column: usize) -> Option<Numbers> {
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

    /// Starts to lay the numbers of a payload column out.
    fn scatter(
        &mut self,
        kind: &Type,
        numbers: &Numbers,
        range: &KeyRange,
        entries: &Memory,
        (rows, places): (usize, usize),
    ) -> Result<Scattered> {
        let float = *kind == Type::Float64;
        let range = Some((range.min, range.max)).filter(|_| !float && range.present > 0);
        // Codes of text are as they are.
        let text = kind.repr() == Repr::Bytes;
        let base = range.filter(|_| !text).map_or(0, |(min, _)| min);
        let width = match range {
            _ if float => 8,
            Some((_, max)) => Codes::width_for(max.wrapping_sub(base) as u64),
            None => 1,
        };
        let values = self.filled(places * width, 0)?;
        let (entries, count, shape) = (Argument::Memory(entries), Argument::U32(small(rows)?), self.shape());
        let (from, to) = (Argument::Memory(&numbers.values), Argument::Memory(&values));
        let name = ["scatter_8", "scatter_16", "scatter_32", "scatter_64"][width.trailing_zeros() as usize];
        self.operate(name, &[from, entries, count, Argument::I64(base), to], shape)?;
        let mut validity = None;
        if let Some(nulls) = &numbers.nulls {
            let bits = self.filled(places.div_ceil(64).max(1) * 8, 0xff)?;
            self.operate("clear_bits", &[Argument::Memory(nulls), entries, count, Argument::Memory(&bits)], shape)?;
            validity = Some(bits);
        }
        Ok(Scattered { values, validity, range, base, width, float })
    }

    /// Makes the payload columns: the device keeps those that were laid out there; others, behind so many keys, are laid out
    /// here.
    fn bring_payload(
        &mut self,
        rows: &DeviceRows,
        plan: &BuildPlan,
        scattered: Vec<Option<Scattered>>,
        (entries, places): (&Memory, usize),
        parts: &[usize],
        build: &mut Build,
    ) -> Result<()> {
        let memories = scattered.iter().flatten().flat_map(|Scattered { values, validity, width, .. }| {
            let validity = validity.as_ref().map(|bits| (bits, 0, places.div_ceil(64) * 8));
            [(values, 0, places * width)].into_iter().chain(validity)
        });
        let mut read = self.read_each(&memories.collect::<Vec<_>>())?.into_iter();
        let mut next = || read.next().ok_or_else(|| Error::internal("a payload column was not read"));
        let values = self.job.physical().sink.values();
        for (payload, scattered) in scattered.into_iter().enumerate() {
            let at = plan.keys.len() + payload;
            let (kind, expr) = (plan.kinds[at].clone(), &values[at]);
            let Some(Scattered { values, validity, range, base, width, float }) = scattered else {
                let entry_of = self.read_places(entries, rows.count)?;
                let collected = self.collected(rows, at)?;
                let vector = self.origins().vector(expr, parts, collected)?;
                let kept = entry_of.iter().enumerate().filter(|(_, entry)| **entry != u32::MAX);
                let (numbers, entry_of) = kept.map(|(row, entry)| (row as u32, *entry)).unzip();
                let order = EntryOrder::Some { rows: numbers, places: entry_of, entries: places, bounds: Vec::new() };
                let (column, range) = vector.arrange(&kind, &order)?;
                build.push(Arc::new(column), range);
                continue;
            };
            let bytes = next()?;
            let valid = if validity.is_some() { Some(bitmap(&next()?, places)) } else { None };
            let column = match float {
                true => {
                    let floats = bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                    Column::from_f64(floats.collect::<AlignedVec<f64>>(), valid)
                }
                false if kind.repr() == Repr::Bytes => {
                    let dictionary = self.origins().dictionary(expr, parts.first().copied().unwrap_or(0));
                    let dictionary = dictionary.ok_or_else(|| Error::internal("codes without a dictionary"))?;
                    Column::from_codes(kind, codes(&bytes, width), dictionary, valid)
                }
                false => Column::from_offsets(kind, base, codes(&bytes, width), valid),
            };
            let column = Arc::new(column);
            self.accelerator.columns.keep(&column, HeldColumn { values, validity, bytes: None, ready: Vec::new() });
            build.push(column, range);
        }
        Ok(())
    }

    /// Finds the smallest and largest number, and how many there are.
    pub(super) fn range(&mut self, numbers: &Numbers, rows: usize) -> Result<KeyRange> {
        let range = self.ranges([numbers].into_iter(), rows)?.pop();
        range.ok_or_else(|| Error::internal("numbers have a range"))
    }

    /// Finds the same for several columns, waiting once.
    fn ranges<'n>(&mut self, columns: impl Iterator<Item = &'n Numbers>, rows: usize) -> Result<Vec<KeyRange>> {
        let shape = self.shares();
        let shares = shape.groups * shape.items;
        let mut found = Vec::new();
        for numbers in columns {
            let out = self.allocate(shares * 24)?;
            let nulls = numbers.nulls.as_ref().map_or(Argument::Null, Argument::Memory);
            let (values, rows) = (Argument::Memory(&numbers.values), Argument::U32(small(rows)?));
            self.operate("find_range", &[values, nulls, rows, Argument::Memory(&out)], shape)?;
            found.push(out);
        }
        let memories: Vec<_> = found.iter().map(|out| (out, 0, shares * 24)).collect();
        let fold = |range: KeyRange, share: &[i64; 3]| KeyRange {
            min: range.min.min(share[0]),
            max: range.max.max(share[1]),
            present: range.present + share[2] as usize,
        };
        let none = KeyRange { min: i64::MAX, max: i64::MIN, present: 0 };
        let read = self.read_each(&memories)?.into_iter().map(|bytes| numbers(&bytes));
        Ok(read.map(|shares| shares.as_chunks::<3>().0.iter().fold(none, fold)).collect())
    }

    /// Reads one column back.
    fn collected(&mut self, rows: &DeviceRows, column: usize) -> Result<Collected> {
        match rows.columns[column] {
            RowColumn::Same(earlier) => self.read_column(rows, earlier),
            _ => self.read_column(rows, column),
        }
    }
}

/// Makes a hash table of what a device laid out; of one bucket, in the order of the keys.
fn hashed(packing: Vec<Packed>, values: Vec<u64>, starts: Vec<u32>) -> KeyIndex {
    KeyIndex::Hash(HashTable::of_packed(packing, values, &starts))
}

/// Reads the validity of so many entries.
fn bitmap(bytes: &[u8], entries: usize) -> Bitmap {
    let mut words: AlignedVec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    if let (Some(last), true) = (words.last_mut(), !entries.is_multiple_of(64)) {
        *last &= (1 << (entries % 64)) - 1;
    }
    Bitmap::new(words, entries)
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
