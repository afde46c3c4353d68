//! Frames that no honest client sends. Nothing of it ends the daemon. The seed is printed; `TANDEM_SEED=n` replays it.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    time::Duration,
};

use arrow::{
    array::{ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions, StringViewArray, new_null_array},
    datatypes::{DataType, Field, Int8Type, Schema},
    ipc::{
        self, CompressionType,
        writer::{IpcWriteOptions, StreamWriter},
    },
};
use flatbuffers::FlatBufferBuilder;
use prost::Message;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_node::{
    Client,
    frame::{self, FrameKind},
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
    frame::write(&mut stream, FrameKind::Hello, &Client::hello().encode_to_vec()).unwrap();
    stream.write_all(bytes).unwrap();
    loop {
        let frame = frame::read(&mut stream, |_| 1 << 20, || Ok(())).ok()?;
        if frame.kind == FrameKind::Failure {
            return Some(proto::Failure::decode(frame.payload.as_slice()).unwrap());
        }
    }
}

fn framed(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
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
    let wrong_way = refused(&framed(FrameKind::Trailer, &[]));
    assert!(wrong_way.message.contains("no such frame"), "{wrong_way:?}");
    let twice = [framed(FrameKind::Execute, &endless(&running)), framed(FrameKind::Execute, &[])].concat();
    assert!(refused(&twice).message.contains("one command at a time"));
    let empty = refused(&framed(FrameKind::Execute, &[]));
    assert!(empty.class == Class::Input as i32 && empty.message.contains("no query"), "{empty:?}");
    let fields = refused(&framed(FrameKind::Execute, &[0xfa, 0x01, 0x00]));
    assert!(fields.message.contains("fields that are not known"), "{fields:?}");
    assert!(refused(&framed(FrameKind::Ping, &[0; 100])).message.contains("ping"));
    let hello = |hello: &proto::Hello| {
        let mut stream = connect(&running);
        frame::write(&mut stream, FrameKind::Hello, &hello.encode_to_vec()).unwrap();
        let frame = frame::read(&mut stream, |_| 1 << 20, || Ok(())).unwrap();
        assert_eq!(frame.kind, FrameKind::Failure);
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

/// Sends a command whose block is these bytes, and returns the frame that ends it.
fn answer(running: &Running, execute: &proto::Execute, block: &[u8]) -> frame::WireFrame {
    let mut stream = connect(running);
    let mut next = |frames: &[Vec<u8>], wanted: &[FrameKind]| {
        stream.write_all(&frames.concat()).unwrap();
        loop {
            let frame = frame::read(&mut stream, |_| 1 << 20, || Ok(())).unwrap();
            if wanted.contains(&frame.kind) {
                return frame;
            }
        }
    };
    let hello = framed(FrameKind::Hello, &Client::hello().encode_to_vec());
    next(&[hello, framed(FrameKind::Execute, &execute.encode_to_vec())], &[FrameKind::Need]);
    let block = [framed(FrameKind::Block, &[&[0; 4], block].concat()), framed(FrameKind::BlockEnd, &[0; 4])];
    next(&block, &[FrameKind::Failure, FrameKind::Trailer])
}

/// Makes an Arrow stream of a batch.
fn arrow_stream(batch: &RecordBatch, options: IpcWriteOptions) -> Result<Vec<u8>, arrow::error::ArrowError> {
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options)?;
    writer.write(batch)?;
    writer.finish()?;
    writer.into_inner()
}

#[test]
fn damaged_blocks() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let seed = seed();
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let whole_block = arrow_stream(&keys(50).batches[0], IpcWriteOptions::default()).unwrap();
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
        // Some damage leaves a block that is a block.
        let frame = answer(&running, &execute, &bytes);
        if frame.kind == FrameKind::Failure {
            let failure = proto::Failure::decode(frame.payload.as_slice()).unwrap();
            assert_ne!(failure.class, Class::Internal as i32, "{failure:?}");
        }
    }
    assert_eq!(running.client().status().unwrap().running, 0);
    running.client().execute(&with_block(command(JOIN, vec![whole(&path)]), "good"), |_| Ok(keys(100))).unwrap();
}

