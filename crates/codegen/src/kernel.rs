//! The kernel of a physical pipeline: a loop over rows, its steps in order, groups at its end.

use tandem_column::{Error, Result};
use tandem_pipeline::SlotId;
use tandem_plan::{Action, Body, PhysicalStep};

use crate::{
    AccumulatorWords, Binding, ColumnLayout, KernelLanguage, KernelSink, NO_CENTER, ROWS_COUNT, Traits, ValueGroups,
    expression::Term,
    groups::{GroupLookup, GroupPlace},
    rows::{RowColumn, RowOrder},
    text::{Text, either},
};

/// A generated kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedKernel {
    /// The whole program, prelude first.
    pub text: String,
    /// The kernel's name.
    pub name: &'static str,
    /// Where the kernel begins in the text: what is before depends on the target alone.
    pub body: usize,
    /// What each argument is bound to.
    pub bindings: Vec<Binding>,
    /// What comes out.
    pub output: KernelOutput,
}

/// What a kernel gives.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelOutput {
    /// Tables of groups.
    Groups {
        /// How many groups a table has; `None` for one hash table of any power of two.
        groups: Option<usize>,
        /// What a group holds: the count of its rows first, then these.
        accumulators: Vec<AccumulatorWords>,
    },
    /// Rows, by two launches: one counts them, one writes them.
    Rows {
        /// Their columns.
        columns: Vec<RowColumn>,
        /// The ordinals of each row, for its order: which of the keys each is of.
        ordinals: Vec<usize>,
    },
}

impl KernelOutput {
    /// Returns how many 64-bit numbers a group has.
    pub fn group_width(&self) -> usize {
        let places = self.accumulators().iter().map(AccumulatorWords::last);
        places.max().unwrap_or(ROWS_COUNT) + 1
    }

    /// Returns what a group holds; nothing for rows.
    pub fn accumulators(&self) -> &[AccumulatorWords] {
        match self {
            KernelOutput::Groups { accumulators, .. } => accumulators,
            KernelOutput::Rows { .. } => &[],
        }
    }

    /// Returns what the numbers of a group are before its first row.
    pub fn empty_group(&self) -> Vec<i64> {
        let mut group = vec![0; self.group_width()];
        for accumulator in self.accumulators() {
            match *accumulator {
                AccumulatorWords::Best { best, smallest, .. } => {
                    group[best] = if smallest { i64::MAX } else { i64::MIN }
                }
                AccumulatorWords::WideBest { low, high, smallest, .. } => {
                    (group[low], group[high]) = if smallest { (-1, i64::MAX) } else { (0, i64::MIN) };
                }
                AccumulatorWords::Spread { center, .. } => group[center] = NO_CENTER,
                AccumulatorWords::Pairs { first, .. } => group[first..first + 2].fill(NO_CENTER),
                AccumulatorWords::Bits { low, high, by, .. } => {
                    [low].into_iter().chain(high).for_each(|at| group[at] = by.none());
                }
                _ => {}
            }
        }
        group
    }
}

/// What a kernel is generated from.
#[derive(Clone, Copy, Debug)]
pub struct KernelInput<'f> {
    /// What happens to each row.
    pub body: &'f Body,
    /// What rows end in.
    pub sink: &'f KernelSink,
    /// How each source column lies in memory, or why it cannot be read.
    pub columns: &'f [Result<ColumnLayout>],
    /// The same for each payload column of each lookup.
    pub payloads: &'f [Vec<Result<ColumnLayout>>],
    /// What the device can do.
    pub traits: Traits,
    /// The language of the text.
    pub target: KernelLanguage,
}

/// The generator's state.
pub(crate) struct Generator<'f> {
    pub(crate) input: KernelInput<'f>,
    pub(crate) text: Text,
    /// The slots read or computed so far.
    pub(crate) values: Vec<Option<Term>>,
    /// The entry of each lookup that the row, or pair, leads to.
    pub(crate) entries: Vec<Option<String>>,
    /// Of lookups that may have none: the flag that there is none.
    pub(crate) absent: Vec<Option<String>>,
    /// While a condition on a pair is computed: the slot from which on it means payload, and of which lookup.
    pub(crate) pair: Option<(SlotId, usize)>,
    /// The loops over entries that are open.
    pub(crate) loops: usize,
    /// Where a row's group is while rows are added.
    pub(crate) held: GroupPlace,
    /// The step whose build rows the kernel is of, in place of the source's.
    pub(crate) unmatched: Option<usize>,
    pub(crate) needs_fp64: bool,
    /// Rows are listed a strip at a time.
    lists: bool,
    pub(crate) needs_int64_atomics: bool,
}

