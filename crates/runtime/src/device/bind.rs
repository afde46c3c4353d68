//! What a kernel's arguments are bound to: memory that launches of a job share, columns of a part, and where rows go.

use std::collections::HashMap;

use tandem_codegen::{Binding, GeneratedKernel, SECTOR};
use tandem_column::{Column, Error, Part, Result};
use tandem_device::{Argument, Marks, Memory};
use tandem_pipeline::SlotId;
use tandem_plan::{Action, Body, Origin, Way};

use super::data::HeldColumn;

/// What all launches of a job share.
#[derive(Default)]
pub(super) struct SharedArguments {
    pub(super) sets: Vec<PlacedSet>,
    pub(super) lookups: Vec<PlacedLookup>,
    /// What expressions give for each word of a dictionary, texts and patterns.
    pub(super) constants: Vec<(Binding, Memory)>,
    pub(super) failed: Option<Memory>,
}

/// A set in the forms that kernels read.
pub(super) struct PlacedSet {
    pub(super) words: Option<Memory>,
    pub(super) bytes: Option<Memory>,
    /// What the first bit and byte stand for.
    pub(super) low: i64,
}

/// What kernels read, and mark, of a lookup's build.
#[derive(Default)]
pub(super) struct PlacedLookup {
    pub(super) payloads: Vec<Option<(HeldColumn, i64)>>,
    pub(super) bits: Option<Memory>,
    pub(super) starts: Option<Memory>,
    pub(super) keys: Option<Memory>,
    pub(super) matched: Option<Memory>,
}

/// Where a launch writes.
#[derive(Default)]
pub(super) struct Outputs {
    pub(super) groups: Option<Memory>,
    pub(super) first_table: u32,
    pub(super) numbers: Option<Memory>,
    /// Hash tables of earlier numbers of the groups.
    pub(super) earlier: Vec<Memory>,
    /// Hash tables of texts that keys are, by their slots.
    pub(super) texts: Vec<(SlotId, Memory)>,
    pub(super) mask: u32,
    pub(super) full: Option<Memory>,
    /// Rows of earlier parts.
    pub(super) first_row: u32,
    /// Rows are written, rather than counted.
    pub(super) writes: bool,
    pub(super) counts: Option<Memory>,
    pub(super) counts_from: u32,
    pub(super) values: Vec<Option<Memory>>,
    pub(super) nulls: Vec<Option<Memory>>,
    pub(super) ordinals: Vec<Memory>,
    /// Flags of the sectors read of each column, where that is counted.
    pub(super) touched: HashMap<usize, Memory>,
}

