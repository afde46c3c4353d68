//! Loading, appending and statistics of tables, against naive computation.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_schema::DataType;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use tandem_column::*;

fn seeded(name: &str, test: impl Fn(&mut StdRng)) {
    let seed = std::env::var("TANDEM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random::<u64>);
    println!("{name}: TANDEM_SEED={seed}");
    test(&mut StdRng::seed_from_u64(seed));
}

/// Runs tasks on four threads.
fn threads(tasks: usize, f: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        break;
                    }
                    f(task);
                }
            });
        }
    });
}

/// Rows `start..end` of a table with columns of every encoding.
fn rows(start: usize, end: usize) -> RecordBatch {
    let ids = Int64Array::from_iter_values((start..end).map(|i| i as i64 + 1_000_000_000_000));
    let scattered = Int32Array::from_iter((start..end).map(|i| (i % 11 != 0).then_some((i * 7919 % 100_003) as i32)));
    let city = |i: usize| format!("city {:04}", (i / 1000 * 13 + i % 50) % 3000);
    let cities = StringArray::from_iter((start..end).map(|i| (i % 13 != 0).then(|| city(i))));
    let comments =
        StringViewArray::from_iter((start..end).map(|i| (i % 17 != 0).then(|| format!("comment number {i}"))));
    let prices = Float64Array::from_iter((start..end).map(|i| (i % 5 != 0).then_some(i as f64 / 4.0 - 100.0)));
    let flags = BooleanArray::from_iter((start..end).map(|i| Some(i % 3 == 0)));
    let totals = Decimal128Array::from_iter_values((start..end).map(|i| i as i128 * 10i128.pow(20)))
        .with_precision_and_scale(38, 2)
        .expect("decimals");
    let wide =
        Int64Array::from_iter_values((start..end).map(|i| (i as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64)));
    let late = StringArray::from_iter((start..end).map(|i| (i > 2500).then_some("late")));
    RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("scattered", Arc::new(scattered)),
        ("city", Arc::new(cities)),
        ("comment", Arc::new(comments)),
        ("price", Arc::new(prices)),
        ("flag", Arc::new(flags)),
        ("total", Arc::new(totals)),
        ("wide", Arc::new(wide)),
        ("late", Arc::new(late)),
    ])
    .expect("a batch")
}

fn nullable(batch: &RecordBatch) -> Arc<[Field]> {
    let fields = Field::all_from_arrow(&batch.schema()).expect("supported");
    fields.iter().map(|field| Field { nullable: true, ..field.clone() }).collect()
}

fn load(cuts: &[usize], part_rows: usize, order: &[usize], parallel: bool) -> Table {
    let schema = nullable(&rows(0, 1));
    let loader = Loader::new(schema, LoadOptions { part_rows, ..Default::default() });
    let append = |at: usize| {
        let at = order[at];
        loader.append(at as u64, rows(cuts[at], cuts[at + 1])).expect("loads");
    };
    match parallel {
        true => threads(order.len(), &append),
        false => (0..order.len()).for_each(append),
    }
    assert_eq!(loader.rows(), *cuts.last().expect("cuts"));
    if parallel { loader.finish_with(&threads).expect("loads") } else { loader.finish().expect("loads") }
}

/// Checks the table's invariants and that it holds `rows(0, count)`.
fn check_table(table: &Table, count: usize, what: &str) {
    assert_eq!(table.rows(), count, "{what}");
    let expected = rows(0, count);
    let mut at = 0;
    for (index, part) in table.parts.iter().enumerate() {
        let batch = table.batch(index, 0..part.rows, &Arc::new(nullable_schema(&expected))).expect("rows");
        for (found, expected) in batch.columns().iter().zip(expected.columns()) {
            assert_eq!(found.as_ref(), expected.slice(at, part.rows).as_ref(), "{what}");
        }
        at += part.rows;
    }
    for column in 0..table.schema.len() {
        let first = &table.parts[0].columns[column];
        for part in &table.parts {
            let column = &part.columns[column];
            assert_eq!(first.dictionary().is_some(), column.dictionary().is_some(), "{what}");
            if let (Some(a), Some(b)) = (first.dictionary(), column.dictionary()) {
                assert!(Arc::ptr_eq(a, b), "{what}");
            }
        }
    }
}

fn nullable_schema(batch: &RecordBatch) -> arrow_schema::Schema {
    let fields =
        batch.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>();
    arrow_schema::Schema::new(fields)
}

