//! Dense vectors: one value for each active row of a frame.
//!
//! A vector does not know its type, only the representation that holds it; callers pass the [`Type`] where meaning
//! matters. Null rows hold an arbitrary value of the representation (booleans 0 or 1, codes within the dictionary), so
//! kernels may compute over all rows without looking at validity.

use std::sync::Arc;

pub use tandem_column::BytesVector;
use tandem_column::{Dictionary, Repr, Type};
use tandem_pipeline::Value;

/// The values of a vector, by representation.
#[derive(Clone, Debug)]
pub enum Values {
    /// One byte each, 0 or 1.
    Boolean(Vec<u8>),
    /// 64-bit integers: every type of [`Repr::Int`].
    Int(Vec<i64>),
    /// 128-bit integers: every type of [`Repr::Wide`].
    Wide(Vec<i128>),
    /// Floats; single precision is already rounded.
    Float(Vec<f64>),
    /// Text or bytes as positions in a sorted dictionary; 0 where the dictionary is empty.
    Code {
        /// Positions in the dictionary.
        codes: Vec<u32>,
        /// The distinct values, ascending.
        dictionary: Arc<Dictionary>,
    },
    /// Text or bytes.
    Bytes(BytesVector),
}

/// One value per active row.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The values.
    pub values: Values,
    /// 1 for each row that is not null, 0 for the others; `None` where no row is null.
    pub valid: Option<Vec<u8>>,
}

impl Values {
    /// Makes no values of a representation. Types that only the interpreter computes with have none: they give an empty
    /// vector of integers.
    pub(crate) fn empty(repr: Repr) -> Values {
        match repr {
            Repr::Boolean => Values::Boolean(Vec::new()),
            Repr::Int | Repr::Other => Values::Int(Vec::new()),
            Repr::Wide => Values::Wide(Vec::new()),
            Repr::Float => Values::Float(Vec::new()),
            Repr::Bytes => Values::Bytes(BytesVector::default()),
        }
    }

    /// Returns how many values there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Boolean(values) => values.len(),
            Values::Int(values) => values.len(),
            Values::Wide(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Code { codes, .. } => codes.len(),
            Values::Bytes(values) => values.len(),
        }
    }

    /// Returns the text or bytes at a position; nothing for other representations and for codes of null rows.
    #[inline]
    pub(crate) fn bytes(&self, position: usize) -> &[u8] {
        match self {
            Values::Code { codes, dictionary } => word(dictionary, codes[position]),
            Values::Bytes(values) => values.get(position),
            _ => &[],
        }
    }

    fn take(&self, positions: &[u32]) -> Values {
        fn gather<T: Copy>(values: &[T], positions: &[u32]) -> Vec<T> {
            positions.iter().map(|&position| values[position as usize]).collect()
        }
        match self {
            Values::Boolean(values) => Values::Boolean(gather(values, positions)),
            Values::Int(values) => Values::Int(gather(values, positions)),
            Values::Wide(values) => Values::Wide(gather(values, positions)),
            Values::Float(values) => Values::Float(gather(values, positions)),
            Values::Code { codes, dictionary } => {
                Values::Code { codes: gather(codes, positions), dictionary: dictionary.clone() }
            }
            Values::Bytes(values) => Values::Bytes(values.take(positions)),
        }
    }

    fn push(&mut self, value: &Value) {
        match self {
            Values::Boolean(values) => values.push(matches!(value, Value::Boolean(true)).into()),
            Values::Int(values) => values.push(integer(value) as i64),
            Values::Wide(values) => values.push(integer(value)),
            Values::Float(values) => values.push(float(value)),
            Values::Bytes(values) => values.push(bytes(value)),
            Values::Code { .. } => {
                self.decode();
                self.push(value);
            }
        }
    }

    /// Turns codes into the bytes they stand for.
    fn decode(&mut self) {
        if let Values::Code { codes, dictionary } = self {
            *self = Values::Bytes(codes.iter().map(|&code| word(dictionary, code)).collect());
        }
    }
}

