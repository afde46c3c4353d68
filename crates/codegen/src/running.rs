//! What is made of all rows in order before window functions are computed: running counts and sums, and segment trees.

use tandem_column::{Repr, Result};
use tandem_pipeline::SlotId;

use crate::{Binding, RowColumn, WindowBinding, frame::Frames, window::Windows};

/// Something that is made of the contributions of all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// What it is.
    pub kind: RunningKind,
    /// The collected slot whose rows that are not null contribute; none: all.
    argument: Option<SlotId>,
    /// Only rows contribute of which this is true.
    filter: Option<SlotId>,
    /// What is kept is the contrary of each value, so that the least is the largest.
    reversed: bool,
}

/// The kinds of what is running. Of counts and sums there is one number more than there are rows; a tree has two for each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningKind {
    /// How many rows before each contribute, 32 bits.
    Counts,
    /// The sum of what those before each contribute, 64 bits.
    Sums,
    /// The same, 128 bits.
    WideSums,
    /// A tree of the smallest, 64 bits.
    Least,
    /// The same, 128 bits.
    WideLeast,
    /// A tree of sums of floats.
    FloatSums,
    /// A tree of their counts, means and squared differences from those, three floats.
    Moments,
}

impl RunningKind {
    /// Returns the type of its numbers in C.
    pub(crate) fn c(self) -> &'static str {
        match self {
            RunningKind::Counts => "u32",
            RunningKind::Sums | RunningKind::Least => "i64",
            RunningKind::WideSums | RunningKind::WideLeast => "wide",
            RunningKind::FloatSums => "f64",
            RunningKind::Moments => "moments",
        }
    }

    /// Returns the bytes of a number.
    pub fn width(self) -> usize {
        match self {
            RunningKind::Counts => 4,
            RunningKind::Sums | RunningKind::Least | RunningKind::FloatSums => 8,
            RunningKind::WideSums | RunningKind::WideLeast => 16,
            RunningKind::Moments => 24,
        }
    }

    /// Tells whether it is a tree.
    pub fn is_tree(self) -> bool {
        !matches!(self, RunningKind::Counts | RunningKind::Sums | RunningKind::WideSums)
    }

    /// Returns what a row that does not contribute leaves as it is.
    fn empty(self) -> &'static str {
        match self {
            RunningKind::Counts | RunningKind::Sums | RunningKind::FloatSums => "0",
            RunningKind::WideSums => "wide_of(0)",
            RunningKind::Moments => "moments_from(0, 0, 0)",
            RunningKind::Least => "0x7fffffffffffffffL",
            RunningKind::WideLeast => "wide_from(0x7fffffffffffffffL, 0xffffffffffffffffUL)",
        }
    }
}

/// The slot whose rows that are not null contribute, and the condition that rows fulfil.
pub(crate) type Contributing = (Option<SlotId>, Option<SlotId>);

impl Windows<'_> {
    /// Returns the number and the name of what is running.
    pub(crate) fn running(
        &mut self,
        kind: RunningKind,
        (argument, filter): Contributing,
        reversed: bool,
    ) -> (usize, String) {
        let running = Running { kind, argument, filter, reversed };
        let known = self.running.iter().position(|known| *known == running);
        let at = known.unwrap_or_else(|| {
            self.running.push(running);
            self.running.len() - 1
        });
        let binding = Binding::Window(WindowBinding::Running(at));
        (at, self.text.argument(binding, &format!("GLOBAL const {} *", kind.c()), &format!("r{at}"), ""))
    }

    /// Returns how many rows there are, and the name of a tree of them.
    pub(crate) fn tree(&mut self, kind: RunningKind, of: Contributing, reversed: bool) -> (String, String) {
        (Frames::all_rows(&mut self.text), self.running(kind, of, reversed).1)
    }

    /// Returns the running count of some rows, and their list.
    pub(crate) fn counted(&mut self, of: Contributing) -> (String, String) {
        let (at, counts) = self.running(RunningKind::Counts, of, false);
        let binding = Binding::Window(WindowBinding::Counted(at));
        (counts, self.text.argument(binding, "GLOBAL const u32 *", &format!("r{at}rows"), ""))
    }

    /// Writes what writes the contribution of each row to all that is running.
    pub(crate) fn contributions(&mut self) -> Result<()> {
        let rows = self.text.argument(Binding::Rows, "const u32", "rows", "");
        self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
        for (at, running) in self.running.clone().into_iter().enumerate() {
            let Running { kind, argument, filter, reversed } = running;
            let binding = Binding::Window(WindowBinding::Running(at));
            let out = self.text.output(binding, kind.c(), &format!("r{at}"));
            let mut tests = Vec::new();
            if let Some(slot) = filter {
                let (values, nulls) = self.column(slot)?;
                tests.extend(nulls.map(|nulls| format!("!{nulls}[row]")));
                tests.push(format!("{values}[row]"));
            }
            let value = match argument {
                None => "1".to_owned(),
                Some(slot) if kind == RunningKind::Counts && !self.has_nulls(slot)? => "1".to_owned(),
                Some(slot) => {
                    let (values, nulls) = self.column(slot)?;
                    tests.extend(nulls.map(|nulls| format!("!{nulls}[row]")));
                    let wide = matches!(self.input.columns[self.input.plan.position(slot)], RowColumn::Wide { .. });
                    let float = self.input.body.slots[slot].kind.repr() == Repr::Float;
                    let value = format!("{values}[row]");
                    match kind {
                        RunningKind::Counts => "1".into(),
                        RunningKind::FloatSums => format!("AS_F64({value})"),
                        RunningKind::Moments => format!("moments_from(1, AS_F64({value}), 0)"),
                        RunningKind::Least if float => reverse(&format!("ORDER_OF_BITS({value})"), reversed, false),
                        RunningKind::Sums | RunningKind::Least => reverse(&value, reversed, false),
                        RunningKind::WideSums if wide => {
                            self.check_sums(&tests, &value);
                            value
                        }
                        RunningKind::WideSums => format!("wide_of({value})"),
                        RunningKind::WideLeast => reverse(&value, reversed, true),
                    }
                }
            };
            let empty = kind.empty();
            let value = if tests.is_empty() { value } else { format!("{} ? {value} : {empty}", tests.join(" && ")) };
            if kind.is_tree() {
                self.text.line(format!("{out}[{rows} + row] = {value};"));
            } else {
                self.text.line(format!("{out}[row] = {value};"));
                self.text.line(format!("if (row + 1 == {rows}) {out}[{rows}] = {empty};"));
            }
        }
        self.text.close();
        Ok(())
    }

    /// Writes the test that no sum of so many 128-bit values leaves 128 bits.
    fn check_sums(&mut self, tests: &[String], value: &str) {
        let failed = self.text.argument(Binding::Failed, "GLOBAL i32 *", "failed", "set when sums may leave 128 bits");
        // 2⁹⁵: less than 2³¹ rows come to less than 2¹²⁶.
        let test = format!("wide_order(wide_size({value}), wide_from(0x80000000L, 0)) > 0");
        let tests: String = tests.iter().map(|test| format!("{test} && ")).collect();
        self.text.line(format!("if ({tests}{test}) RAISE({failed});"));
    }
}

/// Returns the contrary of a value, if it is wanted: its order is reversed.
pub(crate) fn reverse(value: &str, reversed: bool, wide: bool) -> String {
    match (reversed, wide) {
        (false, _) => value.to_owned(),
        (true, false) => format!("~({value})"),
        (true, true) => format!("wide_not({value})"),
    }
}
