//! Functions of numbers that give a float.

use tandem_column::Type;
use tandem_pipeline::{Function, scalar};

use super::kernels::{both_valid, map, map2};
use super::operand::Operand;
use crate::vector::{Values, Vector};

/// Computes a function of a vector of numbers; `None` where there is no loop for it.
pub(super) fn fast(function: Function, operands: &[Operand], kinds: &[Type], kind: &Type) -> Option<Vector> {
    if let (Function::ArcTan2, [y, x], Type::Float64) = (function, operands, kind) {
        return binary(y, x, f64::atan2);
    }
    let ([Operand::Vector(vector)], [from]) = (operands, kinds) else { return None };
    if !kind.is_float() {
        return None;
    }
    let values = match (function, &vector.values) {
        (Function::Abs, Values::Float(values)) => map(values, f64::abs),
        (Function::Floor, Values::Float(values)) => map(values, f64::floor),
        (Function::Ceil, Values::Float(values)) => map(values, f64::ceil),
        (Function::Sign, Values::Float(values)) => {
            map(values, |value: f64| if value == 0.0 { 0.0 } else { value.signum() })
        }
        (_, values) => {
            scalar::number::unary(function, 0.0)?;
            let floats = floats(values, from)?;
            let results: Vec<f64> = match function {
                Function::SquareRoot => map(&floats, f64::sqrt),
                _ => floats.iter().map(|&value| scalar::number::unary(function, value).unwrap_or(f64::NAN)).collect(),
            };
            match kind {
                Type::Float32 => map(&results, |value| f64::from(value as f32)),
                _ => results,
            }
        }
    };
    Some(Vector { values: Values::Float(values), valid: vector.valid.clone() })
}

/// Returns numbers as floats.
fn floats(values: &Values, from: &Type) -> Option<Vec<f64>> {
    let power = match from {
        Type::Decimal { scale, .. } => 10_f64.powi((*scale).into()),
        _ => 1.0,
    };
    match values {
        Values::Float(values) => Some(values.clone()),
        Values::Int(values) if from.is_numeric() => Some(map(values, |value| value as f64 / power)),
        Values::Wide(values) if from.is_numeric() => Some(map(values, |value| value as f64 / power)),
        _ => None,
    }
}

/// Computes a function of two floats, one of which varies.
fn binary(left: &Operand, right: &Operand, f: impl Fn(f64, f64) -> f64) -> Option<Vector> {
    if matches!((left, right), (Operand::Constant(_), Operand::Constant(_))) {
        return None;
    }
    let values = map2(left.floats()?, right.floats()?, f);
    Some(Vector { values: Values::Float(values), valid: both_valid(left.valid(), right.valid()) })
}
