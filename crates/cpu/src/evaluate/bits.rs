//! Functions of bits, over integers of at most 64 bits that 64-bit words hold.

use tandem_column::Type;
use tandem_pipeline::{
    Function,
    scalar::bits::{is_signed, width},
};

use super::kernels::{both_valid, map2};
use super::operand::Operand;
use crate::vector::{Values, Vector};

/// Computes a function of bits; `None` where there is no loop for it.
pub(super) fn fast(function: Function, operands: &[Operand], kind: &Type) -> Option<Vector> {
    let (first, second) = match operands {
        [only] => (only, only),
        [first, second] => (first, second),
        _ => return None,
    };
    let varies = [first, second].iter().any(|operand| matches!(operand, Operand::Vector(_)));
    if !varies || *kind == Type::UInt64 || !kind.is_integer() {
        return None;
    }
    // Bits above the width are copies of the sign, or zero; a shift to the left and back makes them so.
    let (unused, mask) = (64 - width(kind), i64::from(width(kind)) - 1);
    let signed = is_signed(kind);
    let wrap = move |bits: i64| match signed {
        true => (bits << unused) >> unused,
        false => (((bits as u64) << unused) >> unused) as i64,
    };
    let (left, right) = (first.ints()?, second.ints()?);
    let values = match function {
        Function::BitAnd => map2(left, right, |left, right| left & right),
        Function::BitOr => map2(left, right, |left, right| left | right),
        Function::BitXor => map2(left, right, |left, right| left ^ right),
        Function::BitNot => map2(left, right, move |bits, _| wrap(!bits)),
        Function::ShiftLeft => map2(left, right, move |bits, by| wrap(bits << (by & mask))),
        Function::ShiftRight => map2(left, right, move |bits, by| bits >> (by & mask)),
        _ => return None,
    };
    Some(Vector { values: Values::Int(values), valid: both_valid(first.valid(), second.valid()) })
}