/// Returns the value of a code; nothing for the code of a null row in an empty dictionary.
#[inline]
pub(crate) fn word(dictionary: &Dictionary, code: u32) -> &[u8] {
    if dictionary.is_empty() { &[] } else { dictionary.get(code) }
}

/// Returns the integer of a value; 0 for others.
#[inline]
pub(crate) fn integer(value: &Value) -> i128 {
    match value {
        Value::Integer(value) => *value,
        _ => 0,
    }
}

/// Returns the float of a value; 0 for others.
#[inline]
pub(crate) fn float(value: &Value) -> f64 {
    match value {
        Value::Float(value) => *value,
        _ => 0.0,
    }
}

/// Returns the text or bytes of a value; nothing for others.
#[inline]
pub(crate) fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::String(value) => value.as_bytes(),
        Value::Binary(value) => value,
        _ => &[],
    }
}

/// Makes a text or binary value of bytes.
pub(crate) fn bytes_value(bytes: &[u8], kind: &Type) -> Value {
    match kind {
        Type::Binary => Value::Binary(bytes.into()),
        _ => Value::String(std::str::from_utf8(bytes).expect("text is UTF-8").into()),
    }
}

impl Vector {
    /// Makes a vector of values that are not null.
    pub(crate) fn new(values: Values) -> Vector {
        Vector { values, valid: None }
    }

    /// Makes a vector of booleans, each 0 or 1, that are not null.
    pub(crate) fn boolean(values: Vec<u8>) -> Vector {
        Vector::new(Values::Boolean(values))
    }

    /// Returns the bytes of text; codes have none.
    #[inline]
    pub(crate) fn byte_len(&self) -> usize {
        if let Values::Bytes(values) = &self.values { values.byte_len() } else { 0 }
    }

