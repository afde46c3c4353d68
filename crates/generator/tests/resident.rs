//! Resident tables: the same rows as the files, whatever the number of threads, in compact columns.

use std::fs::File;

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Int32Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tandem_generator::{GeneratorOptions, Table, ssb_tables, tpch_tables, write_ssb};

fn options(threads: usize) -> GeneratorOptions {
    GeneratorOptions { sf: 0.2, seed: 3, threads, ..GeneratorOptions::default() }
}

fn find<'a>(tables: &'a [(String, Table)], name: &str) -> &'a Table {
    &tables.iter().find(|(known, _)| known == name).expect("a table").1
}

/// Sums integers and lengths of text of a column, weighted by row, so that order counts.
fn digest(array: &dyn Array, from: usize) -> u64 {
    let weigh = |row: usize, value: u64| value.wrapping_mul(2 * (from + row) as u64 + 1);
    let sum = |a: u64, b: u64| a.wrapping_add(b);
    match array.as_primitive_opt::<Int32Type>() {
        Some(values) => values.values().iter().enumerate().map(|(row, v)| weigh(row, *v as u64)).fold(0, sum),
        None => {
            let hash = |text: &str| text.bytes().fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
            let values = array.as_string::<i32>();
            values.iter().enumerate().map(|(row, v)| weigh(row, hash(v.expect("no nulls")))).fold(0, sum)
        }
    }
}

fn digests(batches: impl Iterator<Item = RecordBatch>) -> Vec<u64> {
    let (mut rows, mut all) = (0, Vec::new());
    for batch in batches {
        all.resize(batch.num_columns(), 0u64);
        all.iter_mut().zip(batch.columns()).for_each(|(d, column)| *d = d.wrapping_add(digest(column, rows)));
        rows += batch.num_rows();
    }
    all
}

#[test]
fn resident_ssb_equals_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let files = write_ssb(&options(2), dir.path(), &|_, _| ()).unwrap();
    let tables = ssb_tables(&options(3), &|_, _| ()).unwrap();
    for file in files {
        let table = find(&tables, &file.name);
        assert_eq!(table.rows() as u64, file.rows, "{}", file.name);
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(&file.path).unwrap()).unwrap().build().unwrap();
        let written = digests(reader.map(|batch| batch.unwrap()));
        assert_eq!(digests(table.to_batches(8192).unwrap().into_iter()), written, "{}", file.name);
    }
    let lineorder = find(&tables, "lineorder");
    // 17 columns in at most 41 bytes a row is 2.5 GB at scale factor 10.
    assert!(lineorder.byte_len() < 41 * lineorder.rows(), "{} bytes a row", lineorder.byte_len() / lineorder.rows());
}

#[test]
fn resident_tpch_is_complete() {
    let tables =
        tpch_tables(&GeneratorOptions { sf: 0.01, seed: 0, threads: 2, ..GeneratorOptions::default() }, &|_, _| ())
            .unwrap();
    let rows: Vec<_> = tables.iter().map(|(name, table)| (name.as_str(), table.rows())).collect();
    assert_eq!(
        rows,
        [
            ("region", 5),
            ("nation", 25),
            ("supplier", 100),
            ("part", 2_000),
            ("customer", 1_500),
            ("partsupp", 8_000),
            ("orders", 15_000),
            ("lineitem", 60_175)
        ]
    );
}