/// Binds a kernel's arguments for one part that it does not exclude.
pub(super) fn arguments<'a>(
    kernel: &GeneratedKernel,
    body: &Body,
    part: &Part,
    held: &'a HashMap<usize, HeldColumn>,
    shared: &'a SharedArguments,
    outputs: &'a Outputs,
) -> Result<Vec<Argument<'a>>> {
    let of = |column: usize| base(&part.columns[column]);
    let missing = || Error::internal("a kernel's argument has no value");
    // What this launch does not write is not there yet.
    let written = |memory: Option<&'a Memory>| memory.map_or(Argument::Null, Argument::Memory);
    let mut arguments = Vec::with_capacity(kernel.bindings.len());
    for binding in &kernel.bindings {
        arguments.push(match binding {
            Binding::Rows => Argument::U32(part.rows as u32),
            Binding::Writes => Argument::U32(outputs.writes.into()),
            Binding::FirstRow => Argument::U32(outputs.first_row),
            Binding::Column(column) => Argument::Memory(&held.get(column).ok_or_else(missing)?.values),
            Binding::Validity(column) => {
                let held = held.get(column).ok_or_else(missing)?;
                Argument::Memory(held.validity.as_ref().ok_or_else(missing)?)
            }
            Binding::Touched(column) => match (outputs.touched.get(column), held.get(column)) {
                (Some(memory), Some(held)) => Argument::Marks(Marks { memory, of: &held.values, unit: SECTOR }),
                _ => Argument::Null,
            },
            Binding::Base(column) => Argument::I64(of(*column)),
            Binding::Low(step) | Binding::Span(step) => {
                let Action::Between { column, low, high } = body.steps[*step].action else { return Err(missing()) };
                let (base, width) = part.columns[column].code_form().ok_or_else(missing)?;
                let (first, span) = code_bounds(base, width, low, high).ok_or_else(missing)?;
                of_width(if matches!(binding, Binding::Low(_)) { first } else { span }, width)
            }
            Binding::Set(set) => Argument::Memory(shared.sets[*set].words.as_ref().ok_or_else(missing)?),
            Binding::SetBytes(set) => Argument::Memory(shared.sets[*set].bytes.as_ref().ok_or_else(missing)?),
            Binding::SetShift { set, column } => Argument::U32(of(*column).wrapping_sub(shared.sets[*set].low) as u32),
            Binding::LookupShift(lookup) => {
                let Way::Column { column, min } = body.lookups[*lookup].way else { return Err(missing()) };
                Argument::I64(of(column).wrapping_sub(min))
            }
            Binding::Payload { lookup, payload }
            | Binding::PayloadValidity { lookup, payload }
            | Binding::PayloadBase { lookup, payload }
            | Binding::Bytes(Origin::Payload { lookup, payload }) => {
                let (held, base) = shared.lookups[*lookup].payloads[*payload].as_ref().ok_or_else(missing)?;
                match binding {
                    Binding::PayloadBase { .. } => Argument::I64(*base),
                    Binding::PayloadValidity { .. } => Argument::Memory(held.validity.as_ref().ok_or_else(missing)?),
                    Binding::Bytes(_) => Argument::Memory(held.bytes.as_ref().ok_or_else(missing)?),
                    _ => Argument::Memory(&held.values),
                }
            }
            Binding::KeyBits(lookup) => Argument::Memory(shared.lookups[*lookup].bits.as_ref().ok_or_else(missing)?),
            Binding::Starts(lookup) => Argument::Memory(shared.lookups[*lookup].starts.as_ref().ok_or_else(missing)?),
            Binding::PackedKeys(lookup) => Argument::Memory(shared.lookups[*lookup].keys.as_ref().ok_or_else(missing)?),
            Binding::Matched(lookup) => Argument::Memory(shared.lookups[*lookup].matched.as_ref().ok_or_else(missing)?),
            Binding::Bytes(Origin::Column(column)) => {
                Argument::Memory(held.get(column).and_then(|held| held.bytes.as_ref()).ok_or_else(missing)?)
            }
            Binding::Bytes(Origin::Computed) => return Err(missing()),
            Binding::Mapped(_)
            | Binding::MappedNulls(_)
            | Binding::MappedTexts(_)
            | Binding::MappedBytes(_)
            | Binding::Text(_)
            | Binding::Pattern(_) => {
                let found = shared.constants.iter().find(|(known, _)| known == binding);
                Argument::Memory(&found.ok_or_else(missing)?.1)
            }
            Binding::Constant(value) => Argument::I64(*value),
            Binding::Groups => written(outputs.groups.as_ref()),
            Binding::GroupNumbers => written(outputs.numbers.as_ref()),
            Binding::EarlierNumbers(number) => written(outputs.earlier.get(*number)),
            Binding::Texts(slot) => {
                let found = outputs.texts.iter().find(|(of, _)| of == slot);
                Argument::Memory(&found.ok_or_else(missing)?.1)
            }
            Binding::GroupMask => Argument::U32(outputs.mask),
            Binding::FirstTable => Argument::U32(outputs.first_table),
            Binding::Tables => return Err(missing()),
            Binding::Full => written(outputs.full.as_ref()),
            Binding::Counts => written(outputs.counts.as_ref()),
            Binding::CountsFrom => Argument::U32(outputs.counts_from),
            Binding::Ordinal(at) => written(outputs.ordinals.get(*at)),
            Binding::Values(column) => written(outputs.values.get(*column).and_then(Option::as_ref)),
            Binding::Nulls(column) => written(outputs.nulls.get(*column).and_then(Option::as_ref)),
            Binding::Failed => Argument::Memory(shared.failed.as_ref().ok_or_else(missing)?),
            Binding::Window(_) => return Err(Error::internal("rows are not in order yet")),
        });
    }
    Ok(arguments)
}

/// Returns a code as an argument of a column's width.
fn of_width(code: u64, width: usize) -> Argument<'static> {
    match width {
        1 => Argument::U8(code as u8),
        2 => Argument::U16(code as u16),
        4 => Argument::U32(code as u32),
        _ => Argument::U64(code),
    }
}

/// Returns what code 0 of a column stands for.
pub(super) fn base(column: &Column) -> i64 {
    column.code_form().map_or(0, |(base, _)| base)
}

/// Translates a range of values to a first code, of so many bytes, and how many follow it; `None` if no code can be within.
pub(super) fn code_bounds(base: i64, width: usize, low: i64, high: i64) -> Option<(u64, u64)> {
    if width >= 8 {
        // Every value has a code: those below the base wrap around, as the difference that a kernel compares does.
        return (low <= high).then(|| (low.wrapping_sub(base) as u64, high.wrapping_sub(low) as u64));
    }
    let most = u64::MAX >> (64 - 8 * width.max(1));
    let first = (i128::from(low) - i128::from(base)).max(0);
    let last = (i128::from(high) - i128::from(base)).min(most.into());
    (first <= last).then(|| (first as u64, (last - first) as u64))
}
