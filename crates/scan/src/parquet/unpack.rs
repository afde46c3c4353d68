//! Bit-packed integers to whole ones, eight at a time.
//!
//! Eight values of `W` bits are `W` bytes. Up to 8 bits they fit one 64-bit word, which is spread to bytes in three
//! shift-and-mask steps; up to 16 bits, two words of four values each; beyond, one load per value. A load reads eight
//! bytes, so callers pass everything up to the end of the page; only the very end goes through a padded copy.

/// An index type wide enough for the bit widths it is unpacked from.
pub(super) trait Index: Copy + Default + Ord + 'static {
    /// Returns the function that unpacks values of `width` bits: 1 to 8 into bytes, 9 to 16 into shorts, 17 to 32 into words.
    fn unpacker(width: u32) -> Unpack<Self>;
    fn to_usize(self) -> usize;
}

/// Unpacks `out.len()` values from the start of the bytes, which hold at least `out.len()` values rounded up to eight.
pub(super) type Unpack<I> = fn(&[u8], &mut [I]);

/// Bytes read beyond the start of a group by the widest load pattern (32 bits: value 7 starts at byte 28).
const REACH: usize = 40;

fn load(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Runs `group(bytes, out)` for each eight values; `bytes` always has [`REACH`] readable bytes.
#[inline(always)]
fn groups<I: Index, const W: usize>(input: &[u8], out: &mut [I], group: impl Fn(&[u8; REACH], &mut [I; 8])) {
    let mut position = 0;
    let mut chunks = out.chunks_exact_mut(8);
    for chunk in &mut chunks {
        let chunk: &mut [I; 8] = chunk.try_into().expect("chunks of eight");
        match input.get(position..position + REACH) {
            Some(bytes) => group(bytes.try_into().expect("cut to length"), chunk),
            None => group(&padded(&input[position..]), chunk),
        }
        position += W;
    }
    let rest = chunks.into_remainder();
    if !rest.is_empty() {
        let mut last = [I::default(); 8];
        group(&padded(&input[position..]), &mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cold]
fn padded(input: &[u8]) -> [u8; REACH] {
    let mut bytes = [0; REACH];
    let count = input.len().min(REACH);
    bytes[..count].copy_from_slice(&input[..count]);
    bytes
}

const fn mask(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Repeats the low `bits` bits at every `every` bits of a word.
const fn repeat(bits: usize, every: usize) -> u64 {
    let mut word = 0;
    let mut at = 0;
    while at < 64 {
        word |= mask(bits) << at;
        at += every;
    }
    word
}

fn unpack_bytes<const W: usize>(input: &[u8], out: &mut [u8]) {
    groups::<u8, W>(input, out, |bytes, out| {
        let mut word = load(bytes, 0);
        if W < 8 {
            word = (word & mask(4 * W)) | (((word >> (4 * W)) & mask(4 * W)) << 32);
            let pairs = const { repeat(2 * W, 32) };
            word = (word & pairs) | ((word & (pairs << (2 * W))) << (16 - 2 * W));
            let singles = const { repeat(W, 16) };
            word = (word & singles) | ((word & (singles << W)) << (8 - W));
        }
        *out = word.to_le_bytes();
    });
}

fn unpack_shorts<const W: usize>(input: &[u8], out: &mut [u16]) {
    groups::<u16, W>(input, out, |bytes, out| {
        let halves = [load(bytes, 0), load(bytes, W / 2) >> (4 * W % 8)];
        for (half, out) in halves.into_iter().zip(out.chunks_exact_mut(4)) {
            let mut word = half & mask(4 * W);
            if W < 16 {
                word = (word & mask(2 * W)) | ((word >> (2 * W)) << 32);
                let singles = const { repeat(W, 32) };
                word = (word & singles) | ((word & (singles << W)) << (16 - W));
            }
            for (lane, out) in out.iter_mut().enumerate() {
                *out = (word >> (16 * lane)) as u16;
            }
        }
    });
}

fn unpack_words<const W: usize>(input: &[u8], out: &mut [u32]) {
    groups::<u32, W>(input, out, |bytes, out| {
        for (index, out) in out.iter_mut().enumerate() {
            *out = ((load(bytes, index * W / 8) >> (index * W % 8)) & mask(W)) as u32;
        }
    });
}

macro_rules! choose {
    ($width:expr, $function:ident, $($w:literal)*) => {
        match $width { $($w => $function::<$w>,)* _ => unreachable!("the caller checks the bit width") }
    };
}

impl Index for u8 {
    fn unpacker(width: u32) -> Unpack<u8> {
        choose!(width, unpack_bytes, 1 2 3 4 5 6 7 8)
    }
    fn to_usize(self) -> usize {
        self.into()
    }
}

impl Index for u16 {
    fn unpacker(width: u32) -> Unpack<u16> {
        choose!(width, unpack_shorts, 9 10 11 12 13 14 15 16)
    }
    fn to_usize(self) -> usize {
        self.into()
    }
}

impl Index for u32 {
    fn unpacker(width: u32) -> Unpack<u32> {
        choose!(width, unpack_words, 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    }
    fn to_usize(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<I: Index>(width: u32) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(width);
        for count in [1usize, 7, 8, 9, 64, 504, 1000] {
            let values: Vec<u64> = (0..count)
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (state >> 32) & mask(width as usize)
                })
                .collect();
            let mut packed = vec![0u8; count.div_ceil(8) * width as usize];
            for (index, value) in values.iter().enumerate() {
                for bit in 0..width as usize {
                    let at = index * width as usize + bit;
                    packed[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
                }
            }
            let mut out = vec![I::default(); count];
            I::unpacker(width)(&packed, &mut out);
            let got: Vec<u64> = out.iter().map(|value| value.to_usize() as u64).collect();
            assert_eq!(got, values, "width {width}, {count} values");
        }
    }

    #[test]
    fn every_width_round_trips() {
        (1..=8).for_each(check::<u8>);
        (9..=16).for_each(check::<u16>);
        (17..=32).for_each(check::<u32>);
    }
}