/// A filter on the codes of a source column.
enum Encoded {
    /// A range step, and its column.
    Range(usize, usize),
    /// A column and a set.
    Set(usize, usize),
}

/// Generates the kernel of a physical pipeline.
///
/// # Errors
/// Unsupported, with the reason, for what kernels or the device cannot do.
pub fn generate(input: KernelInput<'_>) -> Result<GeneratedKernel> {
    generate_from(input, None)
}

/// Generates the kernel of a pipeline's rows, or of the build rows that come out of one of its steps.
pub(crate) fn generate_from(input: KernelInput<'_>, unmatched: Option<usize>) -> Result<GeneratedKernel> {
    let KernelInput { body: steps, sink, traits, target, .. } = input;
    let mut generator = Generator {
        input,
        text: Text::default(),
        values: vec![None; steps.slots.len()],
        entries: vec![None; steps.lookups.len()],
        absent: vec![None; steps.lookups.len()],
        pair: None,
        loops: 0,
        held: GroupPlace::Table,
        unmatched,
        needs_fp64: false,
        lists: false,
        needs_int64_atomics: false,
    };
    let rows = generator.text.argument(Binding::Rows, "const u32", "rows", "");
    let (name, statements, output) = match sink {
        KernelSink::Groups { keys, groups, aggregates } => {
            let accumulators = generator.groups(&rows, GroupLookup::Array(keys, *groups), aggregates)?;
            ("pipeline", generator.text.take_body(), KernelOutput::Groups { groups: Some(*groups), accumulators })
        }
        KernelSink::Hashed { keys, aggregates } => {
            let accumulators = generator.groups(&rows, GroupLookup::Hashed(keys), aggregates)?;
            ("pipeline", generator.text.take_body(), KernelOutput::Groups { groups: None, accumulators })
        }
        KernelSink::Values { groups, aggregate } => {
            let writes = generator.text.writes();
            let groups = match groups {
                ValueGroups::Places(keys) => GroupLookup::Array(keys, 0),
                ValueGroups::Hashed(keys) => GroupLookup::Hashed(keys),
            };
            let ordinals = generator.values(&rows, groups, aggregate)?;
            let write = generator.text.take_body();
            generator.count_values(&rows, aggregate)?;
            let count = generator.text.take_body();
            (
                "rows",
                either(&writes, &write, &count),
                KernelOutput::Rows { columns: Vec::new(), ordinals: vec![0; ordinals] },
            )
        }
        KernelSink::Rows { values, order } => {
            let writes = generator.text.writes();
            let (columns, ordinals) = generator.rows(&rows, values, RowOrder::By(order))?;
            let write = generator.text.take_body();
            generator.count(&rows)?;
            let count = generator.text.take_body();
            ("rows", either(&writes, &write, &count), KernelOutput::Rows { columns, ordinals })
        }
        KernelSink::Partition { keys, parts, values } => {
            let writes = generator.text.writes();
            let (columns, ordinals) = generator.rows(&rows, values, RowOrder::Partition(keys, *parts))?;
            let write = generator.text.take_body();
            generator.count(&rows)?;
            let count = generator.text.take_body();
            ("rows", either(&writes, &write, &count), KernelOutput::Rows { columns, ordinals })
        }
    };
    let fp64 = generator.needs_fp64 || needs_fp64(&statements);
    if fp64 && !traits.fp64 {
        return Err(Error::unsupported("the device has no double precision"));
    }
    let kernel = generator.text.kernel(name, &statements);
    let uses = Uses { chunked: traits.chunked, fp64, int64_atomics: generator.needs_int64_atomics };
    let mut text = prelude(target, uses, &kernel);
    if generator.lists {
        text.push_str(&positions());
    }
    let body = text.len();
    text.push_str(&kernel);
    Ok(GeneratedKernel { text, name, body, bindings: generator.text.bindings(), output })
}

