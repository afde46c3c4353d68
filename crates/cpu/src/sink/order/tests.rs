//! Orders of random keys, against a stable sort by comparison.

use tandem_column::{Dictionary, Type};
use tandem_pipeline::SortKey;

use super::*;
use crate::Values;

fn below(rng: &mut dyn FnMut() -> u64, limit: u64) -> u64 {
    rng() % limit
}

/// Makes a vector of a random kind, with few or many distinct values, and nulls at times.
fn vector(rng: &mut dyn FnMut() -> u64, rows: usize) -> Vector {
    let spread = [1, 2, 300, u64::MAX][below(rng, 4) as usize];
    let float = |bits: u64| match bits % 7 {
        0 => [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY][(bits / 7 % 6) as usize],
        _ => (bits % spread) as f64 - 100.0,
    };
    let text = |bits: u64| {
        let zeros = "\0".repeat((bits / 3 % 3) as usize);
        match bits % 3 {
            0 => format!("common beginning {}{zeros}", bits % spread),
            1 => format!("{}{zeros}", bits % spread.min(50)),
            _ => zeros,
        }
    };
    let values = match below(rng, 7) {
        0 => Values::Boolean((0..rows).map(|_| below(rng, 2) as u8).collect()),
        1 => Values::Int((0..rows).map(|_| below(rng, spread) as i64).collect()),
        2 => Values::Int((0..rows).map(|_| [i64::MIN, i64::MAX, 0, rng() as i64][below(rng, 4) as usize]).collect()),
        3 => Values::Wide((0..rows).map(|_| i128::from(rng() as i64) << below(rng, 64)).collect()),
        4 => Values::Float((0..rows).map(|_| float(rng())).collect()),
        5 => Values::Bytes((0..rows).map(|_| text(rng())).collect::<Vec<_>>().iter().map(String::as_bytes).collect()),
        _ => {
            let words: Vec<String> = (0..20).map(|word| format!("word {word}")).collect();
            let (dictionary, _) = Dictionary::from_unsorted(&Type::String, &words).expect("few words");
            let dictionary = std::sync::Arc::new(dictionary);
            Values::Code { codes: (0..rows).map(|_| below(rng, 20) as u32).collect(), dictionary }
        }
    };
    let nulls = below(rng, 3) == 0;
    let valid = nulls.then(|| (0..rows).map(|_| u8::from(below(rng, 4) > 0)).collect());
    Vector { values, valid }
}

#[test]
fn random_orders_are_those_of_a_stable_sort() {
    let seed = std::env::var("TANDEM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    println!("seed {seed}");
    let mut state = seed;
    // SplitMix64.
    let mut rng = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    for round in 0..200 {
        let rows = [0, 1, 7, 300, 5_000, 100_000][if round < 180 { round % 5 } else { 5 }];
        let keys: Vec<SortKey> = (0..1 + below(&mut rng, 4) as usize)
            .map(|slot| SortKey { slot, descending: rng() % 2 == 0, nulls_first: rng() % 2 == 0 })
            .collect();
        let vectors: Vec<Vector> = keys.iter().map(|_| vector(&mut rng, rows)).collect();
        let vectors: Vec<&Vector> = vectors.iter().collect();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by(|left, right| compare::rows(&keys, &vectors, *left as usize, *right as usize));
        let limit = if round % 3 == 0 { below(&mut rng, rows as u64 + 2) as usize } else { usize::MAX };
        expected.truncate(limit);
        let found = order(&keys, &vectors, rows, limit, &alone).expect("nothing cancels it");
        assert!(found == expected, "seed {seed}, round {round}, keys {keys:?}");
        // Rows that are in order already, or but for the last, are found to be so.
        let mut again: Vec<Vector> = vectors.iter().map(|vector| vector.take(&found)).collect();
        let stays: Vec<u32> = (0..found.len() as u32).collect();
        let ordered = |again: &[Vector]| {
            order(&keys, &again.iter().collect::<Vec<_>>(), found.len(), usize::MAX, &alone)
                .expect("nothing cancels it")
        };
        assert!(ordered(&again) == stays, "seed {seed}, round {round}, keys {keys:?}, in order");
        if let (Some(last), true) = (found.last(), found.len() > 1) {
            let moved: Vec<u32> = std::iter::once(found.len() as u32 - 1).chain(0..found.len() as u32 - 1).collect();
            again.iter_mut().for_each(|vector| *vector = vector.take(&moved));
            let first = compare::rows(&keys, &vectors, found[0] as usize, *last as usize);
            if first.is_ne() {
                let back = ordered(&again);
                assert!(back.iter().all(|row| (*row as usize) < found.len()) && back != stays, "round {round}");
            }
        }
    }
}
