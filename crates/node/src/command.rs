//! One command: its blocks and tables made ready, its query run, its rows sent.

use std::{
    collections::HashMap,
    io::{self, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use arrow::ipc::writer::StreamWriter;
use prost::Message;
use tandem_column::{Class, Error, Field, LoadOptions, Loader, Reservation, Result, Table};
use tandem_pipeline::{
    Expr, Query, Slot, Source, Step,
    proto::{self as wire, decode},
};
use tandem_runtime::{Cancel, MemoryBudget, QueryInputs, QueryMetrics, RunOptions, Settings};
use tandem_scan::{Hold, LoadMetrics, Loading, Split, SplitColumn};

use crate::{
    Executor, LogLevel, arrival,
    blocks::{BlockArrival, BlockState, Key},
    bounds,
    connection::{Current, Incoming, Writer},
    daemon::Daemon,
    frame::FrameKind,
    metrics::Counters,
    proto,
};

/// Rows of a record batch, unless a command says otherwise: what Spark's readers are made for, many times over.
const BATCH_ROWS: usize = 1 << 16;
/// Bytes of a frame of results: large enough that frames cost nothing, small enough that the client begins early.
const FRAME_BYTES: usize = 1 << 18;
/// How often a command that waits for a frame looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// A command under way.
struct Command<'d> {
    daemon: &'d Daemon,
    writer: &'d Writer<'d>,
    receiver: &'d Receiver<Incoming>,
    application: &'d str,
    cancel: &'d Cancel,
    wants_blocks: &'d AtomicBool,
    trailer: proto::Trailer,
}

/// Runs a command; its rows go to the writer.
pub(crate) fn run(
    daemon: &Daemon,
    writer: &Writer<'_>,
    receiver: &Receiver<Incoming>,
    application: &str,
    payload: &[u8],
    Current { cancel, wants_blocks }: &Current,
) -> Result<proto::Trailer, proto::Failure> {
    let began = Instant::now();
    let execute: proto::Execute = decode(payload, "the command").map_err(|error| failure(&error))?;
    let limit = match execute.time_limit_ms {
        0 => u64::MAX,
        limit => limit,
    };
    let limit = Duration::from_millis(limit).min(Duration::from_secs(daemon.options.time_limit));
    let Some(permit) = daemon.admit(cancel, limit) else {
        let message = "the daemon is ending and takes no new commands: send it again later, or elsewhere".to_owned();
        return Err(proto::Failure { class: proto::Class::Draining as i32, message, retryable: true });
    };
    Counters::add(&daemon.counters.commands, 1);
    let trailer = proto::Trailer::default();
    let mut command = Command { daemon, writer, receiver, application, cancel, wants_blocks, trailer };
    let ended = catch_unwind(AssertUnwindSafe(|| command.run(&execute)));
    let ended = ended.unwrap_or_else(|panic| {
        daemon.log.panicked("command", &*panic);
        Err(Error::internal("a command panicked; please report this as a bug"))
    });
    let ended = ended.map(|()| std::mem::take(&mut command.trailer));
    let milliseconds = began.elapsed().as_millis();
    let name: &dyn std::fmt::Display = &execute.name;
    match ended {
        Ok(trailer) => {
            let rows: [(&str, &dyn std::fmt::Display); 5] = [
                ("application", &application),
                ("name", name),
                ("ms", &milliseconds),
                ("rows_in", &trailer.rows_in),
                ("rows_out", &trailer.rows_out),
            ];
            daemon.log.event(LogLevel::Info, "command", &rows);
            Ok(trailer)
        }
        Err(error) => {
            let failure = match error.is_cancelled() {
                true if permit.is_late() => proto::Failure {
                    class: proto::Class::Exhausted as i32,
                    message: format!(
                        "the command took longer than its time limit: raise it ({} s)",
                        limit.as_secs_f64()
                    ),
                    retryable: false,
                },
                true if daemon.is_draining() => proto::Failure {
                    class: proto::Class::Draining as i32,
                    message: "the daemon ended before the command did: send it again".to_owned(),
                    retryable: true,
                },
                _ => failure(&error),
            };
            let cancelled = failure.class == proto::Class::Cancelled as i32;
            let counter = if cancelled { &daemon.counters.cancelled } else { &daemon.counters.failures };
            Counters::add(counter, 1);
            let values: [(&str, &dyn std::fmt::Display); 4] =
                [("application", &application), ("name", name), ("ms", &milliseconds), ("error", &failure.message)];
            let level = if error.class == Class::Internal { LogLevel::Error } else { LogLevel::Warn };
            daemon.log.event(level, "command-failed", &values);
            Err(failure)
        }
    }
}

/// Makes the answer of an error.
pub(crate) fn failure(error: &Error) -> proto::Failure {
    let class = match error.class {
        Class::Cancelled => proto::Class::Cancelled,
        Class::Input => proto::Class::Input,
        Class::Unsupported => proto::Class::Unsupported,
        Class::Exhausted => proto::Class::Exhausted,
        Class::Device => proto::Class::Device,
        _ => proto::Class::Internal,
    };
    let retryable = matches!(class, proto::Class::Exhausted | proto::Class::Device);
    proto::Failure { class: class as i32, message: error.message.clone(), retryable }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Command<'_> {
    fn run(&mut self, execute: &proto::Execute) -> Result<()> {
        bounds::check(execute)?;
        let query = execute.query.as_ref().ok_or_else(|| Error::input("the command has no query: set it"))?;
        let mut query = wire::read(query)?;
        let limit = match execute.memory_limit_bytes {
            0 => self.daemon.memory.limit(),
            limit => usize::try_from(limit).unwrap_or(usize::MAX).min(self.daemon.memory.limit()),
        };
        let memory = Arc::new(MemoryBudget::within(&self.daemon.memory, limit));
        let began = Instant::now();
        let mut inputs = QueryInputs { blocks: self.blocks(&execute.blocks, &memory)?, ..QueryInputs::default() };
        check_blocks(&query, &inputs.blocks)?;
        self.trailer.wait_ns = nanoseconds(began);

        let began = Instant::now();
        let metrics = LoadMetrics::default();
        let holds = self.tables(&mut query, &execute.tables, &mut inputs, &metrics, &memory)?;
        self.trailer.scan_ns = nanoseconds(began);
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.trailer.rows_in = inputs.tables.values().map(|table| table.rows() as u64).sum();
        self.trailer.row_groups = get(&metrics.groups);
        self.trailer.row_groups_skipped = get(&metrics.skipped);
        self.trailer.columns_cached = get(&metrics.cached);
        self.trailer.columns_decoded = get(&metrics.decoded);
        self.trailer.bytes_read = get(&metrics.bytes);

        let began = Instant::now();
        let place = match proto::Mode::try_from(execute.mode) {
            Ok(proto::Mode::Unspecified) => self.daemon.options.mode,
            Ok(proto::Mode::Cpu) => Executor::Cpu,
            Ok(proto::Mode::Gpu) => Executor::Gpu,
            Err(_) => return Err(Error::input("the mode is not known here: use a client and a daemon of one release")),
        };
        let devices = match place {
            Executor::Cpu => Vec::new(),
            Executor::Gpu => self.daemon.devices.chosen()?,
        };
        let settings = Settings { memory, cancel: self.cancel.clone(), ..Settings::default() };
        let options = RunOptions { settings, devices, ..RunOptions::default() };
        let execution = self.daemon.runtime.execute(&query, &inputs, &options)?;
        drop((inputs, holds));
        self.trailer.compute_ns = nanoseconds(began);
        self.note(&execution.metrics);

        let began = Instant::now();
        let rows = if execute.batch_rows == 0 { BATCH_ROWS } else { execute.batch_rows as usize };
        self.send(&execution.table, rows)?;
        self.trailer.send_ns = nanoseconds(began);
        self.trailer.cache_bytes = self.daemon.cache.byte_len() as u64;
        let (counters, trailer) = (&self.daemon.counters, &self.trailer);
        Counters::add(&counters.rows_in, trailer.rows_in);
        Counters::add(&counters.rows_out, trailer.rows_out);
        Counters::add(&counters.bytes_read, trailer.bytes_read);
        Counters::add(&counters.bytes_out, trailer.bytes_out);
        Counters::add(&counters.scan_ns, trailer.scan_ns);
        Counters::add(&counters.compute_ns, trailer.compute_ns);
        Ok(())
    }

    /// Makes the tables of a query's sources ready, each under a name of its own.
    fn tables(
        &self,
        query: &mut Query,
        tables: &[proto::Table],
        inputs: &mut QueryInputs,
        metrics: &LoadMetrics,
        memory: &Arc<MemoryBudget>,
    ) -> Result<Vec<Hold>> {
        let mut holds = Vec::new();
        for (index, pipeline) in query.pipelines.iter_mut().enumerate() {
            let slots = &pipeline.slots[..pipeline.source_columns()];
            let Source::Table { table: name, columns: chosen } = &mut pipeline.source else { continue };
            let mut named = tables.iter().filter(|table| table.name == *name);
            let table = named.next().ok_or_else(|| Error::input(format!("the command does not give table {name}")))?;
            if named.next().is_some() {
                return Err(Error::input(format!("the command gives table {name} twice")));
            }
            let columns = columns(table, chosen, slots)?;
            let splits = table.splits.iter().map(split).collect::<Result<Vec<Split>>>()?;
            // What drops rows before anything else looks at them: row groups without a match need not be read.
            let filters = pipeline.steps.iter().map_while(|step| match step {
                Step::Filter(condition) => Some(condition.clone()),
                _ => None,
            });
            let filters: Vec<Expr> = filters.collect();
            let loading = Loading {
                cache: &self.daemon.cache,
                runtime: &self.daemon.runtime,
                memory,
                cancel: self.cancel,
                progress: &Default::default(),
            };
            let (loaded, hold) =
                self.daemon.reader.load(&columns, table.case_sensitive, &splits, &filters, &loading, metrics)?;
            holds.push(hold);
            *name = format!("{name} of pipeline {index}");
            *chosen = (0..columns.len()).collect();
            inputs.tables.insert(name.clone(), Arc::new(loaded));
        }
        Ok(holds)
    }

    /// Finds the blocks of a command, asking its client for those that nobody sent yet.
    fn blocks(&mut self, blocks: &[proto::Block], memory: &Arc<MemoryBudget>) -> Result<HashMap<String, Arc<Table>>> {
        let daemon = self.daemon;
        let mut found: HashMap<String, Arc<Table>> = HashMap::new();
        let mut missing: Vec<usize> = (0..blocks.len()).collect();
        while !missing.is_empty() {
            let (mut elsewhere, mut arrivals) = (Vec::new(), Vec::new());
            for index in missing {
                let block = &blocks[index];
                let key = Key {
                    application: self.application.to_owned(),
                    key: block.key.clone(),
                    digest: block.digest.clone(),
                };
                match daemon.blocks.find(&key) {
                    BlockState::Here(table) => drop(found.insert(block.name.clone(), table)),
                    BlockState::Elsewhere => elsewhere.push(index),
                    BlockState::Send(arrival) => arrivals.push((index, arrival)),
                }
            }
            let asked = !arrivals.is_empty();
            if asked {
                for (index, table) in self.receive(arrivals, memory)? {
                    found.insert(blocks[index].name.clone(), table);
                }
            }
            missing = elsewhere;
            if !missing.is_empty() && !asked {
                daemon.blocks.wait(self.cancel)?;
            }
        }
        Ok(found)
    }

    /// Asks the client for blocks and takes them in.
    fn receive<'b>(
        &mut self,
        mut arrivals: Vec<(usize, BlockArrival<'b>)>,
        memory: &Arc<MemoryBudget>,
    ) -> Result<Vec<(usize, Arc<Table>)>> {
        let need = proto::Need { blocks: arrivals.iter().map(|(index, _)| *index as u32).collect() };
        self.wants_blocks.store(true, Ordering::Relaxed);
        self.writer.send(FrameKind::Need, &need.encode_to_vec()).map_err(|_| Error::cancelled())?;
        let limit = self.daemon.options.blocks << 20;
        let mut parts: HashMap<usize, Vec<u8>> = HashMap::new();
        let (mut bytes, mut found) = (0, Vec::new());
        let mut held = Reservation::new(memory, "blocks on their way");
        while !arrivals.is_empty() {
            let frame = self.next_frame()?;
            let (index, payload) = match frame.payload.split_first_chunk::<4>() {
                Some((index, payload)) => (u32::from_le_bytes(*index) as usize, payload),
                None => return Err(Error::input("a frame of a block is too short: it begins with the block's index")),
            };
            let Some(at) = arrivals.iter().position(|(wanted, _)| *wanted == index) else {
                return Err(Error::input(format!("block {index} was not asked for: send those that NEED lists")));
            };
            if frame.kind == FrameKind::Block {
                bytes += payload.len();
                if bytes > limit {
                    let limit = limit >> 20;
                    return Err(Error::exhausted(format!(
                        "blocks are larger than their room: raise --blocks ({limit} MB)"
                    )));
                }
                held.add(payload.len())?;
                parts.entry(index).or_default().extend_from_slice(payload);
                continue;
            }
            let table = Arc::new(self.table(parts.remove(&index).unwrap_or_default(), memory)?);
            let (_, arrival) = arrivals.swap_remove(at);
            arrival.land(table.clone())?;
            self.trailer.blocks_received += 1;
            Counters::add(&self.daemon.counters.blocks, 1);
            found.push((index, table));
        }
        // What came too much must not keep the reading thread waiting.
        self.wants_blocks.store(false, Ordering::Relaxed);
        while self.receiver.try_recv().is_ok() {}
        Ok(found)
    }

    /// Waits for the next frame of a block.
    fn next_frame(&self) -> Result<crate::frame::WireFrame> {
        let deadline = Instant::now() + self.daemon.options.client_timeout();
        loop {
            self.cancel.check()?;
            match self.receiver.recv_timeout(LOOK) {
                Ok(Incoming::Other(frame)) if matches!(frame.kind, FrameKind::Block | FrameKind::BlockEnd) => {
                    return Ok(frame);
                }
                Ok(_) => return Err(Error::input("the daemon waits for blocks: send them, or cancel the command")),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::cancelled()),
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    return Err(Error::exhausted("the client did not send its blocks in time"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Makes a resident table of an Arrow stream.
    fn table(&self, bytes: Vec<u8>, memory: &Arc<MemoryBudget>) -> Result<Table> {
        let (schema, batches) = arrival::read(bytes)?;
        let options = LoadOptions { name: "block".into(), memory: memory.clone(), ..LoadOptions::default() };
        let loader = Loader::new(Field::all_from_arrow(&schema)?, options);
        for (sequence, batch) in batches.into_iter().enumerate() {
            self.cancel.check()?;
            loader.append(sequence as u64, batch)?;
        }
        loader.finish()
    }

    /// Takes what each pipeline did into the trailer.
    fn note(&mut self, metrics: &QueryMetrics) {
        let pipeline = |pipeline: &tandem_runtime::PipelineMetrics| proto::PipelineReport {
            rows_in: pipeline.rows_in,
            rows_out: pipeline.rows_out,
            rows_skipped: pipeline.rows_skipped,
            elapsed_ns: u64::try_from(pipeline.elapsed.as_nanos()).unwrap_or(u64::MAX),
            device: pipeline.device.as_ref().map_or(String::new(), |device| device.names.join(", ")),
            reason: pipeline.reason.clone().unwrap_or_default(),
            notes: pipeline.outline.choices(),
        };
        self.trailer.pipelines = metrics.pipelines.iter().map(pipeline).collect();
    }

    /// Sends rows as an Arrow stream.
    fn send(&mut self, table: &Table, batch_rows: usize) -> Result<()> {
        let schema = table.arrow_schema();
        let frames = Frames { writer: self.writer, buffer: Vec::with_capacity(FRAME_BYTES), sent: 0 };
        // A client that cannot be written to is gone.
        let gone = |error: arrow::error::ArrowError| match error {
            arrow::error::ArrowError::IoError(..) => Error::cancelled(),
            error => error.into(),
        };
        let mut stream = StreamWriter::try_new(frames, &schema).map_err(gone)?;
        for part in &table.parts {
            for start in (0..part.rows).step_by(batch_rows) {
                self.cancel.check()?;
                let batch = part.batch(start..part.rows.min(start + batch_rows), &schema)?;
                stream.write(&batch).map_err(gone)?;
                self.trailer.batches += 1;
            }
        }
        stream.finish().map_err(gone)?;
        let mut frames = stream.into_inner().map_err(gone)?;
        frames.flush().map_err(|_| Error::cancelled())?;
        self.trailer.bytes_out = frames.sent;
        self.trailer.rows_out = table.rows() as u64;
        Ok(())
    }
}

/// Writes bytes as frames of results.
struct Frames<'w> {
    writer: &'w Writer<'w>,
    buffer: Vec<u8>,
    sent: u64,
}

impl Write for Frames<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(FRAME_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == FRAME_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.writer.send(FrameKind::Batches, &self.buffer)?;
            self.sent += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Finds the columns that a source chooses, and checks them against its slots.
fn columns(table: &proto::Table, chosen: &[usize], slots: &[Slot]) -> Result<Vec<SplitColumn>> {
    let name = &table.name;
    let column = |(position, slot): (&usize, &Slot)| {
        let column = table.columns.get(*position);
        let column = column.ok_or_else(|| Error::input(format!("table {name} has no column number {position}")))?;
        let kind = column.kind.as_ref().ok_or_else(|| Error::input(format!("column {} has no type", column.name)))?;
        let field = Field::new(&column.name, wire::read_kind(kind)?, column.nullable);
        check_slot(&field, field.nullable, slot)?;
        Ok(SplitColumn { field, partition: column.partition.map(|partition| partition as usize) })
    };
    if chosen.len() != slots.len() {
        return Err(Error::input(format!("a source of {} columns of {name} has {} slots", chosen.len(), slots.len())));
    }
    chosen.iter().zip(slots).map(column).collect()
}

fn check_slot(field: &Field, nullable: bool, slot: &Slot) -> Result<()> {
    if field.kind != slot.kind {
        let (name, found, wanted) = (&field.name, &field.kind, &slot.kind);
        return Err(Error::input(format!("column {name} is {found}, but the query takes it as {wanted}")));
    }
    match nullable && !slot.nullable {
        true => Err(Error::input(format!("column {} may be null, but the query takes it as never null", field.name))),
        false => Ok(()),
    }
}

fn check_blocks(query: &Query, blocks: &HashMap<String, Arc<Table>>) -> Result<()> {
    for pipeline in &query.pipelines {
        let Source::Block { name } = &pipeline.source else { continue };
        let block = blocks.get(name).ok_or_else(|| Error::input(format!("the command does not give block {name}")))?;
        let slots = &pipeline.slots[..pipeline.source_columns()];
        if block.schema.len() != slots.len() {
            let (has, wants) = (block.schema.len(), slots.len());
            return Err(Error::input(format!("block {name} has {has} columns, the query takes {wants}")));
        }
        for ((field, statistics), slot) in block.schema.iter().zip(block.statistics.iter()).zip(slots) {
            check_slot(field, statistics.nulls > 0, slot)?;
        }
    }
    Ok(())
}

fn split(split: &proto::Split) -> Result<Split> {
    Ok(Split {
        path: split.path.clone().into(),
        start: split.start,
        length: split.length,
        size: (split.file_size != 0).then_some(split.file_size),
        modified: (split.modified_ms != 0).then_some(split.modified_ms),
        values: split.partition_values.iter().map(wire::read_value).collect::<Result<_>>()?,
    })
}
