//! Rows that are left of a part: counted first, then written, each work-item from its own place on.
//!
//! A value that kernels do not read (a plain string) is not written: the number of its row or entry is, and whoever wants
//! the value fetches it later. With an order come *ordinals*: 64-bit numbers that compare as the keys do.

use tandem_column::{Repr, Result};
use tandem_pipeline::Expr;
use tandem_plan::{Action, Origin, PhysicalStep};

use crate::{
    Binding, ColumnLayout, Form, OrderKey, TextBase,
    expression::{Term, unsupported},
    kernel::Generator,
};

/// One column of the rows that a kernel gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowColumn {
    /// 64-bit numbers: integers, codes of text, bits of floats.
    Numbers {
        /// Null flags come with them.
        nullable: bool,
    },
    /// 128-bit integers, lower half first.
    Wide {
        /// Null flags come with them.
        nullable: bool,
    },
    /// Where computed texts lie among the bytes that they are slices of, 64 bits.
    Slice {
        /// Null flags come with them.
        nullable: bool,
    },
    /// Numbers of source rows among all of the table, 32 bits; `u32::MAX` for none.
    Row,
    /// Entries of a lookup, 32 bits; `u32::MAX` for none.
    Entry(usize),
    /// As an earlier column.
    Same(usize),
}

