//! TCP inside TLS with a token; metrics over HTTP.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tandem_node::{Client, Node, NodeOptions};

use crate::fixture::*;

/// Connections at once.
const MOST: usize = 8;

#[test]
fn tls_and_a_token() {
    let keys = Keys::new();
    let mut running = Running::start(|options| {
        keys.listen(options);
        options.max_connections = MOST;
    });
    let address = running.node.as_ref().unwrap().tls_address().unwrap();
    let sales = running.sales();
    let connect = |name: &str, token: &str| keys.connect(&running, name, token);
    let mut client = connect("node.test", TOKEN).unwrap();
    let text = "pipeline 0\n  scan sales [id@0: int32?, region@1: string?]\n  materialize output ($0, $1)\n";
    let outcome = client.execute(&command(text, vec![whole(&sales); 20]), |_| unreachable!()).unwrap();
    assert_eq!(outcome.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 20 * ROWS as usize);
    let execute = with_block(command(JOIN, vec![whole(&sales)]), "large");
    assert!(client.execute(&execute, |_| Ok(crate::fixture::keys(300_000))).is_ok());
    let wrong = connect("node.test", "another token of that length").map(drop).unwrap_err();
    assert!(wrong.message.contains("token"), "{wrong}");
    assert!(connect("other.test", TOKEN).is_err());
    // The Unix socket asks for it too.
    assert!(Client::connect(&running.socket, "app").is_err());
    assert!(Client::connect_as(&running.socket, &hello(TOKEN)).is_ok());
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"not TLS at all").unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    client.ping().unwrap();
    let more = std::cell::RefCell::new(Vec::new());
    eventually("all places are taken", || {
        more.borrow_mut().extend(connect("node.test", TOKEN));
        more.borrow().len() == MOST - 1
    });
    let turned_away = connect("node.test", TOKEN).map(drop).unwrap_err();
    assert!(turned_away.message.contains("too many connections"), "{turned_away}");
    // Clients of this machine have places of their own.
    assert!(Client::connect_as(&running.socket, &hello(TOKEN)).is_ok());
    drop(more);
    running.node.take().unwrap().drain(PATIENCE);
    assert!(client.ping().is_err(), "nothing is left open");
}

#[test]
fn tcp_needs_all_of_it() {
    let directory = private_directory();
    let options = NodeOptions {
        socket: directory.path().join("node.sock"),
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..NodeOptions::default()
    };
    let error = Node::start(options, devices()).map(drop).unwrap_err();
    assert!(error.message.contains("--tls-certificate"), "{error}");
    let options = NodeOptions {
        socket: directory.path().join("node.sock"),
        metrics: Some("0.0.0.0:0".parse().unwrap()),
        ..NodeOptions::default()
    };
    let error = Node::start(options, devices()).map(drop).unwrap_err();
    assert!(error.message.contains("loopback"), "{error}");
}

#[test]
fn metrics_and_health() {
    let running = Running::start(|options| options.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let address = running.node.as_ref().unwrap().metrics_address().unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let sales = running.sales();
    let execute = command(&by_region(0), vec![whole(&sales)]);
    running.client().execute(&execute, |_| unreachable!()).unwrap();
    let metrics = get("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK") && metrics.contains("tandem_commands_total 1\n"), "{metrics}");
    assert!(metrics.contains(&format!("tandem_rows_in_total {ROWS}\n")), "{metrics}");
    assert!(get("/health").ends_with("ok\n"));
    assert!(get("/other").starts_with("HTTP/1.1 404"));
}

/// Requests that never end, byte by byte, keep no other request waiting.
#[test]
fn trickled_requests_for_metrics() {
    let running = Running::start(|options| options.metrics = Some("127.0.0.1:0".parse().unwrap()));
    let address = running.node.as_ref().unwrap().metrics_address().unwrap();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                // The daemon may have closed it.
                slow.iter_mut().for_each(|stream| drop(stream.write_all(b"G")));
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        for _ in 0..20 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            write!(stream, "GET /health HTTP/1.1\r\n\r\n").unwrap();
            let mut text = String::new();
            let read = stream.read_to_string(&mut text);
            ended.store(read.is_err(), Ordering::Relaxed);
            assert!(read.is_ok() && text.ends_with("ok\n"), "{read:?} {text}");
        }
        ended.store(true, Ordering::Relaxed);
    });
    drop(running);
    assert!(TcpStream::connect(address).is_err(), "nothing listens after the end");
}