/// Computes a column's statistics naively.
fn naive(table: &Table, at: usize) -> (Option<(i64, i64)>, usize, usize, bool, bool) {
    let mut values: Vec<Vec<u8>> = Vec::new();
    let mut ints = Vec::new();
    let mut nulls = 0;
    for part in &table.parts {
        let column = &part.columns[at];
        for i in 0..part.rows {
            // Order-preserving bytes of each value.
            values.push(match column.value(i) {
                Scalar::Null => {
                    nulls += 1;
                    continue;
                }
                Scalar::Int(value) => ((value as i128) + (1 << 100)).to_be_bytes().to_vec(),
                Scalar::Wide(value) => (value as u128 ^ 1 << 127).to_be_bytes().to_vec(),
                Scalar::Float(value) => ((float_order(value) as i128) + (1 << 100)).to_be_bytes().to_vec(),
                Scalar::Bytes(value) => value.to_vec(),
            });
            match &column.data {
                Data::Float64(_) => ints.push(float_order(column.float(i))),
                Data::Int { .. } | Data::Dictionary { .. } => ints.push(column.int(i)),
                _ => {}
            }
        }
    }
    let range = ints.iter().copied().min().zip(ints.iter().copied().max());
    let distinct: BTreeSet<&Vec<u8>> = values.iter().collect();
    (range, nulls, distinct.len(), distinct.len() == values.len(), nulls == 0 && values.is_sorted())
}

fn check_statistics(table: &Table, exact: bool, what: &str) {
    for (at, statistics) in table.statistics.iter().enumerate() {
        let name = format!("{what}, column {}", table.schema[at].name);
        let (range, nulls, distinct, unique, sorted) = naive(table, at);
        assert_eq!(statistics.nulls, nulls, "{name}");
        assert!(!statistics.unique || unique, "{name}");
        assert!(!statistics.sorted || sorted, "{name}");
        if exact {
            assert_eq!(statistics.range, range, "{name}");
            assert_eq!(statistics.sorted, sorted, "{name}");
            let estimate = statistics.distinct.expect("estimated");
            assert!((estimate - distinct as f64).abs() <= distinct as f64 * 0.08, "{name}: {estimate} for {distinct}");
        } else {
            assert!(statistics.range.is_none() || statistics.range == range, "{name}");
        }
        if let (Some(values), Some((low, _))) = (&statistics.values, range) {
            let mut found = BTreeSet::new();
            for part in &table.parts {
                let column = &part.columns[at];
                found.extend((0..part.rows).filter(|i| column.is_valid(*i)).map(|i| (column.int(i) - low) as usize));
            }
            assert!(values.ones().eq(found.iter().copied()), "{name}");
            assert_eq!(statistics.distinct, Some(distinct as f64), "{name}");
            assert_eq!(statistics.unique || !exact, unique || !exact, "{name}");
        }
    }
}

#[test]
fn batches_load_in_order_whatever_way_they_arrive() {
    seeded("batches_load_in_order_whatever_way_they_arrive", |random| {
        for (count, part_rows, parallel) in
            [(10, 4, false), (9000, 1000, true), (9000, 4096, false), (20_000, 1 << 20, true)]
        {
            let mut cuts: Vec<usize> = (0..30).map(|_| random.random_range(0..=count)).collect();
            cuts.extend([0, count]);
            cuts.sort_unstable();
            let mut order: Vec<usize> = (0..cuts.len() - 1).collect();
            order.shuffle(random);
            let table = load(&cuts, part_rows, &order, parallel);
            let what = format!("{count} rows in parts of {part_rows}");
            assert_eq!(table.parts.len(), count.div_ceil(part_rows), "{what}");
            check_table(&table, count, &what);
            check_statistics(&table, true, &what);
            // One base and width for all parts.
            for at in 0..table.schema.len() {
                let encodings: BTreeSet<String> = table.parts.iter().map(|part| part.columns[at].encoding()).collect();
                assert_eq!(encodings.len(), 1, "{what}: {encodings:?}");
            }
        }
    });
}

#[test]
fn encodings_are_the_narrowest() {
    let table = load(&[0, 20_000], 4096, &[0], false);
    let encodings: Vec<String> = (0..table.schema.len()).map(|at| table.encoding(at)).collect();
    assert_eq!(encodings[0], "u16 offsets from 1000000000000");
    assert_eq!(encodings[1], "u32 offsets from 13");
    assert!(encodings[2].starts_with("dictionary of ") && encodings[2].ends_with(", u16"), "{}", encodings[2]);
    assert_eq!(&encodings[3..], ["plain strings", "float64", "u8 flags", "int128", "int64", "dictionary of 1, u8"]);
    let statistics = &table.statistics;
    assert!(statistics[0].sorted && statistics[0].unique && !statistics[4].sorted);
    assert!(table.byte_len() > 20_000 * 30 && table.byte_len() < 20_000 * 90, "{}", table.byte_len());
    let some = table.project(&[4, 0]);
    assert_eq!((some.schema[1].name.as_str(), some.rows(), some.column_index("price")), ("id", 20_000, Some(0)));
}

