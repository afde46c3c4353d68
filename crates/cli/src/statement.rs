//! Runs one statement: to the engine, through the chosen format, to the output, timed and cancellable.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use futures::StreamExt;
use tandem_engine::{Cancel, Devices, Mode, OnFallback, Report, Session};
use tokio::runtime::{Builder, Runtime};

use crate::{
    arguments::Arguments,
    failure::{Failure, sentence},
    format::{self, OutputFormat, Style},
    interrupt::Interrupt,
    output::Output,
    progress::Bar,
    terminal,
};

/// How many rows a terminal shows of a long result, unless told otherwise: about a screen.
const TERMINAL_ROWS: usize = 40;

/// How long a process that ends waits for writers of a cancelled statement: a disk that is slower than this leaves
/// hidden files, which the next statement that writes into the directory removes.
const WRITERS_END: Duration = Duration::from_secs(20);

/// A session with everything needed to show its results.
pub struct Runner {
    /// The session.
    pub session: Session,
    /// How results are written.
    pub format: OutputFormat,
    /// Whether the time of each statement is printed.
    pub timer: bool,
    /// How many rows of a table are shown: `None` is the default of the place, 0 all.
    pub rows: Option<usize>,
    tokio: Runtime,
    interrupt: Interrupt,
    output: Option<Output>,
    results: usize,
}

impl Runner {
    /// Makes a session as the command line describes it, with the tables of `--data`.
    pub fn new(arguments: &Arguments, devices: &Arc<Devices>) -> Result<Self, Failure> {
        let tokio = runtime()?;
        let interrupt = Interrupt::listen(&tokio);
        let session = arguments.engine.session().devices(devices.clone()).build()?;
        interrupt.watch(&session);
        let output = Output::open(arguments.output.as_deref(), &session)?;
        if arguments.format.is_binary() && !output.is_file() && terminal::stdout_is_terminal() {
            return Err(Failure::Usage(format!(
                "the format {} is not for a terminal; name a file with -o FILE",
                arguments.format.name()
            )));
        }
        let runner = Runner {
            session,
            format: arguments.format,
            timer: arguments.timer,
            rows: arguments.rows,
            tokio,
            interrupt,
            output: Some(output),
            results: 0,
        };
        for directory in &arguments.data {
            runner.register(directory)?;
        }
        Ok(runner)
    }

    /// Makes a table of every file of a directory.
    fn register(&self, directory: &Path) -> Result<(), Failure> {
        let names = self.session.register_directory(directory)?;
        if names.is_empty() {
            note(&format!("there is no Parquet, CSV or Arrow file in {}", directory.display()));
        }
        Ok(())
    }

    /// Tells whether results go to a file.
    pub fn writes_file(&self) -> bool {
        self.output.as_ref().is_some_and(Output::is_file)
    }

    /// Runs one statement and writes its result.
    pub fn run(&mut self, sql: &str) -> Result<(), Failure> {
        let cancel = Cancel::new();
        let armed = self.interrupt.arm(&cancel);
        let started = Instant::now();
        let outcome = {
            let bar = Bar::start();
            let interrupted = self.interrupt.interrupted();
            self.tokio.block_on(async {
                tokio::select! {
                    biased;
                    () = interrupted => Err(Failure::Interrupted),
                    outcome = self.execute(sql, &cancel, &bar) => outcome,
                }
            })
        };
        let elapsed = started.elapsed();
        drop(armed);
        let report = match outcome {
            Ok((report, wrote)) => {
                self.results += usize::from(wrote);
                report
            }
            Err(failure) => {
                return Err(match self.interrupt.ending() {
                    Some(signal) => Failure::Ended(signal),
                    None if cancel.is_cancelled() => Failure::Interrupted,
                    None => failure,
                });
            }
        };
        self.report_fallback(&report);
        if self.timer {
            let _ = writeln!(io::stderr(), "time: {:.3} ms", elapsed.as_secs_f64() * 1e3);
        }
        Ok(())
    }

    /// Runs a statement to its end; tells whether it had a result.
    async fn execute(&self, sql: &str, cancel: &Cancel, bar: &Bar) -> Result<(Arc<Report>, bool), Failure> {
        let query = self.session.sql(sql).cancel(cancel);
        bar.follow(query.report());
        let mut stream = query.stream().await?;
        let has_result = !stream.schema().fields().is_empty();
        // Made with the first rows, so that a statement that fails before them writes nothing.
        let mut writer = None;
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if has_result {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    none => none.insert(self.writer(stream.schema())?),
                };
                writer.write(&batch).map_err(|message| self.failure(message))?;
            }
        }
        if has_result {
            let writer = writer.map_or_else(|| self.writer(stream.schema()), Ok)?;
            writer.finish().map_err(|message| self.failure(message))?;
        }
        Ok((stream.report().clone(), has_result))
    }

    /// Writes a result that did not come from a statement.
    pub fn show(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let mut writer = self.writer(&batch.schema())?;
        writer.write(batch).and_then(|()| writer.finish()).map_err(|message| self.failure(message))?;
        self.results += 1;
        Ok(())
    }

    /// Writes plain text to where results go.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        let mut sink = self.output().sink()?;
        sink.write_all(text.as_bytes()).and_then(|()| sink.flush()).map_err(|e| self.failure(e.to_string()))
    }

    /// Gives the output file its name if the run was complete, else leaves nothing. The process ends after this.
    pub fn finish(mut self, complete: bool) -> Result<(), Failure> {
        let outcome = self.output.take().map_or(Ok(()), |output| output.finish(complete));
        self.session.wait_for_writers(WRITERS_END);
        // What a cancelled statement has yet to begin must not.
        self.session.discard_unfinished();
        self.tokio.shutdown_background();
        // The system takes the memory of resident tables back faster than we can free it.
        std::mem::forget(self.session);
        outcome
    }

    fn writer(&self, schema: &SchemaRef) -> Result<Box<dyn format::Writer>, Failure> {
        if self.format.is_binary() && self.results > 0 {
            return Err(Failure::Statement(format!(
                "a file in the format {} holds one result; run one query at a time, or use COPY … TO for the others",
                self.format.name()
            )));
        }
        let screen = !self.writes_file() && terminal::stdout_is_terminal();
        let style = Style {
            color: screen && terminal::stdout_color(),
            rows: self.rows.or(screen.then_some(TERMINAL_ROWS)).filter(|&rows| rows > 0),
            width: if screen { terminal::width() } else { None },
        };
        format::writer(self.format, schema, self.output().sink()?, style).map_err(|message| self.failure(message))
    }

    fn output(&self) -> &Output {
        self.output.as_ref().expect("the output is taken only by finish")
    }

    fn failure(&self, message: String) -> Failure {
        self.output().failure(message)
    }

    /// Says which parts ran on the host engine and why, where that is wanted.
    fn report_fallback(&self, report: &Report) {
        let config = self.session.config();
        if config.mode == Mode::Host || config.on_fallback != OnFallback::Warn {
            return;
        }
        report.device_reasons().iter().for_each(|reason| note(reason));
        // An operator that only follows its input tells nothing new.
        for reason in report.reasons().iter().filter(|reason| !reason.ends_with("its input runs on the host")) {
            note(reason);
        }
    }
}

/// Makes the runtime that waits: one thread for signals. The engine has threads of its own for the work.
fn runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Failure::Statement(format!("could not start a thread: {}; close other programs", sentence(&e))))
}

/// Says something that is not an error on standard error.
pub fn note(text: &str) {
    let (dim, plain) = if terminal::stderr_color() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
    let _ = writeln!(io::stderr(), "{dim}note: {text}{plain}");
}
