//! What numbers become: offsets from a base, 128-bit integers, floats.

use std::marker::PhantomData;

use tandem_column::Code;

use super::{Problem, damaged, fixed::Target};

/// How an integer is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Int32,
    /// 32 bits that mean an unsigned number.
    UInt32,
    Int64,
    /// 64 bits that mean an unsigned number.
    UInt64,
    /// Big-endian two's complement of 1 to 16 bytes.
    Fixed(usize),
}

impl Physical {
    /// Returns the bytes of a value.
    fn bytes(self) -> usize {
        match self {
            Physical::Int32 | Physical::UInt32 => 4,
            Physical::Int64 | Physical::UInt64 => 8,
            Physical::Fixed(width) => width,
        }
    }
}

/// Cuts the first `count` values of `width` bytes.
fn cut(bytes: &[u8], count: usize, width: usize) -> Result<&[u8], Problem> {
    let length = count.checked_mul(width);
    length.and_then(|length| bytes.get(..length)).ok_or_else(|| damaged("a page has fewer values than it says"))
}

/// Offsets from `base` in codes of type `C`.
///
/// The base comes from statistics, which may be wrong: a value that does not fit is [`Problem::Misfit`], and the caller
/// decodes again without them.
pub(super) struct Integers<C> {
    physical: Physical,
    base: i64,
    /// The largest offset that is surely `value - base` and not wrapped around.
    limit: u64,
    code: PhantomData<C>,
}

impl<C: Code> Integers<C> {
    /// `span` is the largest offset expected; it fits `C`.
    pub(super) fn new(physical: Physical, base: i64, span: u64) -> Self {
        // Four-byte values wrap around in four bytes: narrower codes notice by their width, equal ones by the span.
        let limit = match physical {
            Physical::Int32 | Physical::UInt32 if C::MAX > 0xffff => span,
            _ => C::MAX,
        };
        Integers { physical, base, limit, code: PhantomData }
    }
}

impl<C: Code> Target for Integers<C> {
    type Code = C;

    fn plain_bits(&self) -> usize {
        self.physical.bytes() * 8
    }

    fn plain(&mut self, bytes: &[u8], out: &mut [C]) -> Result<(), Problem> {
        let count = out.len();
        let largest = match self.physical {
            // A limit of four bytes keeps wrapped offsets out; eight-byte codes need true 64-bit offsets.
            Physical::Int32 | Physical::UInt32 if C::MAX <= 0xffff_ffff => {
                let base = self.base as u32;
                let values = cut(bytes, count, 4)?.chunks_exact(4);
                let offsets =
                    values.map(|value| u32::from_le_bytes(value.try_into().expect("four bytes")).wrapping_sub(base));
                u64::from(match C::MAX <= 0xffff {
                    true => store(offsets, out, |all, offset| all | offset),
                    false => store(offsets, out, |all, offset| all.max(offset)),
                })
            }
            Physical::Int32 => {
                let values = cut(bytes, count, 4)?.chunks_exact(4);
                store64(
                    values.map(|value| i32::from_le_bytes(value.try_into().expect("four bytes")).into()),
                    self.base,
                    out,
                )
            }
            Physical::UInt32 => {
                let values = cut(bytes, count, 4)?.chunks_exact(4);
                store64(
                    values.map(|value| u32::from_le_bytes(value.try_into().expect("four bytes")).into()),
                    self.base,
                    out,
                )
            }
            Physical::Int64 | Physical::UInt64 => {
                let values = cut(bytes, count, 8)?.chunks_exact(8);
                store64(values.map(|value| i64::from_le_bytes(value.try_into().expect("eight bytes"))), self.base, out)
            }
            Physical::Fixed(width) => {
                let mut fits = true;
                let largest = store64(
                    cut(bytes, count, width)?.chunks_exact(width).map(|value| {
                        let wide = big_endian(value);
                        fits &= i64::try_from(wide).is_ok();
                        wide as i64
                    }),
                    self.base,
                    out,
                );
                if !fits {
                    return Err(damaged("a decimal of more digits than its type"));
                }
                largest
            }
        };
        if largest > self.limit { Err(Problem::Misfit) } else { Ok(()) }
    }

