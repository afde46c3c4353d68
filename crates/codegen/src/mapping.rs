//! Functions of text as tables: what an expression of one slot gives for each word of the slot's dictionary.
//!
//! The host evaluates the expression once for each word, whatever it is made of; a kernel looks the row's code up.

use tandem_column::{Dictionary, Error, Repr, Result, Type};
use tandem_pipeline::{Expr, Slot, Value, interpret::Evaluator};
use tandem_plan::Origin;

/// The most words of a dictionary that an expression is evaluated for: beyond, the CPU's loops are faster.
const MOST_WORDS: usize = 1 << 16;

/// An expression of one slot with a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Whose dictionary it is: that of a source column or of a payload column.
    pub words: Origin,
    /// The expression; slot 0 is the word.
    pub expr: Expr,
    /// The type of words.
    pub kind: Type,
}

impl Mapping {
    /// Evaluates the expression for null, then for each word: the bytes of its numbers (bits of floats), one for each
    /// boolean and eight for others, and flags that are 1 where it is null.
    ///
    /// # Errors
    /// Unsupported for large dictionaries, and if some word has no value: a row with it need not exist.
    pub fn evaluate(&self, dictionary: &Dictionary) -> Result<(Vec<u8>, Vec<u8>)> {
        let slots = [Slot { name: String::new(), kind: self.kind.clone(), nullable: true }];
        let width = if self.expr.kind(&slots) == Type::Boolean { 1 } else { 8 };
        let (mut numbers, mut nulls) = (Vec::new(), Vec::new());
        for value in self.values(dictionary)? {
            nulls.push(u8::from(value.is_null()));
            let number = match value {
                Value::Boolean(value) => i64::from(value),
                Value::Integer(value) => value as i64,
                Value::Float(value) => value.to_bits() as i64,
                _ => 0,
            };
            numbers.extend_from_slice(&number.to_le_bytes()[..width]);
        }
        Ok((numbers, nulls))
    }

    /// Makes the mapping of an expression of one slot.
    pub(crate) fn of(expr: &Expr, words: Origin, kind: &Type) -> Mapping {
        Mapping { words, expr: expr.map_slots(&|_| 0), kind: kind.clone() }
    }

    /// Evaluates an expression of text for null, then for each word; `None` where it is null.
    ///
    /// # Errors
    /// As [`Mapping::evaluate`].
    pub fn texts(&self, dictionary: &Dictionary) -> Result<Vec<Option<Vec<u8>>>> {
        let bytes = |value: Value| match value {
            Value::String(text) => Ok(Some(text.as_bytes().to_vec())),
            Value::Binary(bytes) => Ok(Some(bytes.to_vec())),
            Value::Null => Ok(None),
            _ => Err(Error::internal("a word has no text")),
        };
        self.values(dictionary)?.into_iter().map(bytes).collect()
    }

    /// Evaluates the expression for null, then for each word.
    fn values(&self, dictionary: &Dictionary) -> Result<Vec<Value>> {
        if dictionary.len() > MOST_WORDS {
            return Err(Error::unsupported("functions of text with many different values are not on the device yet"));
        }
        let slots = [Slot { name: String::new(), kind: self.kind.clone(), nullable: true }];
        let words = dictionary.iter().map(|word| match self.kind {
            Type::Binary => Value::Binary(word.into()),
            _ => Value::string(String::from_utf8_lossy(word)),
        });
        let evaluator = Evaluator::new(&[]);
        let values = std::iter::once(Value::Null).chain(words).map(|word| {
            evaluator
                .evaluate(&self.expr, &[word], &slots)
                .map_err(|_| Error::unsupported("a word has no value: the CPU finds whether a row has it"))
        });
        values.collect()
    }

    /// Tells whether a table can hold what an expression gives.
    pub(crate) fn holds(expr: &Expr, kind: &Type) -> bool {
        matches!(kind.repr(), Repr::Boolean | Repr::Int | Repr::Float) && is_closed(expr)
    }
}

/// Tells whether an expression is made of built-in operations alone.
pub(crate) fn is_closed(expr: &Expr) -> bool {
    !matches!(expr, Expr::Call { .. } | Expr::Element(..) | Expr::ListLength(_))
        && expr.children().into_iter().all(is_closed)
}
