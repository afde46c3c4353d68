//! Parquet files of many types, encodings, page versions and compressions, compared with the Arrow reader; and damage.

use std::{fs::File, path::Path, sync::Arc};

use arrow::{
    array::*,
    compute::concat_batches,
    datatypes::{DataType, TimeUnit},
};
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_column::Table;
use tandem_pipeline::{Comparison, Expr, Value};
use tandem_runtime::{Cancel, RowProgress, Runtime};
use tandem_scan::{ColumnCache, FileTable, Format, Loading};

fn random(seed: u64) -> ChaCha8Rng {
    println!("seed {seed}");
    ChaCha8Rng::seed_from_u64(seed)
}

/// Makes rows of every flat type; `nulls` of 10 values are null, `distinct` bounds the values.
fn rows(random: &mut ChaCha8Rng, rows: usize, nulls: u32, distinct: i64) -> RecordBatch {
    macro_rules! column {
        ($array:ty, $value:expr) => {{
            let values = (0..rows).map(|_| (random.random_range(0..10u32) >= nulls).then(|| $value));
            Arc::new(values.collect::<$array>()) as ArrayRef
        }};
    }
    let text =
        |value: i64| "tandem ".repeat(value as usize % 4) + &value.to_string() + ["", "é", "漢"][value as usize % 3];
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("i8", column!(Int8Array, random.random_range(-5..5))),
        ("i16", column!(Int16Array, random.random_range(-500..500))),
        ("i32", column!(Int32Array, 19920101 + random.random_range(0..distinct) as i32)),
        ("i64", column!(Int64Array, random.random_range(0..distinct) - (1 << 40))),
        ("wide_i64", column!(Int64Array, random.random())),
        ("u8", column!(UInt8Array, random.random())),
        ("u16", column!(UInt16Array, random.random())),
        ("u32", column!(UInt32Array, u32::MAX - random.random_range(0..distinct) as u32)),
        ("u64", column!(UInt64Array, u64::MAX - random.random_range(0..distinct) as u64)),
        ("f32", column!(Float32Array, [0.0, -0.0, f32::NAN, f32::INFINITY, 1.5][random.random_range(0..5)])),
        ("f64", column!(Float64Array, random.random_range(0..distinct) as f64 / 8.0)),
        ("flag", column!(BooleanArray, random.random())),
        ("text", column!(StringArray, text(random.random_range(0..distinct)))),
        ("bytes", column!(BinaryArray, random.random_range(0..distinct).to_be_bytes())),
        ("date", column!(Date32Array, random.random_range(-1000..distinct as i32))),
        ("ms", column!(TimestampMillisecondArray, random.random_range(0..distinct) * 86_400_000)),
        ("time", column!(Time64MicrosecondArray, random.random_range(0..distinct))),
    ];
    let zoned = column!(TimestampMicrosecondArray, random.random_range(0..distinct));
    let zoned = zoned.as_any().downcast_ref::<TimestampMicrosecondArray>().expect("microseconds").clone();
    columns.push(("zoned", Arc::new(zoned.with_timezone("UTC"))));
    for (name, precision, scale) in [("d5", 5, 2), ("d12", 12, 0), ("d18", 18, 4), ("d30", 30, 10)] {
        let array = column!(Decimal128Array, i128::from(random.random_range(-500..500)));
        let array = array.as_any().downcast_ref::<Decimal128Array>().expect("decimals").clone();
        columns.push((name, Arc::new(array.with_precision_and_scale(precision, scale).expect("it fits"))));
    }
    columns.push(("nothing", new_null_array(&DataType::Utf8, rows)));
    let fixed: Vec<Option<[u8; 3]>> = (0..rows)
        .map(|_| (random.random_range(0..10u32) >= nulls).then(|| [random.random_range(0..3), 1, 2]))
        .collect();
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed.into_iter(), 3).expect("three bytes");
    columns.push(("fixed", Arc::new(fixed)));
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, nulls > 0 || name == "nothing")),
    )
    .expect("columns of one length")
}

fn write(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    let file = File::create(path).expect("a temporary file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a schema that Parquet has");
    writer.write(batch).expect("rows that Parquet has");
    writer.close().expect("a whole file");
}

