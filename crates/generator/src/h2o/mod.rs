//! The tables of the db-benchmark's group-by and join questions, after its description: how many rows and keys each has.
//!
//! `g1` has N rows in K = 100 groups of the small keys and N/K of the large ones. `x` is joined with `small`, `medium` and `big`, which
//! have N/10⁶, N/10³ and N rows of different keys; nine tenths of the keys of either side are those of the other, too.

mod group;
mod join;

use crate::{
    GeneratorOptions,
    columns::{batch, floats, integers, schema, strings},
    random::Random,
    source::TableSource,
};

/// Returns the table of the group-by questions.
pub fn group_sources(options: &GeneratorOptions) -> Vec<Box<dyn TableSource>> {
    vec![Box::new(group::Groups::new(options.seed, options.rows))]
}

/// Returns all five tables, the smallest first.
pub fn sources(options: &GeneratorOptions) -> Vec<Box<dyn TableSource>> {
    let mut sources: Vec<Box<dyn TableSource>> = Vec::new();
    for side in join::SIDES {
        sources.push(Box::new(join::Side::new(side, options.seed, options.rows)));
    }
    sources.extend(group_sources(options));
    sources
}

/// Draws a number from 0 to 100 with six digits behind the point.
fn measure(random: &mut Random) -> f64 {
    random.below(100_000_000) as f64 / 1e6
}

#[cfg(test)]
mod tests;
