//! Rows into groups: where groups are, and which one a row belongs to.

use tandem_column::{Error, Result};
use tandem_plan::sink::{GroupKey, PlannedAggregate};

use crate::{
    AccumulatorWords, Binding, HashKey, ROWS_COUNT,
    accumulators::{Sharing, lay_out},
    contribution::arguments,
    kernel::Generator,
};

/// Where a row's group is found.
#[derive(Clone, Copy)]
pub(crate) enum GroupLookup<'k> {
    /// In an array of so many.
    Array(&'k [GroupKey], usize),
    /// In a hash table.
    Hashed(&'k [HashKey]),
}

/// Where a row's group is while rows are added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupPlace {
    /// In registers.
    Registers,
    /// In the memory of a group of work-items.
    Local,
    /// In the table, which other work-items may have a share in, or not, as rows are dealt out.
    Table,
    /// In a table that all work-items share, however rows are dealt out.
    Shared,
}

impl GroupPlace {
    /// Returns what the names of operations begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            GroupPlace::Registers | GroupPlace::Table => "",
            GroupPlace::Local => "LOCAL_",
            GroupPlace::Shared => "ATOMIC_",
        }
    }
}

/// Numbers of groups that fit the memory of a group of work-items on every device we know, twice.
const LOCAL_NUMBERS: usize = 2048;

impl Generator<'_> {
    /// Writes the kernel that counts groups.
    pub(crate) fn groups(
        &mut self,
        rows: &str,
        groups: GroupLookup<'_>,
        aggregates: &[PlannedAggregate],
    ) -> Result<Vec<AccumulatorWords>> {
        let traits = self.input.traits;
        let shared = !traits.chunked || matches!(groups, GroupLookup::Hashed(_));
        let words = shared && !traits.int64_atomics;
        self.needs_int64_atomics = shared && !words;
        let remark = if shared { "one table" } else { "a table for each work-item" };
        let out = self.text.argument(Binding::Groups, "GLOBAL i64 *", "groups", remark);
        let (accumulators, width) = lay_out(self.input.body, aggregates, Sharing { shared, words })?;
        if let (true, GroupLookup::Hashed(keys)) = (words, groups) {
            fits_words(keys)?;
        }
        let table = match groups {
            GroupLookup::Array(_, groups) if traits.chunked => {
                let first = self.text.argument(Binding::FirstTable, "const u32", "first_table", "of this launch's");
                format!("TABLE({out}, {first}, {}UL)", groups * width)
            }
            _ => out,
        };
        self.text.line(format!("GLOBAL i64 *const table = {table};"));
        self.held = match groups {
            // One group is kept in registers and written at the end.
            GroupLookup::Array([], _) => GroupPlace::Registers,
            // A few are kept in the memory of a group of work-items, where adding is cheap.
            GroupLookup::Array(_, count) if shared && count * width <= LOCAL_NUMBERS => GroupPlace::Local,
            GroupLookup::Array(..) => GroupPlace::Table,
            GroupLookup::Hashed(_) => GroupPlace::Shared,
        };
        match (self.held, groups) {
            (GroupPlace::Registers, _) => self.declare_registers(&accumulators),
            (GroupPlace::Local, GroupLookup::Array(_, count)) => self.declare_local(&accumulators, count, width),
            _ => {}
        }
        self.open_row(rows)?;
        self.add(groups, aggregates, &accumulators, width)?;
        self.close_row();
        match (self.held, groups) {
            (GroupPlace::Registers, _) => {
                let register = |at: usize| format!("a{at}");
                self.write_out(&accumulators, "table", &register, &register);
            }
            (GroupPlace::Local, GroupLookup::Array(_, count)) => {
                self.text.line("BARRIER();");
                self.text.open(&format!("FOR_OWN(at, {count}u) {{"));
                self.text.line(format!("if (!own[at * {width} + {ROWS_COUNT}]) continue;"));
                let number = |at: usize| format!("own[at * {width} + {at}]");
                let float = |at: usize| format!("AS_F64(own[at * {width} + {at}])");
                self.write_out(&accumulators, &format!("table + at * {width}"), &number, &float);
                self.text.close();
            }
            _ => {}
        }
        Ok(accumulators)
    }

    /// Adds the row to its group.
    fn add(
        &mut self,
        groups: GroupLookup<'_>,
        aggregates: &[PlannedAggregate],
        accumulators: &[AccumulatorWords],
        width: usize,
    ) -> Result<()> {
        let group = match groups {
            GroupLookup::Array(keys, _) => self.group(keys, width)?,
            GroupLookup::Hashed(keys) => Some(self.hashed_group(keys, width)?),
        };
        let place = |at: usize| match &group {
            Some(group) => format!("{group} + {at}"),
            None => format!("&a{at}"),
        };
        let registers = group.is_none();
        let here = || aggregates.iter().zip(accumulators).filter(|(_, words)| **words != AccumulatorWords::Elsewhere);
        for (planned, _) in here() {
            for slot in arguments(planned).chain(planned.aggregate.filter) {
                self.slot(slot)?;
            }
        }
        self.add_to(registers, "ADD", &place(ROWS_COUNT), "1");
        for (planned, accumulator) in here() {
            self.add_row(planned, accumulator, registers, &place)?;
        }
        Ok(())
    }

    /// Returns the place of a key's value.
    pub(crate) fn key_place(&mut self, key: &GroupKey, kind: &str) -> Result<String> {
        let term = self.slot(key.slot)?;
        let min = self.text.argument(Binding::Constant(key.min), "const i64", "", "");
        let place = format!("({kind})((u64){} - (u64){min})", term.value);
        Ok(match &term.null {
            Some(null) => format!("({null} ? {}u : {place})", key.size - 1),
            None => place,
        })
    }

    /// Returns the number of the row's group in an array; `None` where there is one.
    pub(crate) fn array_place(&mut self, keys: &[GroupKey]) -> Result<Option<String>> {
        let mut group: Option<String> = None;
        for key in keys {
            let place = self.key_place(key, "u32")?;
            let number = match group {
                None => place,
                Some(group) => format!("{group} * {}u + {place}", key.size),
            };
            group = Some(self.text.define("u32", &number));
        }
        Ok(group)
    }

    /// Returns a pointer to the row's group of an array; `None` where it is in registers.
    fn group(&mut self, keys: &[GroupKey], width: usize) -> Result<Option<String>> {
        Ok(self.array_place(keys)?.map(|group| {
            self.text.line(match self.held {
                GroupPlace::Local => format!("LOCAL i64 *const group = own + {group} * {width};"),
                _ => format!("GLOBAL i64 *const group = table + (u64){group} * {width};"),
            });
            "group".to_string()
        }))
    }
}

/// Checks that numbers of keys are two words of 31 bits each.
///
/// # Errors
/// Unsupported, with the reason.
pub(crate) fn fits_words(keys: &[HashKey]) -> Result<()> {
    match keys.iter().any(|key| key.shift + key.bits > 62) {
        false => Ok(()),
        true => Err(Error::unsupported(
            "the device has no atomic operations on 64 bits, for groups by more than 62 bits of keys",
        )),
    }
}
