//! Clients that connect and say nothing: they keep neither local nor remote clients out.

use std::{
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
};

use tandem_node::Client;

use crate::fixture::*;

/// Silent connections: many times what the daemon has places for.
const SILENT: usize = 400;

/// Reads until the other side has closed, which must be before the test's patience ends.
fn assert_closed(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the daemon keeps a silent client");
    }
}

#[test]
fn silent_clients_keep_nobody_out() {
    let keys = Keys::new();
    let mut running = Running::start(|options| {
        keys.listen(options);
        options.max_connections = 4;
    });
    let path = running.sales();
    let address = running.node.as_ref().unwrap().tls_address().unwrap();
    let silent = |at: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        if at % 2 == 1 {
            // The begin of a handshake; the daemon may have closed already.
            let _ = stream.write_all(&[0x16, 3, 1]);
        }
        stream
    };
    let mut crowd: Vec<TcpStream> = (0..SILENT).map(silent).collect();
    let execute = command(&by_region(0), vec![whole(&path)]);
    let mut serve = |mut client: Client| {
        crowd.extend((0..10).map(silent));
        let outcome = client.execute(&execute, |_| unreachable!()).unwrap();
        assert_eq!(regions(&outcome.batches), expected_by_region(0..ROWS));
        client
    };
    for _ in 0..3 {
        let mut local = serve(Client::connect_as(&running.socket, &hello(TOKEN)).unwrap());
        let mut remote = serve(keys.connect(&running, "node.test", TOKEN).unwrap());
        assert!(local.ping().is_ok() && remote.ping().is_ok());
    }
    let mut observer = Client::connect_as(&running.socket, &hello(TOKEN)).unwrap();
    eventually("the silent ones are given up", || {
        observer.status().unwrap().prometheus.contains("tandem_greetings 0\n")
    });
    crowd.iter_mut().for_each(assert_closed);
    // At the end nobody waits for those who are about to greet.
    let mut late: Vec<TcpStream> = (0..10).map(silent).collect();
    running.node.take().unwrap().drain(PATIENCE);
    late.iter_mut().for_each(assert_closed);
}

#[test]
fn silent_local_clients_keep_nobody_out() {
    let running = Running::start(|options| options.max_connections = 1);
    let _crowd: Vec<UnixStream> = (0..SILENT).map(|_| UnixStream::connect(&running.socket).unwrap()).collect();
    running.client().ping().unwrap();
}
