//! Delimited text: types from a sample, lines in parallel where no quote can hide a line break.
//!
//! Uncompressed files are cut into blocks at line ends and parsed by all workers. A quote anywhere in the file may hide a
//! line break in a value, and a compressed file has one beginning only: those are parsed in order by one worker.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arrow::{
    csv::{ReaderBuilder, reader::Format as ArrowFormat},
    datatypes::{DataType, Field as ArrowField, Schema, SchemaRef},
    error::ArrowError,
};
use parking_lot::Mutex;
use tandem_column::{Error, Field, LoadOptions, Loader, Reservation, Result};

use crate::{
    Compression,
    file::{self, Identity},
    load::{Loaded, Request},
    table::check_same,
    whole,
};

/// Bytes that types are inferred from: thousands of lines, read in a few milliseconds.
const SAMPLE: u64 = 1 << 20;

/// Bytes parsed as one task.
const BLOCK: u64 = 1 << 20;

/// Rows given to the loader at once when parsing in order.
const BATCH_ROWS: usize = 1 << 16;

/// Values of a batch when parsing in order: the Arrow reader makes room for all of a batch at once, sixteen bytes for each.
const BATCH_VALUES: usize = 1 << 20;

/// Text files of one schema.
pub(crate) struct CsvFiles {
    files: Vec<(PathBuf, Identity)>,
    identity: Identity,
    delimiter: u8,
    header: bool,
    compression: Compression,
    schema: SchemaRef,
    fields: Arc<[Field]>,
}

fn reader(file: File, compression: Compression) -> std::io::Result<Box<dyn Read>> {
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file))),
        Compression::Zstd => Box::new(zstd::Decoder::new(file)?),
    })
}

impl CsvFiles {
    /// Reads the first lines and infers names and types.
    pub(crate) fn open(
        paths: &[PathBuf],
        delimiter: u8,
        header: Option<bool>,
        compression: Compression,
    ) -> Result<CsvFiles> {
        let mut files = Vec::new();
        let mut found: Option<(bool, SchemaRef, Arc<[Field]>)> = None;
        for path in paths {
            let (file, identity) = file::open(path)?;
            files.push((path.clone(), identity));
            let sample = sample(path, file, compression)?;
            let header = found.as_ref().map(|(header, ..)| *header).or(header);
            let header = header.unwrap_or_else(|| has_header(&sample, delimiter));
            let format = ArrowFormat::default().with_delimiter(delimiter).with_header(header);
            let (inferred, _) =
                format.infer_schema(Cursor::new(&sample), None).map_err(|error| wrong(path, &error, 0, None))?;
            let schema = Arc::new(Schema::new(inferred.fields().iter().map(|field| typed(field)).collect::<Vec<_>>()));
            if schema.fields().is_empty() {
                return Err(Error::input(format!(
                    "{} has no columns: it is empty; check what wrote it",
                    path.display()
                )));
            }
            let fields =
                schema.fields().iter().map(|field| Field::from_arrow(field)).collect::<Result<Arc<[Field]>>>()?;
            match &found {
                None => found = Some((header, schema, fields)),
                Some((_, _, first)) => check_same(&paths[0], first, path, &fields)?,
            }
        }
        let Some((header, schema, fields)) = found else {
            return Err(Error::input("no files to read: name at least one"));
        };
        let identities: Vec<Identity> = files.iter().map(|(_, identity)| *identity).collect();
        let identity = Identity::combine(&identities, &("csv", delimiter, header));
        Ok(CsvFiles { files, identity, delimiter, header, compression, schema, fields })
    }

    pub(crate) fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the identity that columns are kept under, if a file changed.
    pub(crate) fn stale(&self) -> Result<Vec<Identity>> {
        whole::stale(self.files.iter().map(|(path, identity)| (path.as_path(), *identity)), self.identity)
    }

    /// Loads columns of all rows.
    pub(crate) fn load(&self, request: &Request<'_>) -> Result<Loaded> {
        whole::load(self.identity, request, Some(0), |columns| {
            let schema: Arc<[Field]> = columns.iter().map(|&column| self.fields[column].clone()).collect();
            let loader =
                Loader::new(schema, LoadOptions { memory: request.loading.memory.clone(), ..LoadOptions::default() });
            let mut sequence = 0;
            for (path, identity) in &self.files {
                let (file, now) = file::open(path)?;
                if now != *identity {
                    return Err(file::changed(path));
                }
                let parallel =
                    self.compression == Compression::None && !has_quotes(path, &file, identity.size, request)?;
                sequence = match parallel {
                    true => self.in_blocks(path, &file, identity.size, columns, &loader, sequence, request)?,
                    false => self.in_order(path, file, columns, &loader, sequence, request)?,
                };
            }
            loader.finish_held(&whole::on(request.loading.runtime))
        })
    }