/// Blocks that are cut off, or of which a few bytes stand for many.
#[test]
fn blocks_that_are_less_than_they_say() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let execute = |key: &str| with_block(command(JOIN, vec![whole(&path)]), key);
    let refused = |block: &[u8], class: Class, words: &str| {
        let frame = answer(&running, &execute("refused"), block);
        assert_eq!(frame.kind, FrameKind::Failure, "{words}");
        let failure = proto::Failure::decode(frame.payload.as_slice()).unwrap();
        assert!(failure.class == class as i32 && failure.message.contains(words), "{failure:?}");
    };
    let batch = &keys(50).batches[0];
    let good = arrow_stream(batch, IpcWriteOptions::default()).unwrap();
    assert_eq!(answer(&running, &execute("good"), &good).kind, FrameKind::Trailer);
    for cut in (0..good.len()).step_by(8) {
        refused(&good[..cut], Class::Input, "cut off");
    }
    let empty = RecordBatchOptions::new().with_row_count(Some(1 << 62));
    let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &empty).unwrap();
    refused(&arrow_stream(&empty, IpcWriteOptions::default()).unwrap(), Class::Unsupported, "too many rows");
    let words: DictionaryArray<Int8Type> = ["a", "a"].into_iter().collect();
    let views = StringViewArray::from(vec!["a word of more than twelve bytes"]);
    for column in [Arc::new(words) as ArrayRef, Arc::new(views), new_null_array(&DataType::Null, 5)] {
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        refused(&arrow_stream(&batch, IpcWriteOptions::default()).unwrap(), Class::Unsupported, "convert column c");
    }
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    match arrow_stream(batch, options) {
        Ok(packed) => refused(&packed, Class::Input, "compressed"),
        Err(error) => println!("not tested, this build does not compress: {error}"),
    }
}

