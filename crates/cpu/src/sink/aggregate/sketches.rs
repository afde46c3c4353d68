//! Values added to sketches: hashed a vector at a time, words of a dictionary once.

use std::sync::Arc;

use tandem_column::Dictionary;
use tandem_pipeline::{
    partition::{SEED, hash_bytes},
    scalar::sketch::Sketch,
};

use super::{accumulator::GroupOf, update::for_rows};
use crate::{Values, Vector, sink::partition, vector::word};

/// The most words of a dictionary whose hashes are kept: 2 MB of them.
const MOST_WORDS: usize = 1 << 18;

/// The hashes of the words of the dictionary that came last.
#[derive(Debug, Default)]
pub(super) struct Words {
    of: Option<Arc<Dictionary>>,
    hashes: Vec<u64>,
    /// Rows that came as codes.
    rows: usize,
}

impl Words {
    /// Returns the hash of each row; of nulls, any.
    fn hash(&mut self, vector: &Vector, rows: usize) -> Vec<u64> {
        if let Values::Code { codes, dictionary } = &vector.values {
            self.rows += rows;
            // Where rows are fewer than words, most words are not met.
            if dictionary.len() <= MOST_WORDS.min(self.rows) && !dictionary.is_empty() {
                let same = self.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, dictionary));
                if !same {
                    let codes = 0..dictionary.len() as u32;
                    self.hashes = codes.map(|code| hash_bytes(SEED, word(dictionary, code))).collect();
                    self.of = Some(dictionary.clone());
                }
                return codes.iter().map(|code| self.hashes[*code as usize]).collect();
            }
        }
        partition::hashes(std::slice::from_ref(vector), rows)
    }
}

/// Adds values to the sketches of their groups; returns by how many bytes these grew.
pub(super) fn add(
    sketches: &mut [Sketch],
    words: &mut Words,
    groups: GroupOf<'_>,
    rows: usize,
    vector: Option<&Vector>,
    mask: Option<&[u8]>,
) -> usize {
    let Some(vector) = vector else { return 0 };
    let hashes = words.hash(vector, rows);
    let mut grown = 0;
    match (groups, mask) {
        (GroupOf::One, None) => {
            let before = sketches[0].byte_len();
            sketches[0].add_hashes(hashes.into_iter());
            grown = sketches[0].byte_len().saturating_sub(before);
        }
        _ => for_rows(rows, mask, |row| {
            let sketch = &mut sketches[groups.of(row)];
            match sketch {
                Sketch::Dense(_) => sketch.add_hash(hashes[row]),
                Sketch::Sparse(_) => {
                    let before = sketch.byte_len();
                    sketch.add_hash(hashes[row]);
                    grown += sketch.byte_len().saturating_sub(before);
                }
            }
        }),
    }
    grown
}
