//! Frames that no honest client sends. Nothing of it ends the daemon. The seed is printed; `TANDEM_SEED=n` replays it.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use prost::Message;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_node::{
    Client,
    frame::{self, Kind},
    proto::{self, Class},
};
use tandem_pipeline::{Expr, Type, Value, proto as wire};

use crate::fixture::*;

/// How many connections send something wrong.
const ATTACKS: usize = 3000;

fn connect(running: &Running) -> UnixStream {
    let stream = UnixStream::connect(&running.socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a greeting and bytes, and returns the failure that comes back, if one does.
fn failure(running: &Running, bytes: &[u8]) -> Option<proto::Failure> {
    let mut stream = connect(running);
    frame::write(&mut stream, Kind::Hello, &Client::hello().encode_to_vec()).unwrap();
    stream.write_all(bytes).unwrap();
    loop {
        let frame = frame::read(&mut stream, 1 << 20, || Ok(())).ok()?;
        if frame.kind == Kind::Failure {
            return Some(proto::Failure::decode(frame.payload.as_slice()).unwrap());
        }
    }
}

fn framed(kind: Kind, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, kind, payload).unwrap();
    bytes
}

#[test]
fn the_rules_of_frames() {
    let running = Running::start(|options| options.max_message = 1);
    let refused = |bytes: &[u8]| failure(&running, bytes).unwrap();
    let unknown = refused(&[0, 0, 0, 0, 99]);
    assert!(unknown.class == Class::Protocol as i32 && unknown.message.contains("unknown kind"), "{unknown:?}");
    let large = refused(&[0xff, 0xff, 0xff, 0x7f, 2]);
    assert!(large.message.contains("--max-message"), "{large:?}");
    let wrong_way = refused(&framed(Kind::Trailer, &[]));
    assert!(wrong_way.message.contains("no such frame"), "{wrong_way:?}");
    let twice = [framed(Kind::Execute, &endless(&running)), framed(Kind::Execute, &[])].concat();
    assert!(refused(&twice).message.contains("one command at a time"));
    let empty = refused(&framed(Kind::Execute, &[]));
    assert!(empty.class == Class::Input as i32 && empty.message.contains("no query"), "{empty:?}");
    let fields = refused(&framed(Kind::Execute, &[0xfa, 0x01, 0x00]));
    assert!(fields.message.contains("fields that are not known"), "{fields:?}");
    assert!(refused(&framed(Kind::Ping, &[0; 100])).message.contains("ping"));
    let hello = |hello: &proto::Hello| {
        let mut stream = connect(&running);
        frame::write(&mut stream, Kind::Hello, &hello.encode_to_vec()).unwrap();
        let frame = frame::read(&mut stream, 1 << 20, || Ok(())).unwrap();
        assert_eq!(frame.kind, Kind::Failure);
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).unwrap(), 0, "the daemon closes");
        proto::Failure::decode(frame.payload.as_slice()).unwrap().message
    };
    let version = hello(&proto::Hello { protocol: 2, client_version: "9.9".into(), ..Client::hello() });
    assert!(version.contains("client 9.9 with protocol 2"), "{version}");
    let mut stream = connect(&running);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    running.client().ping().unwrap();
}

fn endless(running: &Running) -> Vec<u8> {
    let path = running.sales();
    with_block(command(JOIN, vec![whole(&path)]), "never sent").encode_to_vec()
}

#[test]
fn deep_and_odd_queries() {
    let running = Running::start(|_| {});
    let (path, mut client) = (running.sales(), running.client());
    let mut execute = command(&by_region(0), vec![whole(&path)]);
    let mut run = |change: &dyn Fn(&mut wire::Query)| {
        let mut execute = execute.clone();
        change(execute.query.as_mut().unwrap());
        client.execute(&execute, |_| unreachable!()).unwrap_err()
    };
    assert!(run(&|query| query.version = 7).message.contains("given 7, known 1"));
    assert!(run(&|query| query.pipelines.clear()).message.contains("at least one pipeline"));
    assert!(run(&|query| query.pipelines[0].slots.clear()).class == Class::Input);
    let deep = (0..200).fold(Expr::Literal(Value::Boolean(true), Type::Boolean), |expr, _| Expr::Not(Box::new(expr)));
    let deep = run(&|query| {
        let mut own = tandem_pipeline::parse(&by_region(0)).unwrap();
        own.pipelines[0].steps.push(tandem_pipeline::Step::Filter(deep.clone()));
        *query = wire::write(&own);
    });
    assert!(deep.class == Class::Input && deep.message.contains("recursion"), "{deep}");
    execute.tables[0].splits[0].path = "/proc/self/mem".to_owned();
    assert_eq!(client.execute(&execute, |_| unreachable!()).unwrap_err().class, Class::Input);
    execute.tables[0].splits[0].path = "/dev/zero".to_owned();
    assert_eq!(client.execute(&execute, |_| unreachable!()).unwrap_err().class, Class::Input);
}

