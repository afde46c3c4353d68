//! Window functions over rows that lie in order on the device: of each row, its partition, its peers and its frame.
//!
//! Two kernels: one writes what each row contributes to running counts, sums and segment trees; once those are made (by operators of
//! `prelude/windows.h`), the other computes all functions of each row that comes out. A frame is two row numbers. Counts and exact
//! sums are differences of what is before its ends; what has no inverse (floats, extremes) is put together of some nodes of a tree.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{Aggregate, AggregateFunction, SlotId, Window, WindowFunction};
use tandem_plan::{Body, sink::WindowPlan};

use crate::{
    Binding, GeneratedKernel, KernelLanguage, KernelOutput, RowColumn, Traits,
    frame::Frames,
    kernel::{Uses, needs_fp64, prelude},
    running::{Contributing, Running, RunningKind, reverse},
    text::Text,
    total::finish_total,
};

/// What the kernels of window functions are generated from.
#[derive(Clone, Copy, Debug)]
pub struct WindowInput<'w> {
    /// The functions, and what they read.
    pub plan: &'w WindowPlan,
    /// What slots are.
    pub body: &'w Body,
    /// How the values of each collected slot lie in memory; none is the same as another.
    pub columns: &'w [RowColumn],
    /// What the device can do.
    pub traits: Traits,
    /// The language of the texts.
    pub target: KernelLanguage,
}

/// The kernels of window functions.
#[derive(Clone, Debug)]
pub struct WindowKernels {
    /// Writes what rows contribute to what is running, if anything is.
    pub contributions: Option<GeneratedKernel>,
    /// What is made of the contributions before functions are computed.
    pub running: Vec<Running>,
    /// Computes the functions: an output column for each.
    pub functions: GeneratedKernel,
}

/// What an argument of these kernels is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowBinding {
    /// How many rows there are, 32 bits: all of them, whether they come out or not.
    AllRows,
    /// The rows that come out, 32 bits each, if not all do.
    Listed,
    /// The number of each row's partition, 32 bits: see `prelude/windows.h`.
    Partitions,
    /// The first row of each partition, 32 bits, and the end of the last.
    PartitionStarts,
    /// The number of each row's group of peers.
    Peers,
    /// The first row of each group of peers, and the end of the last.
    PeerStarts,
    /// The values of a collected slot, in order.
    Column(usize),
    /// Its null flags.
    ColumnNulls(usize),
    /// What is running.
    Running(usize),
    /// The rows that a running count counts, 32 bits each.
    Counted(usize),
}

/// The most that a value may be for the sum of as many rows as a device takes at once, less than 2³¹, to fit 64 bits.
const NARROW: i64 = 1 << 31;

/// Generates the kernels of window functions.
///
/// # Errors
/// Unsupported, with the reason, for what kernels or the device cannot do.
pub fn windows(input: WindowInput<'_>) -> Result<WindowKernels> {
    let frames = Frames::new(input.plan, input.columns);
    let mut windows = Windows { input, text: Text::default(), frames, running: Vec::new() };
    let columns = windows.functions()?;
    let functions = windows.kernel("window", columns)?;
    let contributions = match windows.running.is_empty() {
        true => None,
        false => {
            windows.text = Text::default();
            windows.contributions()?;
            Some(windows.kernel("contributions", Vec::new())?)
        }
    };
    Ok(WindowKernels { contributions, running: windows.running, functions })
}

pub(crate) struct Windows<'w> {
    pub(crate) input: WindowInput<'w>,
    pub(crate) text: Text,
    frames: Frames<'w>,
    pub(crate) running: Vec<Running>,
}

