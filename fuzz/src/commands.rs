//! Commands in protobuf, and a block in Arrow's stream format, to a daemon that runs in this process.

use std::{
    fs, io,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use arrow::{
    array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray},
    buffer::Buffer,
    ipc::reader::StreamDecoder,
};
use parquet::arrow::ArrowWriter;
use prost::Message;
use tandem_node::{
    Client, Executor, LogLevel, Node, NodeOptions,
    frame::{self, FrameKind, Lost, WireFrame},
    proto,
};
use tandem_pipeline::{
    Query, Source,
    proto::{self as wire, decode},
};

use crate::{panics, pipeline, sound};

/// Milliseconds that a command may take; loops may be endless.
const TIME_LIMIT: u64 = 200;
/// Bytes that a command may take.
const MEMORY_LIMIT: u64 = 32 << 20;
/// The most columns of a table.
const MOST_COLUMNS: usize = 64;
/// The most bytes of an answer's frame.
const FRAME_BYTES: usize = 1 << 24;

/// A daemon of this process, and the connection to it.
struct Daemon {
    node: Node,
    stream: Option<UnixStream>,
    /// The file that all splits are of.
    sample: PathBuf,
    /// Makes the keys of blocks new, so that none is kept from another input.
    commands: u64,
}

/// Puts a block in front of a command, as inputs have it: the block's length in two bytes, the block, the command.
pub fn with_block(block: &[u8], command: &[u8]) -> Vec<u8> {
    [&(block.len() as u16).to_le_bytes(), block, command].concat()
}

/// A command, and the block that it may ask for.
pub(crate) fn commands(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let Some((block, command)) = rest.split_at_checked(u16::from_le_bytes(*length).into()) else { return };
    let Some(mut command) = sound(decode::<proto::Execute>(command, "the command")) else { return };
    if let Some(query) = command.query.as_ref().and_then(|query| sound(wire::read(query))) {
        pipeline::round_trip(&query);
    }
    run(&mut command, block);
}

/// Runs a well-formed query over the sample. Columns that it lacks are null.
pub(crate) fn run_query(query: &Query) {
    let mut tables: Vec<proto::Table> = Vec::new();
    for pipeline in &query.pipelines {
        let Source::Table { table: name, columns } = &pipeline.source else { continue };
        let at = tables.iter().position(|table| table.name == *name).unwrap_or_else(|| {
            tables.push(proto::Table {
                name: name.clone(),
                splits: vec![proto::Split { length: u64::MAX, ..Default::default() }],
                ..Default::default()
            });
            tables.len() - 1
        });
        for (slot, column) in pipeline.slots.iter().zip(columns) {
            if *column >= MOST_COLUMNS {
                return;
            }
            let known = &mut tables[at].columns;
            known.resize_with(known.len().max(column + 1), Default::default);
            let (name, kind) = (slot.name.clone(), Some(wire::write_kind(&slot.kind)));
            known[*column] = proto::Column { name, kind, nullable: slot.nullable, partition: None };
        }
    }
    run(&mut proto::Execute { query: Some(wire::write(query)), tables, ..Default::default() }, &[]);
}

/// Lets the daemon run a command, within limits.
fn run(command: &mut proto::Execute, block: &[u8]) {
    static DAEMON: OnceLock<Mutex<Daemon>> = OnceLock::new();
    let mut daemon = DAEMON.get_or_init(|| Mutex::new(start())).lock().unwrap_or_else(PoisonError::into_inner);
    daemon.commands += 1;
    for named in &mut command.blocks {
        named.key = daemon.commands.to_string();
    }
    // Files of the machine are none of an input's business, nor is waiting.
    let sample = daemon.sample.display().to_string();
    command.tables.iter_mut().flat_map(|table| &mut table.splits).for_each(|split| split.path.clone_from(&sample));
    command.mode = proto::Mode::Cpu as i32;
    command.time_limit_ms = TIME_LIMIT;
    command.memory_limit_bytes = MEMORY_LIMIT;
    match daemon.execute(command, block) {
        Ok(Some(failure)) if failure.class == proto::Class::Internal as i32 => {
            panic!("an internal error: {}; {}", failure.message, panics::last())
        }
        Ok(_) => {}
        // The daemon closes where it was not spoken to as node.proto says; it takes the next client.
        Err(_) => daemon.stream = None,
    }
}