fn read_with_arrow(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("there")).expect("a footer");
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().expect("readable").map(|batch| batch.expect("readable")).collect();
    concat_batches(&schema, &batches).expect("one schema")
}

/// Lends everything that a load needs.
fn with<T>(cache: &ColumnCache, runtime: &Runtime, cancel: &Cancel, load: impl FnOnce(&Loading<'_>) -> T) -> T {
    load(&Loading { cache, runtime, memory: &Default::default(), cancel, progress: &RowProgress::default() })
}

fn load(
    table: &FileTable,
    columns: &[usize],
    predicates: &[Expr],
    cache: &ColumnCache,
) -> tandem_column::Result<Table> {
    with(cache, &Runtime::new(2), &Cancel::new(), |loading| table.load(columns, predicates, loading))
        .map(|(table, _)| table)
}

fn check(path: &Path, what: &str) {
    let expected = read_with_arrow(path);
    let table = FileTable::open(vec![path.to_owned()], Format::Parquet).expect("a good file");
    assert_eq!(table.rows(), Some(expected.num_rows()));
    let columns: Vec<usize> = (0..table.schema().len()).filter(|column| table.unsupported(*column).is_none()).collect();
    let cache = ColumnCache::new(1 << 30);
    for round in ["cold", "warm"] {
        let loaded = load(&table, &columns, &[], &cache).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(loaded.rows(), expected.num_rows(), "{what}");
        let mut start = 0;
        for part in &loaded.parts {
            for (position, &column) in columns.iter().enumerate() {
                let kind = expected.schema().field(column).data_type().clone();
                let got = part.columns[position].to_arrow_as(0..part.rows, &kind).expect("its own type");
                let name = expected.schema().field(column).name().clone();
                assert_eq!(
                    part.columns[position].blocks.len(),
                    part.rows.div_ceil(tandem_column::BLOCK_ROWS),
                    "{name}"
                );
                let want = expected.column(column).slice(start, part.rows);
                assert_eq!(got.to_data(), make_array(want.to_data()).to_data(), "{what}, {round}: {name}");
            }
            start += part.rows;
        }
    }
    assert!(cache.hits() > 0 && cache.byte_len() > 0);
}

fn builder() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_max_row_group_row_count(Some(1500))
        .set_data_page_row_count_limit(400)
        .set_write_batch_size(100)
}

#[test]
fn every_type_page_version_and_compression() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("all.parquet");
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::LZ4,
        Compression::GZIP(Default::default()),
    ];
    let mut seed = 0;
    for codec in codecs {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [true, false] {
                for (nulls, distinct) in [(0, 20), (3, 1000), (10, 5)] {
                    seed += 1;
                    let batch = rows(&mut random(seed), 4000, nulls, distinct);
                    let properties =
                        builder().set_compression(codec).set_writer_version(version).set_dictionary_enabled(dictionary);
                    write(&path, &batch, properties.build());
                    check(
                        &path,
                        &format!("{codec} {version:?} dictionary {dictionary} nulls {nulls} distinct {distinct}"),
                    );
                }
            }
        }
    }
}

#[test]
fn dictionaries_that_overflow_into_plain_pages() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("mixed.parquet");
    for (seed, nulls) in [(100, 0), (101, 2)] {
        let batch = rows(&mut random(seed), 20_000, nulls, 1 << 20);
        let properties = builder().set_max_row_group_row_count(Some(9000)).set_dictionary_page_size_limit(2000);
        write(&path, &batch, properties.build());
        check(&path, &format!("overflowing dictionaries, nulls {nulls}"));
    }
}

#[test]
fn large_dictionaries_need_wide_indices() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("wide.parquet");
    let mut random = random(7);
    for distinct in [300, 70_000] {
        let values: Vec<i32> = (0..200_000).map(|_| random.random_range(0..distinct) * 37).collect();
        let texts: StringArray = values.iter().map(|value| Some(format!("value {value}"))).collect();
        let columns = [("n", Arc::new(Int32Array::from(values)) as ArrayRef), ("t", Arc::new(texts) as ArrayRef)];
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20).build();
        write(&path, &batch, properties);
        check(&path, &format!("{distinct} distinct values"));
    }
}

