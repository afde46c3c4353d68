//! COPY writes whole files or none.

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use support::{failure, rows, run, session};
use tandem_engine::{Cancel, Mode};

const MODES: [Mode; 2] = [Mode::Auto, Mode::Host];

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn every_format_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    for mode in MODES {
        let session = session(mode);
        run(
            &session,
            "CREATE TABLE t AS SELECT value AS a, value * 0.5 AS x, 'row ' || value AS s FROM generate_series(1, 3000)",
        )
        .await
        .unwrap();
        let expected = rows(&session, "SELECT count(*), sum(a), sum(x), max(s) FROM t").await;
        for file in ["t.parquet", "t.csv", "t.arrow", "t.json", "t.jsonl", "t.tsv"] {
            // .tsv is comma-separated unless told otherwise by DataFusion's options.
            let options = if file.ends_with("tsv") { " OPTIONS ('format.delimiter' '\t')" } else { "" };
            let written = rows(&session, &format!("COPY t TO '{root}/{file}'{options}")).await;
            assert_eq!(written, ["3000"], "{file}");
            let back = rows(&session, &format!("SELECT count(*), sum(a), sum(x), max(s) FROM '{root}/{file}'")).await;
            assert_eq!(back, expected, "{mode} {file}");
        }
        let written =
            rows(&session, &format!("COPY (SELECT a FROM t WHERE a < 11) TO '{root}/data' STORED AS PARQUET")).await;
        assert_eq!(written, ["10"]);
        fs::remove_dir_all(folder.path().join("data")).unwrap();
        assert_eq!(names(folder.path()).len(), 6, "nothing hidden stays: {:?}", names(folder.path()));
    }
}

#[tokio::test]
async fn a_failing_query_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display();
    for mode in MODES {
        let session = session(mode);
        for file in ["t.parquet", "t.csv", "t.arrow", "t.json"] {
            let sql =
                format!("COPY (SELECT 1 / (value - 900000) AS a FROM generate_series(1, 1000000)) TO '{root}/{file}'");
            let message = failure(&session, &sql).await;
            assert!(message.starts_with("division by zero"), "{message}");
            assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
        }
    }
}

#[tokio::test]
async fn a_failing_copy_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let session = session(Mode::Auto);
    run(&session, &format!("COPY (SELECT 1 AS a) TO '{}'", file.display())).await.unwrap();
    failure(
        &session,
        &format!("COPY (SELECT 1 / (value - 5) AS a FROM generate_series(1, 9)) TO '{}'", file.display()),
    )
    .await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n1\n");
    run(&session, &format!("COPY (SELECT 2 AS b) TO '{}'", file.display())).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "b\n2\n");
}

#[tokio::test]
async fn a_full_disk_is_said() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let session = session(Mode::Auto);
    let sql = "COPY (SELECT value AS a FROM generate_series(1, 100000)) TO '/dev/full' STORED AS CSV";
    let message = failure(&session, sql).await;
    assert!(message.contains("disk is full") && message.contains("/dev/full"), "{message}");
    let kind = fs::metadata("/dev/full").unwrap();
    assert!(!kind.is_file(), "the device is still a device");
}

#[tokio::test]
async fn bad_targets_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let message = failure(&session, &format!("COPY (SELECT 1) TO '{}/no/such/t.csv'", folder.path().display())).await;
    assert!(message.contains("no/such"), "{message}");
    fs::create_dir(folder.path().join("d.csv")).unwrap();
    let message = failure(&session, &format!("COPY (SELECT 1) TO '{}/d.csv'", folder.path().display())).await;
    assert!(message.contains("directory"), "{message}");
    failure(&session, &format!("COPY (SELECT 1) TO '{}/t.unknown'", folder.path().display())).await;
    assert_eq!(names(folder.path()), ["d.csv"]);
}

/// A file that is replaced keeps its mode; a new one follows the umask.
#[tokio::test]
async fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let file = folder.path().join("t.csv");
    let copy = format!("COPY (SELECT 1 AS a) TO '{}'", file.display());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    run(&session, &copy).await.unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&file), mode(&plain));
    for bits in [0o600, 0o640, 0o444, 0o777] {
        fs::set_permissions(&file, fs::Permissions::from_mode(bits)).unwrap();
        run(&session, &copy).await.unwrap();
        assert_eq!(mode(&file), bits, "{bits:o}");
    }
    assert_eq!(names(folder.path()), ["plain", "t.csv"]);
}

/// A link stays a link, and what it leads to is replaced, also on another path and where nothing is yet.
#[tokio::test]
async fn links_are_written_through() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let (link, real) = (folder.path().join("link.csv"), folder.path().join("d"));
    fs::create_dir(&real).unwrap();
    symlink("d/real.csv", &link).unwrap();
    for value in ["1", "2"] {
        run(&session, &format!("COPY (SELECT {value} AS a) TO '{}'", link.display())).await.unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(real.join("real.csv")).unwrap(), format!("a\n{value}\n"));
    }
    assert_eq!(names(&real), ["real.csv"]);
}

