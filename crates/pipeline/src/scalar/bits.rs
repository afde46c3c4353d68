//! Bits of integers: each type has those of its width, negative numbers in two's complement.

use tandem_column::Type;

use crate::Function;

/// Returns how many bits the integers of a type have.
pub fn width(kind: &Type) -> u32 {
    match kind {
        Type::Int8 | Type::UInt8 => 8,
        Type::Int16 | Type::UInt16 => 16,
        Type::Int32 | Type::UInt32 => 32,
        _ => 64,
    }
}

/// Tells whether a type has negative integers.
pub fn is_signed(kind: &Type) -> bool {
    matches!(kind, Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64)
}

/// Returns the integer of a type that has the lowest bits of a number.
fn wrap(number: i128, kind: &Type) -> i128 {
    let width = width(kind);
    let bits = number & ((1 << width) - 1);
    if is_signed(kind) && bits >> (width - 1) == 1 { bits - (1 << width) } else { bits }
}

/// Computes a bit function; that of one argument takes no notice of `right`. The amount of a shift is taken modulo the
/// width, and a right shift keeps the sign.
pub fn compute(function: Function, left: i128, right: i128, kind: &Type) -> Option<i128> {
    let amount = right & i128::from(width(kind) - 1);
    Some(match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        Function::BitNot => wrap(!left, kind),
        Function::ShiftLeft => wrap(left << amount, kind),
        Function::ShiftRight => left >> amount,
        _ => return None,
    })
}
