//! Unsigned integers in the narrowest of four widths.

use crate::{AlignedVec, Bitmap, Buffer};

/// Unsigned integers of one physical width, without sign or meaning of their own.
#[derive(Clone, Debug, PartialEq)]
pub enum Codes {
    /// One byte each.
    U8(Buffer<u8>),
    /// Two bytes each.
    U16(Buffer<u16>),
    /// Four bytes each.
    U32(Buffer<u32>),
    /// Eight bytes each.
    U64(Buffer<u64>),
}

/// Runs an expression with the codes of any width as a slice.
#[macro_export]
macro_rules! with_codes {
    ($codes:expr, $slice:ident => $body:expr) => {
        match $codes {
            $crate::Codes::U8(buffer) => {
                let $slice: &[u8] = buffer;
                $body
            }
            $crate::Codes::U16(buffer) => {
                let $slice: &[u16] = buffer;
                $body
            }
            $crate::Codes::U32(buffer) => {
                let $slice: &[u32] = buffer;
                $body
            }
            $crate::Codes::U64(buffer) => {
                let $slice: &[u64] = buffer;
                $body
            }
        }
    };
}

/// An unsigned integer that codes are made of.
pub trait Code: crate::Plain + Ord + Into<u64> {
    /// The largest value, also as a mask of the low bits.
    const MAX: u64;
    /// Returns the same value in 64 bits.
    fn widen(self) -> u64;
    /// Takes the low bits.
    fn truncate(value: u64) -> Self;
    /// Wraps a buffer of this width.
    fn codes(values: Buffer<Self>) -> Codes;
}

macro_rules! code {
    ($($t:ident $variant:ident)*) => { $(impl Code for $t {
        const MAX: u64 = $t::MAX as u64;
        #[inline(always)]
        fn widen(self) -> u64 { self as u64 }
        #[inline(always)]
        fn truncate(value: u64) -> Self { value as $t }
        fn codes(values: Buffer<Self>) -> Codes { Codes::$variant(values) }
    })* };
}
code!(u8 U8 u16 U16 u32 U32 u64 U64);

impl Codes {
    /// Returns the bytes of a code that holds `max`: 1, 2, 4 or 8.
    pub fn width_for(max: u64) -> usize {
        match max {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        }
    }

    /// Makes codes of the given width from `length` values, which must fit it.
    pub fn collect(width: usize, length: usize, values: impl Iterator<Item = u64>) -> Codes {
        fn fill<T: Code>(length: usize, values: impl Iterator<Item = u64>) -> Codes {
            let mut codes = AlignedVec::<T>::zeroed(length);
            for (code, value) in codes.as_mut_slice().iter_mut().zip(values) {
                *code = T::truncate(value);
            }
            T::codes(codes.into_buffer())
        }
        match width {
            1 => fill::<u8>(length, values),
            2 => fill::<u16>(length, values),
            4 => fill::<u32>(length, values),
            _ => fill::<u64>(length, values),
        }
    }

    /// Copies `values` in the narrowest width that holds them all.
    pub fn narrow(values: &[u64]) -> Codes {
        let all = values.iter().fold(0, |all, value| all | value);
        Self::collect(Self::width_for(all), values.len(), values.iter().copied())
    }

    /// Makes `length` zeros of one byte.
    pub fn zeroed(length: usize) -> Codes {
        Codes::U8(AlignedVec::zeroed(length).into_buffer())
    }

    /// Returns the bytes that hold the codes, shared.
    pub fn bytes(&self) -> Buffer<u8> {
        match self {
            Codes::U8(buffer) => buffer.clone(),
            Codes::U16(buffer) => buffer.bytes(),
            Codes::U32(buffer) => buffer.bytes(),
            Codes::U64(buffer) => buffer.bytes(),
        }
    }

    /// Returns how many codes there are.
    pub fn len(&self) -> usize {
        with_codes!(self, codes => codes.len())
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of one code: 1, 2, 4 or 8.
    pub fn width(&self) -> usize {
        match self {
            Codes::U8(_) => 1,
            Codes::U16(_) => 2,
            Codes::U32(_) => 4,
            Codes::U64(_) => 8,
        }
    }

    /// Returns the width's name: `u8`, `u16`, `u32` or `u64`.
    pub fn width_name(&self) -> &'static str {
        match self {
            Codes::U8(_) => "u8",
            Codes::U16(_) => "u16",
            Codes::U32(_) => "u32",
            Codes::U64(_) => "u64",
        }
    }

    /// Returns code `i`.
    #[inline]
    pub fn get(&self, i: usize) -> u64 {
        with_codes!(self, codes => codes[i].widen())
    }

    /// Returns the largest code; 0 if there is none.
    pub fn max(&self) -> u64 {
        with_codes!(self, codes => codes.iter().copied().max().map_or(0, Code::widen))
    }

    /// Returns the memory that is held, in bytes.
    pub fn byte_len(&self) -> usize {
        match self {
            Codes::U8(buffer) => buffer.byte_len(),
            Codes::U16(buffer) => buffer.byte_len(),
            Codes::U32(buffer) => buffer.byte_len(),
            Codes::U64(buffer) => buffer.byte_len(),
        }
    }

    /// Returns `map[code]` of each code, in the narrowest width that holds every value of `map`.
    ///
    /// # Panics
    /// If a code is not a position in `map`.
    pub fn remap(&self, map: &[u32]) -> Codes {
        let width = Self::width_for(map.iter().copied().max().unwrap_or(0).into());
        if map.is_empty() {
            return Codes::zeroed(self.len());
        }
        with_codes!(self, codes => Codes::collect(width, codes.len(), codes.iter().map(|&code| {
            map[code.widen() as usize].into()
        })))
    }

    /// Returns the same codes in another width, which must hold them.
    pub fn with_width(&self, width: usize) -> Codes {
        if width == self.width() {
            return self.clone();
        }
        with_codes!(self, codes => Codes::collect(width, codes.len(), codes.iter().map(|&code| code.widen())))
    }

    /// Returns the codes with zeros where validity has none.
    pub fn masked(self, validity: Option<&Bitmap>) -> Codes {
        fn mask<T: Code>(values: &[T], validity: &Bitmap) -> Codes {
            let mut values = AlignedVec::from(values);
            validity.zero_unset(values.as_mut_slice());
            T::codes(values.into_buffer())
        }
        match validity {
            None => self,
            Some(validity) => with_codes!(&self, codes => mask(codes, validity)),
        }
    }

    /// Visits all codes in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_take_the_narrowest_width() {
        for (max, width) in [(1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (u32::MAX.into(), 4), (1 << 32, 8)] {
            let codes = Codes::narrow(&[0, max, 1]);
            assert_eq!((codes.width(), codes.max(), codes.len()), (width, max, 3));
            assert!(codes.iter().eq([0, max, 1]));
            assert!(codes.with_width(8).iter().eq([0, max, 1]));
        }
        assert_eq!(Codes::narrow(&[]).max(), 0);
    }

    #[test]
    fn codes_are_mapped_and_masked() {
        let codes = Codes::narrow(&[0, 2, 1, 2]).remap(&[300, 0, 7]);
        assert_eq!(codes.width(), 2);
        assert!(codes.iter().eq([300, 7, 0, 7]));
        let validity = Bitmap::from([true, false, true, true].as_slice());
        assert!(codes.masked(Some(&validity)).iter().eq([300, 0, 0, 7]));
    }
}
