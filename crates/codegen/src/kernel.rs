//! The kernel of a fused pipeline: a loop over rows, its steps in order, groups at its end.

use tandem_column::{Error, Repr, Result};
use tandem_pipeline::{
    AggregateFunction, Expr, SlotId,
    fused::{Accumulator, Fused, FusedAggregate, FusedSink, FusedStep, GroupKey, Origin, ROWS_COUNT},
};

use crate::{
    Binding, Form, Layout, Target, Traits,
    expression::{Term, c_type},
    text::Text,
};

/// A generated kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The whole program, prelude first.
    pub text: String,
    /// The kernels to launch, one after the other, all with the same arguments.
    pub names: &'static [&'static str],
    /// Where the first kernel begins in the text: what is before depends on the target alone.
    pub body: usize,
    /// What each argument is bound to.
    pub bindings: Vec<Binding>,
    /// What comes out.
    pub output: Output,
}

/// What a kernel gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Tables of groups.
    Groups {
        /// How many groups a table has.
        groups: usize,
        /// What a group holds: the count of its rows first, then these.
        accumulators: Vec<Accumulator>,
    },
    /// Columns of 64-bit numbers, or bits of floats; each tells whether it has null flags, too.
    Rows(Vec<bool>),
}

impl Output {
    /// Returns how many 64-bit numbers a group has.
    pub fn group_width(&self) -> usize {
        let places = self.accumulators().iter().map(|accumulator| match *accumulator {
            Accumulator::Count(count) => count,
            Accumulator::Sum { sum, count } | Accumulator::FloatSum { sum, count } => sum.max(count),
            Accumulator::WideSum { low, high, count } => low.max(high).max(count),
            Accumulator::Best { best, count, .. } => best.max(count),
        });
        places.max().unwrap_or(ROWS_COUNT) + 1
    }

    /// Returns what a group holds; nothing for rows.
    pub fn accumulators(&self) -> &[Accumulator] {
        match self {
            Output::Groups { accumulators, .. } => accumulators,
            Output::Rows(_) => &[],
        }
    }

    /// Returns how many groups a table has; none for rows.
    pub fn groups(&self) -> usize {
        match self {
            Output::Groups { groups, .. } => *groups,
            Output::Rows(_) => 0,
        }
    }

    /// Returns what the numbers of a group are before its first row.
    pub fn empty_group(&self) -> Vec<i64> {
        let mut group = vec![0; self.group_width()];
        for accumulator in self.accumulators() {
            if let Accumulator::Best { best, smallest, .. } = *accumulator {
                group[best] = if smallest { i64::MAX } else { i64::MIN };
            }
        }
        group
    }
}

/// The generator's state.
pub(crate) struct Generator<'f> {
    fused: &'f Fused,
    columns: &'f [Result<Layout>],
    payloads: &'f [Vec<Result<Layout>>],
    pub(crate) text: Text,
    /// The slots read or computed so far.
    pub(crate) values: Vec<Option<Term>>,
    entries: Vec<Option<String>>,
    pub(crate) needs_fp64: bool,
    /// Some row may have no value.
    pub(crate) fallible: bool,
    /// Rows are not skipped but counted only where this flag is set: loops without branches become vector code.
    predicated: bool,
}

pub(crate) fn generate(
    fused: &Fused,
    columns: &[Result<Layout>],
    payloads: &[Vec<Result<Layout>>],
    traits: Traits,
    target: Target,
) -> Result<Kernel> {
    let one_group = matches!(&fused.sink, FusedSink::Groups { keys, .. } if keys.is_empty());
    let cheap = |step: &FusedStep| matches!(step, FusedStep::Between { .. } | FusedStep::Let { .. });
    let simple = traits.chunked && one_group && fused.lookups.is_empty() && fused.steps.iter().all(cheap);
    if simple && let (kernel, false) = attempt(fused, columns, payloads, traits, target, true)? {
        return Ok(kernel);
    }
    Ok(attempt(fused, columns, payloads, traits, target, false)?.0)
}

