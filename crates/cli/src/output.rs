//! Where results go: standard output, or a file that appears whole or not at all (the engine's staging).
//!
//! Writers of formats wrap I/O errors in their own; a [`OutputSink`] therefore keeps the first I/O error it met, and that one
//! is reported.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tandem_engine::{Session, StagedFile};

use crate::failure::Failure;

/// Bytes collected before a system call.
const BUFFER_BYTES: usize = 64 << 10;

/// The destination of all results of a run.
pub struct Output {
    file: Option<(PathBuf, StagedFile)>,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl Output {
    /// Opens the destination: `path`, else standard output.
    pub fn open(path: Option<&Path>, session: &Session) -> Result<Self, Failure> {
        let file = path.map(|path| Ok::<_, Failure>((path.to_owned(), session.stage_file(path)?))).transpose()?;
        Ok(Output { file, fault: Arc::default() })
    }

    /// Tells whether results go to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns a buffered writer to the destination.
    pub fn sink(&self) -> Result<OutputSink, Failure> {
        let inner: Box<dyn Write + Send> = match &self.file {
            Some((_, file)) => Box::new(file.handle().try_clone().map_err(|e| Failure::write(&self.name(), &e))?),
            None => Box::new(io::stdout()),
        };
        Ok(OutputSink {
            inner: BufWriter::with_capacity(BUFFER_BYTES, Recorder { inner, fault: Arc::clone(&self.fault) }),
        })
    }

    /// Says what went wrong: the I/O error behind it if there was one, else `message`.
    pub fn failure(&self, message: impl ToString) -> Failure {
        match &*self.fault.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Failure::write(&self.name(), error),
            None => Failure::Statement(message.to_string()),
        }
    }

    /// Gives a complete file its name, or removes an incomplete one.
    pub fn finish(self, complete: bool) -> Result<(), Failure> {
        match self.file {
            Some((_, file)) if complete => Ok(file.commit()?),
            _ => Ok(()),
        }
    }

    fn name(&self) -> String {
        match &self.file {
            Some((path, _)) => format!("the file {}", path.display()),
            None => "to standard output".to_owned(),
        }
    }
}

/// A buffered writer to an [`Output`].
pub struct OutputSink {
    inner: BufWriter<Recorder>,
}

impl Write for OutputSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Passes writes on and keeps the first error.
struct Recorder {
    inner: Box<dyn Write + Send>,
    fault: Arc<Mutex<Option<io::Error>>>,
}

impl Recorder {
    fn record<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            io::Error::from(kind)
        })
    }
}

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(bytes);
        self.record(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.record(result)
    }
}
