//! Choices: where the generators get their numbers from, and what a case can be made again from.

/// Draws numbers from a seed or from a list, and remembers them. Where a list ends, every further choice is 0.
#[derive(Debug)]
pub struct Choices {
    list: Vec<u32>,
    at: usize,
    /// The state of the random numbers behind the list; none: zeros.
    random: Option<u64>,
    made: Vec<u32>,
}

impl Choices {
    /// Draws at random from a seed.
    pub fn random(seed: u64) -> Self {
        Choices { list: Vec::new(), at: 0, random: Some(seed), made: Vec::new() }
    }

    /// Draws what a list holds.
    pub fn replay(list: Vec<u32>) -> Self {
        Choices { list, at: 0, random: None, made: Vec::new() }
    }

    /// Returns what was drawn.
    pub fn made(&self) -> &[u32] {
        &self.made
    }

    /// Draws a number below `limit`; 0 is the simplest choice.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = limit.max(1) as u64;
        let drawn = match (self.list.get(self.at), &mut self.random) {
            (Some(number), _) => u64::from(*number) % limit,
            (None, Some(state)) => split_mix(state) % limit,
            (None, None) => 0,
        };
        self.at += 1;
        self.made.push(drawn as u32);
        drawn as usize
    }

    /// Tells, in so many of a hundred cases, yes; no is the simpler choice.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// Chooses one of some things, the first being the simplest.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// SplitMix64: quick, and good enough to choose by.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