#[test]
fn parts_handed_in_keep_their_place_and_dictionary() {
    let schema = nullable(&rows(0, 1));
    let part = |start, end| {
        let mut builder = PartBuilder::new(schema.clone());
        builder.push(rows(start, end)).expect("fits");
        builder.finish().expect("encodes")
    };
    let loader = Loader::new(schema.clone(), LoadOptions { part_rows: 1000, ..Default::default() });
    loader.append_part(2, part(1500, 2700)).expect("fits");
    loader.append(0, rows(0, 1100)).expect("fits");
    loader.append(3, rows(2700, 3000)).expect("fits");
    loader.append(1, rows(1100, 1500)).expect("fits");
    assert!(loader.append(1, rows(0, 1)).is_err());
    let table = loader.finish().expect("loads");
    assert_eq!(table.parts.iter().map(|part| part.rows).collect::<Vec<_>>(), [1000, 500, 1200, 300]);
    check_table(&table, 3000, "parts");

    let dictionary = Arc::new(Dictionary::from_unsorted(&Type::String, &["a", "b"]).expect("text").0);
    let loader = Loader::new(Arc::new([Field::new("c", Type::String, false)]), LoadOptions::default());
    for part in 0..3 {
        let codes = Codes::narrow(&[part % 2, 1, 0]);
        loader
            .append_part(part, vec![Column::from_codes(Type::String, codes, dictionary.clone(), None)])
            .expect("fits");
    }
    let table = loader.finish().expect("loads");
    assert!(table.parts.iter().all(|part| Arc::ptr_eq(part.columns[0].dictionary().expect("coded"), &dictionary)));
}

#[test]
fn limits_and_failures_are_reported() {
    let memory = Arc::new(MemoryBudget::new(300_000));
    let options = LoadOptions { name: "lineorder".into(), part_rows: 1000, memory };
    let loader = Loader::new(nullable(&rows(0, 1)), options);
    let error = (0..1000).find_map(|at| loader.append(at, rows(at as usize * 500, at as usize * 500 + 500)).err());
    let error = error.expect("the limit is exceeded");
    assert_eq!(error.class, Class::Exhausted);
    assert!(error.message.contains("lineorder") && error.message.contains("--memory-limit"), "{error}");
    assert!(Error::cancelled().is_cancelled() && !error.is_cancelled());

    let loader = Loader::new(
        Arc::new([Field::new("small", Type::Int8, false)]),
        LoadOptions { part_rows: 2, ..Default::default() },
    );
    let large =
        RecordBatch::try_from_iter([("small", Arc::new(Int32Array::from(vec![1, 300])) as ArrayRef)]).expect("a batch");
    assert!(loader.append(0, large).expect_err("300 is no int8").message.contains("small"));
    assert_eq!(loader.finish().expect_err("the part is missing").class, Class::Input);
}

#[test]
fn appending_shares_parts_and_merges_dictionaries() {
    seeded("appending_shares_parts_and_merges_dictionaries", |random| {
        for (first, second, third) in [(3000, 10, 5000), (0, 100, 0), (70_000, 1, 1), (100, 70_000, 300)] {
            let piece = |start, end| {
                let loader =
                    Loader::new(nullable(&rows(0, 1)), LoadOptions { part_rows: 50_000, ..Default::default() });
                loader.append(0, rows(start, end)).expect("loads");
                loader.finish().expect("loads")
            };
            let (a, b) = (piece(0, first), piece(first, first + second));
            let batch = rows(first + second, first + second + third);
            let c = Table::from_batches(&batch.schema(), &[batch]).expect("encodes");
            let both = a.append(&b).expect("same types");
            let table = both.append(&c).expect("same types");
            let what = format!("{first} + {second} + {third} rows");
            check_table(&both, first + second, &what);
            check_table(&table, first + second + third, &what);
            check_statistics(&both, false, &what);
            check_statistics(&table, false, &what);
            let whole = Table::with_statistics(table.schema.clone(), table.parts.clone());
            check_statistics(&whole, true, &what);
        }
        // The same values again: nothing old is touched.
        let table = load(&[0, 70_000], 1 << 20, &[0], false);
        let more = Table::from_batches(&rows(0, 1).schema(), &[rows(60_000, 60_000 + random.random_range(1..500))]);
        let appended = table.append(&more.expect("encodes")).expect("same types");
        let (old, new) = (&table.parts[0].columns[2], &appended.parts[0].columns[2]);
        assert!(Arc::ptr_eq(old, new), "a dictionary that gains nothing keeps its codes");
        assert!(table.append(&table.project(&[0])).is_err());
        assert!(table.append(&table.project(&[1, 0, 2, 3, 4, 5, 6, 7, 8])).is_err());
    });
}