    fn builder(&self, columns: &[usize], header: bool) -> ReaderBuilder {
        ReaderBuilder::new(self.schema.clone())
            .with_delimiter(self.delimiter)
            .with_header(header)
            .with_projection(columns.to_vec())
    }

    /// Parses a file without quotes, its blocks in parallel; returns the next sequence number.
    fn in_blocks(
        &self,
        path: &Path,
        file: &File,
        size: u64,
        columns: &[usize],
        loader: &Loader,
        sequence: u64,
        request: &Request<'_>,
    ) -> Result<u64> {
        let blocks = size.div_ceil(BLOCK);
        request.loading.runtime.parallel(blocks as usize, request.loading.cancel, |block| {
            let start = line_start(path, file, block as u64 * BLOCK, size)?;
            let end = line_start(path, file, (block as u64 + 1) * BLOCK, size)?;
            let mut text = vec![0; (end - start) as usize];
            file.read_exact_at(&mut text, start).map_err(|error| file::unreadable(path, &error))?;
            let header = self.header && block == 0;
            // A value takes at least the byte behind it, which the last line may lack: the block is one batch, and room for
            // the batch is a small multiple of the block.
            let rows = text.len() / self.schema.fields().len().max(1) + 1;
            let mut decoder = self.builder(columns, header).with_batch_size(rows).build_decoder();
            let fail = |error: ArrowError| match lines_before(path, file, start) {
                Ok(lines) => wrong(path, &error, lines, Some(&self.schema)),
                Err(error) => error,
            };
            let mut left = &text[..];
            while !left.is_empty() {
                let used = decoder.decode(left).map_err(fail)?;
                if used == 0 {
                    return Err(Error::internal("a block of text has more lines than bytes for them"));
                }
                left = &left[used..];
            }
            // The last line may lack its end.
            decoder.decode(&[]).map_err(fail)?;
            let batch = decoder.flush().map_err(fail)?;
            let empty = || {
                arrow::array::RecordBatch::new_empty(Arc::new(
                    self.schema.project(columns).unwrap_or_else(|_| Schema::empty()),
                ))
            };
            loader.append(sequence + block as u64, batch.unwrap_or_else(empty))
        })?;
        Ok(sequence + blocks)
    }

    /// Parses a file from start to end, on one worker; returns the next sequence number.
    fn in_order(
        &self,
        path: &Path,
        file: File,
        columns: &[usize],
        loader: &Loader,
        sequence: u64,
        request: &Request<'_>,
    ) -> Result<u64> {
        let file = Mutex::new(Some(file));
        let next = std::sync::atomic::AtomicU64::new(sequence);
        request.loading.runtime.parallel(1, request.loading.cancel, |_| {
            let Some(file) = file.lock().take() else { return Ok(()) };
            let text = reader(file, self.compression).map_err(|error| file::unreadable(path, &error))?;
            let read = Mutex::new((Reservation::new(request.loading.memory, "the lines of a text file"), Ok(())));
            let text = Metered { text, read: &read };
            let rows = BATCH_ROWS.min(BATCH_VALUES / self.schema.fields().len().max(1)).max(1);
            let batches = self.builder(columns, self.header).with_batch_size(rows).build(text);
            let fail = |error: ArrowError| match std::mem::replace(&mut read.lock().1, Ok(())) {
                Ok(()) => wrong(path, &error, 0, Some(&self.schema)),
                Err(exhausted) => exhausted,
            };
            for batch in batches.map_err(fail)? {
                request.loading.cancel.check()?;
                read.lock().0.resize(0)?;
                loader.append(next.fetch_add(1, Ordering::Relaxed), batch.map_err(fail)?)?;
            }
            Ok(())
        })?;
        Ok(next.into_inner())
    }
}

/// Text that counts from when it is read until it is rows: one value of a small compressed file may be larger than memory.
struct Metered<'a, R> {
    text: R,
    /// The memory of what was read, and why there was none.
    read: &'a Mutex<(Reservation, Result<()>)>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.text.read(buffer)?;
        let (held, failed) = &mut *self.read.lock();
        held.add(count).map_err(|error| {
            *failed = Err(error);
            std::io::Error::from(std::io::ErrorKind::OutOfMemory)
        })?;
        Ok(count)
    }
}

/// Columns without a value in the sample are text.
fn typed(field: &ArrowField) -> ArrowField {
    let kind = match field.data_type() {
        DataType::Null => DataType::Utf8,
        kind => kind.clone(),
    };
    ArrowField::new(field.name(), kind, true)
}