fn start() -> Daemon {
    // A directory of its own, which a thread's end does not remove.
    let directory =
        tempfile::Builder::new().prefix("tandem-fuzz-node-").tempdir().expect("a temporary directory").keep();
    let options = NodeOptions {
        socket: directory.join("run/node.sock"),
        threads: 1,
        cache: 16,
        blocks: 16,
        memory_limit: 64,
        mode: Executor::Cpu,
        log: LogLevel::Error,
        ..NodeOptions::default()
    };
    let node = Node::start(options, Default::default()).expect("a daemon starts");
    let path = directory.join("sample.parquet");
    fs::write(&path, written(&sample())).expect("room for a temporary file");
    Daemon { node, stream: None, sample: path, commands: 0 }
}

/// Makes the rows of the table that commands read.
pub fn sample() -> RecordBatch {
    let ids = || 0..100i32;
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("id", Arc::new(Int32Array::from_iter_values(ids())), false),
        (
            "name",
            Arc::new(StringArray::from_iter(ids().map(|id| (id % 9 > 0).then(|| format!("name {}", id % 7))))),
            true,
        ),
        (
            "amount",
            Arc::new(Int64Array::from_iter(ids().map(|id| (id % 5 > 0).then(|| i64::from(id) * 7 - 100)))),
            true,
        ),
        ("price", Arc::new(Float64Array::from_iter_values(ids().map(|id| f64::from(id) / 4.0))), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

fn written(rows: &RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).expect("a schema that Parquet has");
    writer.write(rows).expect("rows that Parquet has");
    writer.into_inner().expect("memory takes everything")
}

impl Daemon {
    /// Runs a command to its end; returns the failure that it ended with.
    fn execute(&mut self, command: &proto::Execute, block: &[u8]) -> Result<Option<proto::Failure>, Lost> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        send(&mut stream, FrameKind::Execute, &command.encode_to_vec())?;
        let mut decoder = StreamDecoder::new();
        let failure = loop {
            let frame = receive(&mut stream)?;
            match frame.kind {
                FrameKind::Need => {
                    let need: proto::Need = decode(&frame.payload, "the need").expect("the daemon writes messages");
                    for index in need.blocks {
                        send(&mut stream, FrameKind::Block, &[&index.to_le_bytes(), block].concat())?;
                        send(&mut stream, FrameKind::BlockEnd, &index.to_le_bytes())?;
                    }
                }
                FrameKind::Batches => {
                    let mut buffer = Buffer::from(frame.payload);
                    while decoder.decode(&mut buffer).expect("the daemon writes Arrow").is_some() {}
                }
                FrameKind::Trailer => break None,
                FrameKind::Failure => {
                    break Some(decode(&frame.payload, "the failure").expect("the daemon writes messages"));
                }
                other => panic!("{other:?} is no answer to a command"),
            }
        };
        self.stream = Some(stream);
        Ok(failure)
    }

    fn connect(&self) -> Result<UnixStream, Lost> {
        let mut stream = UnixStream::connect(self.node.socket()).map_err(Lost::Failed)?;
        send(&mut stream, FrameKind::Hello, &Client::hello().encode_to_vec())?;
        assert_eq!(receive(&mut stream)?.kind, FrameKind::Welcome);
        Ok(stream)
    }
}

fn send(stream: &mut UnixStream, kind: FrameKind, payload: &[u8]) -> Result<(), Lost> {
    frame::write(stream, kind, payload).map_err(Lost::Failed)
}

fn receive(stream: &mut UnixStream) -> Result<WireFrame, Lost> {
    frame::read(stream, |_| FRAME_BYTES, || Ok::<(), io::Error>(()))
}
