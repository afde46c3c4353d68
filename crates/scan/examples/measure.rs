//! Measures how fast columns of a Parquet file become resident, beside the `parquet` crate's Arrow reader.
//!
//! `cargo run --release -p tandem-scan --example measure -- lineorder.parquet lo_orderdate,lo_quantity [threads] [repeats] [alone]`

use std::{error::Error, fs::File, path::PathBuf, time::Instant};

use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder},
};
use tandem_runtime::{Cancel, RowProgress, Runtime};
use tandem_scan::{ColumnCache, FileTable, Format, Loading};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, names, options @ ..] = &arguments[..] else {
        return Err("usage: measure FILE COLUMN,COLUMN… [THREADS] [REPEATS] [alone]".into());
    };
    let path = PathBuf::from(path);
    let threads = options.first().map_or(Ok(2), |text| text.parse())?;
    let repeats: usize = options.get(1).map_or(Ok(5), |text| text.parse())?;
    let alone = options.get(2).is_some_and(|text| text == "alone");
    let runtime = Runtime::new(threads);
    let table = FileTable::open(vec![path.clone()], Format::Parquet)?;
    let all: Vec<String> = table.schema().iter().map(|field| field.name.clone()).collect();
    let names: Vec<&str> =
        if names == "all" { all.iter().map(String::as_str).collect() } else { names.split(',').collect() };
    let find = |name: &&str| all.iter().position(|field| field == name).ok_or(format!("no column {name}"));
    let columns: Vec<usize> = names.iter().map(find).collect::<Result<_, _>>()?;
    let cache = ColumnCache::new(0);
    let (cancel, progress, memory) = (Cancel::new(), RowProgress::default(), Default::default());
    let loading = Loading { cache: &cache, runtime: &runtime, memory: &memory, cancel: &cancel, progress: &progress };
    let load = |columns: &[usize]| table.load(columns, &[], &loading).map(|(table, _)| table);
    let best = |run: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| -> Result<f64, Box<dyn Error>> {
        let mut best = f64::INFINITY;
        for _ in 0..repeats {
            let start = Instant::now();
            run()?;
            best = best.min(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(best)
    };
    let both = |columns: &[usize]| -> Result<String, Box<dyn Error>> {
        let ours = best(&mut || {
            load(columns)?;
            Ok(())
        })?;
        if alone {
            return Ok(format!("tandem {ours:8.1} ms"));
        }
        let arrow = best(&mut || read_with_arrow(&path, columns, threads))?;
        Ok(format!("tandem {ours:8.1} ms   parquet crate {arrow:8.1} ms"))
    };
    if !alone {
        for (name, &column) in names.iter().zip(&columns) {
            let encoding = load(&[column])?.parts.first().map(|part| part.columns[0].encoding()).unwrap_or_default();
            println!("{name:<20} {}   {encoding}", both(&[column])?);
        }
    }
    println!("{:<20} {}", format!("all {}", columns.len()), both(&columns)?);
    let loaded = load(&columns)?;
    let size = loaded.byte_len() as f64 / (1 << 20) as f64;
    println!("{} rows, {size:.1} MiB resident, {threads} threads, best of {repeats}", loaded.rows());
    Ok(())
}

fn read_with_arrow(path: &PathBuf, columns: &[usize], threads: usize) -> Result<(), Box<dyn Error>> {
    let metadata = ArrowReaderMetadata::load(&File::open(path)?, Default::default())?;
    let groups = metadata.metadata().num_row_groups();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let group = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if group >= groups {
                        return;
                    }
                    let file = File::open(path).expect("the file was there");
                    let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
                    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
                        .with_row_groups(vec![group])
                        .with_projection(mask)
                        .with_batch_size(8192)
                        .build()
                        .expect("a readable file");
                    reader.for_each(|batch| drop(batch.expect("a readable file")));
                }
            });
        }
    });
    Ok(())
}
