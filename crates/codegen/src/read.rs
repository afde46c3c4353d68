//! Values where they lie: codes of source columns, and payload of builds at the entry that a row leads to.

use tandem_column::{Error, Repr, Result, Type};
use tandem_pipeline::{SlotId, range::Range};
use tandem_plan::{Origin, Way};

use crate::{
    Binding, ColumnLayout, Form, TextBase,
    expression::{Integer, Term, Width},
    kernel::Generator,
};

impl Generator<'_> {
    fn layout(&self, column: usize) -> Result<ColumnLayout> {
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
        let remark = remark(&self.input.body.slots[column].name);
        Ok(self.text.argument(Binding::Column(column), &kind, &format!("c{column}"), &remark))
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
                self.input.body.lookups[lookup].payload[slot - first].kind.clone()
            }
            _ => self.input.body.slots[slot].kind.clone(),
        }
    }

    /// Returns the integers that a slot can hold, by statistics or else by its type.
    pub(crate) fn range_of(&self, slot: SlotId) -> Option<Range> {
        let row = self.pair.is_none_or(|(first, _)| slot < first);
        let known = self.input.body.range(slot).filter(|_| row);
        let all = Range::of_type(&self.kind_of(slot))?;
        Some(known.map_or(all, |(low, high)| Range::new(low.into(), high.into()).clamp(all)))
    }

    /// Returns how many rows are before the part's.
    pub(crate) fn first_row(&mut self) -> String {
        self.text.argument(Binding::FirstRow, "const u32", "first", "rows of earlier parts")
    }

    /// Reads a slot: a code, for slots with a dictionary.
    pub(crate) fn read(&mut self, slot: SlotId) -> Result<Term> {
        let (kind, range) = (self.kind_of(slot), self.range_of(slot));
        if let Some((first, lookup)) = self.pair
            && slot >= first
        {
            return self.payload(lookup, slot - first, kind, range, "");
        }
        if let Some(nothing) = self.nothing(slot)? {
            return Ok(nothing);
        }
        let body = self.input.body;
        match body.origins[slot] {
            Origin::Computed => Err(Error::internal("a slot is read before its step")),
            origin @ Origin::Column(column) => {
                let (values, form) = (self.column_argument(column)?, self.layout(column)?.form);
                let null = self.valid(column)?.map(|valid| format!("!{valid}"));
                // Of text, what is read is not counted.
                let stored = if form == Form::Bytes { String::new() } else { self.code(column)? };
                let (c, value) = self.decode(origin, &values, "row", stored, form, range);
                self.hold(c, value, null, kind, range, origin)
            }
            Origin::Payload { lookup, payload } => {
                let name = remark(&body.slots[slot].name);
                self.payload(lookup, payload, kind, range, &name)
            }
        }
    }

    /// Returns the value of what is stored at a place, and its C type: that of its range.
    fn decode(
        &mut self,
        origin: Origin,
        values: &str,
        at: &str,
        stored: String,
        form: Form,
        range: Option<Range>,
    ) -> (&'static str, String) {
        match (form, range.map(Width::of)) {
            (Form::Float32 | Form::Float64, _) => ("f64", format!("(f64){stored}")),
            (Form::Wide, width) => {
                let width = width.unwrap_or(Width::Wide);
                (width.c(), Integer::new(stored, Width::Wide.range()).to(width))
            }
            (Form::Bytes, _) => {
                let name = format!("{values}t");
                let bytes = self.text.argument(Binding::Bytes(origin), "GLOBAL const u8 *", &name, "");
                ("text", format!("text_at({values}, {bytes}, {at})"))
            }
            (Form::Code(_), width) => {
                let (binding, name) = match origin {
                    Origin::Payload { lookup, payload } => {
                        (Binding::PayloadBase { lookup, payload }, format!("{values}b"))
                    }
                    Origin::Column(column) => (Binding::Base(column), format!("b{column}")),
                    Origin::Computed => return ("i64", stored),
                };
                let base = self.text.argument(binding, "const i64", &name, "");
                match width {
                    Some(Width::Narrow) => ("i32", format!("(i32)((u32){base} + (u32){stored})")),
                    _ => ("i64", format!("{base} + (i64){stored}")),
                }
            }
        }
    }

    /// Names a value that was read.
    fn hold(
        &mut self,
        c: &str,
        value: String,
        null: Option<String>,
        kind: Type,
        range: Option<Range>,
        origin: Origin,
    ) -> Result<Term> {
        self.needs_fp64 |= c == "f64";
        let text = c == "text";
        let words = Some(origin).filter(|_| kind.repr() == Repr::Bytes && !text);
        let base = text.then_some(TextBase::Stored(origin));
        Ok(Term { range, words, base, ..self.keep(c, &value, null, kind)? })
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
        let origin = Origin::Payload { lookup, payload };
        let stored = format!("{values}[{entry}]");
        let (c, mut value) = self.decode(origin, &values, &entry, stored, layout.form, range);
        let mut null = layout.nullable.then(|| {
            let binding = Binding::PayloadValidity { lookup, payload };
            let words = self.text.argument(binding, "GLOBAL const u64 *", &format!("{name}v"), "");
            format!("!VALID({words}, {entry})")
        });
        if let Some(absent) = absent {
            let zero = match c {
                "text" => "no_text()",
                "wide" => "wide_of(0)",
                _ => "0",
            };
            value = format!("{absent} ? {zero} : {value}");
            null = Some(match null {
                Some(null) => format!("{absent} || {null}"),
                None => absent,
            });
        }
        self.hold(c, value, null, kind, range, origin)
    }

    /// Returns the entry that a row leads to.
    pub(crate) fn entry(&mut self, lookup: usize) -> Result<String> {
        if let Some(entry) = &self.entries[lookup] {
            return Ok(entry.clone());
        }
        let Way::Column { column, .. } = self.input.body.lookups[lookup].way else {
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
        Form::Bytes => "u64",
    })
}

/// The most characters of a column's name in a remark: enough to know it by.
const REMARK: usize = 64;

/// Makes a remark of a column's name. Nothing of it may mean anything to a compiler: a backslash, or the trigraph for one, would
/// make the next line a part of the remark. So all but a few characters are left out.
fn remark(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '.' | ',' | '-');
    name.chars().take(REMARK).map(|c| if plain(c) { c } else { '_' }).collect()
}
