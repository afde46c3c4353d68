//! What commands give, and what the daemon keeps between them.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, AsArray, Date32Array, RecordBatch},
    datatypes::{Decimal128Type, Int32Type, Int64Type},
};
use parquet::{
    arrow::ArrowWriter,
    file::{metadata::KeyValue, properties::WriterProperties},
};
use tandem_node::{
    Client,
    proto::{self, Class},
};
use tandem_pipeline::{Type, Value, proto as wire};

use crate::fixture::*;

#[test]
fn partial_aggregates_of_splits_add_up_and_columns_stay() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let size = std::fs::metadata(&path).unwrap().len();
    let mut sums = std::collections::BTreeMap::<String, (i64, i64)>::new();
    let mut groups = 0;
    for task in 0..4 {
        let split = part(&path, size / 4 * task, if task == 3 { u64::MAX } else { size / 4 });
        let outcome = client.execute(&command(&by_region(0), vec![split]), |_| unreachable!()).unwrap();
        groups += outcome.trailer.row_groups;
        for (region, sum, count) in regions(&outcome.batches) {
            let all = sums.entry(region).or_default();
            *all = (all.0 + sum, all.1 + count);
        }
    }
    assert_eq!(groups as i32, ROWS / GROUP_ROWS, "every row group belongs to one split");
    let sums: Vec<(String, i64, i64)> = sums.into_iter().map(|(region, (sum, count))| (region, sum, count)).collect();
    assert_eq!(sums, expected_by_region(0..ROWS));

    let again = client.execute(&command(&by_region(0), vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(regions(&again.batches), sums);
    assert_eq!((again.trailer.columns_decoded, again.trailer.bytes_read), (0, 0));
    assert_eq!(again.trailer.columns_cached, 3 * groups);
    assert_eq!(again.trailer.rows_in, ROWS as u64);
}

#[test]
fn statistics_leave_out_row_groups() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let outcome = client.execute(&command(&by_region(7_500), vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(regions(&outcome.batches), expected_by_region(7_500..ROWS));
    assert_eq!((outcome.trailer.row_groups, outcome.trailer.row_groups_skipped), (10, 7));
}

#[test]
fn a_changed_file_is_noticed() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let metadata = std::fs::metadata(&path).unwrap();
    let count = "pipeline 0\n  scan sales [id@0: int32?]\n  aggregate by () (count($0): int64)\n";
    let rows = |outcome: tandem_node::Outcome| outcome.batches[0].column(0).as_primitive::<Int64Type>().value(0);
    let first = client.execute(&command(count, vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(rows(first), i64::from(ROWS));
    sales(&path, 1234);
    let second = client.execute(&command(count, vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(rows(second), 1234);
    let planned = proto::Split { file_size: metadata.len(), ..whole(&path) };
    let failed = client.execute(&command(count, vec![planned]), |_| unreachable!()).unwrap_err();
    assert_eq!(failed.class, Class::Input);
    assert!(failed.message.contains("changed since the query was planned"), "{failed}");
    let missing = path.with_file_name("missing.parquet");
    let failed = client.execute(&command(count, vec![whole(&missing)]), |_| unreachable!()).unwrap_err();
    assert!(failed.message.contains("file not found"), "{failed}");
}

#[test]
fn columns_by_name_type_and_partition() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let text = "pipeline 0\n  scan sales [day@4: int32?, amount@2: int64?, gone@5: string?, price@3: decimal(18,2)?]\n  \
                filter $0 = 7:int32\n  materialize fetch 3 output ($0, $1, $2, $3)\n";
    let mut execute = command(text, vec![whole(&path), whole(&path)]);
    let table = &mut execute.tables[0];
    table.columns[3].kind = Some(wire::write_kind(&Type::Decimal { precision: 18, scale: 2 }));
    table.columns[2].name = "AMOUNT".to_owned();
    table.case_sensitive = false;
    table.columns.push(proto::Column { partition: Some(0), ..column("day", &Type::Int32, true) });
    table.columns.push(column("gone", &Type::String, true));
    for (split, day) in table.splits.iter_mut().zip([6, 7]) {
        split.partition_values = vec![wire::write_value(&Value::Integer(day))];
    }
    let outcome = client.execute(&execute, |_| unreachable!()).unwrap();
    let batch = &outcome.batches[0];
    assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[7, 7, 7]);
    assert_eq!(batch.column(1).null_count(), 1);
    assert_eq!(batch.column(2).null_count(), 3);
    assert_eq!(batch.column(3).as_primitive::<Decimal128Type>().value(2), 50);
    assert_eq!(outcome.trailer.row_groups_skipped, 10, "the other partition");

    execute.tables[0].columns[2].kind = Some(wire::write_kind(&Type::Int32));
    let failed = client.execute(&execute, |_| unreachable!()).unwrap_err();
    assert_eq!(failed.class, Class::Input, "{failed}");
    execute.tables[0].case_sensitive = true;
    execute.tables[0].columns[2].kind = Some(wire::write_kind(&Type::Int64));
    let outcome = client.execute(&execute, |_| unreachable!()).unwrap();
    assert_eq!(outcome.batches[0].column(1).null_count(), 3, "no column of that case");
    let other = "pipeline 0\n  scan sales [id@0: string?]\n  materialize output ($0)\n";
    let mut other = command(other, vec![whole(&path)]);
    other.tables[0].columns[0].kind = Some(wire::write_kind(&Type::String));
    let failed = client.execute(&other, |_| unreachable!()).unwrap_err();
    assert_eq!(failed.class, Class::Unsupported, "{failed}");
    assert!(failed.message.contains("is int32 in"), "{failed}");
}

/// Files in the calendar of old Spark versions are for the host: by what they say, or by their version.
#[test]
fn calendars_of_old_versions() {
    let running = Running::start(|_| {});
    let path = running.directory.path().join("days.parquet");
    let batch = RecordBatch::try_from_iter([("day", Arc::new(Date32Array::from(vec![-171_000])) as ArrayRef)]).unwrap();
    let run = |entries: &[(&str, &str)]| {
        let entries =
            entries.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned())).collect();
        let properties = WriterProperties::builder().set_key_value_metadata(Some(entries)).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let text = "pipeline 0\n  scan sales [day@0: date?]\n  materialize output ($0)\n";
        let mut execute = command(text, vec![whole(&path)]);
        execute.tables[0].columns = vec![column("day", &Type::Date, true)];
        running.client().execute(&execute, |_| unreachable!()).map(drop)
    };
    let version = "org.apache.spark.version";
    for new in [&[][..], &[(version, "3.0.0")], &[(version, "4.3.0")]] {
        run(new).unwrap();
    }
    for old in [&[(version, "2.4.8")][..], &[(version, "3.5.1"), ("org.apache.spark.legacyDateTime", "")]] {
        let failed = run(old).unwrap_err();
        assert!(failed.class == Class::Unsupported && failed.message.contains("calendar"), "{failed}");
    }
}

#[test]
fn blocks_are_sent_once() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let execute = with_block(command(JOIN, vec![whole(&path)]), "broadcast 1");
    let sent = std::sync::atomic::AtomicUsize::new(0);
    let run = || {
        let outcome = running.client().execute(&execute, |index| {
            assert_eq!(index, 0);
            sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(200));
            Ok(keys(100))
        });
        let outcome = outcome.unwrap();
        let int = |column: usize| outcome.batches[0].column(column).as_primitive::<Int64Type>().value(0);
        assert_eq!((int(0), int(1)), (100, (0..100).sum::<i64>() * 10));
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(run))));
    assert_eq!(sent.load(std::sync::atomic::Ordering::Relaxed), 1);
    let mut client = running.client();
    assert_eq!(client.status().unwrap().blocks, 1);
    client.release("app-1").unwrap();
    assert_eq!(client.status().unwrap().blocks, 0);
    run();
    assert_eq!(sent.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[test]
fn workers_are_capped_by_the_cores_of_all_executors() {
    let running = Running::start(|options| options.threads = 4);
    let executor = |name: &str, cores| {
        let (application, executor) = ("app-1".to_owned(), name.to_owned());
        Client::connect_as(&running.socket, &proto::Hello { application, executor, cores, ..Client::hello() }).unwrap()
    };
    // A connection is greeted just before it counts, and counts until its end is seen.
    let settles = |client: &mut Client, workers: usize| {
        let (line, began) = (format!("tandem_threads_active {workers}\n"), std::time::Instant::now());
        while !client.status().unwrap().prometheus.contains(&line) {
            assert!(began.elapsed() < PATIENCE, "never {workers} workers");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    let mut first = executor("1", 1);
    assert_eq!(first.welcome().threads, 4);
    settles(&mut first, 1);
    let second = executor("2", 2);
    settles(&mut first, 3);
    let third = executor("3", 7);
    settles(&mut first, 4); // there are no more threads
    drop((second, third));
    settles(&mut first, 1);
    // Connections of one executor count its cores once.
    let (_again, second) = (executor("1", 1), executor("2", 1));
    settles(&mut first, 2);
    drop(second);
    settles(&mut first, 1);
    let path = running.sales();
    let outcome = first.execute(&command(&by_region(0), vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(regions(&outcome.batches), expected_by_region(0..ROWS));
    let _unlimited = executor("4", 0);
    settles(&mut first, 4);
}

#[test]
fn no_rows_give_one_state_and_a_schema() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let text =
        "pipeline 0\n  scan sales [amount@2: int64?]\n  aggregate partial by () (sum($0): int64, count($0): int64)\n";
    let outcome = client.execute(&command(text, vec![part(&path, 0, 0)]), |_| unreachable!()).unwrap();
    assert_eq!((outcome.batches[0].num_rows(), outcome.batches[0].column(0).null_count()), (1, 1));
    let outcome = client.execute(&command(&by_region(0), vec![]), |_| unreachable!()).unwrap();
    assert_eq!((outcome.schema.fields().len(), outcome.trailer.rows_out), (5, 0));
}

#[test]
fn rows_without_columns_are_counted() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let text = "pipeline 0\n  scan sales []\n  aggregate partial by () (count_rows(): int64)\n";
    let outcome = client.execute(&command(text, vec![whole(&path); 2]), |_| unreachable!()).unwrap();
    let count = outcome.batches[0].column(0).as_primitive::<Int64Type>().value(0);
    assert_eq!((count, outcome.trailer.bytes_read), (2 * i64::from(ROWS), 0));
    let text = "pipeline 0\n  scan sales []\n  materialize output ()\n";
    let outcome = client.execute(&command(text, vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(outcome.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), ROWS as usize);
}

#[test]
fn many_rows_come_whole() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let text = "pipeline 0\n  scan sales [id@0: int32?, region@1: string?]\n  materialize output ($0, $1)\n";
    let splits = (0..20).map(|_| whole(&path)).collect();
    let mut execute = command(text, splits);
    execute.batch_rows = 777;
    let outcome = client.execute(&execute, |_| unreachable!()).unwrap();
    let ids = outcome.batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec());
    assert!(ids.eq((0..20).flat_map(|_| 0..ROWS)));
    assert!(outcome.trailer.bytes_out > 1 << 20 && outcome.trailer.batches > 200);
}
