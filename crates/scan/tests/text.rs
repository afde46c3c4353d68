//! CSV and Arrow IPC files.

use std::{fs::File, io::Write, path::Path, sync::Arc};

use arrow::{
    array::*,
    datatypes::{DataType, Int64Type},
    ipc::writer::FileWriter,
};
use tandem_column::{Scalar, Table, Type};
use tandem_runtime::{Cancel, RowProgress, Runtime};
use tandem_scan::{ColumnCache, Compression, FileTable, Format, Loading};

fn load(table: &FileTable, columns: &[usize], cache: &ColumnCache) -> tandem_column::Result<Table> {
    let loading = Loading {
        cache,
        runtime: &Runtime::new(2),
        memory: &Default::default(),
        cancel: &Cancel::new(),
        progress: &RowProgress::default(),
    };
    table.load(columns, &[], &loading).map(|(table, _)| table)
}

fn open(path: &Path) -> tandem_column::Result<FileTable> {
    FileTable::open(vec![path.to_owned()], Format::from_path(path).expect("a known name"))
}

fn all(table: &FileTable) -> tandem_column::Result<Table> {
    let columns: Vec<usize> = (0..table.schema().len()).collect();
    load(table, &columns, &ColumnCache::new(1 << 30))
}

fn integers(table: &Table, column: usize) -> Vec<i64> {
    let parts =
        table.parts.iter().flat_map(|part| (0..part.rows).map(|row| part.columns[column].int(row)).collect::<Vec<_>>());
    parts.collect()
}

#[test]
fn types_and_headers_are_found_out() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.csv");
    std::fs::write(&path, "id,price,name,day,empty\n1,1.5,\"a, \"\"b\"\"\nc\",2024-01-31,\n2,,é,2024-02-01,\n")
        .expect("written");
    let table = open(&path).expect("a good file");
    let kinds: Vec<&Type> = table.schema().iter().map(|field| &field.kind).collect();
    assert_eq!(kinds, [&Type::Int64, &Type::Float64, &Type::String, &Type::Date, &Type::String]);
    let loaded = all(&table).expect("readable");
    assert_eq!((loaded.rows(), integers(&loaded, 0)), (2, vec![1, 2]));
    assert!(matches!(loaded.parts[0].columns[1].value(1), Scalar::Null));
    assert!(matches!(loaded.parts[0].columns[2].value(0), Scalar::Bytes(b"a, \"b\"\nc")));

    let path = directory.path().join("b.tsv");
    std::fs::write(&path, "1\tx\n2\ty").expect("written");
    let loaded = all(&open(&path).expect("a good file")).expect("readable");
    assert_eq!((loaded.schema[0].name.as_str(), integers(&loaded, 0)), ("column_1", vec![1, 2]));
}

#[test]
fn long_files_are_parsed_in_parallel_and_in_order() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("long.csv");
    let mut text = String::from("n,square,word\n");
    for n in 0..150_000i64 {
        text.push_str(&format!("{n},{},w{}\n", n * n, n % 10));
    }
    std::fs::write(&path, &text).expect("written");
    let table = open(&path).expect("a good file");
    let cache = ColumnCache::new(1 << 30);
    let loaded = load(&table, &[1, 0], &cache).expect("readable");
    assert!(integers(&loaded, 1).into_iter().eq(0..150_000));
    assert!(integers(&loaded, 0).into_iter().eq((0..150_000).map(|n| n * n)));
    assert_eq!(load(&table, &[2, 0], &cache).expect("readable").rows(), 150_000);
    assert!(cache.hits() > 0);
    assert_eq!(load(&table, &[], &cache).expect("readable").rows(), 150_000);

    for (name, compression) in [("long.csv.gz", Compression::Gzip), ("long.csv.zst", Compression::Zstd)] {
        let path = directory.path().join(name);
        let mut file = File::create(&path).expect("a temporary file");
        match compression {
            Compression::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                writer.write_all(text.as_bytes()).expect("written");
                writer.finish().expect("written");
            }
            _ => file.write_all(&zstd::encode_all(text.as_bytes(), 1).expect("compressed")).expect("written"),
        }
        let loaded = all(&open(&path).expect("a good file")).expect("readable");
        assert!(integers(&loaded, 0).into_iter().eq(0..150_000), "{name}");
    }
}

