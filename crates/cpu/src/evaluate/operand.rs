//! Operands: what an expression evaluated to, with constants kept as one value.

use std::rc::Rc;

use tandem_column::{Repr, Type};
use tandem_pipeline::Value;

use super::kernels::Side;
use crate::vector::{Values, Vector, float, integer};

/// The value of an expression: one for all rows, or one per row.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// The same for every row.
    Constant(Value),
    /// One per row.
    Vector(Rc<Vector>),
}

impl From<Vector> for Operand {
    fn from(vector: Vector) -> Self {
        Operand::Vector(Rc::new(vector))
    }
}

impl Operand {
    /// Makes a vector of it; `kind` tells the type of a constant.
    pub(crate) fn into_vector(self, kind: impl FnOnce() -> Type, rows: usize) -> Rc<Vector> {
        match self {
            Operand::Constant(value) => Rc::new(Vector::constant(&value, &kind(), rows)),
            Operand::Vector(vector) => vector,
        }
    }

    /// Returns one row's value.
    pub(crate) fn value(&self, row: usize, kind: &Type) -> Value {
        match self {
            Operand::Constant(value) => value.clone(),
            Operand::Vector(vector) => vector.value(row, kind),
        }
    }

    /// Tells whether it is the constant null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Operand::Constant(Value::Null))
    }

    /// Tells whether its values are held as a representation wants; an untyped NULL may not be.
    pub(crate) fn held_as(&self, repr: Repr) -> bool {
        match self {
            Operand::Constant(_) => true,
            Operand::Vector(vector) => match vector.values {
                Values::Boolean(_) => repr == Repr::Boolean,
                Values::Int(_) => repr == Repr::Int,
                Values::Wide(_) => repr == Repr::Wide,
                Values::Float(_) => repr == Repr::Float,
                Values::Code { .. } | Values::Bytes(_) => repr == Repr::Bytes,
            },
        }
    }

    /// Returns the validity; none where no row is null and for constants (whose nulls are handled before).
    pub(crate) fn valid(&self) -> Option<&[u8]> {
        match self {
            Operand::Constant(_) => None,
            Operand::Vector(vector) => vector.valid.as_deref(),
        }
    }

    /// Returns the 64-bit integers of this side, if it is such.
    pub(crate) fn ints(&self) -> Option<Side<'_, i64>> {
        match self {
            Operand::Constant(value @ Value::Integer(_)) => i64::try_from(integer(value)).ok().map(Side::One),
            Operand::Constant(_) => None,
            Operand::Vector(vector) => match &vector.values {
                Values::Int(values) => Some(Side::Rows(values)),
                _ => None,
            },
        }
    }

    /// Returns the floats of this side, if it is such.
    pub(crate) fn floats(&self) -> Option<Side<'_, f64>> {
        match self {
            Operand::Constant(value @ Value::Float(_)) => Some(Side::One(float(value))),
            Operand::Constant(_) => None,
            Operand::Vector(vector) => match &vector.values {
                Values::Float(values) => Some(Side::Rows(values)),
                _ => None,
            },
        }
    }

    /// Returns the booleans of this side, if it is such.
    pub(crate) fn booleans(&self) -> Option<Side<'_, u8>> {
        match self {
            Operand::Constant(Value::Boolean(value)) => Some(Side::One((*value).into())),
            Operand::Constant(_) => None,
            Operand::Vector(vector) => match &vector.values {
                Values::Boolean(values) => Some(Side::Rows(values)),
                _ => None,
            },
        }
    }

    /// Runs `f` with the 128-bit integers of this side, widening 64-bit ones.
    pub(crate) fn with_wide<R>(&self, f: impl FnOnce(Side<'_, i128>) -> R) -> Option<R> {
        match self {
            Operand::Constant(Value::Integer(value)) => Some(f(Side::One(*value))),
            Operand::Constant(_) => None,
            Operand::Vector(vector) => match &vector.values {
                Values::Wide(values) => Some(f(Side::Rows(values))),
                Values::Int(values) => {
                    let wide: Vec<i128> = values.iter().map(|&value| value.into()).collect();
                    Some(f(Side::Rows(&wide)))
                }
                _ => None,
            },
        }
    }
}
