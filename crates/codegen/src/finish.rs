//! Groups into rows: the values of keys and aggregates, where the groups are.
//!
//! What a device has counted stays there for the next pipeline. Places that have a group are counted, then their rows are
//! written as those of any pipeline are: see [`crate::RowColumn`]. What cannot be finished there is finished by the CPU.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{Aggregate, AggregateFunction};
use tandem_plan::{Body, sink::GroupKey};

use crate::{
    AccumulatorWords, Binding, GeneratedKernel, HashKey, KernelLanguage, KernelOutput, KernelSink, KeyOf, MOST_HALVES,
    PLACE_BITS, ROWS_COUNT, RowColumn, Traits,
    kernel::{Uses, prelude},
    text::{Text, either},
    total::finish_total,
};

/// Generates the kernel that makes rows of the groups that [`crate::generate`]'s kernel counted.
///
/// # Errors
/// Unsupported, for keys and aggregates that only the CPU finishes.
pub fn finish(
    body: &Body,
    sink: &KernelSink,
    output: &KernelOutput,
    traits: Traits,
    target: KernelLanguage,
) -> Result<GeneratedKernel> {
    let (keys, aggregates) = match sink {
        KernelSink::Groups { keys, aggregates, .. } if !keys.is_empty() => (GroupKeys::Array(keys), aggregates),
        KernelSink::Hashed { keys, aggregates } => (GroupKeys::Hashed(keys), aggregates),
        _ => return Err(Error::unsupported("one group is finished by the CPU")),
    };
    let mut finish = Finish { text: Text::default(), keys, output, traits, columns: Vec::new() };
    let writes = finish.text.writes();
    finish.write(body, aggregates.iter().map(|aggregate| &aggregate.aggregate))?;
    let write = finish.text.take_body();
    finish.count();
    let count = finish.text.take_body();
    let fp64 = output.accumulators().iter().any(|accumulator| matches!(accumulator, AccumulatorWords::FloatSum { .. }));
    if fp64 && !traits.fp64 {
        return Err(Error::unsupported("the device has no double precision"));
    }
    let kernel = finish.text.kernel("rows", &either(&writes, &write, &count));
    let mut text = prelude(target, Uses { chunked: traits.chunked, fp64, int64_atomics: false }, &kernel);
    let body = text.len();
    text.push_str(&kernel);
    let output = KernelOutput::Rows { columns: finish.columns, ordinals: Vec::new() };
    Ok(GeneratedKernel { text, name: "rows", body, bindings: finish.text.bindings(), output })
}

#[derive(Clone, Copy)]
enum GroupKeys<'f> {
    Array(&'f [GroupKey]),
    Hashed(&'f [HashKey]),
}

struct Finish<'f> {
    text: Text,
    keys: GroupKeys<'f>,
    output: &'f KernelOutput,
    traits: Traits,
    columns: Vec<RowColumn>,
}

