//! The Parquet files: complete, readable, the same for any number of threads, and none left after a failure.

use std::{
    fs::{self, File},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use parquet::file::reader::{FileReader, SerializedFileReader};
use tandem_generator::{Class, GeneratorOptions, TableFile, write_h2o, write_ssb, write_tpch};

fn options(sf: f64, threads: usize) -> GeneratorOptions {
    GeneratorOptions { sf, rows: 5000, seed: 7, threads }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

fn check(files: &[TableFile]) {
    for file in files {
        let reader = SerializedFileReader::new(File::open(&file.path).unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows() as u64, file.rows, "{}", file.name);
        assert_eq!(fs::metadata(&file.path).unwrap().len(), file.bytes);
        assert!(reader.metadata().row_groups().iter().all(|g| g.num_rows() <= 1 << 20));
    }
}

#[test]
fn ssb_files_are_complete_and_deterministic() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let files = write_ssb(&options(0.2, 1), &one.path().join("new/dir"), &|d, t| {
        done.fetch_max(d, Ordering::Relaxed);
        total.store(t, Ordering::Relaxed);
    })
    .unwrap();
    check(&files);
    let rows: u64 = files.iter().map(|f| f.rows).sum();
    assert_eq!((done.into_inner(), total.into_inner()), (rows, rows));
    let again = write_ssb(&options(0.2, 3), three.path(), &|_, _| ()).unwrap();
    let tables = ["customer", "date", "lineorder", "part", "supplier"];
    assert_eq!(names(three.path()), tables.map(|t| format!("{t}.parquet")));
    for (a, b) in files.iter().zip(&again) {
        assert!(fs::read(&a.path).unwrap() == fs::read(&b.path).unwrap(), "{} differs by threads", a.name);
    }
}

#[test]
fn tpch_files_are_complete() {
    let dir = tempfile::tempdir().unwrap();
    let files = write_tpch(&options(0.01, 2), dir.path(), &|_, _| ()).unwrap();
    check(&files);
    let rows = |name: &str| files.iter().find(|f| f.name == name).expect(name).rows;
    assert_eq!((rows("region"), rows("nation"), rows("orders"), rows("lineitem")), (5, 25, 15_000, 60_175));
    assert_eq!(files.len(), 8);
}

#[test]
fn scale_factors_out_of_range_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for sf in [0.0, 0.009, -1.0, 10_001.0, f64::NAN, f64::INFINITY] {
        let error = write_ssb(&options(sf, 1), dir.path(), &|_, _| ()).unwrap_err();
        assert_eq!(error.class, Class::Input);
        assert!(error.message.contains("scale factor"), "{error}");
        assert!(write_tpch(&options(sf, 1), dir.path(), &|_, _| ()).is_err());
    }
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_file_in_the_way_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "x").unwrap();
    for path in [path.clone(), path.join("below")] {
        let error = write_ssb(&options(0.01, 1), &path, &|_, _| ()).unwrap_err();
        assert_eq!(error.class, Class::Input);
        assert!(error.message.contains("file"), "{error}");
    }
}

#[test]
fn a_failed_write_leaves_no_partial_file() {
    // A directory in place of the last file makes the rename fail after everything was written.
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("lineorder.parquet")).unwrap();
    assert!(write_ssb(&options(0.01, 2), dir.path(), &|_, _| ()).is_err());
    assert!(names(dir.path()).iter().all(|name| !name.ends_with(".partial")));
}

#[test]
fn h2o_files_are_complete_and_deterministic() {
    let (one, three) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = write_h2o(&options(1.0, 1), one.path(), &|_, _| ()).unwrap();
    check(&files);
    let rows: Vec<(&str, u64)> = files.iter().map(|file| (file.name.as_str(), file.rows)).collect();
    assert_eq!(rows, [("small", 10), ("medium", 10), ("big", 5000), ("x", 5000), ("g1", 5000)]);
    let again = write_h2o(&options(1.0, 3), three.path(), &|_, _| ()).unwrap();
    for (a, b) in files.iter().zip(&again) {
        assert!(fs::read(&a.path).unwrap() == fs::read(&b.path).unwrap(), "{} differs by threads", a.name);
    }
    let error = write_h2o(&GeneratorOptions { rows: 7, ..options(1.0, 1) }, three.path(), &|_, _| ()).unwrap_err();
    assert_eq!(error.class, Class::Input);
}