/// Generates a kernel; tells, too, whether some row may have no value.
fn attempt(
    fused: &Fused,
    columns: &[Result<Layout>],
    payloads: &[Vec<Result<Layout>>],
    traits: Traits,
    target: Target,
    predicated: bool,
) -> Result<(Kernel, bool)> {
    let mut generator = Generator {
        fused,
        columns,
        payloads,
        text: Text::default(),
        values: vec![None; fused.slots.len()],
        entries: vec![None; fused.lookups.len()],
        needs_fp64: false,
        fallible: false,
        predicated,
    };
    let rows = generator.text.argument(Binding::Rows, "const u32", "rows", "");
    let (names, bodies, output) = match &fused.sink {
        FusedSink::Groups { keys, groups, aggregates } => {
            if !traits.chunked && !traits.int64_atomics {
                return Err(Error::unsupported("the device has no atomic operations on 64 bits"));
            }
            let accumulators = generator.groups(&rows, keys, *groups, aggregates)?;
            let body = generator.text.take_body();
            (["pipeline"].as_slice(), vec![body], Output::Groups { groups: *groups, accumulators })
        }
        FusedSink::Rows { values } => {
            // The second kernel has all arguments of the first, so it is written first.
            let nullable = generator.rows(&rows, values)?;
            let generate = generator.text.take_body();
            generator.count(&rows)?;
            let count = generator.text.take_body();
            (["count", "generate"].as_slice(), vec![count, generate], Output::Rows(nullable))
        }
    };
    if generator.needs_fp64 && !traits.fp64 {
        return Err(Error::unsupported("the device has no double precision"));
    }
    let mut text = prelude(target, traits);
    let body = text.len();
    let kernels: Vec<String> =
        names.iter().zip(&bodies).map(|(name, body)| generator.text.kernel(name, body)).collect();
    text.push_str(&kernels.join("\n"));
    Ok((Kernel { text, names, body, bindings: generator.text.bindings(), output }, generator.fallible))
}

fn prelude(target: Target, traits: Traits) -> String {
    let mut text = String::new();
    if traits.chunked {
        text.push_str("#define CHUNKED\n");
    }
    if traits.fp64 {
        text.push_str("#define FP64\n");
    }
    if traits.int64_atomics {
        text.push_str("#define ATOM64\n");
    }
    text.push_str(match target {
        Target::OpenCl => include_str!("prelude/opencl.cl"),
        Target::Cuda => include_str!("prelude/cuda.cuh"),
    });
    text.push_str(include_str!("prelude/common.h"));
    text.push('\n');
    text
}

/// Lays out what a group holds; returns it with the width of a group.
fn plan(fused: &Fused, aggregates: &[FusedAggregate]) -> Result<(Vec<Accumulator>, usize)> {
    use AggregateFunction as F;
    let mut width = ROWS_COUNT + 1;
    let mut place = || {
        width += 1;
        width - 1
    };
    let mut all = Vec::with_capacity(aggregates.len());
    for FusedAggregate { aggregate, narrow } in aggregates {
        let argument = aggregate.argument.map(|slot| &fused.slots[slot]);
        if aggregate.distinct && !matches!(aggregate.function, F::Min | F::Max) {
            return Err(Error::unsupported("aggregates of distinct values are not on the device yet"));
        }
        let everyone = aggregate.filter.is_none() && argument.is_none_or(|slot| !slot.nullable);
        let count = if everyone { ROWS_COUNT } else { place() };
        let repr = argument.map_or(Repr::Int, |slot| slot.kind.repr());
        let averages_integers = aggregate.function == F::Average && argument.is_some_and(|slot| slot.kind.is_integer());
        all.push(match (aggregate.function, repr) {
            (F::CountRows | F::Count, _) => Accumulator::Count(count),
            (F::Sum | F::Average, Repr::Float) => Accumulator::FloatSum { sum: place(), count },
            (F::Average, Repr::Int) if averages_integers => Accumulator::FloatSum { sum: place(), count },
            (F::Sum | F::Average, Repr::Int) if *narrow => Accumulator::Sum { sum: place(), count },
            (F::Sum | F::Average, Repr::Int) => Accumulator::WideSum { low: place(), high: place(), count },
            (F::Min | F::BoolAnd, Repr::Int | Repr::Boolean | Repr::Float) => {
                Accumulator::Best { best: place(), count, smallest: true }
            }
            (F::Max | F::BoolOr, Repr::Int | Repr::Boolean | Repr::Float) => {
                Accumulator::Best { best: place(), count, smallest: false }
            }
            (function, _) => {
                return Err(Error::unsupported(format!("the aggregate {} is not on the device yet", function.name())));
            }
        });
    }
    Ok((all, width))
}

