//! Functions of text: looked up by the code of a word, or computed on its bytes where there is no dictionary.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{Expr, Function, Slot, Value, evaluate, scalar::like::ANY_TEXT};

use super::term::{Term, c_type, unsupported};
use crate::{
    Binding,
    kernel::Generator,
    mapping::{Mapping, is_closed},
};

impl Generator<'_> {
    /// Computes an expression that is the same for all rows, or for all rows with one word, without its operations;
    /// `None` for others.
    pub(super) fn looked_up(&mut self, expr: &Expr) -> Result<Option<Term>> {
        if matches!(expr, Expr::Slot(_) | Expr::Literal(..)) {
            return Ok(None);
        }
        let kind = expr.kind_with(&|slot| self.kind_of(slot));
        let slots: Vec<usize> = expr.slots().into_iter().collect();
        match slots.as_slice() {
            // An error is raised only if there is a row.
            [] if is_closed(expr) => match evaluate(expr, &[], &[], &[]) {
                Ok(value) => self.literal(&value, &kind).map(Some),
                Err(_) => Ok(None),
            },
            [slot] if self.kind_of(*slot).repr() == Repr::Bytes && Mapping::holds(expr, &kind) => {
                let word = self.slot(*slot)?;
                self.by_word(expr, &word, kind)
            }
            _ => Ok(None),
        }
    }

    /// Looks an expression of a word up by its code.
    fn by_word(&mut self, expr: &Expr, word: &Term, kind: Type) -> Result<Option<Term>> {
        let Some(words) = word.words else { return Ok(None) };
        let mapping = Mapping { words, expr: expr.map_slots(&|_| 0), kind: word.kind.clone() };
        let slot = Slot { name: String::new(), kind: word.kind.clone(), nullable: word.null.is_some() };
        let nullable = mapping.expr.nullable(&[slot]);
        // Null is before the words.
        let place = match &word.null {
            Some(null) => format!("{null} ? 0 : (u32){} + 1", word.value),
            None => format!("(u32){} + 1", word.value),
        };
        let place = self.text.define("u32", &place);
        let name = format!("m{}", self.text.arguments());
        let binding = Binding::MappedNulls(mapping.clone());
        let c = if kind == Type::Boolean { "GLOBAL const u8 *" } else { "GLOBAL const i64 *" };
        let numbers = self.text.argument(Binding::Mapped(mapping), c, &name, "a number for each word");
        let null = nullable.then(|| {
            let nulls = self.text.argument(binding, "GLOBAL const u8 *", &format!("{numbers}n"), "");
            format!("{nulls}[{place}]")
        });
        let term = Term::new(String::new(), None, kind);
        let c = c_type(&term.kind, term.range)?;
        let value = match c {
            "f64" => {
                self.needs_fp64 = true;
                format!("AS_F64({numbers}[{place}])")
            }
            c => format!("({c}){numbers}[{place}]"),
        };
        self.keep(c, &value, null, term.kind).map(Some)
    }

    pub(super) fn text_literal(&mut self, bytes: &[u8], kind: &Type) -> Term {
        let name = format!("l{}", self.text.arguments());
        let text = self.text.argument(Binding::Text(bytes.to_vec()), "GLOBAL const u8 *", &name, "");
        let length = self.constant(bytes.len() as i64);
        Term::new(self.text.define("text", &format!("text_from({text}, (u64){length})")), None, kind.clone())
    }

    /// Computes the text itself.
    fn plain(&mut self, expr: &Expr) -> Result<Term> {
        let term = self.expression(expr)?;
        match term.is_text() {
            true => Ok(term),
            false => unsupported("mixing codes and texts"),
        }
    }

    /// Tells whether a text is like a pattern.
    pub(super) fn like(&mut self, input: &Expr, codes: Vec<u16>) -> Result<Term> {
        let text = self.plain(input)?;
        let length = self.constant(codes.len() as i64);
        let name = format!("l{}", self.text.arguments());
        let pattern = self.text.argument(Binding::Pattern(codes), "GLOBAL const u16 *", &name, "");
        let value = format!("text_like({}, {pattern}, (u32){length})", text.value);
        self.keep("int", &value, text.null, Type::Boolean)
    }

    /// Tells whether a text starts or ends with another, or contains it.
    pub(super) fn contains(&mut self, function: Function, input: &Expr, part: &Expr) -> Result<Term> {
        let Expr::Literal(Value::String(part), _) = part else {
            return unsupported(format!("the function {function:?} of two columns"));
        };
        let mut codes: Vec<u16> = part.bytes().map(u16::from).collect();
        if function != Function::StartsWith {
            codes.insert(0, ANY_TEXT);
        }
        if function != Function::EndsWith {
            codes.push(ANY_TEXT);
        }
        self.like(input, codes)
    }

    /// Counts the characters or bytes of a text.
    pub(super) fn length(&mut self, function: Function, input: &Expr) -> Result<Term> {
        let text = self.plain(input)?;
        let value = match function {
            Function::CharLength => format!("(i32)text_characters({})", text.value),
            _ => format!("(i32){}.length", text.value),
        };
        self.keep("i32", &value, text.null, Type::Int32)
    }
}
