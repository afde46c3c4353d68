//! Values where they lie: codes of source columns, and payload of builds at the entry that a row leads to.

use tandem_column::{Error, Repr, Result};
use tandem_pipeline::{
    SlotId,
    fused::{Origin, Way},
};

use crate::{Binding, Form, Layout, expression::Term, kernel::Generator};

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

    /// Reads a slot as a number: a code, for slots with a dictionary.
    pub(crate) fn read(&mut self, slot: SlotId) -> Result<Term> {
        if let Some((first, lookup)) = self.pair
            && slot >= first
        {
            return self.payload(lookup, slot - first, "");
        }
        let fused = self.input.fused;
        let kind = fused.slots[slot].kind.clone();
        let floats = kind.repr() == Repr::Float;
        self.needs_fp64 |= floats;
        let (value, null) = match fused.origins[slot] {
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
                let name = fused.slots[slot].name.replace('\n', " ");
                return self.payload(lookup, payload, &name);
            }
        };
        self.keep(if floats { "f64" } else { "i64" }, &value, null, kind)
    }

    /// Reads a payload column at the entry that the row leads to.
    fn payload(&mut self, lookup: usize, payload: usize, remark: &str) -> Result<Term> {
        let kind = self.input.fused.lookups[lookup].payload[payload].kind.clone();
        let floats = kind.repr() == Repr::Float;
        self.needs_fp64 |= floats;
        let layout = self.input.payloads[lookup][payload].clone()?;
        let entry = self.entry(lookup)?;
        let absent = self.absent[lookup].clone();
        let name = format!("p{lookup}_{payload}");
        let c = format!("GLOBAL const {} *", unsigned(layout.form)?);
        let values = self.text.argument(Binding::Payload { lookup, payload }, &c, &name, remark);
        let mut value = match floats {
            true => format!("(f64){values}[{entry}]"),
            false => {
                let base = Binding::PayloadBase { lookup, payload };
                let base = self.text.argument(base, "const i64", &format!("{name}b"), "");
                format!("{base} + (i64){values}[{entry}]")
            }
        };
        let mut null = layout.nullable.then(|| {
            let binding = Binding::PayloadValidity { lookup, payload };
            let words = self.text.argument(binding, "GLOBAL const u64 *", &format!("{name}v"), "");
            format!("!VALID({words}, {entry})")
        });
        if let Some(absent) = absent {
            value = format!("{absent} ? 0 : {value}");
            null = Some(match null {
                Some(null) => format!("{absent} || {null}"),
                None => absent,
            });
        }
        self.keep(if floats { "f64" } else { "i64" }, &value, null, kind)
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
    })
}