/// Reads the first lines, whole.
fn sample(path: &Path, file: File, compression: Compression) -> Result<Vec<u8>> {
    let mut sample = Vec::new();
    let unreadable = |error: std::io::Error| match compression {
        Compression::None => file::unreadable(path, &error),
        _ => file::damaged(path, &format!("its compression: {error}")),
    };
    let text = reader(file, compression).map_err(unreadable)?;
    text.take(SAMPLE).read_to_end(&mut sample).map_err(unreadable)?;
    if sample.len() as u64 == SAMPLE {
        let end = memchr::memrchr(b'\n', &sample).map_or(sample.len(), |position| position + 1);
        sample.truncate(end);
    }
    Ok(sample)
}

/// Guesses whether the first line names columns: all its values are text and none is missing.
fn has_header(sample: &[u8], delimiter: u8) -> bool {
    let end = memchr::memchr(b'\n', sample).map_or(sample.len(), |position| position + 1);
    let format = ArrowFormat::default().with_delimiter(delimiter).with_header(false);
    match format.infer_schema(Cursor::new(&sample[..end]), Some(1)) {
        Ok((schema, _)) => schema.fields().iter().all(|field| *field.data_type() == DataType::Utf8),
        Err(_) => true,
    }
}

fn has_quotes(path: &Path, file: &File, size: u64, request: &Request<'_>) -> Result<bool> {
    let found = AtomicBool::new(false);
    request.loading.runtime.parallel(size.div_ceil(BLOCK) as usize, request.loading.cancel, |block| {
        let start = block as u64 * BLOCK;
        let mut text = vec![0; (size - start).min(BLOCK) as usize];
        if found.load(Ordering::Relaxed) {
            return Ok(());
        }
        file.read_exact_at(&mut text, start).map_err(|error| file::unreadable(path, &error))?;
        if memchr::memchr(b'"', &text).is_some() {
            found.store(true, Ordering::Relaxed);
        }
        Ok(())
    })?;
    Ok(found.into_inner())
}

/// Returns where the first line begins at or after `position`.
fn line_start(path: &Path, file: &File, position: u64, size: u64) -> Result<u64> {
    if position == 0 || position >= size {
        return Ok(position.min(size));
    }
    let mut text = vec![0; 4096];
    let mut at = position - 1;
    while at < size {
        let count = (size - at).min(text.len() as u64) as usize;
        file.read_exact_at(&mut text[..count], at).map_err(|error| file::unreadable(path, &error))?;
        if let Some(found) = memchr::memchr(b'\n', &text[..count]) {
            return Ok(at + found as u64 + 1);
        }
        at += count as u64;
        text.resize((text.len() * 2).min(BLOCK as usize), 0);
    }
    Ok(size)
}

fn lines_before(path: &Path, file: &File, position: u64) -> Result<usize> {
    let (mut at, mut lines, mut text) = (0, 0, vec![0; BLOCK as usize]);
    while at < position {
        let count = (position - at).min(BLOCK) as usize;
        file.read_exact_at(&mut text[..count], at).map_err(|error| file::unreadable(path, &error))?;
        lines += memchr::memchr_iter(b'\n', &text[..count]).count();
        at += count as u64;
    }
    Ok(lines)
}

/// Says which line and value is wrong, from the Arrow reader's message.
fn wrong(path: &Path, error: &ArrowError, lines_before: usize, schema: Option<&SchemaRef>) -> Error {
    let message = error.to_string();
    let between = |from: &str, to: &str| {
        message.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(found, _)| found)
    };
    let number = |from: &str| {
        let (_, rest) = message.split_once(from)?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().ok()
    };
    let shown = path.display();
    Error::input(match (between("parsing value '", "' as type"), number("at line "), number("for line ")) {
        (Some(value), Some(line), _) => {
            let column = number("for column ").unwrap_or_default();
            let named = schema.and_then(|schema| schema.fields().get(column).cloned());
            let (name, kind) = named.map_or(("?".into(), "its type".into()), |field| {
                (
                    field.name().clone(),
                    Field::from_arrow(&field).map_or_else(|_| "its type".into(), |field| field.kind.to_string()),
                )
            });
            let line = lines_before + line + 1;
            format!("cannot read line {line} of {shown}: '{value}' in column {name} is not {kind}; correct the value")
        }
        (_, _, Some(line)) => {
            let detail = match (number("expected "), message.contains("UTF-8")) {
                (Some(expected), _) => format!("it does not have {expected} values"),
                (None, true) => "it is not UTF-8 text".into(),
                (None, false) => "it cannot be parsed".into(),
            };
            format!("cannot read line {} of {shown}: {detail}; correct the line", lines_before + line)
        }
        (_, Some(line), _) => {
            format!(
                "cannot read line {} of {shown}: it has another number of values than the first; correct the line",
                lines_before + line
            )
        }
        _ => format!("cannot read {shown}: {}; check the file", message.trim_start_matches("Csv error: ")),
    })
}