/// Writes the table by which rows are listed, eight at once: a byte for the place of each bit that is set.
fn positions() -> String {
    let places = |bits: u32| {
        let set = (0..8u64).filter(|bit| bits >> bit & 1 == 1).enumerate();
        set.fold(0u64, |word, (at, bit)| word | bit << (8 * at))
    };
    let words: Vec<String> = (0..256).map(|bits| format!("{:#x}UL", places(bits))).collect();
    format!("__constant u64 positions[256] = {{{}}};\n\n", words.join(", "))
}

/// What a text uses of a device: devices that differ in other things share its program.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    pub(crate) chunked: bool,
    pub(crate) fp64: bool,
    pub(crate) int64_atomics: bool,
}

/// Tells whether statements compute with double precision.
pub(crate) fn needs_fp64(statements: &str) -> bool {
    ["f64", "moments"].iter().any(|word| statements.contains(word))
}

/// Words that the functions of larger parts of the prelude have in their names, or their types.
const PARTS: [(&str, &[&str]); 4] = [
    ("WIDE", &["wide", "WIDE", "limb"]),
    ("TEXT", &["text"]),
    ("DATES", &["_of", "add_months"]),
    ("PARTITIONS", &["hash_"]),
];

/// Writes what stands before a kernel.
pub(crate) fn prelude(target: KernelLanguage, uses: Uses, kernel: &str) -> String {
    let mut text = String::new();
    let flags = [("CHUNKED", uses.chunked), ("FP64", uses.fp64), ("ATOM64", uses.int64_atomics)];
    let parts = PARTS.map(|(part, words)| (part, words.iter().any(|word| kernel.contains(word))));
    for (flag, _) in flags.iter().chain(&parts).filter(|(_, wanted)| *wanted) {
        text.push_str(&format!("#define {flag}\n"));
    }
    text.push_str(match target {
        KernelLanguage::OpenCl => concat!(include_str!("prelude/built_in.cl"), include_str!("prelude/opencl.cl")),
        KernelLanguage::Cuda => include_str!("prelude/cuda.cuh"),
    });
    text.push_str(include_str!("prelude/common.h"));
    text.push('\n');
    text
}

impl<'f> Generator<'f> {
    /// Opens the loop over rows and writes what drops rows and defines slots; [`Generator::close_row`] closes it.
    pub(crate) fn open_row(&mut self, rows: &str) -> Result<()> {
        let body = self.input.body;
        if let Some(step) = self.unmatched {
            self.open_entry(rows, step)?;
            return self.steps(&body.steps[step + 1..]);
        }
        let encoded = self.encoded();
        if self.input.traits.chunked && !encoded.is_empty() {
            self.list_rows(rows, encoded)?;
        } else {
            // A GPU reads a later column only for the rows that are left.
            self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
            for test in self.tests()? {
                self.text.line(format!("if (!{test}) continue;"));
            }
        }
        self.steps(&body.steps)
    }

    /// Returns the filters on the codes of source columns.
    fn encoded(&self) -> Vec<Encoded> {
        let encoded = |(index, step): (usize, &PhysicalStep)| match &step.action {
            Action::Between { column, .. } => Some(Encoded::Range(index, *column)),
            Action::Member { column, set } => Some(Encoded::Set(*column, *set)),
            _ => None,
        };
        self.input.body.steps.iter().enumerate().filter_map(encoded).collect()
    }

    /// Returns the tests of those filters.
    pub(crate) fn tests(&mut self) -> Result<Vec<String>> {
        self.encoded().iter().map(|filter| self.test(filter)).collect()
    }

