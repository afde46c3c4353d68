//! Whom clients and daemon trust: places and files of their own user only.

use std::{
    os::unix::{
        fs::{chown, symlink},
        net::UnixListener,
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command},
};

use tandem_node::{Class, Client, Node, NodeOptions};

use crate::fixture::*;

/// A user who is not root.
const OTHER: u32 = 65534;

/// Connects, and returns the sentence of the refusal. Whoever listens has not been sent anything.
fn refused(socket: &Path, listener: &UnixListener) -> String {
    let failed = Client::connect_as(socket, &hello(TOKEN)).map(drop).unwrap_err();
    assert!(failed.message.contains("nothing was sent to it") && !failed.retryable, "{failed}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it was connected to");
    failed.message
}

/// Tells whether files can be given to others.
fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("not tested, only root can give files away: {what}");
    }
    root
}

#[test]
fn clients_look_before_they_speak() {
    let directory = private_directory();
    let place = directory.path().join("run");
    std::fs::create_dir(&place).unwrap();
    set_mode(&place, 0o700);
    let socket = place.join("node.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    for mode in [0o777, 0o1777, 0o750, 0o701] {
        set_mode(&place, mode);
        let message = refused(&socket, &listener);
        assert!(message.contains("open to others") && message.contains("0700"), "{message}");
    }
    set_mode(&place, 0o700);
    let link = directory.path().join("link");
    symlink(&place, &link).unwrap();
    let message = refused(&link.join("node.sock"), &listener);
    assert!(message.contains("a link to one"), "{message}");
    let absent = Client::connect(&place.join("absent.sock"), "app").map(drop).unwrap_err();
    assert!(absent.message.contains("no daemon listens") && absent.retryable, "{absent}");
    if !is_root("owners of directories and sockets") {
        return;
    }
    chown(&place, Some(OTHER), None).unwrap();
    assert!(refused(&socket, &listener).contains("belongs to user 65534"));
    chown(&place, Some(0), None).unwrap();
    chown(&socket, Some(OTHER), None).unwrap();
    assert!(refused(&socket, &listener).contains("node.sock belongs to user 65534"));
}

/// Ends a process when the test does.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The files are this user's, but the process behind the socket is not.
#[test]
fn clients_ask_the_kernel_who_listens() {
    if !is_root("a process of another user") {
        return;
    }
    let (theirs, ours) = (private_directory(), private_directory());
    set_mode(theirs.path(), 0o777);
    let (made, socket) = (theirs.path().join("node.sock"), ours.path().join("node.sock"));
    let program = "import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
client, _ = server.accept()
open(sys.argv[1] + '.got', 'wb').write(client.recv(1000))";
    let child = Command::new("python3").args(["-c", program]).arg(&made).uid(OTHER).gid(OTHER).spawn().unwrap();
    let child = Ended(child);
    let listens = || std::fs::read_to_string("/proc/net/unix").unwrap();
    let shown = made.display().to_string();
    // The flag of a socket that listens.
    eventually("it listens", || listens().lines().any(|line| line.contains(&shown) && line.contains(" 00010000 ")));
    std::fs::rename(&made, &socket).unwrap();
    chown(&socket, Some(0), Some(0)).unwrap();
    let failed = Client::connect_as(&socket, &hello(TOKEN)).map(drop).unwrap_err();
    assert!(failed.message.contains("a process of user 65534 listens"), "{failed}");
    let got = PathBuf::from(format!("{shown}.got"));
    eventually("it sees the end", || got.exists());
    drop(child);
    assert_eq!(std::fs::read(got).unwrap(), b"", "the token was sent to another user");
}

#[test]
fn daemons_listen_in_private_places_only() {
    let directory = private_directory();
    let refused = |socket: PathBuf| {
        let error = Node::start(NodeOptions { socket, ..NodeOptions::default() }, devices()).map(drop).unwrap_err();
        assert!(error.class == Class::Input && error.message.contains("--socket"), "{error}");
        error.message
    };
    let (open, link) = (directory.path().join("open"), directory.path().join("link"));
    std::fs::create_dir(&open).unwrap();
    set_mode(&open, 0o755);
    assert!(refused(open.join("node.sock")).contains("open to others"));
    set_mode(&open, 0o700);
    symlink(&open, &link).unwrap();
    assert!(refused(link.join("node.sock")).contains("a link to one"));
    if is_root("a directory of another user") {
        chown(&open, Some(OTHER), None).unwrap();
        assert!(refused(open.join("node.sock")).contains("belongs to user 65534"));
    }
}

#[test]
fn secrets_are_secret() {
    let (keys, directory) = (Keys::new(), private_directory());
    let start = || {
        let mut options = NodeOptions { socket: directory.path().join("node.sock"), ..NodeOptions::default() };
        keys.listen(&mut options);
        Node::start(options, devices()).map(drop)
    };
    start().unwrap();
    for (name, option) in [("token", "--token-file"), ("key.pem", "--tls-key")] {
        let path = keys.path(name);
        for mode in [0o640, 0o604, 0o666] {
            set_mode(&path, mode);
            let error = start().unwrap_err();
            let said = error.message.contains("may be read by others") && error.message.contains(option);
            assert!(error.class == Class::Input && said, "{error}");
        }
        set_mode(&path, 0o400);
        start().unwrap();
        if is_root("a secret of another user") {
            chown(&path, Some(OTHER), None).unwrap();
            let error = start().unwrap_err();
            assert!(error.message.contains("belongs to another user"), "{error}");
            chown(&path, Some(0), None).unwrap();
        }
    }
    let text = std::fs::read(keys.path("token")).unwrap();
    std::fs::remove_file(keys.path("token")).unwrap();
    let pipe = Command::new("mkfifo").args(["-m", "600"]).arg(keys.path("token")).status().unwrap();
    assert!(pipe.success());
    let error = start().unwrap_err();
    assert!(error.message.contains("not a regular file"), "{error}");
    assert!(!text.is_empty());
}

/// An empty or relative directory of the environment is none.
#[test]
fn directories_of_the_environment() {
    let user = rustix::process::getuid().as_raw();
    let default = |variable: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem-node"));
        command.env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR").env(variable, value);
        let help = command.arg("--help").output().unwrap();
        String::from_utf8(help.stdout).unwrap()
    };
    assert!(default("XDG_RUNTIME_DIR", "/run/somewhere").contains("[default: /run/somewhere/tandem/node.sock]"));
    for (variable, value) in
        [("XDG_RUNTIME_DIR", ""), ("XDG_RUNTIME_DIR", "relative"), ("TMPDIR", ""), ("TMPDIR", "a/b")]
    {
        let help = default(variable, value);
        assert!(help.contains(&format!("[default: /tmp/tandem-{user}/node.sock]")), "{variable}={value}: {help}");
    }
}