    /// Returns the bytes that the vector holds.
    pub(crate) fn held_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Boolean(values) => values.len(),
            Values::Int(values) => values.len() * 8,
            Values::Wide(values) => values.len() * 16,
            Values::Float(values) => values.len() * 8,
            Values::Code { codes, .. } => codes.len() * 4,
            Values::Bytes(values) => values.byte_len() + values.len() * 8,
        };
        values + self.valid.as_ref().map_or(0, Vec::len)
    }

    /// Returns the bytes of the text at some positions; codes have none.
    pub(crate) fn text_bytes(&self, positions: &[u32]) -> usize {
        match &self.values {
            Values::Bytes(values) => positions.iter().map(|&position| values.get(position as usize).len()).sum(),
            _ => 0,
        }
    }

    /// Makes a vector of no rows.
    pub fn empty(kind: &Type) -> Vector {
        Vector::new(Values::empty(kind.repr()))
    }

    /// Makes a vector of `rows` nulls.
    pub fn nulls(kind: &Type, rows: usize) -> Vector {
        Vector::constant(&Value::Null, kind, rows)
    }

    /// Makes a vector of `rows` times one value.
    pub(crate) fn constant(value: &Value, kind: &Type, rows: usize) -> Vector {
        let values = match kind.repr() {
            Repr::Boolean => Values::Boolean(vec![matches!(value, Value::Boolean(true)).into(); rows]),
            Repr::Int | Repr::Other => Values::Int(vec![integer(value) as i64; rows]),
            Repr::Wide => Values::Wide(vec![integer(value); rows]),
            Repr::Float => Values::Float(vec![float(value); rows]),
            Repr::Bytes => Values::Bytes(std::iter::repeat_n(bytes(value), rows).collect()),
        };
        Vector { values, valid: matches!(value, Value::Null).then(|| vec![0; rows]) }
    }

    /// Makes a vector of single values.
    pub(crate) fn from_values<'a>(kind: &Type, values: impl IntoIterator<Item = &'a Value>) -> Vector {
        let mut out = Vector::empty(kind);
        values.into_iter().for_each(|value| out.push(value));
        out
    }

    /// Returns how many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Tells whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells whether a row is not null.
    #[inline]
    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid[row] != 0)
    }

    /// Returns the rows at some positions, in their order.
    pub fn take(&self, positions: &[u32]) -> Vector {
        Vector {
            values: self.values.take(positions),
            valid: self.valid.as_ref().map(|valid| positions.iter().map(|&at| valid[at as usize]).collect()),
        }
    }

    /// Returns one row as a single value.
    pub(crate) fn value(&self, row: usize, kind: &Type) -> Value {
        if !self.is_valid(row) || *kind == Type::Null {
            return Value::Null;
        }
        match &self.values {
            Values::Boolean(values) => Value::Boolean(values[row] != 0),
            Values::Int(values) => Value::Integer(values[row].into()),
            Values::Wide(values) => Value::Integer(values[row]),
            Values::Float(values) => Value::Float(values[row]),
            Values::Code { .. } | Values::Bytes(_) => bytes_value(self.values.bytes(row), kind),
        }
    }

    /// Appends a single value of the vector's type.
    pub(crate) fn push(&mut self, value: &Value) {
        let valid = !matches!(value, Value::Null);
        if !valid && self.valid.is_none() {
            self.valid = Some(vec![1; self.len()]);
        }
        if let Some(validity) = &mut self.valid {
            validity.push(valid.into());
        }
        self.values.push(value);
    }

    /// Appends the rows of a vector of the same type. Codes of another dictionary become bytes.
    pub fn append(&mut self, other: &Vector) {
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        if self.valid.is_some() || other.valid.is_some() {
            let length = self.len();
            let valid = self.valid.get_or_insert_with(|| vec![1; length]);
            match &other.valid {
                Some(more) => valid.extend_from_slice(more),
                None => valid.resize(length + other.len(), 1),
            }
        }
        match (&mut self.values, &other.values) {
            (Values::Boolean(values), Values::Boolean(more)) => values.extend_from_slice(more),
            (Values::Int(values), Values::Int(more)) => values.extend_from_slice(more),
            (Values::Wide(values), Values::Wide(more)) => values.extend_from_slice(more),
            (Values::Float(values), Values::Float(more)) => values.extend_from_slice(more),
            (Values::Code { codes, dictionary }, Values::Code { codes: more, dictionary: other })
                if Arc::ptr_eq(dictionary, other) =>
            {
                codes.extend_from_slice(more);
            }
            (Values::Bytes(values), Values::Bytes(more)) => values.append(more),
            (Values::Code { .. } | Values::Bytes(_), Values::Code { .. } | Values::Bytes(_)) => {
                self.values.decode();
                let Values::Bytes(values) = &mut self.values else { return };
                (0..other.len()).for_each(|row| values.push(other.values.bytes(row)));
            }
            _ => debug_assert!(false, "appended vectors are of one type"),
        }
    }

    /// Makes room for more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match &mut self.values {
            Values::Boolean(values) => values.reserve(rows),
            Values::Int(values) => values.reserve(rows),
            Values::Wide(values) => values.reserve(rows),
            Values::Float(values) => values.reserve(rows),
            Values::Code { codes, .. } => codes.reserve(rows),
            Values::Bytes(_) => {}
        }
        if let Some(valid) = &mut self.valid {
            valid.reserve(rows);
        }
    }

    /// Gives null rows the value that columns hold for them: zero, code 0 or nothing.
    pub(crate) fn clear_nulls(&mut self) {
        fn clear<T: Copy + Default>(values: &mut [T], valid: &[u8]) {
            for (value, valid) in values.iter_mut().zip(valid) {
                if *valid == 0 {
                    *value = T::default();
                }
            }
        }
        let Some(valid) = &self.valid else { return };
        match &mut self.values {
            Values::Boolean(values) => clear(values, valid),
            Values::Int(values) => clear(values, valid),
            Values::Wide(values) => clear(values, valid),
            Values::Float(values) => clear(values, valid),
            Values::Code { codes, .. } => clear(codes, valid),
            Values::Bytes(values) => {
                let kept = values.iter().zip(valid).map(|(value, &valid)| if valid == 0 { &[] } else { value });
                *values = kept.collect();
            }
        }
    }

    /// Turns codes into the bytes they stand for, so that the vector no longer needs its dictionary.
    pub(crate) fn decode(&mut self) {
        self.values.decode();
    }
}
