//! How many keys the tables have, and how many of those of both sides of a join are the same.

use std::collections::HashSet;

use arrow_array::{cast::AsArray, types::Int32Type};

use super::*;

fn keys(table: &str, column: &str) -> Vec<i32> {
    let options = GeneratorOptions { rows: 20_000, seed: 5, ..GeneratorOptions::default() };
    let sources = sources(&options);
    let source = sources.iter().find(|source| source.name() == table).expect("a table of the benchmark");
    let mut keys = Vec::new();
    for group in 0..source.groups() {
        let mut take = |batch: arrow_array::RecordBatch| {
            let column = batch.column_by_name(column).expect("the table has the column").clone();
            keys.extend(column.as_primitive::<Int32Type>().values().iter().copied());
            Ok(())
        };
        source.generate(group, &mut take).expect("rows are made");
    }
    keys
}

#[test]
fn keys_of_groups_are_few_or_many() {
    let distinct = |column: &str| keys("g1", column).into_iter().collect::<HashSet<_>>().len();
    assert_eq!((distinct("id4"), distinct("id6"), distinct("v1"), distinct("v2")), (100, 200, 5, 15));
}

#[test]
fn nine_tenths_of_the_keys_of_a_join_are_on_both_sides() {
    let right = keys("big", "id3");
    let unique: HashSet<i32> = right.iter().copied().collect();
    assert_eq!((right.len(), unique.len()), (20_000, 20_000), "every key has one row");
    let found = keys("x", "id3").iter().filter(|key| unique.contains(key)).count();
    assert!((17_500..18_500).contains(&found), "{found} of 20,000 rows find a match");
    assert!(right.windows(2).any(|pair| pair[0] > pair[1]), "rows come in no order of the key");
}
