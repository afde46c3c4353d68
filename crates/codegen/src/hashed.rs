//! Which group of a hash table a row belongs to: the numbers that stand for its keys, and their places.

use tandem_column::{Error, Repr, Result};
use tandem_pipeline::{Expr, SlotId};

use crate::{Binding, HashKey, KeyOf, TextBase, kernel::Generator};

impl Generator<'_> {
    /// Returns a pointer to the row's group of a hash table.
    pub(crate) fn hashed_group(&mut self, keys: &[HashKey], width: usize) -> Result<String> {
        let place = self.hashed_place(keys)?;
        self.text.line(format!("GLOBAL i64 *const group = table + (u64){place} * {width};"));
        Ok("group".into())
    }

    /// Returns the place of the row's group in a hash table.
    pub(crate) fn hashed_place(&mut self, keys: &[HashKey]) -> Result<String> {
        let mut values: Vec<(KeyOf, String)> = Vec::with_capacity(keys.len());
        for key in keys {
            if !values.iter().any(|(of, _)| *of == key.of) {
                let value = self.part_of_key(key.of)?;
                values.push((key.of, value));
            }
        }
        let last = HashKey::numbers(keys) - 1;
        let mut before: Option<String> = None;
        for number in 0..=last {
            let mut parts: Vec<String> = before.iter().map(|place| format!("(u64){place}")).collect();
            for key in keys.iter().filter(|key| key.number == number) {
                let value = values.iter().find(|(of, _)| *of == key.of).map_or("0", |(_, value)| value);
                let whole = keys.iter().filter(|other| other.of == key.of).count() == 1;
                parts.push(match whole {
                    true => format!("((u64){value} << {})", key.shift),
                    false => format!("(((u64){value} >> {} & {:#x}UL) << {})", key.from, key.mask(), key.shift),
                });
            }
            let value = self.text.define("u64", &parts.join(" | "));
            let (binding, name, remark) = match number == last {
                true => (Binding::GroupNumbers, "numbers".to_string(), "whose group it is"),
                false => (Binding::EarlierNumbers(number), format!("earlier{number}"), "a part of whose keys it is"),
            };
            let numbers = self.text.argument(binding, "GLOBAL u64 *", &name, remark);
            let mask = self.group_mask();
            before = Some(self.place_or_full(&format!("group_place({numbers}, {mask}, {value})")));
        }
        Ok(before.unwrap_or_default())
    }

    fn group_mask(&mut self) -> String {
        self.text.argument(Binding::GroupMask, "const u32", "mask", "places of the hash table, less one")
    }

    /// Names a place of a hash table; a row that finds none says so and is left out.
    fn place_or_full(&mut self, place: &str) -> String {
        let mask = self.group_mask();
        let full = self.text.argument(Binding::Full, "GLOBAL i32 *", "full", "set when the hash table is too small");
        let place = self.text.define("u32", place);
        self.text.line(format!("if ({place} > {mask}) {{ RAISE({full}); continue; }}"));
        place
    }

    /// Returns what tells groups apart, of the row.
    fn part_of_key(&mut self, of: KeyOf) -> Result<String> {
        match of {
            KeyOf::Place(key) => self.key_place(&key, "u64"),
            KeyOf::Entry(lookup) => {
                let entry = self.entry(lookup)?;
                Ok(match &self.absent[lookup] {
                    Some(absent) => format!("({absent} ? 0 : (u64){entry} + 1)"),
                    None => format!("((u64){entry} + 1)"),
                })
            }
            KeyOf::Text(slot) => self.text_of_key(slot),
            KeyOf::Null(slot) => Ok(self.slot(slot)?.null.map_or("0".into(), |null| format!("({null} ? 1 : 0)"))),
            KeyOf::Low(slot) | KeyOf::High(slot) => {
                let term = self.slot(slot)?;
                let value = match (term.kind.repr(), of) {
                    (Repr::Float, _) => format!("AS_I64({})", term.value),
                    (Repr::Wide, KeyOf::Low(_)) => format!("({}).low", term.integer()?.wide()),
                    (Repr::Wide, _) => format!("({}).high", term.integer()?.wide()),
                    _ => term.value.clone(),
                };
                let value = match &term.null {
                    Some(null) => format!("{null} ? 0 : (u64){value}"),
                    None => format!("(u64){value}"),
                };
                Ok(self.text.define("u64", &value))
            }
        }
    }

    /// Returns the place of a text among all of the slot's, plus 1; 0 for null.
    fn text_of_key(&mut self, slot: SlotId) -> Result<String> {
        if !self.needs_int64_atomics {
            return Err(Error::unsupported("the device has no atomic operations on 64 bits, for groups by text"));
        }
        let term = self.slot(slot)?;
        let wanted = TextBase::of(&Expr::Slot(slot), self.input.body);
        if !term.is_text() {
            return Err(Error::unsupported("text that has a dictionary in some parts only is not on the device yet"));
        }
        let Some(bytes) = self.slice_of(&term, wanted.as_ref())? else { return Ok("0".into()) };
        let texts = Binding::Texts(slot);
        let texts = self.text.argument(texts, "GLOBAL u64 *", &format!("texts{slot}"), "texts that keys are");
        let mask = self.group_mask();
        let place = format!("text_place({texts}, {mask}, {bytes}, {})", term.value);
        let place = match &term.null {
            Some(null) => format!("{null} ? 0 : {place}"),
            None => place,
        };
        let place = self.place_or_full(&place);
        Ok(match &term.null {
            Some(null) => format!("({null} ? 0 : (u64){place} + 1)"),
            None => format!("((u64){place} + 1)"),
        })
    }
}
