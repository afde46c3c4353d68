//! Values of groups, to be sorted: what medians and quantiles are picked from, and what is too wide for one atomic operation.
//!
//! Each value that contributes becomes a row of ordinals: the place of its group, then those of the value. Sorted by them, a group's values
//! are neighbours, in their order. The kernel counts rows first and writes them then, as that of any rows does; groups of a hash table take their
//! places when rows are written.

use tandem_column::{Repr, Result};
use tandem_plan::sink::PlannedAggregate;

use crate::{
    Binding,
    contribution::arguments,
    expression::unsupported,
    groups::{GroupLookup, fits_words},
    kernel::Generator,
};

impl Generator<'_> {
    /// Writes what writes the values, each work-item from its own place on; returns how many ordinals each has.
    pub(crate) fn values(&mut self, rows: &str, groups: GroupLookup<'_>, planned: &PlannedAggregate) -> Result<usize> {
        let counts = self.counts();
        self.text.line(format!("u32 place = {counts};"));
        self.open_row(rows)?;
        self.drop_others(planned)?;
        let group = match groups {
            GroupLookup::Array(keys, _) => self.array_place(keys)?.unwrap_or_else(|| "0".into()),
            GroupLookup::Hashed(keys) => {
                self.needs_int64_atomics = self.input.traits.int64_atomics;
                if !self.needs_int64_atomics {
                    fits_words(keys)?;
                }
                self.hashed_place(keys)?
            }
        };
        let mut ordinals = vec![group];
        for slot in arguments(planned) {
            let term = self.slot(slot)?;
            let signed = |value: String| format!("((u64)({value}) ^ 0x8000000000000000UL)");
            match term.kind.repr() {
                Repr::Float => ordinals.push(signed(format!("FLOAT_ORDER({})", term.value))),
                Repr::Wide => {
                    let wide = term.integer()?.wide();
                    let wide = self.text.define("wide", &wide);
                    ordinals.extend([signed(format!("{wide}.high")), format!("{wide}.low")]);
                }
                Repr::Int => ordinals.push(signed(format!("(i64){}", term.value))),
                _ => return unsupported(format!("values of the type {} in order", term.kind)),
            }
        }
        for (at, ordinal) in ordinals.iter().enumerate() {
            let out = self.text.output(Binding::Ordinal(at), "u64", &format!("s{at}"));
            self.text.line(format!("{out}[place] = {ordinal};"));
        }
        self.text.line("place++;");
        self.close_row();
        Ok(ordinals.len())
    }

    /// Writes what counts the values.
    pub(crate) fn count_values(&mut self, rows: &str, planned: &PlannedAggregate) -> Result<()> {
        self.start_over();
        let counts = self.counts();
        self.text.line("u64 kept = 0;");
        self.open_row(rows)?;
        self.drop_others(planned)?;
        self.text.line("kept++;");
        self.close_row();
        self.text.line(format!("{counts} = SATURATED(kept);"));
        Ok(())
    }

    /// Drops rows that do not contribute.
    fn drop_others(&mut self, planned: &PlannedAggregate) -> Result<()> {
        let conditions = self.conditions(arguments(planned), planned.aggregate.filter)?;
        if !conditions.is_empty() {
            self.text.line(format!("if (!({})) continue;", conditions.join(" & ")));
        }
        Ok(())
    }
}
