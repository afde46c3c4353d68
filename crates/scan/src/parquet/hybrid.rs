//! The RLE / bit-packed hybrid: runs of one repeated value, and runs of bit-packed values.

use super::{Problem, damaged};

/// A run of the hybrid encoding.
pub(super) enum Run<'a> {
    /// One value, so many times.
    Repeat(u32, usize),
    /// So many bit-packed values; the bytes run to the end of the page and hold at least that many.
    Packed(&'a [u8], usize),
}

/// Reads runs of values of one bit width.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    width: u32,
}

impl<'a> Runs<'a> {
    /// Starts at the first run header. `width` is at most 32.
    pub(super) fn new(bytes: &'a [u8], width: u32) -> Self {
        debug_assert!(width <= 32);
        Runs { bytes, width }
    }

    /// Starts at indices of a dictionary: their bit width is the first byte.
    pub(super) fn indices(bytes: &'a [u8]) -> Result<Self, Problem> {
        match bytes.split_first() {
            Some((&width, rest)) if width <= 32 => Ok(Runs::new(rest, width.into())),
            Some((width, _)) => Err(damaged(format!("dictionary indices of {width} bits"))),
            None => Err(damaged("a page without its bit width")),
        }
    }

    /// Returns the bit width.
    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// Returns the next run, cut to `limit` values; a bit-packed run may be longer than that only at the page's end.
    pub(super) fn next(&mut self, limit: usize) -> Result<Run<'a>, Problem> {
        let header = self.varint()?;
        let count = header >> 1;
        if count == 0 {
            return Err(damaged("an empty run"));
        }
        if header & 1 == 0 {
            let bytes = self.width.div_ceil(8) as usize;
            let Some((value, rest)) = self.bytes.split_at_checked(bytes) else {
                return Err(damaged("a run is cut off"));
            };
            self.bytes = rest;
            let value = value.iter().rev().fold(0u32, |value, &byte| value << 8 | u32::from(byte));
            return Ok(Run::Repeat(value, usize::try_from(count).unwrap_or(usize::MAX).min(limit)));
        }
        // Writers may drop the padding of the last group of a page: what is needed must be there, not the whole run.
        let values = count.saturating_mul(8).min(limit as u64) as usize;
        let needed = (values as u64 * u64::from(self.width)).div_ceil(8);
        let whole = count.saturating_mul(self.width.into());
        if needed > self.bytes.len() as u64 {
            return Err(damaged("a bit-packed run is cut off"));
        }
        let run = Run::Packed(self.bytes, values);
        self.bytes = &self.bytes[usize::try_from(whole).unwrap_or(usize::MAX).min(self.bytes.len())..];
        Ok(run)
    }

    fn varint(&mut self) -> Result<u64, Problem> {
        let mut value = 0u64;
        for (index, &byte) in self.bytes.iter().enumerate().take(9) {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[index + 1..];
                return Ok(value);
            }
        }
        Err(damaged("a run header is cut off"))
    }
}
