//! Functions of text: looked up by the code of a word, or computed on its bytes where there is no dictionary.

use tandem_column::{Repr, Result, Type};
use tandem_pipeline::{Expr, Function, Slot, Value, evaluate, scalar::like::ANY_TEXT};

use super::term::{Term, c_type, unsupported};
use crate::{
    Binding, MOST_SLICE, TextBase,
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
            [slot] if kind.repr() == Repr::Bytes && self.kind_of(*slot).repr() == Repr::Bytes && is_closed(expr) => {
                let word = self.slot(*slot)?;
                self.text_by_word(expr, &word, kind)
            }
            _ => Ok(None),
        }
    }

    /// Looks an expression of a word up by its code.
    fn by_word(&mut self, expr: &Expr, word: &Term, kind: Type) -> Result<Option<Term>> {
        let Some(words) = word.words else { return Ok(None) };
        let mapping = Mapping::of(expr, words, &word.kind);
        let nullable = may_be_null(&mapping, word);
        let place = self.place_of_word(word);
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

    /// Looks an expression that gives text up by the code of a word.
    pub(crate) fn text_by_word(&mut self, expr: &Expr, word: &Term, kind: Type) -> Result<Option<Term>> {
        let Some(words) = word.words else { return Ok(None) };
        let mapping = Mapping::of(expr, words, &word.kind);
        let nullable = may_be_null(&mapping, word);
        let place = self.place_of_word(word);
        let name = format!("m{}", self.text.arguments());
        let texts = Binding::MappedTexts(mapping.clone());
        let texts = self.text.argument(texts, "GLOBAL const u64 *", &name, "a text for each word");
        let bytes = Binding::MappedBytes(mapping.clone());
        let bytes = self.text.argument(bytes, "GLOBAL const u8 *", &format!("{texts}t"), "");
        let null = nullable.then(|| {
            let nulls = Binding::MappedNulls(mapping.clone());
            let nulls = self.text.argument(nulls, "GLOBAL const u8 *", &format!("{texts}n"), "");
            format!("{nulls}[{place}]")
        });
        let term = self.keep("text", &format!("text_at({texts}, {bytes}, {place})"), null, kind)?;
        Ok(Some(Term { base: Some(TextBase::Mapped(mapping)), ..term }))
    }

    /// Returns the place of a word in what was computed for each: null is before all.
    fn place_of_word(&mut self, word: &Term) -> String {
        let place = match &word.null {
            Some(null) => format!("{null} ? 0 : (u32){} + 1", word.value),
            None => format!("(u32){} + 1", word.value),
        };
        self.text.define("u32", &place)
    }

    /// Takes the characters of a text from one on and before another, both counted from 0.
    pub(super) fn slice(&mut self, function: Function, arguments: &[Expr], kind: &Type) -> Result<Term> {
        let number = |at: usize| match arguments.get(at) {
            Some(Expr::Literal(Value::Integer(value), _)) => Ok(Some(*value)),
            Some(_) => unsupported(format!("the function {function:?} of two columns")),
            None => Ok(None),
        };
        let all = i128::from(i64::MAX);
        let (Some(input), Some(first)) = (arguments.first(), number(1)?) else {
            return unsupported(format!("the function {function:?} of these"));
        };
        let (text, length) = (self.plain(input)?, number(2)?);
        let base = text.base.clone();
        let mut place = |place: i128| self.constant(place.clamp(0, all) as i64);
        // Counted from the end, where the text has so many.
        let (begin, end) = match function {
            Function::Substring if length.is_some_and(|length| length < 0) => {
                return unsupported("a substring of negative length");
            }
            Function::Substring => (place(first - 1), place(length.map_or(all, |length| first - 1 + length))),
            Function::Left if first >= 0 => (place(0), place(first)),
            Function::Left => (place(0), format!("(i64)text_characters({}) - {}", text.value, place(-first))),
            Function::Right if first < 0 => (place(-first), place(all)),
            _ => (format!("(i64)text_characters({}) - {}", text.value, place(first)), place(all)),
        };
        let slice = format!("text_between({}, {begin}, {end})", text.value);
        Ok(Term { base, ..self.keep("text", &slice, text.null, kind.clone())? })
    }

    /// Returns where a text lies among the bytes that it is a slice of; `None` for one that is always null.
    ///
    /// # Errors
    /// Unsupported for text that is no slice, or one of other bytes than it should be of.
    pub(crate) fn slice_of(&mut self, term: &Term, wanted: Option<&TextBase>) -> Result<Option<String>> {
        let Some(base) = &term.base else {
            return match term.null.as_deref() {
                Some("1") => Ok(None),
                _ => unsupported(format!("a computed {}", term.kind)),
            };
        };
        if wanted != Some(base) {
            return unsupported("text that has a dictionary in some parts only");
        }
        let binding = match base {
            TextBase::Stored(origin) => Binding::Bytes(*origin),
            TextBase::Mapped(mapping) => Binding::MappedBytes(mapping.clone()),
        };
        let name = format!("b{}", self.text.arguments());
        let bytes = self.text.argument(binding, "GLOBAL const u8 *", &name, "");
        // The CPU takes what is too long for a slice.
        self.fail_if(&format!("{}.length >= {MOST_SLICE}UL", term.value), term.null.as_ref());
        Ok(Some(bytes))
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
        self.spelled(term)
    }

    /// Returns the text that a code stands for.
    pub(super) fn spelled(&mut self, term: Term) -> Result<Term> {
        if term.is_text() {
            return Ok(term);
        }
        let kind = term.kind.clone();
        let text = self.text_by_word(&Expr::Slot(0), &term, kind)?;
        text.map_or_else(|| unsupported("mixing codes and texts"), Ok)
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

/// Tells whether what is looked up for a word may be null.
fn may_be_null(mapping: &Mapping, word: &Term) -> bool {
    let slot = Slot { name: String::new(), kind: word.kind.clone(), nullable: word.null.is_some() };
    mapping.expr.nullable(&[slot])
}
