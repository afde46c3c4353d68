//! Random numbers by counter: the stream of any row starts from the seed and the row's key alone, so that rows can be made in
//! any order on any thread. SplitMix64, which is quick and passes the usual statistical tests.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads every bit of `x` over the whole word.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Which random quantity a stream is for: streams of different uses are independent for the same key.
#[derive(Clone, Copy)]
pub enum Use {
    LineCount = 1,
    Order,
    Customer,
    Supplier,
    Part,
    Group,
    Join,
}

/// A family of streams, one per key.
#[derive(Clone, Copy)]
pub struct Streams(u64);

impl Streams {
    /// Makes the family of one use.
    pub fn new(seed: u64, of: Use) -> Self {
        Streams(mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add((of as u64).wrapping_mul(GOLDEN))))
    }

    /// Starts the stream of one key.
    pub fn stream(self, key: u64) -> Random {
        Random(mix(self.0 ^ key.wrapping_mul(GOLDEN)))
    }
}

/// One stream of random numbers.
pub struct Random(u64);

impl Random {
    /// Draws 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Draws a number below `n`, each as likely up to 1 in 2^40 for the bounds used here.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Draws a number from `low` to `high`, both included.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as u64) as i32
    }

    /// Draws one of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }
}
