//! Where results go: standard output, or a file that appears whole or not at all.
//!
//! Writers of formats wrap I/O errors in their own; a [`Sink`] therefore keeps the first I/O error it met, and that one
//! is reported.

use std::{
    fs::{File, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tempfile::{NamedTempFile, TempPath};

use crate::{
    failure::{Failure, sentence},
    interrupt::Interrupt,
};

/// Bytes collected before a system call.
const BUFFER_BYTES: usize = 64 << 10;

/// The destination of all results of a run.
pub struct Output {
    file: Option<Target>,
    fault: Arc<Mutex<Option<io::Error>>>,
    interrupt: Interrupt,
}

/// A file being written: beside its final name, unless that is a device or a pipe.
struct Target {
    path: PathBuf,
    temporary: Option<TempPath>,
    handle: File,
}

impl Output {
    /// Opens the destination: `path`, else standard output.
    pub fn open(path: Option<&Path>, interrupt: Interrupt) -> Result<Self, Failure> {
        let file = path.map(Target::create).transpose()?;
        interrupt.set_unfinished(file.as_ref().and_then(|f| f.temporary.as_ref()).map(|t| t.to_path_buf()));
        Ok(Output { file, fault: Arc::default(), interrupt })
    }

    /// Tells whether results go to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns a buffered writer to the destination.
    pub fn sink(&self) -> Result<Sink, Failure> {
        let inner: Box<dyn Write + Send> = match &self.file {
            Some(target) => Box::new(target.handle.try_clone().map_err(|e| Failure::write(&self.name(), &e))?),
            None => Box::new(io::stdout()),
        };
        Ok(Sink { inner: BufWriter::with_capacity(BUFFER_BYTES, Recorder { inner, fault: Arc::clone(&self.fault) }) })
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
        let name = self.name();
        let outcome = match self.file {
            Some(Target { path, temporary: Some(temporary), handle }) if complete => handle
                .sync_all()
                .and_then(|()| temporary.persist(&path).map_err(|e| e.error))
                .map_err(|e| Failure::write(&name, &e)),
            _ => Ok(()),
        };
        self.interrupt.set_unfinished(None);
        outcome
    }

    fn name(&self) -> String {
        match &self.file {
            Some(target) => format!("the file {}", target.path.display()),
            None => "to standard output".to_owned(),
        }
    }
}

impl Target {
    fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |e: &io::Error| {
            Failure::Statement(format!(
                "could not create the file {}: {}; name a file in a directory that you may write to",
                path.display(),
                sentence(e)
            ))
        };
        if path.is_dir() {
            return Err(Failure::Statement(format!(
                "could not create the file {}: it is a directory; name a file in it",
                path.display()
            )));
        }
        if path.exists() && !path.is_file() {
            let handle = File::options().write(true).open(path).map_err(|e| failed(&e))?;
            return Ok(Target { path: path.to_owned(), temporary: None, handle });
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary: NamedTempFile = tempfile::Builder::new()
            .prefix(".tandem-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)
            .map_err(|e| failed(&e))?;
        let (handle, temporary) = temporary.into_parts();
        Ok(Target { path: path.to_owned(), temporary: Some(temporary), handle })
    }
}

/// A buffered writer to an [`Output`].
pub struct Sink {
    inner: BufWriter<Recorder>,
}

impl Write for Sink {
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