#[test]
fn encodings_left_to_the_parquet_crate() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("other.parquet");
    let batch = rows(&mut random(9), 3000, 2, 100);
    let mut properties = builder().set_dictionary_enabled(false).set_statistics_enabled(EnabledStatistics::None);
    for (column, encoding) in [
        ("i32", Encoding::DELTA_BINARY_PACKED),
        ("i64", Encoding::DELTA_BINARY_PACKED),
        ("text", Encoding::DELTA_BYTE_ARRAY),
        ("bytes", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("f64", Encoding::BYTE_STREAM_SPLIT),
        ("f32", Encoding::BYTE_STREAM_SPLIT),
    ] {
        properties = properties.set_column_encoding(column.into(), encoding);
    }
    write(&path, &batch, properties.build());
    check(&path, "delta and split encodings, no statistics");
}

#[test]
fn no_rows_no_columns_and_one_row() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("few.parquet");
    for count in [0, 1] {
        let batch = rows(&mut random(11), count, 0, 10);
        write(&path, &batch, builder().build());
        let table = FileTable::open(vec![path.clone()], Format::Parquet).expect("a good file");
        let cache = ColumnCache::new(0);
        let loaded = load(&table, &[0, 12], &[], &cache).expect("readable");
        assert_eq!((loaded.rows(), loaded.schema.len()), (count, 2));
        assert_eq!(load(&table, &[], &[], &cache).expect("readable").rows(), count);
        assert_eq!(cache.byte_len(), 0);
    }
}

#[test]
fn nested_columns_are_named_and_the_others_load() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("nested.parquet");
    let list = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    let plain = Int32Array::from(vec![1, 2, 3]);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("list", Arc::new(list) as ArrayRef, true),
        ("plain", Arc::new(plain) as ArrayRef, false),
    ])
    .expect("columns of one length");
    write(&path, &batch, builder().build());
    let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
    assert!(table.unsupported(0).is_some_and(|reason| reason.contains("list")) && table.unsupported(1).is_none());
    let cache = ColumnCache::new(1 << 20);
    assert_eq!(load(&table, &[1], &[], &cache).expect("readable").rows(), 3);
    assert!(load(&table, &[0], &[], &cache).is_err());
}

fn at_least(slot: usize, value: i128, kind: tandem_column::Type) -> Expr {
    let comparison = Comparison::GreaterOrEqual;
    Expr::Compare(comparison, Box::new(Expr::Slot(slot)), Box::new(Expr::Literal(Value::Integer(value), kind)))
}

#[test]
fn row_groups_are_left_out_by_statistics_and_by_predicate_columns() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("pruned.parquet");
    let key: Int32Array = (0..10_000).collect();
    let scattered: Int32Array =
        (0..10_000).map(|row| if row / 1000 == 3 { (row % 2) * 100 } else { row % 100 }).collect();
    let text: StringArray = (0..10_000).map(|row| Some(format!("t{}", row / 1000))).collect();
    let columns = [
        ("key", Arc::new(key) as ArrayRef),
        ("scattered", Arc::new(scattered) as ArrayRef),
        ("text", Arc::new(text) as ArrayRef),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    write(&path, &batch, builder().set_max_row_group_row_count(Some(1000)).build());
    let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
    let cache = ColumnCache::new(1 << 30);
    let int = tandem_column::Type::Int32;
    let loaded = load(&table, &[2, 0], &[at_least(1, 8500, int.clone())], &cache).expect("readable");
    assert_eq!(loaded.rows(), 2000);
    assert_eq!(loaded.statistics[1].range, Some((8000, 9999)));
    // Within the range of every row group, but a value of only some.
    let fifty = Expr::In { input: Box::new(Expr::Slot(0)), list: vec![Value::Integer(50), Value::Integer(100)] };
    let misses = cache.misses();
    let above = Expr::And(vec![fifty.clone(), at_least(1, 2500, int.clone())]);
    assert_eq!(load(&table, &[1, 0, 2], &[above], &cache).expect("readable").rows(), 8000);
    assert!(cache.misses() > misses);
    let text_is = |value: &str| {
        let literal = Expr::Literal(Value::String(value.into()), tandem_column::Type::String);
        Expr::Compare(Comparison::Equal, Box::new(Expr::Slot(0)), Box::new(literal))
    };
    assert_eq!(load(&table, &[2], &[text_is("t4")], &cache).expect("readable").rows(), 1000);
    assert_eq!(load(&table, &[2, 1], &[text_is("nowhere")], &cache).expect("readable").rows(), 0);
    let odd =
        Expr::Compare(Comparison::Equal, Box::new(Expr::Slot(0)), Box::new(Expr::Literal(Value::Integer(51), int)));
    assert_eq!(load(&table, &[1, 2], &[odd], &cache).expect("readable").rows(), 9000);
    assert_eq!(load(&table, &[1, 2], &[], &cache).expect("readable").rows(), 10_000);
}

