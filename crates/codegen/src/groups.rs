//! Rows into groups: what a group holds, which one a row belongs to, and what is added to it.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{AggregateFunction, Overflow, SlotId};
use tandem_plan::{
    Body,
    sink::{GroupKey, PlannedAggregate},
};

use crate::{
    AccumulatorWords, Binding, HashKey, ROWS_COUNT,
    expression::{Term, Width},
    kernel::{Generator, KernelOutput},
};

/// Lays out what a group holds; returns it with the width of a group. Work-items may have a `shared` table, and no
/// operations on more than `words` of 32 bits for it.
fn plan(
    body: &Body,
    aggregates: &[PlannedAggregate],
    shared: bool,
    words: bool,
) -> Result<(Vec<AccumulatorWords>, usize)> {
    use AggregateFunction as F;
    let mut width = ROWS_COUNT + 1;
    let mut place = || {
        width += 1;
        width - 1
    };
    let mut all = Vec::with_capacity(aggregates.len());
    for PlannedAggregate { aggregate, narrow, .. } in aggregates {
        let argument = aggregate.argument.map(|slot| &body.slots[slot]);
        if aggregate.distinct && !matches!(aggregate.function, F::Min | F::Max) {
            return Err(Error::unsupported("aggregates of distinct values are not on the device yet"));
        }
        let moments = aggregate.function.is_spread();
        let everyone = aggregate.filter.is_none() && argument.is_none_or(|slot| !slot.nullable);
        let count = if everyone && !moments { ROWS_COUNT } else { place() };
        // What takes more than one atomic operation needs a table of its own for each work-item.
        let alone = |what: &str| match shared {
            false => Ok(()),
            true => {
                Err(Error::unsupported(format!("{what} in a table that work-items share is not on the device yet")))
            }
        };
        let atomic = |what: &str| match words {
            false => Ok(()),
            true => Err(Error::unsupported(format!("the device has no atomic operations on 64 bits, for {what}"))),
        };
        let from = || match aggregate.argument.filter(|_| words).map(|slot| lowest_in_a_word(body, slot)) {
            Some(None) => atomic("the smallest or largest value of a large range").map(|()| None),
            Some(lowest) => Ok(lowest),
            None => Ok(None),
        };
        let known = aggregate.argument.is_some_and(|slot| body.range(slot).is_some());
        let repr = argument.map_or(Repr::Int, |slot| slot.kind.repr());
        let averages_integers = aggregate.function == F::Average && argument.is_some_and(|slot| slot.kind.is_integer());
        all.push(match (aggregate.function, repr) {
            (F::CountRows | F::Count, _) => AccumulatorWords::Count(count),
            (F::Sum | F::Average, Repr::Float) => {
                atomic("a sum of floats")?;
                AccumulatorWords::FloatSum { sum: place(), count }
            }
            (F::Average, Repr::Int | Repr::Wide) if averages_integers => {
                atomic("a sum of floats")?;
                AccumulatorWords::FloatSum { sum: place(), count }
            }
            (F::Sum | F::Average, Repr::Int | Repr::Wide) if *narrow => AccumulatorWords::Sum { sum: place(), count },
            (F::Sum | F::Average, Repr::Int) => AccumulatorWords::WideSum { low: place(), high: place(), count },
            // A known range is one of 64 bits.
            (F::Sum | F::Average, Repr::Wide) if known => {
                AccumulatorWords::WideSum { low: place(), high: place(), count }
            }
            (F::Sum | F::Average, Repr::Wide) => {
                let first = place();
                (0..3).for_each(|_| _ = place());
                AccumulatorWords::LimbSum { first, count }
            }
            (F::Min | F::Max, Repr::Wide) => {
                alone("the smallest or largest 128-bit value")?;
                AccumulatorWords::WideBest {
                    low: place(),
                    high: place(),
                    count,
                    smallest: aggregate.function == F::Min,
                }
            }
            (_, Repr::Float | Repr::Int | Repr::Wide) if moments => {
                alone("a variance")?;
                AccumulatorWords::Moments { mean: place(), squares: place(), count }
            }
            (F::Min | F::BoolAnd, Repr::Int | Repr::Boolean | Repr::Float) => {
                AccumulatorWords::Best { best: place(), count, smallest: true, from: from()? }
            }
            // Codes of a sorted dictionary are in the order of its words.
            (F::Min | F::Max, Repr::Bytes) => {
                AccumulatorWords::Best { best: place(), count, smallest: aggregate.function == F::Min, from: from()? }
            }
            (F::Max | F::BoolOr, Repr::Int | Repr::Boolean | Repr::Float) => {
                AccumulatorWords::Best { best: place(), count, smallest: false, from: from()? }
            }
            (function, _) => {
                return Err(Error::unsupported(format!("the aggregate {} is not on the device yet", function.name())));
            }
        });
    }
    Ok((all, width))
}