/// Names are names, whatever patterns and addresses are made of.
#[tokio::test]
async fn odd_names_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in
        ["a?b", "a*b", "a[1]", "a[", "50%", "%41", "a b", "a#b", "a#1", "ä&\"", "a{b}"].iter().enumerate()
    {
        let directory = folder.path().join(format!("{name} d"));
        fs::create_dir(&directory).unwrap();
        for mode in MODES {
            let session = session(mode);
            for extension in ["csv", "parquet"] {
                let file = directory.join(format!("{name}.{extension}"));
                let file = file.display();
                run(&session, &format!("COPY (SELECT {number} AS n) TO '{file}'")).await.unwrap();
                assert_eq!(rows(&session, &format!("SELECT n FROM '{file}'")).await, [number.to_string()], "{file}");
            }
            let external = format!(
                "CREATE EXTERNAL TABLE e (n BIGINT) STORED AS CSV LOCATION '{}' OPTIONS ('format.has_header' 'true')",
                directory.join(format!("{name}.csv")).display()
            );
            run(&session, &external).await.unwrap();
            assert_eq!(rows(&session, "SELECT n FROM e").await, [number.to_string()], "{name}");
        }
        assert_eq!(names(&directory), [format!("{name}.csv"), format!("{name}.parquet")]);
    }
}

/// A directory that did not exist appears whole; files go beside those of one that did.
#[tokio::test]
async fn directories_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (session, root) = (session(Mode::Auto), folder.path().display());
    let failing = "(SELECT value % 3 AS p, 1 / (value - 9000) AS a FROM generate_series(1, 10000))";
    let good = "(SELECT value % 3 AS p, value AS a FROM generate_series(1, 10000))";
    for partitioned in ["", " PARTITIONED BY (p)"] {
        for target in ["new", "old"] {
            let old = folder.path().join("old");
            fs::create_dir_all(&old).unwrap();
            fs::write(old.join("x.csv"), "p,a\n0,0\n").unwrap();
            failure(&session, &format!("COPY {failing} TO '{root}/{target}' STORED AS CSV{partitioned}")).await;
            assert_eq!(names(folder.path()), ["old"]);
            assert_eq!(names(&old), ["x.csv"]);
            run(&session, &format!("COPY {good} TO '{root}/{target}' STORED AS CSV{partitioned}")).await.unwrap();
            let written = names(&folder.path().join(target));
            assert!(written.iter().all(|name| !name.starts_with('.')), "{written:?}");
            assert_eq!(written.contains(&"x.csv".to_string()), target == "old");
            assert_eq!(written.contains(&"p=1".to_string()), !partitioned.is_empty(), "{written:?}");
            fs::remove_dir_all(folder.path().join(target)).unwrap();
            let _ = fs::remove_dir_all(&old);
        }
    }
}

/// A pipe gets all rows, and stays a pipe.
#[tokio::test(flavor = "multi_thread")]
async fn pipes_are_written_to() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reading = {
        let pipe = pipe.clone();
        tokio::task::spawn_blocking(move || fs::read_to_string(pipe).unwrap())
    };
    let session = session(Mode::Auto);
    let sql = format!("COPY (SELECT value AS a FROM generate_series(1, 100000)) TO '{}' STORED AS CSV", pipe.display());
    run(&session, &sql).await.unwrap();
    assert_eq!(reading.await.unwrap().lines().count(), 100_001);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["pipe"]);
}

/// COPY inside another statement is staged just the same.
#[tokio::test]
async fn explained_and_prepared_copies_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    let failing = "(SELECT 1 / (value - 9000) AS a FROM generate_series(1, 10000))";
    for mode in MODES {
        let session = session(mode);
        failure(&session, &format!("EXPLAIN ANALYZE COPY {failing} TO '{}'", file.display())).await;
        assert!(names(folder.path()).is_empty());
        run(&session, &format!("EXPLAIN COPY {failing} TO '{}'", file.display())).await.unwrap();
        assert!(names(folder.path()).is_empty());
    }
}

#[tokio::test]
async fn a_cancelled_copy_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Mode::Auto);
    let cancel = Cancel::new();
    let sql =
        format!("COPY (SELECT value AS a FROM generate_series(1, 2000000000)) TO '{}/t.csv'", folder.path().display());
    let reading = tokio::spawn(session.sql(sql).cancel(&cancel).into_future());
    tokio::time::sleep(Duration::from_millis(300)).await;
    cancel.cancel();
    let error = reading.await.unwrap().unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    for _ in 0..100 {
        if names(folder.path()).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("left behind: {:?}", names(folder.path()));
}