/// Numbers too far apart for offsets from the smallest are kept as they are, the negative ones too.
#[test]
fn predicates_on_numbers_far_apart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("far.parquet");
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![-5_000_000_000, 7, 5_000_000_000, i64::MIN, i64::MAX]));
    let others: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5]));
    let batch = RecordBatch::try_from_iter([("a", numbers), ("b", others)]).expect("two columns");
    let plain = builder().set_statistics_enabled(EnabledStatistics::None);
    let delta = builder().set_dictionary_enabled(false).set_encoding(Encoding::DELTA_BINARY_PACKED);
    for properties in [plain, delta] {
        write(&path, &batch, properties.build());
        let table = FileTable::open(vec![path.clone()], Format::Parquet).expect("a good file");
        let compare = |comparison, value| {
            let literal = Expr::Literal(Value::Integer(value), tandem_column::Type::Int64);
            Expr::Compare(comparison, Box::new(Expr::Slot(0)), Box::new(literal))
        };
        let loaded = |comparison, value| {
            let predicates = [compare(comparison, value)];
            load(&table, &[0, 1], &predicates, &ColumnCache::new(1 << 20)).expect("readable").rows()
        };
        assert_eq!(loaded(Comparison::Equal, 7), 5);
        assert_eq!(loaded(Comparison::Less, 0), 5);
        assert_eq!(loaded(Comparison::Greater, 5_000_000_000), 5);
        assert_eq!(loaded(Comparison::Equal, i64::MIN.into()), 5);
        assert_eq!(loaded(Comparison::Equal, 8), 0, "no row has it");
    }
}

#[test]
fn dictionaries_of_row_groups_become_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("merged.parquet");
    // The first row group has no value, as one in the middle.
    let present = |row: &i32| row % 7 != 0 && row / 500 != 0 && row / 500 != 4;
    let text: StringArray =
        (0..5000).map(|row| present(&row).then(|| format!("v{}", row / 500 % 4 + row % 3))).collect();
    let batch =
        RecordBatch::try_from_iter_with_nullable([("text", Arc::new(text) as ArrayRef, true)]).expect("one column");
    write(&path, &batch, builder().set_max_row_group_row_count(Some(500)).build());
    check(&path, "dictionaries that differ");
    let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
    let loaded = load(&table, &[0], &[], &ColumnCache::new(1 << 30)).expect("readable");
    let dictionaries: Vec<_> = loaded
        .parts
        .iter()
        .map(|part| match &part.columns[0].data {
            tandem_column::Data::Dictionary { dictionary, .. } => dictionary.clone(),
            other => panic!("not a dictionary: {other:?}"),
        })
        .collect();
    assert_eq!(dictionaries.len(), 10);
    assert!(dictionaries.iter().all(|dictionary| Arc::ptr_eq(dictionary, &dictionaries[0])));
    assert_eq!(dictionaries[0].len(), 6);
}

