//! The daemon as a process: it ends with its parent and on SIGTERM, and leaves no socket; on SIGUSR1 it forgets columns.

use std::{
    fs::File,
    io::Write,
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::Path,
    process::{Child, Command, Stdio},
};

use prost::Message;
use rustix::process::{Pid, Signal, kill_process};
use tandem_node::{
    Client,
    frame::{self, FrameKind},
};

use crate::fixture::*;

fn start(socket: &Path, parent: bool) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem-node"));
    command.arg("--socket").arg(socket).args(["--threads", "1", "--cache", "16", "--log", "error", "--drain", "5"]);
    if parent {
        command.arg("--with-parent");
    }
    let child = command.stdin(Stdio::piped()).spawn().unwrap();
    eventually("the daemon answers", || Client::connect(socket, "app").is_ok());
    child
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Starts a daemon from a shell that sets limits first, with a log.
fn start_after(limits: &str, socket: &Path, log: &Path) -> Child {
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_tandem-node"), "--socket"]).arg(socket);
    command.args(["--threads", "1", "--cache", "16", "--log", "warn"]);
    let child = command.stderr(File::create(log).unwrap()).spawn().unwrap();
    eventually("the daemon answers", || Client::connect(socket, "app").is_ok());
    child
}

#[test]
fn makes_private_files_and_may_open_many() {
    let directory = private_directory();
    let socket = directory.path().join("node.sock");
    let mut child = start_after("umask 0; ulimit -S -n 64", &socket, &directory.path().join("log"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    assert!(status.contains("Umask:\t0077\n"), "{status}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = files.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] == numbers[1] && numbers[0] != "64", "{files}");
    send(&child, Signal::TERM);
    assert!(child.wait().unwrap().success());
}

/// Without a descriptor for another connection the daemon goes on with those it has, and takes others once there are some.
#[test]
fn survives_running_out_of_descriptors() {
    let directory = private_directory();
    let (socket, log) = (directory.path().join("node.sock"), directory.path().join("log"));
    let mut child = start_after("ulimit -n 64", &socket, &log);
    let mut client = Client::connect(&socket, "app").unwrap();
    let greeted = |_| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        frame::write(&mut stream, FrameKind::Hello, &Client::hello().encode_to_vec()).unwrap();
        stream
    };
    for _ in 0..2 {
        let said = std::fs::read_to_string(&log).unwrap().matches("event=accept").count();
        let many: Vec<UnixStream> = (0..100).map(greeted).collect();
        let now = || std::fs::read_to_string(&log).unwrap().matches("event=accept").count();
        eventually("the descriptors run out", || now() > said);
        client.ping().unwrap();
        drop(many);
        eventually("another client is served", || Client::connect(&socket, "app").is_ok());
        client.ping().unwrap();
    }
    send(&child, Signal::TERM);
    assert!(child.wait().unwrap().success());
}

#[test]
fn forgets_columns_on_sigusr1() {
    let directory = private_directory();
    let (socket, path) = (directory.path().join("node.sock"), directory.path().join("sales.parquet"));
    sales(&path, ROWS);
    let mut child = start(&socket, false);
    let mut client = Client::connect(&socket, "app").unwrap();
    for _ in 0..2 {
        let command = command(&by_region(0), vec![whole(&path)]);
        let cold = client.execute(&command, |_| unreachable!()).unwrap();
        let warm = client.execute(&command, |_| unreachable!()).unwrap();
        assert!(cold.trailer.columns_decoded > 0 && cold.trailer.columns_cached == 0);
        assert!(warm.trailer.columns_decoded == 0 && warm.trailer.columns_cached > 0);
        assert_eq!(regions(&cold.batches), regions(&warm.batches));
        assert!(client.status().unwrap().cache_bytes > 0);
        send(&child, Signal::USR1);
        let mut client = Client::connect(&socket, "app").unwrap();
        eventually("the cache is empty", move || client.status().unwrap().cache_bytes == 0);
    }
    send(&child, Signal::TERM);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ends_with_its_parent() {
    let directory = private_directory();
    let socket = directory.path().join("own/node.sock");
    let mut child = start(&socket, true);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"whatever").unwrap();
    Client::connect(&socket, "app").unwrap().ping().unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(!socket.exists());
}

#[test]
fn ends_when_its_parent_is_killed() {
    let directory = private_directory();
    let socket = directory.path().join("node.sock");
    // The shell's own standard input stays open: only its death tells.
    let script = format!(
        "exec 3<&0; {} --socket {} --threads 1 --log error --with-parent <&3 & exec sleep 1000 >/dev/null",
        env!("CARGO_BIN_EXE_tandem-node"),
        socket.display()
    );
    let mut shell =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    eventually("the daemon answers", || Client::connect(&socket, "app").is_ok());
    let client = Client::connect(&socket, "app").unwrap();
    let pid = client.welcome().pid;
    drop(client);
    shell.kill().unwrap();
    shell.wait().unwrap();
    eventually("the daemon is gone", || !Path::new(&format!("/proc/{pid}/cmdline")).exists() && !socket.exists());
}

#[test]
fn ends_on_sigterm_and_replaces_what_a_killed_one_left() {
    let directory = private_directory();
    let socket = directory.path().join("node.sock");
    let mut child = start(&socket, false);
    let second = Command::new(env!("CARGO_BIN_EXE_tandem-node")).arg("--socket").arg(&socket).output().unwrap();
    let text = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && text.contains("a daemon listens on"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(socket.exists(), "a killed daemon removes nothing");
    let mut child = start(&socket, false);
    send(&child, Signal::TERM);
    assert!(child.wait().unwrap().success());
    assert!(!socket.exists());
}
