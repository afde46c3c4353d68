//! Pipes, devices and sockets in place of files.

use std::{fs, os::unix::net::UnixListener};

use rustix::fs::{CWD, Mode, mkfifoat};
use tandem_scan::{Compression, Format, inspect};

use crate::refused;

#[test]
fn what_is_not_a_file_is_refused_without_waiting() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let pipe = directory.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&pipe, &link).expect("a link");
    let socket = directory.path().join("socket");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let device = directory.path().join("device");
    std::os::unix::fs::symlink("/dev/zero", &device).expect("a link");
    let compressed = Format::Csv { delimiter: b',', header: None, compression: Compression::Gzip };
    for format in [Format::Parquet, Format::csv(), compressed, Format::Arrow] {
        for (path, kind) in [(&pipe, "a pipe"), (&link, "a pipe"), (&socket, "a socket"), (&device, "a device")] {
            let message = refused(path, format.clone());
            assert!(message.contains(&format!("it is {kind}; copy what it gives into a file")), "{message}");
            assert_eq!(inspect(path, Some(&format)).unwrap_err().message, message);
            assert_eq!(inspect(path, None).unwrap_err().message, message);
        }
        assert!(refused(directory.path(), format).contains("it is a directory"));
    }
}

#[test]
fn a_file_that_becomes_a_pipe_is_noticed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("a.csv");
    fs::write(&path, "a\n1\n").expect("it can be written");
    let table = crate::open(&path, Format::csv()).expect("a good file");
    fs::remove_file(&path).expect("it is ours");
    mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let loaded = crate::load(&table);
    assert!(loaded.expect_err("a pipe").message.contains("it is a pipe"));
}