#[test]
fn several_files_make_one_table_if_their_schemas_agree() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let paths: Vec<_> =
        ["a.parquet", "b.parquet", "c.parquet"].iter().map(|name| directory.path().join(name)).collect();
    let make = |values: Vec<i32>| {
        RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(values)) as ArrayRef)]).expect("one column")
    };
    write(&paths[0], &make(vec![1, 2]), builder().build());
    write(&paths[1], &make(vec![300, 400]), builder().build());
    let other =
        RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![5])) as ArrayRef)]).expect("one column");
    write(&paths[2], &other, builder().build());
    let table = FileTable::open(paths[..2].to_vec(), Format::Parquet).expect("one schema");
    let loaded = load(&table, &[0], &[], &ColumnCache::new(1 << 20)).expect("readable");
    assert_eq!((loaded.rows(), loaded.statistics[0].range), (4, Some((1, 400))));
    assert_eq!(table.statistics()[0].range, Some((1, 400)));
    let error = FileTable::open(paths, Format::Parquet).err().expect("two schemas").message;
    assert!(error.contains("a.parquet") && error.contains("c.parquet") && error.contains("column x"), "{error}");
}

#[test]
fn wrong_statistics_do_not_give_wrong_values() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("lying.parquet");
    let values: Vec<i32> = (0..1000).map(|row| 1000 + row % 50).collect();
    let batch =
        RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(values)) as ArrayRef)]).expect("one column");
    for dictionary in [true, false] {
        let properties = builder().set_dictionary_enabled(dictionary).set_statistics_enabled(EnabledStatistics::Chunk);
        write(&path, &batch, properties.build());
        // The footer says 1000 to 1049; make it say 1020 to 1049, or 1000 to 1010.
        for (from, to) in [(1000i32, 1020i32), (1049, 1010)] {
            let mut bytes = std::fs::read(&path).expect("there");
            let start = bytes.len()
                - 8
                - u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().expect("four")) as usize;
            let mut changed = 0;
            for at in start..bytes.len() - 8 {
                if bytes[at..at + 4] == from.to_le_bytes() {
                    bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
                    changed += 1;
                }
            }
            assert!(changed > 0);
            let lying = directory.path().join(format!("lying-{dictionary}-{to}.parquet"));
            std::fs::write(&lying, bytes).expect("a temporary file");
            check(&lying, "wrong statistics");
        }
    }
}

#[test]
fn changed_files_are_noticed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("changing.parquet");
    let make = |values: Vec<i32>| {
        RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(values)) as ArrayRef)]).expect("one column")
    };
    write(&path, &make(vec![1, 2, 3]), builder().build());
    let table = FileTable::open(vec![path.clone()], Format::Parquet).expect("a good file");
    let cache = ColumnCache::new(1 << 20);
    assert_eq!(load(&table, &[0], &[], &cache).expect("readable").rows(), 3);
    let bytes = cache.byte_len();
    write(&path, &make(vec![7; 5]), builder().build());
    let loaded = load(&table, &[0], &[], &cache).expect("readable");
    assert_eq!((loaded.rows(), loaded.statistics[0].range), (5, Some((7, 7))));
    assert_eq!((table.rows(), cache.byte_len()), (Some(5), bytes));
    let other =
        RecordBatch::try_from_iter([("y", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).expect("one column");
    write(&path, &other, builder().build());
    let error = load(&table, &[0], &[], &cache).expect_err("another schema").message;
    assert!(error.contains("changed its schema") && error.contains("column x"), "{error}");
    std::fs::remove_file(&path).expect("there");
    let error = load(&table, &[0], &[], &cache).expect_err("missing").message;
    assert!(error.contains("file not found") && error.contains("changing.parquet"), "{error}");
}

#[test]
fn bad_files_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("good.parquet");
    write(&path, &rows(&mut random(3), 2000, 1, 50), builder().build());
    let bytes = std::fs::read(&path).expect("there");
    let open = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        FileTable::open(vec![path], Format::Parquet).err().map(|error| error.message).unwrap_or_default()
    };
    let missing =
        FileTable::open(vec![directory.path().join("none.parquet")], Format::Parquet).err().expect("missing").message;
    assert!(missing.contains("file not found") && missing.contains("none.parquet"), "{missing}");
    let text = open("text.parquet", b"this is no Parquet file");
    assert!(text.contains("not a Parquet file") && text.contains("text.parquet"), "{text}");
    let cut = open("cut.parquet", &bytes[..bytes.len() / 2]);
    assert!(cut.contains("truncated") && cut.contains("cut.parquet"), "{cut}");
    assert!(open("empty.parquet", b"").contains("not a Parquet file"));
    // A hole in the middle leaves the footer whole.
    let mut holed = bytes.clone();
    let middle = bytes.len() / 4..bytes.len() / 2;
    holed[middle].fill(0xff);
    let path = directory.path().join("holed.parquet");
    std::fs::write(&path, holed).expect("a temporary file");
    let table = FileTable::open(vec![path], Format::Parquet).expect("the footer is whole");
    let columns: Vec<usize> = (0..table.schema().len()).collect();
    let error = load(&table, &columns, &[], &ColumnCache::new(0)).expect_err("damaged").message;
    assert!(error.contains("holed.parquet is damaged (row group ") && error.contains(", column "), "{error}");
}

