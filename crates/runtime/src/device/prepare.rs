//! What all launches of a job share, put on the device: sets, builds, and what expressions give for each entry of a dictionary.

use tandem_codegen::Binding;
use tandem_column::{Buffer, Error, Result};
use tandem_device::Memory;
use tandem_plan::{Action, HashTable, KeyIndex, Keys};

use super::{
    bind::{PlacedLookup, PlacedSet, SharedArguments, base},
    data::at_least_one,
    launch::DeviceRun,
};

/// The most bits of a set on a device: 128 MB.
const MOST_SET_BITS: u64 = 1 << 30;

impl DeviceRun<'_> {
    /// Puts what all parts share on the device.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let mut bindings: Vec<Binding> = Vec::new();
        for binding in self.kernels.iter().flat_map(|kernels| &kernels.0.bindings) {
            if !bindings.contains(binding) {
                bindings.push(binding.clone());
            }
        }
        let physical = self.job.physical();
        let mut members: Vec<(usize, usize)> = Vec::with_capacity(physical.sets.len());
        for step in &physical.body.steps {
            if let Action::Member { column, set } = step.action {
                members.push((set, column));
            }
        }
        // Steps are in another order than the planner's.
        members.sort_unstable();
        let mut sets = Vec::with_capacity(members.len());
        for (set, column) in members {
            let range = self.job.table().statistics[column].range;
            let (low, high) = range.ok_or_else(|| Error::unsupported("the range of a joined column is not known"))?;
            if high.wrapping_sub(low) as u64 >= MOST_SET_BITS {
                return Err(Error::unsupported("the values of a joined column are too far apart for a set of bits"));
            }
            let words = physical.sets[set].words(low, high.wrapping_sub(low) as u64);
            let bytes = match bindings.contains(&Binding::SetBytes(set)) {
                true => {
                    let bytes = words.iter().flat_map(|word| (0..32).map(move |bit| (word >> bit & 1) as u8));
                    Some(self.place_bytes(bytes.collect())?)
                }
                false => None,
            };
            let words = match bindings.contains(&Binding::Set(set)) {
                true => Some(self.place_bytes(Buffer::from(words).bytes())?),
                false => None,
            };
            sets.push(PlacedSet { words, bytes, low });
        }
        let mut lookups = Vec::with_capacity(physical.builds.len());
        for (lookup, build) in physical.builds.iter().enumerate() {
            let mut placed = PlacedLookup::default();
            for (payload, column) in build.payload.iter().enumerate() {
                let used = bindings.contains(&Binding::Payload { lookup, payload });
                let held = if used { Some((self.place(column)?, base(column))) } else { None };
                placed.payloads.push(held);
            }
            for binding in &bindings {
                match binding {
                    Binding::KeyBits(at) if *at == lookup => {
                        let bits: Buffer<u32> = key_bits(&build.index).into();
                        placed.bits = Some(self.place_bytes(bits.bytes())?);
                    }
                    Binding::Starts(at) if *at == lookup => {
                        let starts: Buffer<u32> = starts(&build.index).into();
                        placed.starts = Some(self.place_bytes(starts.bytes())?);
                    }
                    Binding::PackedKeys(at) if *at == lookup => {
                        placed.keys = Some(self.place_bytes(packed_keys(&build.index).bytes())?);
                    }
                    Binding::Matched(at) if *at == lookup => {
                        placed.matched = Some(self.place_matched(lookup)?);
                    }
                    _ => {}
                }
            }
            lookups.push(placed);
        }
        let constants = self.constants(&bindings)?;
        let failed = if bindings.contains(&Binding::Failed) { Some(self.filled(4, 0)?) } else { None };
        self.shared = SharedArguments { sets, lookups, constants, failed };
        Ok(())
    }

    /// Evaluates expressions for each word of a dictionary; puts texts and patterns on the device.
    fn constants(&mut self, bindings: &[Binding]) -> Result<Vec<(Binding, Memory)>> {
        let mut placed = Vec::new();
        for binding in bindings {
            let bytes: Buffer<u8> = match binding {
                Binding::Mapped(mapping) => {
                    let (numbers, nulls) = mapping.evaluate(&*self.origins().dictionary_of(mapping.words)?)?;
                    let nulls = self.place_bytes(nulls.into_iter().collect())?;
                    placed.push((Binding::MappedNulls(mapping.clone()), nulls));
                    numbers.into_iter().collect()
                }
                Binding::MappedTexts(mapping) => {
                    let texts = mapping.texts(&*self.origins().dictionary_of(mapping.words)?)?;
                    let nulls = texts.iter().map(|text| u8::from(text.is_none())).collect();
                    placed.push((Binding::MappedNulls(mapping.clone()), self.place_bytes(nulls)?));
                    let (offsets, bytes) = laid_out(&texts);
                    let bytes = self.place_bytes(at_least_one(bytes))?;
                    placed.push((Binding::MappedBytes(mapping.clone()), bytes));
                    offsets.bytes()
                }
                Binding::Text(bytes) => bytes.iter().copied().collect(),
                Binding::Pattern(codes) => codes.iter().flat_map(|code| code.to_le_bytes()).collect(),
                _ => continue,
            };
            placed.push((binding.clone(), self.place_bytes(at_least_one(bytes))?));
        }
        Ok(placed)
    }
}

/// Lays texts out one behind the other: where each begins, and the last ends.
fn laid_out(texts: &[Option<Vec<u8>>]) -> (Buffer<u64>, Buffer<u8>) {
    let mut end = 0;
    let ends = texts.iter().map(|text| {
        end += text.as_ref().map_or(0, Vec::len) as u64;
        end
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
    (offsets.into(), texts.iter().flatten().flatten().copied().collect())
}

/// Returns the keys of a set as bits from its smallest on.
fn key_bits(index: &KeyIndex) -> Vec<u32> {
    match index {
        KeyIndex::Unique(set) | KeyIndex::Dense { set, .. } if set.domain > 0 => set.words(set.min, set.domain - 1),
        _ => vec![0],
    }
}

/// Returns where the entries of each place or bucket begin.
fn starts(index: &KeyIndex) -> Vec<u32> {
    match index {
        KeyIndex::Dense { starts, .. } => starts.clone(),
        KeyIndex::Hash(table) => table.starts().collect(),
        _ => Vec::new(),
    }
}

/// Returns the packed key of each entry.
fn packed_keys(index: &KeyIndex) -> Buffer<u64> {
    match index {
        KeyIndex::Hash(HashTable { keys: Keys::Packed(_), values, .. }) => values.clone(),
        _ => Buffer::default(),
    }
}