#[test]
fn many_small_insertions_make_few_parts() {
    let schema: Arc<[Field]> = Arc::new([Field::new("n", Type::Int64, false), Field::new("s", Type::String, false)]);
    let mut table = Table::empty(schema.clone());
    for i in 0..300i64 {
        let columns = vec![
            Column::from_i64(Type::Int64, vec![i * 1000], None),
            Column::from_values(Type::String, [Some(format!("s{}", i % 7))]),
        ];
        table =
            table.append(&Table::with_statistics(schema.clone(), vec![Arc::new(Part::new(1, columns))])).expect("fits");
    }
    assert_eq!((table.parts.len(), table.rows()), (1, 300));
    assert_eq!(table.statistics[0].range, Some((0, 299_000)));
    assert!(table.statistics[0].sorted && table.statistics[0].unique);
    let column = &table.parts[0].columns[0];
    assert!((0..300).all(|i| column.int(i) == i as i64 * 1000));
}

#[test]
fn unknown_statistics_claim_nothing() {
    let column = || Column::from_i64(Type::Int32, vec![3, 1, 2], Some(Bitmap::from([true, false, true].as_slice())));
    let schema: Arc<[Field]> = Arc::new([Field::new("n", Type::Int32, true)]);
    let plain = Table::new(schema.clone(), vec![Arc::new(Part::new(3, vec![column()]))]);
    assert_eq!(plain.statistics[0], ColumnStatistics { nulls: 1, ..Default::default() });
    let known = Table::with_statistics(schema.clone(), plain.parts.clone());
    assert_eq!(known.statistics[0].range, Some((2, 3)));
    assert!(known.statistics[0].unique && !known.statistics[0].sorted);
    let both = plain.append(&known).expect("fits");
    assert_eq!((both.statistics[0].range, both.statistics[0].nulls, both.rows()), (None, 2, 6));
    assert_eq!(both.to_batches(4).expect("rows").iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [4, 2]);
    let empty = Table::empty(schema);
    assert_eq!((empty.rows(), empty.byte_len(), empty.to_batches(10).expect("nothing").len()), (0, 0, 0));
}

#[test]
fn uniqueness_is_found_without_order() {
    seeded("uniqueness_is_found_without_order", |random| {
        let schema: Arc<[Field]> = Arc::new([Field::new("n", Type::Int64, false)]);
        let mut keys: Vec<i64> = (0..200_000).map(|i| i * 3 - 50_000).collect();
        keys.shuffle(random);
        let table = |keys: &[i64]| {
            let parts = keys
                .chunks(60_000)
                .map(|keys| Arc::new(Part::new(keys.len(), vec![Column::from_i64(Type::Int64, keys.to_vec(), None)])));
            Table::with_statistics_on(schema.clone(), parts.collect(), &threads)
        };
        let found = table(&keys).statistics[0].clone();
        assert!(found.unique && !found.sorted && found.values.is_none());
        assert!((found.distinct.expect("estimated") / 200_000.0 - 1.0).abs() < 0.08);
        keys[7] = keys[199_999];
        assert!(!table(&keys).statistics[0].unique);
    });
}

#[test]
fn constants_and_nulls() {
    let kinds = [
        (Type::Int32, Scalar::Int(-7)),
        (Type::Boolean, Scalar::Int(1)),
        (Type::Float32, Scalar::Float(1.5)),
        (Type::Float64, Scalar::Float(-0.0)),
        (Type::UInt64, Scalar::Wide(u64::MAX.into())),
        (Type::String, Scalar::Bytes(b"text")),
        (Type::Decimal { precision: 30, scale: 2 }, Scalar::Int(5)),
    ];
    for (kind, value) in kinds {
        let column = Column::constant(kind.clone(), value, 5).with_blocks();
        let same = format!("{:?}", column.value(4)) == format!("{value:?}") || column.wide(4) == 5;
        assert!(same && column.null_count() == 0, "{kind}");
        assert_eq!(column.to_arrow(1..4).expect("values").len(), 3);
        let nulls = Column::constant(kind.clone(), Scalar::Null, 5);
        assert_eq!((nulls.null_count(), nulls.to_arrow(0..5).expect("nulls").null_count()), (5, 5), "{kind}");
        let cast = nulls.to_arrow_as(0..5, &DataType::Utf8View);
        assert!(cast.is_ok_and(|array| array.null_count() == 5), "{kind}");
    }
}