#[test]
fn random_damage_never_panics() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let rounds: u64 = std::env::var("TANDEM_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100);
    let path = directory.path().join("damaged.parquet");
    let runtime = Runtime::new(1);
    // Wraps the hook now, so that ours, set afterwards, sees guarded panics too.
    tandem_column::guarded(|| ()).expect("nothing panics");
    std::panic::set_hook(Box::new(|info| {
        // Assertions of the Arrow reader are caught; ours must not exist.
        let ours = info
            .location()
            .is_some_and(|place| place.file().contains("crates/scan") || place.file().contains("crates/column"));
        if ours {
            eprintln!("{info}");
            std::process::abort();
        }
    }));
    for (seed, codec, version, dictionary) in [
        (1, Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0, true),
        (2, Compression::UNCOMPRESSED, WriterVersion::PARQUET_2_0, true),
        (3, Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0, false),
        (4, Compression::ZSTD(ZstdLevel::default()), WriterVersion::PARQUET_1_0, true),
        (5, Compression::SNAPPY, WriterVersion::PARQUET_2_0, false),
    ] {
        let mut random = random(seed);
        let batch = rows(&mut random, 600, 2, 40);
        let properties =
            builder().set_compression(codec).set_writer_version(version).set_dictionary_enabled(dictionary);
        write(&path, &batch, properties.set_max_row_group_row_count(Some(300)).build());
        let good = std::fs::read(&path).expect("there");
        for round in 0..rounds {
            let mut bytes = good.clone();
            match round % 8 {
                0 => bytes.truncate(random.random_range(0..good.len())),
                1 => {
                    let at = random.random_range(0..good.len());
                    let end = (at + random.random_range(1..64)).min(good.len());
                    random.fill(&mut bytes[at..end]);
                }
                _ => {
                    for _ in 0..random.random_range(1..6) {
                        let at = random.random_range(0..good.len());
                        bytes[at] ^= 1 << random.random_range(0..8);
                    }
                }
            }
            std::fs::write(&path, &bytes).expect("a temporary file");
            let Ok(table) = FileTable::open(vec![path.clone()], Format::Parquet) else { continue };
            let cache = ColumnCache::new(0);
            for column in 0..table.schema().len() {
                let columns = [column];
                let _ = with(&cache, &runtime, &Cancel::new(), |loading| table.load(&columns, &[], loading));
            }
            let _ = table.statistics();
        }
    }
    let _ = std::panic::take_hook();
}

#[test]
fn cancelled_loads_stop() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("cancelled.parquet");
    write(&path, &rows(&mut random(5), 3000, 1, 50), builder().build());
    let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
    let cancel = Cancel::new();
    cancel.cancel();
    let loaded = with(&ColumnCache::new(0), &Runtime::new(2), &cancel, |loading| table.load(&[0, 1], &[], loading));
    let error = loaded.expect_err("cancelled");
    assert!(error.is_cancelled());
}

#[test]
fn arrow_schemas_are_those_of_datafusion() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("types.parquet");
    write(&path, &rows(&mut random(6), 10, 1, 5), builder().build());
    let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
    let schema = table.arrow_schema();
    let kind = |name: &str| schema.field_with_name(name).expect("a column").data_type().clone();
    assert_eq!((kind("text"), kind("bytes")), (DataType::Utf8View, DataType::BinaryView));
    assert_eq!(kind("zoned"), DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    assert_eq!(kind("d12"), DataType::Decimal128(12, 0));
}
