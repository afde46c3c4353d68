//! Memory of scans: taken before it is used, refused where there is none, given back when the rows are.

use std::{fs::File, path::Path, sync::Arc};

use arrow::array::*;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
};
use tandem_column::{Class, MemoryBudget, Result, Table};
use tandem_runtime::{Cancel, RowProgress, Runtime};
use tandem_scan::{ColumnCache, FileTable, Format, Hold, Loading};

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, properties: WriterPropertiesBuilder) {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer =
        ArrowWriter::try_new(File::create(path).expect("creates"), batch.schema(), Some(properties.build()))
            .expect("a writer");
    writer.write(&batch).expect("writes");
    writer.close().expect("closes");
}

fn load(table: &FileTable, column: usize, cache: &ColumnCache, memory: &Arc<MemoryBudget>) -> Result<(Table, Hold)> {
    let (cancel, progress) = (Cancel::new(), RowProgress::default());
    let loading = Loading { cache, runtime: &Runtime::new(2), memory, cancel: &cancel, progress: &progress };
    table.load(&[column], &[], &loading)
}

/// A million rows of few bytes in the file and many in memory.
fn repetitive(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let long = "x".repeat(1000);
    vec![
        ("number", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| (row as i64 % 3) << 40)))),
        ("null", Arc::new(Int64Array::from_iter((0..rows).map(|row| (row % 1000 == 0).then_some(1))))),
        ("float", Arc::new(Float64Array::from_iter_values((0..rows).map(|_| 0.5)))),
        ("flag", Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row % 2 == 0))))),
        ("text", Arc::new(StringArray::from_iter_values((0..rows).map(|_| &long[..rows.min(30)])))),
        (
            "decimal",
            Arc::new(
                Decimal128Array::from_iter_values((0..rows).map(|_| 1 << 70))
                    .with_precision_and_scale(38, 2)
                    .expect("fits"),
            ),
        ),
    ]
}

#[test]
fn loads_fit_their_budget_or_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let layouts = [
        ("dictionary", WriterProperties::builder().set_compression(zstd)),
        ("plain", WriterProperties::builder().set_dictionary_enabled(false).set_compression(zstd)),
        (
            "no statistics",
            WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None).set_compression(zstd),
        ),
        (
            "delta",
            WriterProperties::builder()
                .set_dictionary_enabled(false)
                .set_column_encoding("text".into(), Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding("number".into(), Encoding::DELTA_BINARY_PACKED),
        ),
    ];
    for (layout, properties) in layouts {
        let path = directory.path().join(format!("{layout}.parquet"));
        write(&path, repetitive(1_000_000), properties);
        let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
        for column in 0..table.schema().len() {
            let name = &table.schema()[column].name;
            let (mut refused, mut loaded) = (0, 0);
            for limit in [1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 30] {
                let memory = Arc::new(MemoryBudget::new(limit));
                for cache in [ColumnCache::new(0), ColumnCache::within(&memory, limit / 2)] {
                    match load(&table, column, &cache, &memory) {
                        Ok((rows, hold)) => {
                            assert!(rows.byte_len() <= memory.used(), "{layout} {name}: {} held", memory.used());
                            loaded += 1;
                            drop((rows, hold));
                        }
                        Err(error) => {
                            assert_eq!(error.class, Class::Exhausted, "{layout} {name}: {error}");
                            assert!(error.message.contains("--memory-limit"), "{layout} {name}: {error}");
                            refused += 1;
                        }
                    }
                    assert_eq!(memory.used(), cache.byte_len(), "{layout} {name}: only the cache holds any");
                    cache.clear();
                    assert_eq!(memory.used(), 0, "{layout} {name}");
                }
            }
            assert!(refused >= 2 && loaded >= 2, "{layout} {name}: {refused} refused, {loaded} loaded");
        }
    }
}

#[test]
fn text_that_is_written_out_for_each_row_is_refused_before() {
    // The first row group has a dictionary of one long value, the second has too many for one: together they are plain.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("mixed.parquet");
    let long = "x".repeat(10_000);
    let rows = 200_000;
    let values = (0..rows).map(|row| if row < rows / 2 { long.clone() } else { format!("{row:020}") });
    let text: ArrayRef = Arc::new(LargeStringArray::from_iter_values(values));
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(1 << 16)
        .set_max_row_group_row_count(Some(rows / 2))
        .set_compression(Compression::ZSTD(ZstdLevel::default()));
    write(&path, vec![("text", text)], properties);
    assert!(std::fs::metadata(&path).expect("there").len() < 8 << 20);
    let table = FileTable::open(vec![path], Format::Parquet).expect("a good file");
    let memory = Arc::new(MemoryBudget::new(64 << 20));
    let error = load(&table, 0, &ColumnCache::new(0), &memory).expect_err("a gigabyte of text");
    assert_eq!(error.class, Class::Exhausted, "{error}");
    assert_eq!(memory.used(), 0);
}
