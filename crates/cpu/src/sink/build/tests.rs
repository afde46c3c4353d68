//! Builds of many rows, laid out in pieces, find what a map finds.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use tandem_column::{Dictionary, Type};
use tandem_plan::sink::BuildUse;

use super::lay_out;
use crate::{BytesVector, Values, Vector, lookup, lookup::write_key, parallel::serially};

fn scramble(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i as u64) << 7
}

fn nulls(vector: Vector, every: usize) -> Vector {
    let valid = (0..vector.len()).map(|row| (!(scramble(row) as usize).is_multiple_of(every)) as u8).collect();
    Vector { valid: Some(valid), ..vector }
}

fn text(rows: usize, distinct: usize) -> Vector {
    let word = |row: usize| {
        format!("{}{}", "x".repeat(scramble(row) as usize % distinct % 40), scramble(row) as usize % distinct)
    };
    let words: Vec<String> = (0..rows).map(word).collect();
    Vector::new(Values::Bytes(words.iter().map(|word| word.as_bytes()).collect::<BytesVector>()))
}

fn coded(rows: usize) -> Vector {
    let words: Vec<String> = (0..50).map(|i| format!("{i:02}")).collect();
    let (dictionary, remap) = Dictionary::from_unsorted(&Type::String, &words).expect("a dictionary");
    let codes = (0..rows).map(|row| remap[scramble(row) as usize % 50]).collect();
    Vector::new(Values::Code { codes, dictionary: Arc::new(dictionary) })
}

fn ints(rows: usize, value: impl Fn(usize) -> i64) -> Vector {
    Vector::new(Values::Int((0..rows).map(value).collect()))
}

/// Looks all rows of `probes` up in a build of `keys` and compares with a map from written keys.
fn check(name: &str, keys: Vec<Vector>, kinds: &[Type], probes: Vec<Vector>, used: BuildUse) {
    let (rows, asked) = (keys[0].len(), probes[0].len());
    let written = |keys: &[Vector], row: usize| {
        let null = keys.iter().any(|key| !key.is_valid(row));
        let mut bytes = Vec::new();
        write_key(&keys.iter().collect::<Vec<_>>(), row, &mut bytes);
        (!null || used.null_equals_null).then_some(bytes)
    };
    let mut expected: BTreeMap<Vec<u8>, Vec<i64>> = BTreeMap::new();
    for row in 0..rows {
        if let Some(key) = written(&keys, row) {
            expected.entry(key).or_default().push(row as i64);
        }
    }
    let payload = vec![ints(rows, |row| row as i64), text(rows, 1000)];
    let texts = payload[1].clone();
    let kinds: Vec<Type> = kinds.iter().cloned().chain([Type::Int64, Type::String]).collect();
    let build = lay_out(rows, (keys, payload), &kinds, (used, None), &serially).expect("a build");
    assert_eq!(build.is_unique(), expected.values().all(|rows| rows.len() == 1), "{name}");
    let vectors: Vec<Rc<Vector>> = probes.iter().cloned().map(Rc::new).collect();
    for first in [false, true] {
        let of = lookup::Asked { null_equals_null: used.null_equals_null, first };
        let found = lookup::find(&build, &vectors, asked, of);
        for (row, (start, end)) in found.into_iter().enumerate() {
            let wanted = written(&probes, row).and_then(|key| expected.get(&key)).map_or(&[][..], Vec::as_slice);
            let entries: Vec<i64> = (start..end).map(|entry| build.payload[0].int(entry as usize)).collect();
            match first && !entries.is_empty() && entries.len() < wanted.len() {
                true => assert_eq!(entries, wanted[..1], "{name}, row {row}"),
                false => assert_eq!(entries, wanted, "{name}, row {row}"),
            }
            for entry in start..end {
                let of = build.payload[0].int(entry as usize) as usize;
                assert_eq!(build.payload[1].bytes_at(entry as usize), texts.values.bytes(of), "{name}");
            }
        }
    }
}

#[test]
fn builds_of_every_size_find_all_rows_in_their_order() {
    let integer = [Type::Int64];
    let both = [Type::Int64, Type::Int64];
    let plain = BuildUse::default();
    for rows in [0usize, 1, 100, 70_000, 150_000] {
        let sparse = |row: usize| scramble(row) as i64;
        check("sparse", vec![ints(rows, sparse)], &integer, vec![ints(1000, |row| sparse(row * 3 / 2))], plain);
        let dense = |row: usize| (row * 7919 % 200_003) as i64 - 5;
        check("dense", vec![ints(rows, dense)], &integer, vec![ints(1000, |row| dense(row * 2) + 1)], plain);
        let repeated = |row: usize| (scramble(row) >> 20) as i64 % 3000;
        check("repeated", vec![ints(rows, repeated)], &integer, vec![ints(5000, |row| row as i64 - 100)], plain);
        let far = |row: usize| repeated(row) << 40;
        check("repeated and far", vec![ints(rows, far)], &integer, vec![ints(5000, |row| (row as i64) << 40)], plain);
        let skewed = |row: usize| if row.is_multiple_of(2) { 77 } else { sparse(row) };
        check("skewed", vec![ints(rows, skewed)], &integer, vec![ints(20, |row| skewed(row / 2 + 1))], plain);
        check(
            "wide",
            vec![ints(rows, sparse), ints(rows, repeated)],
            &both,
            vec![ints(999, sparse), ints(999, repeated)],
            plain,
        );
        check("text", vec![text(rows, 90_000)], &[Type::String], vec![text(3000, 100_000)], plain);
        let mixed = [Type::String, Type::String, Type::Float64];
        let floats = |rows: usize| Vector::new(Values::Float((0..rows).map(|row| (row % 3) as f64 - 1.0).collect()));
        check(
            "mixed",
            vec![text(rows, 90), coded(rows), floats(rows)],
            &mixed,
            vec![coded(600), text(600, 90), floats(600)],
            plain,
        );
        for null_equals_null in [false, true] {
            for outer in [false, true] {
                let used = BuildUse { null_equals_null, outer, ..plain };
                let (left, right) = (nulls(text(rows, 900), 7), nulls(ints(rows, repeated), 5));
                let probes = vec![nulls(text(500, 900), 7), nulls(ints(500, repeated), 3)];
                check("nulls", vec![left, right.clone()], &[Type::String, Type::Int64], probes, used);
                check("a null", vec![right], &integer, vec![nulls(ints(500, repeated), 3)], used);
            }
        }
    }
    let collide = BuildUse { collide: true, ..plain };
    check("one hash", vec![text(900, 300)], &[Type::String], vec![text(900, 400)], collide);
    check("one bucket", vec![ints(900, |row| row as i64 / 3)], &integer, vec![ints(900, |row| row as i64)], collide);
}