/// What tells the order that rows are wanted in.
#[derive(Clone, Copy)]
pub(crate) enum RowOrder<'f> {
    /// Keys among their values; none for any order.
    By(&'f [OrderKey]),
    /// The hash of keys, for so many partitions.
    Partition(&'f [Expr], usize),
}

impl<'f> Generator<'f> {
    /// Writes what writes the rows that are left, each work-item from its own place on; returns their columns
    /// and the key of each ordinal.
    pub(crate) fn rows(
        &mut self,
        rows: &str,
        values: &'f [Expr],
        order: RowOrder<'f>,
    ) -> Result<(Vec<RowColumn>, Vec<usize>)> {
        let counts = self.counts();
        self.text.line(format!("u32 place = {counts};"));
        self.open_row(rows)?;
        let mut columns = Vec::with_capacity(values.len());
        let mut terms = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            let same = values[..at].iter().position(|earlier| earlier == value);
            let (column, term) = match (same, self.late(value)) {
                (Some(same), _) => (RowColumn::Same(same), None),
                (None, Some((column, number))) => {
                    let out = self.text.output(Binding::Values(at), "u32", &format!("o{at}"));
                    self.text.line(format!("{out}[place] = {number};"));
                    (column, None)
                }
                (None, None) => {
                    let term = self.expression(value)?;
                    let stored =
                        matches!(value, Expr::Slot(slot) if self.input.body.origins[*slot] != Origin::Computed);
                    let column = match term.kind.repr() == Repr::Bytes && !stored {
                        true => self.write_slice(at, value, &term)?,
                        false => self.write_value(at, &term)?,
                    };
                    (column, Some(term))
                }
            };
            columns.push(column);
            terms.push(term);
        }
        let mut ordinals = Vec::new();
        let order = match order {
            RowOrder::By(order) => order,
            RowOrder::Partition(keys, parts) => {
                self.partition_ordinal(keys, parts)?;
                ordinals.push(0);
                &[]
            }
        };
        for (at, key) in order.iter().enumerate() {
            let same = match columns[key.value] {
                RowColumn::Same(same) => same,
                _ => key.value,
            };
            let term = match terms[same].clone() {
                Some(term) => term,
                // Text is fetched later, but read for its order.
                None => self.expression(&values[key.value])?,
            };
            let nullable = values[key.value].nullable(&self.input.body.slots);
            for ordinal in self.ordinals(key, &term, nullable)? {
                let number = ordinals.len();
                let out = self.text.output(Binding::Ordinal(number), "u64", &format!("s{number}"));
                self.text.line(format!("{out}[place] = {ordinal};"));
                ordinals.push(at);
            }
        }
        self.text.line("place++;");
        self.close_row();
        Ok((columns, ordinals))
    }

    fn write_value(&mut self, at: usize, term: &Term) -> Result<RowColumn> {
        let (wide, bits) = match term.kind.repr() {
            Repr::Wide => (true, term.integer()?.wide()),
            Repr::Float => (false, format!("AS_I64({})", term.value)),
            _ => (false, term.value.clone()),
        };
        Ok(self.text.put(at, "place", &bits, wide, term.null.as_deref()))
    }

    /// Writes where a computed text lies.
    fn write_slice(&mut self, at: usize, value: &Expr, term: &Term) -> Result<RowColumn> {
        if !term.is_text() {
            return unsupported(format!("a computed {}", term.kind));
        }
        let wanted = TextBase::of(value, self.input.body);
        let slice = match (self.slice_of(term, wanted.as_ref())?, &term.null) {
            (None, _) => "0".into(),
            (Some(bytes), None) => format!("SLICE({bytes}, {})", term.value),
            (Some(bytes), Some(null)) => format!("{null} ? 0 : SLICE({bytes}, {})", term.value),
        };
        self.text.put(at, "place", &format!("(i64)({slice})"), false, term.null.as_deref());
        Ok(RowColumn::Slice { nullable: term.null.is_some() })
    }

    /// Returns what stands for a value that kernels do not read: its row or entry.
    fn late(&mut self, value: &Expr) -> Option<(RowColumn, String)> {
        let Expr::Slot(slot) = value else { return None };
        match self.input.body.origins[*slot] {
            Origin::Column(column) if is_late(&self.input.columns[column]) => {
                let row = match self.unmatched {
                    Some(_) => "0xffffffffu".into(),
                    None => format!("{} + row", self.first_row()),
                };
                Some((RowColumn::Row, row))
            }
            Origin::Payload { lookup, payload } if is_late(&self.input.payloads[lookup][payload]) => {
                let entry = self.entry(lookup).ok()?;
                let number = match &self.absent[lookup] {
                    Some(absent) => format!("{absent} ? 0xffffffffu : {entry}"),
                    None => entry,
                };
                Some((RowColumn::Entry(lookup), number))
            }
            _ => None,
        }
    }

    /// Returns the ordinals of a key: where it may be null, one that puts nulls in their place, and those of the value.
    /// How many there are is the same for all parts, whether they have nulls or not.
    fn ordinals(&mut self, key: &OrderKey, term: &Term, nullable: bool) -> Result<Vec<String>> {
        let signed = |value: String| format!("((u64)({value}) ^ 0x8000000000000000UL)");
        let values = match term.kind.repr() {
            Repr::Float => vec![signed(format!("FLOAT_ORDER({})", term.value))],
            Repr::Wide => {
                let wide = self.text.define("wide", &term.integer()?.wide());
                vec![signed(format!("{wide}.high")), format!("{wide}.low")]
            }
            Repr::Bytes if key.longest.is_some() == term.words.is_some() => {
                return unsupported("an order by text that has a dictionary in some parts only");
            }
            Repr::Bytes if term.words.is_none() => {
                let text = self.text.define("text", &term.value);
                let words = (0..key.longest.unwrap_or(0)).step_by(8).map(|from| format!("text_word({text}, {from})"));
                words.chain([format!("{text}.length")]).collect()
            }
            _ => vec![signed(format!("(i64){}", term.value))],
        };
        let mut all = Vec::with_capacity(values.len() + 1);
        if nullable {
            let null = term.null.as_deref().unwrap_or("0");
            all.push(if key.nulls_first { format!("!({null})") } else { format!("({null}) != 0") });
        }
        for ordinal in values {
            let ordinal = if key.descending { format!("~{ordinal}") } else { ordinal };
            // Nulls are equal to each other.
            all.push(match &term.null {
                Some(null) => format!("{null} ? 0 : {ordinal}"),
                None => ordinal,
            });
        }
        Ok(all)
    }

    /// Writes what counts the rows that are left.
    pub(crate) fn count(&mut self, rows: &str) -> Result<()> {
        self.start_over();
        let counts = self.counts();
        self.text.line("u64 kept = 0;");
        let later = |step: &PhysicalStep| matches!(step.action, Action::Filter(_) | Action::Probe(_));
        if self.unmatched.is_some() || self.input.body.steps.iter().any(later) {
            self.open_row(rows)?;
            self.text.line("kept++;");
            self.close_row();
        } else {
            // A GPU reads a later column only for the rows that are left; a CPU does not like to guess.
            let tests = self.tests()?.join(if self.input.traits.chunked { " & " } else { " && " });
            self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
            self.text.line(format!("kept += {};", if tests.is_empty() { "1" } else { &tests }));
            self.text.close();
        }
        self.text.line(format!("{counts} = SATURATED(kept);"));
        Ok(())
    }

    /// Returns the work-item's count: first of the rows it keeps, then of those that earlier ones keep.
    pub(crate) fn counts(&mut self) -> String {
        let remark = "rows kept by each work-item, then where each begins to write";
        let counts = self.text.argument(Binding::Counts, "GLOBAL u32 *", "counts", remark);
        let from = self.text.argument(Binding::CountsFrom, "const u32", "from", "where this part's counts begin");
        format!("{counts}[{from} + ITEM]")
    }
}

/// Tells whether values are not written but fetched later.
fn is_late(layout: &Result<ColumnLayout>) -> bool {
    !matches!(layout, Ok(layout) if layout.form != Form::Bytes)
}