/// Returns what a slot's values are counted from so that a word of 32 bits holds them: the lowest of a small range.
fn lowest_in_a_word(body: &Body, slot: SlotId) -> Option<i64> {
    match body.slots[slot].kind.repr() {
        Repr::Boolean | Repr::Bytes => Some(0),
        _ => {
            let (low, high) = body.range(slot)?;
            (i128::from(high) - i128::from(low) <= u32::MAX.into()).then_some(low)
        }
    }
}

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
    fn prefix(self) -> &'static str {
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
        let (accumulators, width) = plan(self.input.body, aggregates, shared, words)?;
        if let (true, GroupLookup::Hashed(keys)) = (words, groups)
            && keys.iter().any(|key| key.shift + key.bits > 62)
        {
            let reason = "the device has no atomic operations on 64 bits, for groups by more than 62 bits of keys";
            return Err(Error::unsupported(reason));
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

    /// Makes a table of a group of work-items' own, with groups as they are before their first row.
    fn declare_local(&mut self, accumulators: &[AccumulatorWords], count: usize, width: usize) {
        // With one number more than is used, this loop never has the bound of the last: PoCL 3.1 joins the two across the barrier
        // if they have the same, and then aborts.
        let numbers = count * width + 1;
        self.text.line(format!("LOCAL_TABLE(own, {numbers});"));
        self.text.open(&format!("FOR_OWN(at, {numbers}u) {{"));
        let empty = KernelOutput::Groups { groups: Some(count), accumulators: accumulators.to_vec() }.empty_group();
        let mut value = "0".to_string();
        for (at, number) in empty.iter().enumerate().filter(|(_, number)| **number != 0) {
            let worst = if *number == i64::MAX { "0x7fffffffffffffffL" } else { "(-0x7fffffffffffffffL - 1)" };
            value = format!("at % {width} == {at} ? {worst} : {value}");
        }
        self.text.line(format!("own[at] = {value};"));
        self.text.close();
        self.text.line("BARRIER();");
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
        for PlannedAggregate { aggregate, .. } in aggregates {
            for slot in aggregate.argument.into_iter().chain(aggregate.filter) {
                self.slot(slot)?;
            }
        }
        self.add_to(registers, "ADD", &place(ROWS_COUNT), "1");
        for (PlannedAggregate { aggregate, .. }, accumulator) in aggregates.iter().zip(accumulators) {
            let argument = match aggregate.argument {
                Some(slot) if aggregate.function != AggregateFunction::CountRows => Some(self.slot(slot)?),
                _ => None,
            };
            let mut conditions: Vec<String> =
                argument.iter().filter_map(|term| term.null.as_ref().map(|null| format!("!{null}"))).collect();
            if let Some(slot) = aggregate.filter {
                let filter = self.slot(slot)?;
                conditions.push(filter.value);
                conditions.extend(filter.null.map(|null| format!("!{null}")));
            }
            let value = self.contribution(argument.as_ref(), accumulator)?;
            if !conditions.is_empty() {
                self.text.open(&format!("if ({}) {{", conditions.join(" & ")));
            }
            let count = match *accumulator {
                AccumulatorWords::Count(count) => count,
                AccumulatorWords::Sum { sum, count } => {
                    self.add_to(registers, "ADD", &place(sum), &value);
                    count
                }
                AccumulatorWords::WideSum { low, high, count } => {
                    self.add_to(registers, "ADD", &place(low), &format!("({value} & 0xffffffffL)"));
                    self.add_to(registers, "ADD", &place(high), &format!("({value} >> 32)"));
                    count
                }
                AccumulatorWords::LimbSum { first, count } => {
                    let limbs = [".low & 0xffffffffL", ".low >> 32", ".high & 0xffffffffL", ".high >> 32"];
                    for (at, limb) in limbs.iter().enumerate() {
                        self.add_to(registers, "ADD", &place(first + at), &format!("(i64)({value}{limb})"));
                    }
                    count
                }
                AccumulatorWords::FloatSum { sum, count } => {
                    self.needs_fp64 = true;
                    self.add_to(registers, "ADD_F64", &place(sum), &value);
                    count
                }
                // Two numbers that change together are kept in memory.
                AccumulatorWords::WideBest { low, high, count, smallest } => {
                    let table = if registers { "table" } else { "group" };
                    let sign = if smallest { "<" } else { ">" };
                    self.text.line(format!("KEEP_WIDE({table} + {low}, {table} + {high}, {value}, {sign});"));
                    count
                }
                AccumulatorWords::Moments { mean, squares, count } => {
                    self.needs_fp64 = true;
                    let table = if registers { "table" } else { "group" };
                    let places = format!("{table} + {count}, {table} + {mean}, {table} + {squares}");
                    self.text.line(format!("add_moments({places}, {value});"));
                    ROWS_COUNT
                }
                AccumulatorWords::Best { best, count, smallest, from } => {
                    self.add_to(registers, choose(smallest, from), &place(best), &value);
                    count
                }
            };
            if count != ROWS_COUNT {
                self.add_to(registers, "ADD", &place(count), "1");
            }
            if !conditions.is_empty() {
                self.text.close();
            }
        }
        Ok(())
    }

    fn add_to(&mut self, registers: bool, operation: &str, place: &str, value: &str) {
        let name = place.trim_start_matches('&');
        self.text.line(match (registers, operation) {
            (false, _) => format!("{}{operation}({place}, {value});", self.held.prefix()),
            (true, "LEAST" | "LEAST_32") => format!("if ({value} < {name}) {name} = {value};"),
            (true, "MOST" | "MOST_32") => format!("if ({value} > {name}) {name} = {value};"),
            (true, _) => format!("{name} += {value};"),
        });
    }

    /// Returns what a row adds to an accumulator, in the C type that it is added in.
    fn contribution(&mut self, argument: Option<&Term>, accumulator: &AccumulatorWords) -> Result<String> {
        let Some(term) = argument.filter(|_| !matches!(accumulator, AccumulatorWords::Count(_))) else {
            return Ok("0".into());
        };
        let floats = term.kind.repr() == Repr::Float;
        Ok(match accumulator {
            AccumulatorWords::FloatSum { .. } | AccumulatorWords::Moments { .. } if floats => term.value.clone(),
            AccumulatorWords::FloatSum { .. } | AccumulatorWords::Moments { .. } => {
                self.number(term, &Type::Float64, Overflow::Error)?.value
            }
            AccumulatorWords::Best { .. } if floats => self.text.define("i64", &format!("FLOAT_ORDER({})", term.value)),
            AccumulatorWords::LimbSum { .. } | AccumulatorWords::WideBest { .. } => {
                let wide = term.integer()?.wide();
                self.text.define("wide", &wide)
            }
            // Codes count from 0.
            AccumulatorWords::Best { .. } if term.words.is_some() => term.value.clone(),
            AccumulatorWords::Best { from: Some(from), .. } => {
                let from = self.text.argument(Binding::Constant(*from), "const i64", "", "");
                let value = term.integer()?.to(Width::Long);
                self.text.define("i64", &format!("WRAP_SUBTRACT({value}, {from})"))
            }
            AccumulatorWords::WideSum { .. } => term.integer()?.long(),
            _ => term.integer()?.to(Width::Long),
        })
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

    /// Returns a pointer to the row's group of an array; `None` where it is in registers.
    fn group(&mut self, keys: &[GroupKey], width: usize) -> Result<Option<String>> {
        let mut group: Option<String> = None;
        for key in keys {
            let place = self.key_place(key, "u32")?;
            let number = match group {
                None => place,
                Some(group) => format!("{group} * {}u + {place}", key.size),
            };
            group = Some(self.text.define("u32", &number));
        }
        Ok(group.map(|group| {
            self.text.line(match self.held {
                GroupPlace::Local => format!("LOCAL i64 *const group = own + {group} * {width};"),
                _ => format!("GLOBAL i64 *const group = table + (u64){group} * {width};"),
            });
            "group".to_string()
        }))
    }

    fn declare_registers(&mut self, accumulators: &[AccumulatorWords]) {
        self.text.line(format!("i64 a{ROWS_COUNT} = 0;"));
        for accumulator in accumulators {
            match *accumulator {
                AccumulatorWords::Count(_) => {}
                AccumulatorWords::Sum { sum, .. } => self.text.line(format!("i64 a{sum} = 0;")),
                AccumulatorWords::FloatSum { sum, .. } => self.text.line(format!("f64 a{sum} = 0;")),
                AccumulatorWords::WideSum { low, high, .. } => self.text.line(format!("i64 a{low} = 0, a{high} = 0;")),
                AccumulatorWords::LimbSum { first, .. } => {
                    (first..first + 4).for_each(|at| self.text.line(format!("i64 a{at} = 0;")));
                }
                AccumulatorWords::WideBest { .. } => {}
                // The count is in memory, too.
                AccumulatorWords::Moments { .. } => continue,
                AccumulatorWords::Best { best, smallest, .. } => {
                    let worst = if smallest { "0x7fffffffffffffffL" } else { "(-0x7fffffffffffffffL - 1)" };
                    self.text.line(format!("i64 a{best} = {worst};"));
                }
            }
            let count = accumulator.count();
            if count != ROWS_COUNT {
                self.text.line(format!("i64 a{count} = 0;"));
            }
        }
    }

    /// Adds what was held of a group elsewhere to its table.
    fn write_out(
        &mut self,
        accumulators: &[AccumulatorWords],
        table: &str,
        number: &dyn Fn(usize) -> String,
        float: &dyn Fn(usize) -> String,
    ) {
        let mut write = |operation: &str, at: usize, value: String| {
            self.text.line(format!("{operation}({table} + {at}, {value});"));
        };
        write("ADD", ROWS_COUNT, number(ROWS_COUNT));
        for accumulator in accumulators {
            match *accumulator {
                AccumulatorWords::Count(_) => {}
                AccumulatorWords::Sum { sum, .. } => write("ADD", sum, number(sum)),
                AccumulatorWords::FloatSum { sum, .. } => write("ADD_F64", sum, float(sum)),
                AccumulatorWords::WideSum { low, high, .. } => {
                    write("ADD", low, number(low));
                    write("ADD", high, number(high));
                }
                AccumulatorWords::LimbSum { first, .. } => {
                    (first..first + 4).for_each(|at| write("ADD", at, number(at)))
                }
                AccumulatorWords::WideBest { .. } => {}
                AccumulatorWords::Moments { .. } => continue,
                AccumulatorWords::Best { best, smallest, from, .. } => {
                    write(choose(smallest, from), best, number(best))
                }
            }
            let count = accumulator.count();
            if count != ROWS_COUNT {
                write("ADD", count, number(count));
            }
        }
    }
}

/// Returns the operation that keeps the smaller or larger of two values.
fn choose(smallest: bool, from: Option<i64>) -> &'static str {
    match (smallest, from) {
        (true, None) => "LEAST",
        (false, None) => "MOST",
        (true, Some(_)) => "LEAST_32",
        (false, Some(_)) => "MOST_32",
    }
}
