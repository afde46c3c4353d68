//! Values where they lie: codes of source columns, and payload of builds at the entry that a row leads to.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{
    SlotId,
    fused::{Origin, Way},
    range::Range,
};

use crate::{
    Binding, Form, Layout,
    expression::{Integer, Term, Width},
    kernel::Generator,
};

impl Generator<'_> {
    fn layout(&self, column: usize) -> Result<Layout> {
        self.input.columns[column].clone()
    }

    pub(crate) fn code_type(&self, column: usize) -> Result<&'static str> {
        unsigned(self.layout(column)?.form)
    }

    /// Returns the code of a source column at the row.
    pub(crate) fn code(&mut self, column: usize) -> Result<String> {
        let name = self.column_argument(column)?;
        if !self.input.traits.traced {
            return Ok(format!("{name}[row]"));
        }
        let touched = Binding::Touched(column);
        let touched = self.text.argument(touched, "GLOBAL u8 *", &format!("touched{column}"), "sectors read");
        Ok(format!("READ({name}, row, {touched})"))
    }

    fn column_argument(&mut self, column: usize) -> Result<String> {
        let kind = format!("GLOBAL const {} *", unsigned(self.layout(column)?.form)?);
        let remark = &self.input.fused.slots[column].name;
        Ok(self.text.argument(Binding::Column(column), &kind, &format!("c{column}"), &remark.replace('\n', " ")))
    }

    /// Returns the flag that a source column is valid at the row, if it may not be.
    pub(crate) fn valid(&mut self, column: usize) -> Result<Option<String>> {
        if !self.layout(column)?.nullable {
            return Ok(None);
        }
        let words = self.text.argument(Binding::Validity(column), "GLOBAL const u64 *", &format!("v{column}"), "");
        Ok(Some(format!("VALID({words}, row)")))
    }

    /// Returns the type of a slot.
    pub(crate) fn kind_of(&self, slot: SlotId) -> Type {
        match self.pair {
            Some((first, lookup)) if slot >= first => {
                self.input.fused.lookups[lookup].payload[slot - first].kind.clone()
            }
            _ => self.input.fused.slots[slot].kind.clone(),
        }
    }

    /// Returns the integers that a slot can hold, by statistics or else by its type.
    pub(crate) fn range_of(&self, slot: SlotId) -> Option<Range> {
        let row = self.pair.is_none_or(|(first, _)| slot < first);
        let known = self.input.fused.ranges.get(slot).copied().flatten().filter(|_| row);
        let all = Range::of_type(&self.kind_of(slot))?;
        Some(known.map_or(all, |(low, high)| Range::new(low.into(), high.into()).clamp(all)))
    }

    /// Reads a slot: a code, for slots with a dictionary.
    pub(crate) fn read(&mut self, slot: SlotId) -> Result<Term> {
        let (kind, range) = (self.kind_of(slot), self.range_of(slot));
        if let Some((first, lookup)) = self.pair
            && slot >= first
        {
            return self.payload(lookup, slot - first, kind, range, "");
        }
        let fused = self.input.fused;
        match fused.origins[slot] {
            Origin::Computed => Err(Error::internal("a slot is read before its step")),
            Origin::Column(column) => {
                let (code, form) = (self.code(column)?, self.layout(column)?.form);
                let base = (Binding::Base(column), format!("b{column}"));
                let null = self.valid(column)?.map(|valid| format!("!{valid}"));
                let value = self.decode(&code, form, base, range);
                self.hold(value, null, kind, range)
            }
            Origin::Payload { lookup, payload } => {
                let name = fused.slots[slot].name.replace('\n', " ");
                self.payload(lookup, payload, kind, range, &name)
            }
        }
    }

    /// Returns what a stored value stands for, in the width of its range.
    fn decode(&mut self, stored: &str, form: Form, (binding, name): (Binding, String), range: Option<Range>) -> String {
        match form {
            Form::Float32 | Form::Float64 => format!("(f64){stored}"),
            Form::Wide => Integer::new(stored, Width::Wide.range()).to(range.map_or(Width::Wide, Width::of)),
            Form::Code(_) => {
                let base = self.text.argument(binding, "const i64", &name, "");
                match range.map(Width::of) {
                    Some(Width::Narrow) => format!("(i32)((u32){base} + (u32){stored})"),
                    _ => format!("{base} + (i64){stored}"),
                }
            }
        }
    }

    /// Names a value that was read.
    fn hold(&mut self, value: String, null: Option<String>, kind: Type, range: Option<Range>) -> Result<Term> {
        let floats = kind.repr() == Repr::Float;
        self.needs_fp64 |= floats;
        let c = match range {
            _ if floats => "f64",
            Some(range) => Width::of(range).c(),
            None => "i64",
        };
        Ok(Term { range, ..self.keep(c, &value, null, kind)? })
    }

    /// Reads a payload column at the entry that the row leads to.
    fn payload(
        &mut self,
        lookup: usize,
        payload: usize,
        kind: Type,
        range: Option<Range>,
        remark: &str,
    ) -> Result<Term> {
        let layout = self.input.payloads[lookup][payload].clone()?;
        let entry = self.entry(lookup)?;
        let absent = self.absent[lookup].clone();
        let name = format!("p{lookup}_{payload}");
        let c = format!("GLOBAL const {} *", unsigned(layout.form)?);
        let values = self.text.argument(Binding::Payload { lookup, payload }, &c, &name, remark);
        let base = (Binding::PayloadBase { lookup, payload }, format!("{name}b"));
        let mut value = self.decode(&format!("{values}[{entry}]"), layout.form, base, range);
        let mut null = layout.nullable.then(|| {
            let binding = Binding::PayloadValidity { lookup, payload };
            let words = self.text.argument(binding, "GLOBAL const u64 *", &format!("{name}v"), "");
            format!("!VALID({words}, {entry})")
        });
        if let Some(absent) = absent {
            let zero = Integer::fixed(0).to(range.map_or(Width::Long, Width::of));
            value = format!("{absent} ? {zero} : {value}");
            null = Some(match null {
                Some(null) => format!("{absent} || {null}"),
                None => absent,
            });
        }
        self.hold(value, null, kind, range)
    }

    /// Returns the entry that a row leads to.
    pub(crate) fn entry(&mut self, lookup: usize) -> Result<String> {
        if let Some(entry) = &self.entries[lookup] {
            return Ok(entry.clone());
        }
        let Way::Column { column, .. } = self.input.fused.lookups[lookup].way else {
            return Err(Error::internal("a build's payload is read before its probe"));
        };
        let code = self.code(column)?;
        let shift = self.text.argument(Binding::LookupShift(lookup), "const i64", &format!("e{lookup}"), "");
        let entry = self.text.define("u32", &format!("(u32)((i64){code} + {shift})"));
        self.entries[lookup] = Some(entry.clone());
        Ok(entry)
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
        Form::Wide => "wide",
    })
}