impl Finish<'_> {
    /// Writes what writes the rows, each work-item from its own place on.
    fn write<'a>(&mut self, body: &Body, aggregates: impl Iterator<Item = &'a Aggregate>) -> Result<()> {
        let counts = self.counts();
        self.text.line(format!("u32 place = {counts};"));
        self.open(self.output.accumulators());
        match self.keys {
            GroupKeys::Array(keys) => {
                let mut rest = "at".to_string();
                let mut places = Vec::with_capacity(keys.len());
                for key in keys.iter().rev() {
                    places.push((key, self.text.define("u64", &format!("{rest} % {}u", key.size))));
                    rest = self.text.define("u32", &format!("{rest} / {}u", key.size));
                }
                places.into_iter().rev().for_each(|(key, place)| self.key(key, &place));
            }
            GroupKeys::Hashed(keys) => {
                let last = HashKey::numbers(keys) - 1;
                for number in (0..last).rev() {
                    let binding = Binding::EarlierNumbers(number);
                    let name = format!("earlier{number}");
                    let numbers = self.text.argument(binding, "GLOBAL const u64 *", &name, "parts of their keys");
                    let next = number_name(number + 1, last);
                    let stored = format!("{numbers}[{next} & {:#x}u]", (1u32 << PLACE_BITS) - 1);
                    let stored = self.decoded(&stored);
                    self.text.line(format!("const u64 {} = {stored};", number_name(number, last)));
                }
                for key in keys.iter().filter(|key| key.from == 0) {
                    let KeyOf::Place(place) = &key.of else {
                        return Err(Error::unsupported("groups that may be equal by value are merged by the CPU"));
                    };
                    let runs = keys.iter().filter(|run| run.of == key.of);
                    let runs = runs.map(|run| {
                        let number = number_name(run.number, last);
                        match (run.bits, run.from) {
                            (0, _) => "0".into(),
                            (_, 0) => format!("{number} >> {} & {:#x}UL", run.shift, run.mask()),
                            (_, from) => format!("({number} >> {} & {:#x}UL) << {from}", run.shift, run.mask()),
                        }
                    });
                    let value = runs.collect::<Vec<_>>().join(" | ");
                    let value = self.text.define("u64", &value);
                    self.key(place, &value);
                }
            }
        }
        for (aggregate, accumulator) in aggregates.zip(self.output.accumulators()) {
            let argument = aggregate.argument.map_or(Type::Int64, |slot| body.slots[slot].kind.clone());
            self.aggregate(aggregate, &argument, accumulator)?;
        }
        self.text.line("place++;");
        self.text.close();
        Ok(())
    }

    /// Writes the kernel that counts the places that have a group.
    fn count(&mut self) {
        let counts = self.counts();
        self.text.line("u32 kept = 0;");
        self.open(&[]);
        self.text.line("kept++;");
        self.text.close();
        self.text.line(format!("{counts} = kept;"));
    }

    fn counts(&mut self) -> String {
        let remark = "groups of each work-item, then where each begins to write";
        let counts = self.text.argument(Binding::Counts, "GLOBAL u32 *", "counts", remark);
        format!("{counts}[ITEM]")
    }

    /// Returns the number of a hash table's place.
    fn decoded(&self, stored: &str) -> String {
        match self.traits.int64_atomics {
            true => stored.to_string(),
            false => format!("NUMBER_OF_WORDS({stored})"),
        }
    }

    /// Opens the loop over places that have a group, with what some accumulators hold of all tables together.
    fn open(&mut self, accumulators: &[AccumulatorWords]) {
        let places = self.text.argument(Binding::Rows, "const u32", "places", "of each table");
        let groups = self.text.argument(Binding::Groups, "GLOBAL const i64 *", "groups", "");
        let tables = self.text.argument(Binding::Tables, "const u32", "tables", "");
        let hashed = matches!(self.keys, GroupKeys::Hashed(_));
        let numbers = hashed
            .then(|| self.text.argument(Binding::GroupNumbers, "GLOBAL const u64 *", "numbers", "whose group it is"));
        self.text.open(&format!("FOR_ROWS(at, {places}) {{"));
        if let Some(numbers) = &numbers {
            self.text.line(format!("if ({numbers}[at] == NO_NUMBER) continue;"));
            let number = self.decoded(&format!("{numbers}[at]"));
            self.text.line(format!("const u64 number = {number};"));
        }
        self.declare(accumulators);
        self.text.open(&format!("for (u32 table = 0; table < {tables}; table++) {{"));
        let width = self.output.group_width();
        self.text.line(format!("GLOBAL const i64 *const group = {groups} + ((u64)table * {places} + at) * {width};"));
        self.text.line(format!("n{ROWS_COUNT} += group[{ROWS_COUNT}];"));
        accumulators.iter().for_each(|accumulator| self.fold(accumulator));
        self.text.close();
        if !hashed {
            self.text.line(format!("if (!n{ROWS_COUNT}) continue;"));
        }
    }

    fn declare(&mut self, accumulators: &[AccumulatorWords]) {
        let empty = self.output.empty_group();
        let mut declare = |at: usize| {
            let value = match empty[at] {
                0 => "0",
                -1 => "-1",
                i64::MAX => "0x7fffffffffffffffL",
                _ => "-0x7fffffffffffffffL - 1",
            };
            self.text.line(format!("i64 n{at} = {value};"));
        };
        declare(ROWS_COUNT);
        for accumulator in accumulators {
            match *accumulator {
                AccumulatorWords::Count(_)
                | AccumulatorWords::FloatSum { .. }
                | AccumulatorWords::Spread { .. }
                | AccumulatorWords::Pairs { .. }
                | AccumulatorWords::Elsewhere => {}
                AccumulatorWords::Bits { low, high, .. } => [low].into_iter().chain(high).for_each(&mut declare),
                AccumulatorWords::Sum { sum: at, .. } | AccumulatorWords::Best { best: at, .. } => declare(at),
                AccumulatorWords::WideSum { low, high, .. } | AccumulatorWords::WideBest { low, high, .. } => {
                    declare(low);
                    declare(high);
                }
                AccumulatorWords::LimbSum { first, .. } => (first..first + 4).for_each(&mut declare),
            }
            if accumulator.count() != ROWS_COUNT {
                declare(accumulator.count());
            }
        }
        for accumulator in accumulators {
            if let AccumulatorWords::FloatSum { sum, .. } = accumulator {
                self.text.line(format!("f64 n{sum} = 0;"));
            }
        }
    }

    /// Adds what one table holds of a group.
    fn fold(&mut self, accumulator: &AccumulatorWords) {
        let mut add = |at: usize| self.text.line(format!("n{at} += group[{at}];"));
        match *accumulator {
            AccumulatorWords::Count(_)
            | AccumulatorWords::Spread { .. }
            | AccumulatorWords::Pairs { .. }
            | AccumulatorWords::Elsewhere => {}
            AccumulatorWords::Bits { low, high, by, .. } => {
                for at in [low].into_iter().chain(high) {
                    self.text.line(format!("n{at} {}= group[{at}];", by.sign()));
                }
            }
            AccumulatorWords::Sum { sum, .. } => add(sum),
            AccumulatorWords::WideSum { low, high, .. } => {
                add(low);
                add(high);
            }
            AccumulatorWords::LimbSum { first, .. } => (first..first + 4).for_each(&mut add),
            AccumulatorWords::FloatSum { sum, .. } => self.text.line(format!("n{sum} += AS_F64(group[{sum}]);")),
            AccumulatorWords::Best { best, smallest, from, .. } => {
                let sign = if smallest { "<" } else { ">" };
                let value = if from.is_some() { format!("(u32)group[{best}]") } else { format!("group[{best}]") };
                self.text.line(format!("if ((i64){value} {sign} n{best}) n{best} = (i64){value};"));
            }
            AccumulatorWords::WideBest { low, high, smallest, .. } => {
                let sign = if smallest { "<" } else { ">" };
                let value = format!("wide_from(group[{high}], (u64)group[{low}])");
                self.text.line(format!("KEEP_WIDE(&n{low}, &n{high}, {value}, {sign});"));
            }
        }
        let count = accumulator.count();
        if count != ROWS_COUNT {
            self.text.line(format!("n{count} += group[{count}];"));
        }
    }

    /// Writes a key's value, which has a place.
    fn key(&mut self, key: &GroupKey, place: &str) {
        let min = self.text.argument(Binding::Constant(key.min), "const i64", "", "");
        let null = key.nullable.then(|| format!("{place} == {}u", key.size - 1));
        self.put(&format!("WRAP_ADD({min}, {place})"), false, null);
    }

    /// Writes an aggregate's value.
    fn aggregate(&mut self, aggregate: &Aggregate, argument: &Type, accumulator: &AccumulatorWords) -> Result<()> {
        use AggregateFunction as F;
        let count = format!("n{}", accumulator.count());
        let null = (accumulator.count() != ROWS_COUNT).then(|| format!("!{count}"));
        match *accumulator {
            AccumulatorWords::Count(_) => self.put(&count, false, None),
            AccumulatorWords::FloatSum { sum, .. } if aggregate.kind.is_float() => {
                let mut value = match aggregate.function {
                    F::Average => format!("n{sum} / (f64){count}"),
                    _ => format!("n{sum}"),
                };
                if aggregate.kind == Type::Float32 {
                    value = format!("(f64)(f32)({value})");
                }
                self.put(&format!("AS_I64({value})"), false, null);
            }
            AccumulatorWords::Best { best, .. } if argument.repr() == Repr::Float => {
                self.put(&format!("ORDER_OF_BITS(n{best})"), false, null);
            }
            AccumulatorWords::Best { best, from: Some(from), .. } => {
                let from = self.text.argument(Binding::Constant(from), "const i64", "", "");
                self.put(&format!("WRAP_ADD({from}, n{best})"), false, null);
            }
            AccumulatorWords::Best { best, .. } => self.put(&format!("n{best}"), false, null),
            AccumulatorWords::WideBest { low, high, .. } => {
                self.put(&format!("wide_from(n{high}, (u64)n{low})"), true, null);
            }
            AccumulatorWords::Sum { .. } | AccumulatorWords::WideSum { .. } | AccumulatorWords::LimbSum { .. } => {
                self.total(aggregate, argument, accumulator, &count, null)?;
            }
            AccumulatorWords::Bits { low, high: None, .. } => self.put(&format!("n{low}"), false, null),
            AccumulatorWords::Bits { low, high: Some(high), .. } => {
                self.put(&format!("wide_from(n{high}, (u64)n{low})"), true, null);
            }
            AccumulatorWords::FloatSum { .. }
            | AccumulatorWords::Spread { .. }
            | AccumulatorWords::Pairs { .. }
            | AccumulatorWords::Elsewhere => return Err(Error::unsupported("the aggregate is finished by the CPU")),
        }
        Ok(())
    }

    /// Writes an exact sum, or the average of decimals, if its type holds it.
    fn total(
        &mut self,
        aggregate: &Aggregate,
        argument: &Type,
        accumulator: &AccumulatorWords,
        count: &str,
        null: Option<String>,
    ) -> Result<()> {
        let (total, beyond) = match *accumulator {
            AccumulatorWords::Sum { sum, .. } => (format!("wide_of(n{sum})"), None),
            AccumulatorWords::WideSum { low, high, .. } => {
                (format!("wide_of_halves(n{low}, n{high})"), Some(format!("{count} > {MOST_HALVES}L")))
            }
            AccumulatorWords::LimbSum { first, .. } => {
                let [a, b, c, d] = [first, first + 1, first + 2, first + 3].map(|at| format!("n{at}"));
                let limbs = format!("{a}, {b}, {c}, {d}");
                (format!("wide_of_limbs({limbs})"), Some(format!("{count} > {MOST_HALVES}L || limbs_left({limbs})")))
            }
            _ => return Err(Error::internal("no sum")),
        };
        let value = finish_total(&mut self.text, (aggregate, argument), (&total, beyond), count, null)?;
        self.put(&value.value, value.wide, value.null);
        Ok(())
    }

    /// Writes a value of the next column.
    fn put(&mut self, value: &str, wide: bool, null: Option<String>) {
        let column = self.text.put(self.columns.len(), "place", value, wide, null.as_deref());
        self.columns.push(column);
    }
}

/// Returns the name of one of the numbers that stand for a group's keys.
fn number_name(number: usize, last: usize) -> String {
    if number == last { "number".into() } else { format!("number{number}") }
}