    /// Lists the rows of a strip that are left, without a branch that a CPU would guess wrong. Ranges make a mask, each in
    /// a loop of its own over values of one width, which becomes vector code; sets go over the list of rows.
    fn list_rows(&mut self, rows: &str, encoded: Vec<Encoded>) -> Result<()> {
        let (ranges, sets): (Vec<Encoded>, Vec<Encoded>) =
            encoded.into_iter().partition(|filter| matches!(filter, Encoded::Range(..)));
        self.lists = true;
        self.text.open(&format!("FOR_STRIPS(strip, {rows}) {{"));
        self.text.line("STRIP_OF_ROWS(strip);");
        for (at, filter) in ranges.iter().enumerate() {
            let test = self.test(filter)?;
            self.text.line(format!("MASK_ROWS(row, {} {test});", if at == 0 { "=" } else { "&=" }));
        }
        let mut sets = sets.iter();
        match (sets.next(), ranges.is_empty()) {
            (None, _) => self.text.line("LIST_FEW_MASKED_ROWS();"),
            (Some(set), false) => {
                let test = self.test(set)?;
                self.text.line(format!("LIST_MASKED_ROWS_THAT(row, {test});"));
            }
            (Some(set @ Encoded::Set(column, _)), true) if self.has_bytes(*column)? => {
                let test = self.test(set)?;
                self.text.line(format!("LIST_ROWS(row, {test});"));
            }
            // Bits of many codes are looked up at once.
            (Some(set), true) => {
                let test = self.test(set)?;
                self.text.line(format!("MASK_ROWS(row, = {test});"));
                self.text.line("LIST_MASKED_ROWS();");
            }
        }
        for set in sets {
            let test = self.test(set)?;
            self.text.line(format!("KEEP_ROWS(row, {test});"));
        }
        let writes = !matches!(self.input.sink, KernelSink::Groups { .. } | KernelSink::Hashed { .. });
        self.text.open(if writes { "SHORT FOR_LISTED(at) {" } else { "FOR_LISTED(at) {" });
        self.text.line("const u32 row = listed[at];");
        self.loops += 1;
        Ok(())
    }

    /// Returns the test that a source column passes a filter.
    fn test(&mut self, filter: &Encoded) -> Result<String> {
        match *filter {
            Encoded::Range(step, column) => self.within(step, column),
            Encoded::Set(column, set) => {
                let (code, name) = (self.code(column)?, format!("set{set}"));
                let binding = Binding::SetShift { set, column };
                let shift = self.text.argument(binding, "const u32", &format!("shift{set}"), "");
                let member = if self.has_bytes(column)? {
                    let bytes = self.text.argument(Binding::SetBytes(set), "GLOBAL const u8 *", &name, "");
                    format!("{bytes}[(u32){code} + {shift}]")
                } else {
                    let words = self.text.argument(Binding::Set(set), "GLOBAL const u32 *", &name, "");
                    format!("IN_SET({words}, (u32){code} + {shift})")
                };
                // The code of a null may be beyond the set.
                Ok(match self.valid(column)? {
                    Some(valid) => format!("({valid} && {member})"),
                    None => member,
                })
            }
        }
    }

    /// Tells whether sets of a column's values have a byte for each: on CPUs, where those are in a near cache.
    fn has_bytes(&self, column: usize) -> Result<bool> {
        Ok(self.input.traits.chunked && matches!(self.code_type(column)?, "u8" | "u16"))
    }

    /// Writes the steps that are not about one source column's codes.
    fn steps(&mut self, steps: &'f [PhysicalStep]) -> Result<()> {
        for step in steps {
            match &step.action {
                Action::Between { .. } | Action::Member { .. } => {}
                Action::Filter(expr) => {
                    let term = self.expression(expr)?;
                    let kept = match term.null {
                        Some(null) => format!("{} & !{null}", term.value),
                        None => term.value,
                    };
                    self.text.line(format!("if (!({kept})) continue;"));
                }
                Action::Probe(probe) => self.probe(probe)?,
                Action::Let { first, exprs } => {
                    for (i, expr) in exprs.iter().enumerate() {
                        let term = self.expression(expr)?;
                        self.values[first + i] = Some(term);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the test that a source column is within a range step's bounds.
    fn within(&mut self, step: usize, column: usize) -> Result<String> {
        let code = self.code(column)?;
        let unsigned = self.code_type(column)?;
        // As wide as the codes: wider ones would have a CPU compare fewer at once.
        let kind = format!("const {unsigned}");
        let low = self.text.argument(Binding::Low(step), &kind, &format!("low{step}"), "");
        let span = self.text.argument(Binding::Span(step), &kind, &format!("span{step}"), "");
        let test = format!("(({unsigned})({code} - {low}) <= {span})");
        Ok(match self.valid(column)? {
            Some(valid) => format!("({test} & {valid})"),
            None => test,
        })
    }
}