impl Generator<'_> {
    /// Writes the kernel that counts groups.
    fn groups(
        &mut self,
        rows: &str,
        keys: &[GroupKey],
        groups: usize,
        aggregates: &[FusedAggregate],
    ) -> Result<Vec<Accumulator>> {
        let remark = "one table, or one for each work-item";
        let out = self.text.argument(Binding::Groups, "GLOBAL i64 *", "groups", remark);
        let (accumulators, width) = plan(self.fused, aggregates)?;
        // One group is kept in registers and written at the end.
        let registers = keys.is_empty();
        self.text.line(format!("GLOBAL i64 *const table = TABLE({out}, {}UL);", groups * width));
        if registers {
            self.declare_registers(&accumulators);
        }
        self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
        self.steps()?;
        self.add(keys, aggregates, &accumulators, width)?;
        self.text.close();
        if registers {
            self.write_registers(&accumulators);
        }
        Ok(accumulators)
    }

    /// Writes the kernel that writes the rows that are left, each work-item from its own place on; tells which columns
    /// have null flags.
    fn rows(&mut self, rows: &str, values: &[Expr]) -> Result<Vec<bool>> {
        let counts = self.counts();
        self.text.line(format!("u32 place = {counts}[ITEMS + ITEM];"));
        self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
        self.steps()?;
        let mut nullable = Vec::with_capacity(values.len());
        for (column, value) in values.iter().enumerate() {
            let term = self.expression(value)?;
            let out = self.text.argument(Binding::Values(column), "GLOBAL i64 *", &format!("o{column}"), "");
            let bits = if term.kind.repr() == Repr::Float { format!("AS_I64({})", term.value) } else { term.value };
            self.text.line(format!("{out}[place] = {bits};"));
            nullable.push(term.null.is_some());
            if let Some(null) = term.null {
                let out = self.text.argument(Binding::Nulls(column), "GLOBAL u8 *", &format!("o{column}n"), "");
                self.text.line(format!("{out}[place] = (u8)({null});"));
            }
        }
        self.text.line("place++;");
        self.text.close();
        Ok(nullable)
    }

    /// Writes the kernel that counts the rows that are left.
    fn count(&mut self, rows: &str) -> Result<()> {
        self.values.fill(None);
        self.entries.fill(None);
        let counts = self.counts();
        self.text.line("u32 kept = 0;");
        self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
        self.steps()?;
        self.text.line("kept++;");
        self.text.close();
        self.text.line(format!("{counts}[ITEM] = kept;"));
        Ok(())
    }

    fn counts(&mut self) -> String {
        let remark = "rows kept by each work-item, then where each begins to write";
        self.text.argument(Binding::Counts, "GLOBAL u32 *", "counts", remark)
    }

    /// Writes what drops rows and defines slots.
    fn steps(&mut self) -> Result<()> {
        let fused = self.fused;
        // Ranges cost next to nothing and are tested together, without a branch.
        let mut kept: Vec<String> = Vec::new();
        for (index, step) in fused.steps.iter().enumerate() {
            if let FusedStep::Between { column, .. } = step {
                let code = self.code(*column)?;
                let low = self.text.argument(Binding::Low(index), "const u64", &format!("low{index}"), "");
                let span = self.text.argument(Binding::Span(index), "const u64", &format!("span{index}"), "");
                let unsigned = self.code_type(*column)?;
                let mut test = format!("(({unsigned})({code} - ({unsigned}){low}) <= ({unsigned}){span})");
                if let Some(valid) = self.valid(*column)? {
                    test = format!("({test} & {valid})");
                }
                kept.push(test);
            }
        }
        if self.predicated {
            let kept = if kept.is_empty() { "1".into() } else { kept.join(" & ") };
            self.text.line(format!("const int kept = {kept};"));
        } else if !kept.is_empty() {
            self.text.line(format!("if (!({})) continue;", kept.join(" & ")));
        }
        for step in &fused.steps {
            match step {
                FusedStep::Between { .. } => {}
                FusedStep::Member { column, set } => {
                    let code = self.code(*column)?;
                    let words = self.text.argument(Binding::Set(*set), "GLOBAL const u32 *", &format!("set{set}"), "");
                    let binding = Binding::SetShift { set: *set, column: *column };
                    let shift = self.text.argument(binding, "const u32", &format!("shift{set}"), "");
                    let valid = self.valid(*column)?.map_or(String::new(), |valid| format!("{valid} && "));
                    let bit = self.text.define("u32", &format!("(u32){code} + {shift}"));
                    self.text.line(format!("if (!({valid}IN_SET({words}, {bit}))) continue;"));
                }
                FusedStep::Filter(expr) => {
                    let term = self.expression(expr)?;
                    let kept = match term.null {
                        Some(null) => format!("{} & !{null}", term.value),
                        None => term.value,
                    };
                    self.text.line(format!("if (!({kept})) continue;"));
                }
                FusedStep::Let { first, exprs } => {
                    for (i, expr) in exprs.iter().enumerate() {
                        let term = self.expression(expr)?;
                        self.values[first + i] = Some(term);
                    }
                }
            }
        }
        Ok(())
    }

    fn layout(&self, column: usize) -> Result<Layout> {
        self.columns[column].clone()
    }

    fn code_type(&self, column: usize) -> Result<&'static str> {
        unsigned(self.layout(column)?.form)
    }

    /// Returns the code of a source column at the row.
    fn code(&mut self, column: usize) -> Result<String> {
        let name = self.column_argument(column)?;
        Ok(format!("{name}[row]"))
    }

    fn column_argument(&mut self, column: usize) -> Result<String> {
        let kind = format!("GLOBAL const {} *", unsigned(self.layout(column)?.form)?);
        let remark = &self.fused.slots[column].name;
        Ok(self.text.argument(Binding::Column(column), &kind, &format!("c{column}"), &remark.replace('\n', " ")))
    }

    /// Returns the flag that a source column is valid at the row, if it may not be.
    fn valid(&mut self, column: usize) -> Result<Option<String>> {
        if !self.layout(column)?.nullable {
            return Ok(None);
        }
        let words = self.text.argument(Binding::Validity(column), "GLOBAL const u64 *", &format!("v{column}"), "");
        Ok(Some(format!("VALID({words}, row)")))
    }

    /// Reads a slot as a number: a code, for slots with a dictionary.
    pub(crate) fn read(&mut self, slot: SlotId) -> Result<Term> {
        let kind = self.fused.slots[slot].kind.clone();
        let floats = kind.repr() == Repr::Float;
        self.needs_fp64 |= floats;
        let (value, null) = match self.fused.origins[slot] {
            Origin::Computed => return Err(Error::internal("a slot is read before its step")),
            Origin::Column(column) => {
                let code = self.code(column)?;
                let value = match floats {
                    true => format!("(f64){code}"),
                    false => {
                        let base = Binding::Base(column);
                        let base = self.text.argument(base, "const i64", &format!("b{column}"), "");
                        format!("{base} + (i64){code}")
                    }
                };
                (value, self.valid(column)?.map(|valid| format!("!{valid}")))
            }
            Origin::Payload { lookup, payload } => {
                let layout = self.payloads[lookup][payload].clone()?;
                let entry = self.entry(lookup)?;
                let name = format!("p{lookup}_{payload}");
                let kind = format!("GLOBAL const {} *", unsigned(layout.form)?);
                let remark = self.fused.slots[slot].name.replace('\n', " ");
                let values = self.text.argument(Binding::Payload { lookup, payload }, &kind, &name, &remark);
                let value = match floats {
                    true => format!("(f64){values}[{entry}]"),
                    false => {
                        let base = Binding::PayloadBase { lookup, payload };
                        let base = self.text.argument(base, "const i64", &format!("{name}b"), "");
                        format!("{base} + (i64){values}[{entry}]")
                    }
                };
                let null = layout.nullable.then(|| {
                    let binding = Binding::PayloadValidity { lookup, payload };
                    let words = self.text.argument(binding, "GLOBAL const u64 *", &format!("{name}v"), "");
                    format!("!VALID({words}, {entry})")
                });
                (value, null)
            }
        };
        self.keep(if floats { "f64" } else { "i64" }, &value, null, kind)
    }

    /// Returns the entry that a lookup's column leads to.
    fn entry(&mut self, lookup: usize) -> Result<String> {
        if let Some(entry) = &self.entries[lookup] {
            return Ok(entry.clone());
        }
        let code = self.code(self.fused.lookups[lookup].column)?;
        let shift = self.text.argument(Binding::LookupShift(lookup), "const i64", &format!("e{lookup}"), "");
        let entry = self.text.define("u32", &format!("(u32)((i64){code} + {shift})"));
        self.entries[lookup] = Some(entry.clone());
        Ok(entry)
    }

    /// Adds the row to its group.
    fn add(
        &mut self,
        keys: &[GroupKey],
        aggregates: &[FusedAggregate],
        accumulators: &[Accumulator],
        width: usize,
    ) -> Result<()> {
        let group = self.group(keys, width)?;
        let place = |at: usize| match &group {
            Some(group) => format!("{group} + {at}"),
            None => format!("&a{at}"),
        };
        let registers = group.is_none();
        for FusedAggregate { aggregate, .. } in aggregates {
            for slot in aggregate.argument.into_iter().chain(aggregate.filter) {
                self.slot(slot)?;
            }
        }
        if self.predicated {
            self.text.open("if (kept) {");
        }
        self.add_to(registers, "ADD", &place(ROWS_COUNT), "1");
        for (FusedAggregate { aggregate, .. }, accumulator) in aggregates.iter().zip(accumulators) {
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
            let value = argument.as_ref().map_or("0", |term| term.value.as_str()).to_string();
            if let Some(term) = &argument
                && !matches!(accumulator, Accumulator::Count(_))
            {
                c_type(&term.kind)?;
            }
            if !conditions.is_empty() {
                self.text.open(&format!("if ({}) {{", conditions.join(" & ")));
            }
            let count = match *accumulator {
                Accumulator::Count(count) => count,
                Accumulator::Sum { sum, count } => {
                    self.add_to(registers, "ADD", &place(sum), &value);
                    count
                }
                Accumulator::WideSum { low, high, count } => {
                    self.add_to(registers, "ADD", &place(low), &format!("({value} & 0xffffffffL)"));
                    self.add_to(registers, "ADD", &place(high), &format!("({value} >> 32)"));
                    count
                }
                Accumulator::FloatSum { sum, count } => {
                    self.needs_fp64 = true;
                    self.add_to(registers, "ADD_F64", &place(sum), &format!("(f64){value}"));
                    count
                }
                Accumulator::Best { best, count, smallest } => {
                    let floats = argument.as_ref().is_some_and(|term| term.kind.repr() == Repr::Float);
                    let value = if floats { self.text.define("i64", &format!("FLOAT_ORDER({value})")) } else { value };
                    self.add_to(registers, if smallest { "LEAST" } else { "MOST" }, &place(best), &value);
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
        if self.predicated {
            self.text.close();
        }
        Ok(())
    }

    fn add_to(&mut self, registers: bool, operation: &str, place: &str, value: &str) {
        let name = place.trim_start_matches('&');
        self.text.line(match (registers, operation) {
            (false, _) => format!("{operation}({place}, {value});"),
            (true, "LEAST") => format!("if ({value} < {name}) {name} = {value};"),
            (true, "MOST") => format!("if ({value} > {name}) {name} = {value};"),
            (true, _) => format!("{name} += {value};"),
        });
    }

    /// Returns a pointer to the row's group; `None` where it is in registers.
    fn group(&mut self, keys: &[GroupKey], width: usize) -> Result<Option<String>> {
        let mut group: Option<String> = None;
        for key in keys {
            let term = self.slot(key.slot)?;
            let min = self.text.argument(Binding::Constant(key.min), "const i64", "", "");
            let mut place = format!("(u32)({} - {min})", term.value);
            if let Some(null) = &term.null {
                let last = key.size - 1;
                place = format!("({null} ? {last}u : {place})");
            }
            let number = match group {
                None => place,
                Some(group) => format!("{group} * {}u + {place}", key.size),
            };
            group = Some(self.text.define("u32", &number));
        }
        Ok(group.map(|group| {
            let name = format!("table + (u64){group} * {width}");
            self.text.line(format!("GLOBAL i64 *const group = {name};"));
            "group".to_string()
        }))
    }

    fn declare_registers(&mut self, accumulators: &[Accumulator]) {
        self.text.line(format!("i64 a{ROWS_COUNT} = 0;"));
        for accumulator in accumulators {
            match *accumulator {
                Accumulator::Count(_) => {}
                Accumulator::Sum { sum, .. } => self.text.line(format!("i64 a{sum} = 0;")),
                Accumulator::FloatSum { sum, .. } => self.text.line(format!("f64 a{sum} = 0;")),
                Accumulator::WideSum { low, high, .. } => self.text.line(format!("i64 a{low} = 0, a{high} = 0;")),
                Accumulator::Best { best, smallest, .. } => {
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

    fn write_registers(&mut self, accumulators: &[Accumulator]) {
        let add = |at: usize| format!("ADD(table + {at}, a{at});");
        self.text.line(add(ROWS_COUNT));
        for accumulator in accumulators {
            match *accumulator {
                Accumulator::Count(_) => {}
                Accumulator::Sum { sum, .. } => self.text.line(add(sum)),
                Accumulator::FloatSum { sum, .. } => self.text.line(format!("ADD_F64(table + {sum}, a{sum});")),
                Accumulator::WideSum { low, high, .. } => {
                    self.text.line(add(low));
                    self.text.line(add(high));
                }
                Accumulator::Best { best, smallest, .. } => {
                    let name = if smallest { "LEAST" } else { "MOST" };
                    self.text.line(format!("{name}(table + {best}, a{best});"));
                }
            }
            let count = accumulator.count();
            if count != ROWS_COUNT {
                self.text.line(add(count));
            }
        }
    }
}

fn unsigned(form: Form) -> Result<&'static str> {
    Ok(match form {
        Form::Code(1) => "u8",
        Form::Code(2) => "u16",
        Form::Code(4) => "u32",
        Form::Code(_) => "u64",
        Form::Float32 => "f32",
        Form::Float64 => "f64",
    })
}