/// Makes a stream of one message, with a body.
fn message(header: impl FnOnce(&mut FlatBufferBuilder<'static>) -> ipc::MessageArgs<'static>, body: &[u8]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let arguments = header(&mut builder);
    let root = ipc::Message::create(&mut builder, &arguments);
    builder.finish(root, None);
    let mut bytes = builder.finished_data().to_vec();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    [&[0xFF; 4], &(bytes.len() as u32).to_le_bytes()[..], &bytes, body].concat()
}

/// Messages that use the same bytes many times: a name for a hundred thousand columns, a buffer for a thousand.
#[test]
fn blocks_that_share_their_bytes() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let version = ipc::MetadataVersion::V5;
    let columns = |builder: &mut FlatBufferBuilder<'static>, name: &str, columns: usize| {
        let name = Some(builder.create_string(name));
        let kind = ipc::Int::create(builder, &ipc::IntArgs { bitWidth: 64, is_signed: true });
        let children = Some(builder.create_vector(&[] as &[flatbuffers::WIPOffset<ipc::Field<'_>>]));
        let type_ = Some(kind.as_union_value());
        let field = ipc::FieldArgs { name, type_type: ipc::Type::Int, type_, children, ..Default::default() };
        let field = ipc::Field::create(builder, &field);
        let fields = Some(builder.create_vector(&vec![field; columns]));
        let schema = ipc::Schema::create(builder, &ipc::SchemaArgs { fields, ..Default::default() });
        let header = Some(schema.as_union_value());
        ipc::MessageArgs { version, header_type: ipc::MessageHeader::Schema, header, ..Default::default() }
    };
    let end = [[0xFF; 4], [0; 4]].concat();
    let refused = |key: &str, block: Vec<u8>, words: &str| {
        let execute = with_block(command(JOIN, vec![whole(&path)]), key);
        let frame = answer(&running, &execute, &block);
        assert_eq!(frame.kind, FrameKind::Failure, "{words}");
        let failure = proto::Failure::decode(frame.payload.as_slice()).unwrap();
        assert!(failure.class == Class::Input as i32 && failure.message.contains(words), "{failure:?}");
    };
    let named = message(|builder| columns(builder, &"n".repeat(15_000), 100_000), &[]);
    refused("names", [named, end.clone()].concat(), "cannot be read");
    let body = vec![0; 1 << 16];
    let rows = body.len() as i64 / 8;
    let batch = |builder: &mut FlatBufferBuilder<'static>| {
        let node = ipc::FieldNode::new(rows, 0);
        let nodes = Some(builder.create_vector(&vec![node; 1000]));
        let buffer = [ipc::Buffer::new(0, 0), ipc::Buffer::new(0, body.len() as i64)];
        let buffers = Some(builder.create_vector(&buffer.repeat(1000)));
        let batch = ipc::RecordBatchArgs { length: rows, nodes, buffers, ..Default::default() };
        let header = Some(ipc::RecordBatch::create(builder, &batch).as_union_value());
        let header_type = ipc::MessageHeader::RecordBatch;
        ipc::MessageArgs { version, header_type, header, bodyLength: body.len() as i64, ..Default::default() }
    };
    let schema = arrow_stream(
        &RecordBatch::new_empty(Arc::new(Schema::new(
            (0..1000).map(|at| Field::new(format!("c{at}"), DataType::Int64, false)).collect::<Vec<_>>(),
        ))),
        IpcWriteOptions::default(),
    )
    .unwrap();
    let length = u32::from_le_bytes(schema[4..8].try_into().unwrap()) as usize;
    refused("buffers", [&schema[..8 + length], &message(batch, &body), &end].concat(), "longer than its body");
}

#[test]
fn stray_frames_do_not_hide_the_end_of_a_client() {
    let running = Running::start(|_| {});
    let path = running.sales();
    let execute = with_block(command(ENDLESS, vec![whole(&path); 50]), "endless");
    let block = arrow_stream(&keys(100_000).batches[0], IpcWriteOptions::default()).unwrap();
    let mut stream = connect(&running);
    frame::write(&mut stream, FrameKind::Hello, &Client::hello().encode_to_vec()).unwrap();
    frame::write(&mut stream, FrameKind::Execute, &execute.encode_to_vec()).unwrap();
    while frame::read(&mut stream, |_| 1 << 20, || Ok(())).unwrap().kind != FrameKind::Need {}
    frame::write(&mut stream, FrameKind::Block, &[&[0; 4], block.as_slice()].concat()).unwrap();
    for _ in 0..10 {
        frame::write(&mut stream, FrameKind::BlockEnd, &[0; 4]).unwrap();
    }
    let observer = std::cell::RefCell::new(running.client());
    eventually("the command has its block", || observer.borrow_mut().status().unwrap().blocks == 1);
    drop(stream);
    eventually("the command ends", || observer.borrow_mut().status().unwrap().running == 0);
}

/// A greeting that never ends takes its place for a short time only.
#[test]
fn slow_greetings() {
    let running = Running::start(|options| options.max_connections = 1);
    let mut stream = connect(&running);
    stream.write_all(&[0, 0x80, 0, 0, FrameKind::Hello as u8]).unwrap();
    let began = std::time::Instant::now();
    while stream.write_all(&[0]).is_ok() {
        assert!(began.elapsed() < PATIENCE, "the daemon waits for ever");
        std::thread::sleep(Duration::from_millis(200));
    }
    eventually("there is room again", || Client::connect(&running.socket, "app-1").is_ok());
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
        framed(FrameKind::Hello, &Client::hello().encode_to_vec()),
        framed(FrameKind::Execute, &command(&by_region(0), vec![whole(&path)]).encode_to_vec()),
        framed(FrameKind::Status, &[]),
        framed(FrameKind::Cancel, &[]),
        framed(FrameKind::Execute, &endless(&running)),
        framed(FrameKind::Block, &[0; 100]),
        framed(FrameKind::BlockEnd, &[0; 4]),
        framed(FrameKind::Release, &proto::Release { application: "app-1".into() }.encode_to_vec()),
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