#[test]
fn damaged_blocks() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let seed = seed();
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut whole_block = Vec::new();
    let block = keys(50);
    let mut writer = arrow::ipc::writer::StreamWriter::try_new(&mut whole_block, &block.schema).unwrap();
    writer.write(&block.batches[0]).unwrap();
    writer.finish().unwrap();
    drop(writer);
    for attack in 0..300 {
        let mut bytes = whole_block.clone();
        for _ in 0..rng.random_range(1..6) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..4) {
                0 => bytes.truncate(at.max(1)),
                _ => bytes[at] = rng.random(),
            }
        }
        let execute = with_block(command(JOIN, vec![whole(&path)]), &format!("attack {attack}"));
        let frames = [
            framed(Kind::Hello, &Client::hello().encode_to_vec()),
            framed(Kind::Execute, &execute.encode_to_vec()),
            framed(Kind::Block, &[&[0; 4], bytes.as_slice()].concat()),
            framed(Kind::BlockEnd, &[0; 4]),
        ];
        let mut stream = connect(&running);
        stream.write_all(&frames.concat()).unwrap();
        // Some damage leaves a block that is a block.
        while let Ok(frame) = frame::read(&mut stream, 1 << 20, || Ok(())) {
            if frame.kind == Kind::Failure {
                let failure = proto::Failure::decode(frame.payload.as_slice()).unwrap();
                assert_ne!(failure.class, Class::Internal as i32, "{failure:?}");
            }
            if matches!(frame.kind, Kind::Failure | Kind::Trailer) {
                break;
            }
        }
    }
    assert_eq!(running.client().status().unwrap().running, 0);
    running.client().execute(&with_block(command(JOIN, vec![whole(&path)]), "good"), |_| Ok(keys(100))).unwrap();
}

fn seed() -> u64 {
    let seed = std::env::var("TANDEM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("TANDEM_SEED={seed}");
    seed
}

#[test]
fn random_frames() {
    let running = Running::start(|options| options.max_message = 1);
    let path = running.sales();
    let rng = &mut ChaCha8Rng::seed_from_u64(seed());
    let honest = [
        framed(Kind::Hello, &Client::hello().encode_to_vec()),
        framed(Kind::Execute, &command(&by_region(0), vec![whole(&path)]).encode_to_vec()),
        framed(Kind::Status, &[]),
        framed(Kind::Cancel, &[]),
        framed(Kind::Execute, &endless(&running)),
        framed(Kind::Block, &[0; 100]),
        framed(Kind::BlockEnd, &[0; 4]),
        framed(Kind::Release, &proto::Release { application: "app-1".into() }.encode_to_vec()),
    ];
    for attack in 0..ATTACKS {
        let mut bytes = honest[0].clone();
        for _ in 0..rng.random_range(0..5) {
            bytes.extend_from_slice(&honest[rng.random_range(1..honest.len())]);
        }
        for _ in 0..rng.random_range(0..4) {
            let at = rng.random_range(0..bytes.len());
            match rng.random_range(0..5) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes.splice(at..at, (0..rng.random_range(1..20)).map(|_| rng.random())).for_each(drop),
                _ => bytes[at] = rng.random(),
            }
        }
        let mut stream = connect(&running);
        // The daemon may close before all of it is sent.
        let _ = stream.write_all(&bytes);
        if attack % 3 == 0 {
            stream.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
            let mut answer = [0; 4096];
            let _ = stream.read(&mut answer);
        }
        if attack % 100 == 0 {
            running.client().ping().unwrap();
        }
    }
    let mut client = running.client();
    let outcome = client.execute(&command(&by_region(0), vec![whole(&path)]), |_| unreachable!()).unwrap();
    assert_eq!(regions(&outcome.batches), expected_by_region(0..ROWS));
    let client = std::cell::RefCell::new(client);
    eventually("all others are gone", || {
        let status = client.borrow_mut().status().unwrap();
        status.connections == 1 && status.running == 0
    });
}
