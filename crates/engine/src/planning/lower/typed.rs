//! A lowered expression with its type, and what the host makes of float zeros.
//!
//! The host takes −0.0 and 0.0 for equal when it compares, groups and joins; the IR orders floats totally. The difference
//! is written into the expressions here.

use tandem_column::Type;
use tandem_pipeline::{Arithmetic, ArithmeticOperator, Comparison, Expr as Lowered, Failure, Overflow, Value};

/// A lowered expression.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub expr: Lowered,
    pub kind: Type,
    pub nullable: bool,
}

impl Typed {
    pub(crate) fn new(expr: Lowered, kind: Type, nullable: bool) -> Self {
        Typed { expr, kind, nullable }
    }

    pub(crate) fn boolean(expr: Lowered, nullable: bool) -> Self {
        Typed { expr, kind: Type::Boolean, nullable }
    }

    pub(crate) fn literal(value: Value, kind: Type) -> Self {
        let nullable = matches!(value, Value::Null);
        Typed { expr: Lowered::Literal(value, kind.clone()), kind, nullable }
    }

    /// Gives an untyped null the type it is used with.
    pub(crate) fn adopt(self, kind: &Type) -> Self {
        if self.kind == Type::Null { Typed::literal(Value::Null, kind.clone()) } else { self }
    }

    /// Makes −0.0 positive: the host takes both zeros for equal when it compares, groups and joins, the IR does not.
    pub(crate) fn one_zero(self) -> Self {
        let fixed = match &self.expr {
            _ if !self.kind.is_float() => None,
            Lowered::Literal(Value::Float(value), _) if *value == 0.0 => Some(zero(&self.kind, false)),
            Lowered::Literal(..) => None,
            // Only −0.0 changes when zero is added to it.
            expr => Some(Lowered::Arithmetic(Box::new(Arithmetic {
                operator: ArithmeticOperator::Add,
                left: expr.clone(),
                right: zero(&self.kind, false),
                kind: self.kind.clone(),
                overflow: Overflow::Error,
                zero: Failure::Error,
            }))),
        };
        match fixed {
            Some(expr) => Typed { expr, ..self },
            None => self,
        }
    }

    /// Returns the value of a constant float.
    fn float(&self) -> Option<f64> {
        match &self.expr {
            Lowered::Literal(Value::Float(value), _) => Some(*value),
            _ => None,
        }
    }

    /// Casts to a type; nothing to do if it is of that type.
    pub(crate) fn cast(self, kind: &Type, failure: Failure) -> Self {
        if self.kind == *kind {
            return self;
        }
        let nullable = self.nullable || failure == Failure::Null;
        let expr = Lowered::Cast { input: Box::new(self.expr), kind: kind.clone(), failure };
        Typed::new(expr, kind.clone(), nullable)
    }
}

/// Compares two operands of one type as the host does: zeros are equal whatever their sign.
pub(crate) fn comparison(operator: Comparison, left: Typed, right: Typed) -> Typed {
    use Comparison::*;
    let nullable = left.nullable || right.nullable;
    let compare = |left: Lowered, right: Lowered| Lowered::Compare(operator, Box::new(left), Box::new(right));
    let expr = match (left.float(), right.float()) {
        _ if !left.kind.is_float() => compare(left.expr, right.expr),
        // Against another constant than zero the sign of zero plays no part.
        (Some(value), _) | (_, Some(value)) if value != 0.0 => compare(left.expr, right.expr),
        (None, Some(_)) => {
            let both = || vec![Value::Float(-0.0), Value::Float(0.0)];
            match operator {
                Equal => Lowered::In { input: Box::new(left.expr), list: both() },
                NotEqual => Lowered::Not(Box::new(Lowered::In { input: Box::new(left.expr), list: both() })),
                Less | GreaterOrEqual => compare(left.expr, zero(&left.kind, true)),
                LessOrEqual | Greater => compare(left.expr, zero(&left.kind, false)),
            }
        }
        _ => compare(left.one_zero().expr, right.one_zero().expr),
    };
    Typed::boolean(expr, nullable)
}

/// Returns a float zero.
fn zero(kind: &Type, negative: bool) -> Lowered {
    Lowered::Literal(Value::Float(if negative { -0.0 } else { 0.0 }), kind.clone())
}