impl Windows<'_> {
    fn kernel(&mut self, name: &'static str, columns: Vec<RowColumn>) -> Result<GeneratedKernel> {
        let statements = self.text.take_body();
        let kernel = self.text.kernel(name, &statements);
        let fp64 = needs_fp64(&kernel);
        if fp64 && !self.input.traits.fp64 {
            return Err(Error::unsupported("the device has no double precision"));
        }
        let uses = Uses { chunked: self.input.traits.chunked, fp64, int64_atomics: false };
        let text = prelude(self.input.target, uses, &kernel) + include_str!("prelude/frames.h");
        let body = text.len();
        let output = KernelOutput::Rows { columns, ordinals: Vec::new() };
        Ok(GeneratedKernel { text: text + &kernel, name, body, bindings: self.text.bindings(), output })
    }

    /// Writes what computes the functions of each row that comes out; returns their columns.
    fn functions(&mut self) -> Result<Vec<RowColumn>> {
        let plan = self.input.plan;
        let rows = self.text.argument(Binding::Rows, "const u32", "rows", "that come out");
        self.text.open(&format!("FOR_ROWS(at, {rows}) {{"));
        let row = match plan.fetch {
            None => "at".to_owned(),
            Some(_) => {
                let binding = Binding::Window(WindowBinding::Listed);
                let listed = self.text.argument(binding, "GLOBAL const u32 *", "listed", "");
                format!("{listed}[at]")
            }
        };
        self.text.line(format!("const u32 row = {row};"));
        let columns = plan.functions.iter().enumerate().map(|(at, window)| self.function(at, window));
        let columns = columns.collect::<Result<_>>()?;
        self.text.close();
        Ok(columns)
    }

    fn function(&mut self, at: usize, window: &Window) -> Result<RowColumn> {
        match &window.function {
            WindowFunction::RowNumber => {
                let (first, _) = self.frames.partition(&mut self.text);
                Ok(self.rank(at, window, &format!("(i64)(row - {first}) + 1")))
            }
            WindowFunction::Rank => {
                let (first, _) = self.frames.partition(&mut self.text);
                let (peer, _) = self.frames.peers(&mut self.text);
                Ok(self.rank(at, window, &format!("(i64)({peer} - {first}) + 1")))
            }
            WindowFunction::DenseRank => {
                let (first, _) = self.frames.partition(&mut self.text);
                let peers = Frames::segments(&mut self.text, WindowBinding::Peers);
                Ok(self.rank(at, window, &format!("(i64)({peers}[row + 1] - {peers}[{first} + 1]) + 1")))
            }
            WindowFunction::PercentRank => {
                let (first, behind) = self.frames.partition(&mut self.text);
                let (peer, _) = self.frames.peers(&mut self.text);
                let others = self.text.define("u32", &format!("{behind} - {first} - 1"));
                let share = format!("(f64)({peer} - {first}) / (f64)({others} ? {others} : 1)");
                Ok(self.text.put(at, "at", &format!("AS_I64({share})"), false, None))
            }
            WindowFunction::CumeDist => {
                let (first, behind) = self.frames.partition(&mut self.text);
                let (_, end) = self.frames.peers(&mut self.text);
                let share = format!("(f64)({end} - {first}) / (f64)({behind} - {first})");
                Ok(self.text.put(at, "at", &format!("AS_I64({share})"), false, None))
            }
            WindowFunction::Ntile { buckets } => {
                let (first, behind) = self.frames.partition(&mut self.text);
                // More buckets than rows are as good as any number of more.
                let buckets = (*buckets).min(u32::MAX.into()) as i64;
                let buckets = self.text.argument(Binding::Constant(buckets), "const i64", "", "buckets");
                let bucket = format!("frame_bucket(row - {first}, {behind} - {first}, (u64){buckets})");
                Ok(self.rank(at, window, &bucket))
            }
            WindowFunction::Lag { slot, offset, default, ignore_nulls } => {
                let place = self.lag(*slot, *offset, *ignore_nulls)?;
                self.value_at(at, *slot, &place, *default)
            }
            WindowFunction::Nth { slot, place, frame, ignore_nulls } => {
                let (from, to) = self.frames.frame(&mut self.text, frame)?;
                let counted = if *ignore_nulls && self.has_nulls(*slot)? { Some((Some(*slot), None)) } else { None };
                let place = self.nth(&from, &to, *place, counted);
                self.value_at(at, *slot, &place, None)
            }
            WindowFunction::Aggregate { aggregate, frame } => {
                let (from, to) = self.frames.frame(&mut self.text, frame)?;
                self.aggregate(at, aggregate, &from, &to)
            }
        }
    }

    /// Writes an integer as the function's type has it.
    fn rank(&mut self, at: usize, window: &Window, value: &str) -> RowColumn {
        match window.kind.repr() {
            Repr::Wide => self.text.put(at, "at", &format!("wide_of({value})"), true, None),
            _ => self.text.put(at, "at", value, false, None),
        }
    }

    /// Returns the row so many rows before this one, or all ones.
    fn lag(&mut self, slot: SlotId, offset: i64, ignore_nulls: bool) -> Result<String> {
        let (first, behind) = self.frames.partition(&mut self.text);
        let back = self.frames.distance(&mut self.text, offset);
        let place = if ignore_nulls && offset != 0 && self.has_nulls(slot)? {
            let (counts, list) = self.counted((Some(slot), None));
            // Ahead, the first value behind this row is the next.
            let from = match offset > 0 {
                true => format!("(i64){counts}[row] - {back}"),
                false => format!("(i64){counts}[row + 1] - {back} - 1"),
            };
            let from = self.text.define("i64", &from);
            let within = format!("{from} >= (i64){counts}[{first}] && {from} < (i64){counts}[{behind}]");
            format!("{within} ? {list}[{from}] : 0xffffffffu")
        } else {
            let from = self.text.define("i64", &format!("(i64)row - {back}"));
            format!("{from} >= (i64){first} && {from} < (i64){behind} ? (u32){from} : 0xffffffffu")
        };
        Ok(self.text.define("u32", &place))
    }

    /// Returns a row of a frame, counted from 1, or from −1 at its end, among all or some that are counted; all ones for none.
    fn nth(&mut self, from: &str, to: &str, place: i64, counted: Option<Contributing>) -> String {
        let counted = counted.map(|of| self.counted(of));
        let (from, to) = match &counted {
            Some((counts, _)) => (format!("{counts}[{from}]"), format!("{counts}[{to}]")),
            None => (from.to_owned(), to.to_owned()),
        };
        let found = match place > 0 {
            true => format!("(i64){from} + {}", self.frames.distance(&mut self.text, place - 1)),
            false => format!("(i64){to} + {}", self.frames.distance(&mut self.text, place)),
        };
        let found = self.text.define("i64", &found);
        let row = counted.map_or(format!("(u32){found}"), |(_, list)| format!("{list}[{found}]"));
        let within = format!("{found} >= (i64){from} && {found} < (i64){to}");
        self.text.define("u32", &format!("{within} ? {row} : 0xffffffffu"))
    }

    /// Writes the value of a slot in another row; where there is none, that of another slot in this row, or null.
    fn value_at(&mut self, at: usize, slot: SlotId, place: &str, default: Option<SlotId>) -> Result<RowColumn> {
        let (values, nulls) = self.column(slot)?;
        let column = self.input.columns[self.input.plan.position(slot)];
        let none = format!("{place} == 0xffffffffu");
        let (or, or_null) = match default {
            None => (None, "1".to_owned()),
            Some(default) if default == slot || !matches!(column, RowColumn::Row | RowColumn::Entry(_)) => {
                // Codes, and slices, are of one dictionary only.
                if default != slot && self.input.body.slots[slot].kind.repr() == Repr::Bytes {
                    return Err(Error::unsupported("text of two columns in one is put together by the CPU"));
                }
                let (values, nulls) = self.column(default)?;
                (Some(format!("{values}[row]")), nulls.map_or("0".into(), |nulls| format!("{nulls}[row]")))
            }
            Some(_) => return Err(Error::unsupported("text of two columns in one is put together by the CPU")),
        };
        let null = match nulls {
            Some(nulls) => format!("{none} ? {or_null} : {nulls}[{place}]"),
            None => format!("{none} ? {or_null} : 0"),
        };
        match column {
            RowColumn::Row | RowColumn::Entry(_) => {
                let or = or.unwrap_or("0xffffffffu".into());
                let out = self.text.output(Binding::Values(at), "u32", &format!("o{at}"));
                self.text.line(format!("{out}[at] = {none} ? {or} : {values}[{place}];"));
                Ok(column)
            }
            RowColumn::Wide { .. } => {
                let or = or.unwrap_or("wide_of(0)".into());
                let value = format!("{none} ? {or} : {values}[{place}]");
                Ok(self.text.put(at, "at", &value, true, Some(&null)))
            }
            RowColumn::Numbers { .. } | RowColumn::Slice { .. } => {
                let or = or.unwrap_or("0".into());
                let value = format!("{none} ? {or} : {values}[{place}]");
                let written = self.text.put(at, "at", &value, false, Some(&null));
                let slice = matches!(column, RowColumn::Slice { .. });
                Ok(if slice { RowColumn::Slice { nullable: true } } else { written })
            }
            RowColumn::Same(_) => Err(Error::internal("a column is its own")),
        }
    }

    /// Writes an aggregate over a frame.
    fn aggregate(&mut self, at: usize, aggregate: &Aggregate, from: &str, to: &str) -> Result<RowColumn> {
        use AggregateFunction as F;
        let (function, kind) = (aggregate.function, &aggregate.kind);
        let repeats = matches!(function, F::Min | F::Max | F::BoolAnd | F::BoolOr);
        if aggregate.distinct && !repeats {
            return Err(Error::unsupported("aggregates of distinct values in frames are not on the device yet"));
        }
        let other = || {
            let name = function.name();
            Err(Error::unsupported(format!("the aggregate {name} over a window is not on the device yet")))
        };
        if function == F::First {
            let Some(slot) = aggregate.argument else { return other() };
            let place = self.nth(from, to, 1, aggregate.filter.map(|filter| (None, Some(filter))));
            return self.value_at(at, slot, &place, None);
        }
        let of: Contributing = (aggregate.argument.filter(|_| function != F::CountRows), aggregate.filter);
        if function.is_spread() && of.0.is_some_and(|slot| self.input.body.slots[slot].kind.is_float()) {
            return Ok(self.spread(at, aggregate, of, from, to));
        }
        let everyone = of.1.is_none() && of.0.map_or(Ok(true), |slot| self.has_nulls(slot).map(|nulls| !nulls))?;
        let count = match everyone {
            true => format!("({to} - {from})"),
            false => {
                let (_, counts) = self.running(RunningKind::Counts, of, false);
                self.text.define("u32", &format!("{counts}[{to}] - {counts}[{from}]"))
            }
        };
        if matches!(function, F::CountRows | F::Count) {
            return Ok(self.text.put(at, "at", &count, false, None));
        }
        let Some(slot) = aggregate.argument else { return other() };
        let argument = self.input.body.slots[slot].kind.clone();
        let (column, null) = (self.input.columns[self.input.plan.position(slot)], Some(format!("!{count}")));
        let average_of_decimals = function == F::Average && matches!(argument, Type::Decimal { .. });
        match (function, argument.repr(), column) {
            (F::Sum | F::Average, Repr::Int | Repr::Wide, _)
                if !kind.is_float() && (function == F::Sum || average_of_decimals) =>
            {
                let range = self.input.body.range(slot);
                let narrow = range.is_some_and(|(low, high)| low > -NARROW && high < NARROW)
                    && matches!(column, RowColumn::Numbers { .. });
                let running = if narrow { RunningKind::Sums } else { RunningKind::WideSums };
                let (_, sums) = self.running(running, of, false);
                let total = match narrow {
                    true => format!("wide_of(WRAP_SUBTRACT({sums}[{to}], {sums}[{from}]))"),
                    false => format!("wide_subtract({sums}[{to}], {sums}[{from}])"),
                };
                let finished = finish_total(&mut self.text, (aggregate, &argument), (&total, None), &count, null)?;
                Ok(self.text.put(at, "at", &finished.value, finished.wide, finished.null.as_deref()))
            }
            (F::Sum | F::Average, Repr::Float, RowColumn::Numbers { .. }) => {
                let (rows, tree) = self.tree(RunningKind::FloatSums, of, false);
                let sum = self.text.define("f64", &format!("frame_sum({tree}, {rows}, {from}, {to})"));
                let value = if function == F::Sum { sum } else { format!("{sum} / (f64){count}") };
                Ok(self.text.put(at, "at", &float_bits(kind, &value), false, null.as_deref()))
            }
            (_, _, RowColumn::Row | RowColumn::Entry(_) | RowColumn::Slice { .. }) if repeats => {
                Err(Error::unsupported("the smallest or largest plain text of a frame is not on the device yet"))
            }
            (_, repr, _) if repeats => {
                let (reversed, wide) = (matches!(function, F::Max | F::BoolOr), repr == Repr::Wide);
                let running = if wide { RunningKind::WideLeast } else { RunningKind::Least };
                let (rows, tree) = self.tree(running, of, reversed);
                let name = if wide { "frame_least_wide" } else { "frame_least" };
                let least = format!("{name}({tree}, {rows}, {from}, {to})");
                let least = self.text.define(running.c(), &least);
                let value = reverse(&least, reversed, wide);
                let value = if repr == Repr::Float { format!("ORDER_OF_BITS({value})") } else { value };
                Ok(self.text.put(at, "at", &value, wide, null.as_deref()))
            }
            _ => other(),
        }
    }

    /// Writes a variance, or its root, of the floats of a frame.
    fn spread(&mut self, at: usize, aggregate: &Aggregate, of: Contributing, from: &str, to: &str) -> RowColumn {
        use AggregateFunction as F;
        let (rows, tree) = self.tree(RunningKind::Moments, of, false);
        let found = self.text.define("moments", &format!("frame_moments({tree}, {rows}, {from}, {to})"));
        let least = u8::from(matches!(aggregate.function, F::VarianceSample | F::DeviationSample));
        let variance = format!("{found}.squares / ({found}.count - {least})");
        let root = matches!(aggregate.function, F::DeviationSample | F::DeviationPopulation);
        let value = if root { format!("sqrt({variance})") } else { variance };
        let null = format!("{found}.count <= {least}");
        self.text.put(at, "at", &float_bits(&aggregate.kind, &value), false, Some(&null))
    }

    /// Tells whether a slot may be null.
    pub(crate) fn has_nulls(&self, slot: SlotId) -> Result<bool> {
        match self.input.columns[self.input.plan.position(slot)] {
            RowColumn::Numbers { nullable } | RowColumn::Wide { nullable } | RowColumn::Slice { nullable } => {
                Ok(nullable)
            }
            _ if !self.input.body.slots[slot].nullable => Ok(false),
            _ => Err(Error::unsupported("nulls of plain text in frames are not told apart on the device yet")),
        }
    }

    /// Returns the values of a collected slot, and its null flags.
    pub(crate) fn column(&mut self, slot: SlotId) -> Result<(String, Option<String>)> {
        let at = self.input.plan.position(slot);
        Frames::column(&mut self.text, self.input.columns[at], at)
    }
}

/// Returns the bits of a float, rounded to its type.
fn float_bits(kind: &Type, value: &str) -> String {
    if *kind == Type::Float32 { format!("AS_I64((f64)(f32)({value}))") } else { format!("AS_I64({value})") }
}