#[test]
fn wrong_lines_are_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("wrong.csv");
    let mut text = String::from("n,word\n");
    for n in 0..200_000 {
        text.push_str(&format!("{n},w\n"));
    }
    let good = text.clone();
    text.push_str("oops,w\n");
    std::fs::write(&path, &text).expect("written");
    let error = all(&open(&path).expect("the sample is good")).expect_err("a wrong value").message;
    assert!(
        error.contains("line 200002 of") && error.contains("wrong.csv") && error.contains("'oops' in column n"),
        "{error}"
    );
    std::fs::write(&path, format!("{good}1,2,3\n")).expect("written");
    let error = all(&open(&path).expect("the sample is good")).expect_err("a long line").message;
    assert!(error.contains("line 200002 of") && error.contains("wrong.csv"), "{error}");
    std::fs::write(&path, "a,b\n1,2\n3\n").expect("written");
    let error = open(&path).err().expect("a short line").message;
    assert!(error.contains("line 3 of") && error.contains("wrong.csv"), "{error}");
    std::fs::write(&path, "").expect("written");
    assert!(open(&path).err().expect("empty").message.contains("empty"));
    let path = directory.path().join("wrong.csv.gz");
    std::fs::write(&path, "not compressed").expect("written");
    assert!(open(&path).err().expect("no gzip").message.contains("wrong.csv.gz"));
}

#[test]
fn arrow_files_load_and_changes_are_noticed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.arrow");
    let write = |from: i64, count: i64| {
        let numbers: Int64Array = (from..from + count).collect();
        let words: StringArray = (0..count).map(|n| (n % 3 != 0).then(|| format!("w{}", n % 5))).collect();
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>((0..count).map(|n| Some(vec![Some(n)])));
        let columns = [
            ("n", Arc::new(numbers) as ArrayRef),
            ("list", Arc::new(list) as ArrayRef),
            ("w", Arc::new(words) as ArrayRef),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
            .expect("one length");
        let mut writer = FileWriter::try_new(File::create(&path).expect("created"), &batch.schema()).expect("a writer");
        for start in (0..count).step_by(1000) {
            writer.write(&batch.slice(start as usize, 1000.min(count - start) as usize)).expect("written");
        }
        writer.finish().expect("written");
    };
    write(5, 4500);
    let table = open(&path).expect("a good file");
    assert!(table.unsupported(1).is_some());
    assert_eq!(table.arrow_schema().field(2).data_type(), &DataType::Utf8);
    let cache = ColumnCache::new(1 << 30);
    let loaded = load(&table, &[2, 0], &cache).expect("readable");
    assert!(integers(&loaded, 1).into_iter().eq(5..4505));
    assert!(matches!(loaded.parts[0].columns[0].value(1), Scalar::Bytes(b"w1")));
    assert!(matches!(loaded.parts[0].columns[0].value(3), Scalar::Null));
    write(0, 10);
    let loaded = load(&table, &[0], &cache).expect("readable");
    assert!(integers(&loaded, 0).into_iter().eq(0..10));
    std::fs::write(&path, "not an arrow file at all").expect("written");
    let error = open(&path).err().expect("no Arrow file").message;
    assert!(error.contains("a.arrow"), "{error}");
}

#[test]
fn arrow_files_differ_in_nulls_and_may_begin_with_lists() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let paths = [directory.path().join("a.arrow"), directory.path().join("b.arrow")];
    for (path, value) in paths.iter().zip([Some(1), None]) {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
        let numbers = Int64Array::from(vec![value]);
        let columns = [("lists", Arc::new(lists) as ArrayRef, true), ("x", Arc::new(numbers), value.is_none())];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("two columns");
        let file = File::create(path).expect("created");
        let mut writer = FileWriter::try_new(file, &batch.schema()).expect("a writer");
        writer.write(&batch).expect("written");
        writer.finish().expect("finished");
    }
    let table = FileTable::open(paths.to_vec(), Format::Arrow).expect("one schema but for nulls");
    assert!(table.schema()[1].nullable && table.arrow_schema().field(1).is_nullable());
    let cache = ColumnCache::new(1 << 20);
    assert_eq!(load(&table, &[], &cache).expect("rows are counted").rows(), 2);
    assert_eq!(load(&table, &[1], &cache).expect("readable").statistics[0].nulls, 1);
}

/// Room is made for the values that a file may have, not for as many lines as it has bytes, each of all columns.
#[test]
fn many_columns_take_memory_by_the_bytes_of_the_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let columns = 20_000;
    let line = |value: &dyn Fn(usize) -> String| (0..columns).map(value).collect::<Vec<_>>().join(",");
    // Without quotes in blocks, with one in order.
    for (name, first) in [("plain.csv", "c0"), ("quoted.csv", "\"c0\"")] {
        let path = directory.path().join(name);
        let names = line(&|column| if column == 0 { first.to_owned() } else { format!("c{column}") });
        let values = line(&|column| column.to_string());
        std::fs::write(&path, format!("{names}\n{values}\n{values}")).expect("written");
        let table = open(&path).expect("a good file");
        let loaded = load(&table, &[0, columns - 1], &ColumnCache::new(1 << 20)).expect("readable");
        assert_eq!(integers(&loaded, 0), [0, 0], "{name}");
        assert_eq!(integers(&loaded, 1), [columns as i64 - 1; 2], "{name}");
    }
}