    fn repeated(&mut self, _value: u32) -> Result<C, Problem> {
        Err(Problem::Unsupported)
    }
}

/// Stores offsets and returns all of them combined.
#[inline(always)]
fn store<C: Code>(offsets: impl Iterator<Item = u32>, out: &mut [C], combine: impl Fn(u32, u32) -> u32) -> u32 {
    let mut all = 0;
    for (offset, out) in offsets.zip(out) {
        all = combine(all, offset);
        *out = C::truncate(offset.into());
    }
    all
}

/// Stores 64-bit offsets and returns a number that is at most `C::MAX` exactly if each of them is.
#[inline(always)]
fn store64<C: Code>(values: impl Iterator<Item = i64>, base: i64, out: &mut [C]) -> u64 {
    let mut all = 0;
    for (value, out) in values.zip(out) {
        let offset = value.wrapping_sub(base) as u64;
        all |= offset;
        *out = C::truncate(offset);
    }
    all
}

/// Reads a big-endian two's complement number of 1 to 16 bytes.
pub(super) fn big_endian(bytes: &[u8]) -> i128 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |value, &byte| value << 8 | i128::from(byte))
}

/// 128-bit integers.
pub(super) struct Wide(pub(super) Physical);

impl Target for Wide {
    type Code = i128;

    fn plain_bits(&self) -> usize {
        self.0.bytes() * 8
    }

    fn plain(&mut self, bytes: &[u8], out: &mut [i128]) -> Result<(), Problem> {
        let width = self.0.bytes();
        let values = cut(bytes, out.len(), width)?.chunks_exact(width);
        for (value, out) in values.zip(out) {
            *out = match self.0 {
                Physical::Int32 => i32::from_le_bytes(value.try_into().expect("four bytes")).into(),
                Physical::UInt32 => u32::from_le_bytes(value.try_into().expect("four bytes")).into(),
                Physical::Int64 => i64::from_le_bytes(value.try_into().expect("eight bytes")).into(),
                Physical::UInt64 => u64::from_le_bytes(value.try_into().expect("eight bytes")).into(),
                Physical::Fixed(_) => big_endian(value),
            };
        }
        Ok(())
    }
}

/// Booleans, as bytes of 0 and 1.
pub(super) struct Booleans;

impl Target for Booleans {
    type Code = u8;

    fn plain_bits(&self) -> usize {
        1
    }

    fn plain(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<(), Problem> {
        let bytes = cut(bytes, out.len().div_ceil(8), 1)?;
        for (byte, out) in bytes.iter().zip(out.chunks_mut(8)) {
            out.iter_mut().enumerate().for_each(|(bit, out)| *out = byte >> bit & 1);
        }
        Ok(())
    }

    fn repeated(&mut self, value: u32) -> Result<u8, Problem> {
        Ok(value as u8)
    }
}

/// Single-precision floats.
pub(super) struct Singles;

impl Target for Singles {
    type Code = f32;

    fn plain_bits(&self) -> usize {
        32
    }

    fn plain(&mut self, bytes: &[u8], out: &mut [f32]) -> Result<(), Problem> {
        let values = cut(bytes, out.len(), 4)?.chunks_exact(4);
        values.zip(out).for_each(|(value, out)| *out = f32::from_le_bytes(value.try_into().expect("four bytes")));
        Ok(())
    }
}

/// Double-precision floats.
pub(super) struct Doubles;

impl Target for Doubles {
    type Code = f64;

    fn plain_bits(&self) -> usize {
        64
    }

    fn plain(&mut self, bytes: &[u8], out: &mut [f64]) -> Result<(), Problem> {
        let values = cut(bytes, out.len(), 8)?.chunks_exact(8);
        values.zip(out).for_each(|(value, out)| *out = f64::from_le_bytes(value.try_into().expect("eight bytes")));
        Ok(())
    }
}
