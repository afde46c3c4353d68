//! Compiled programs on disk: the binary, and beside it the text it was made of.
//!
//! An entry is valid only if its text, device and driver are exactly the ones asked for and its bytes are whole; anything else
//! is compiled again and written over. Files appear by renaming, so that processes may write at the same time; the oldest
//! entries go when there are too many. `TANDEM_KERNEL_CACHE` names the directory, or is `off`.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use tandem_device::{Device, Program};

/// What a file of a binary begins with; another format gets another number.
const MAGIC: &[u8; 8] = b"TANDEMK1";
/// The most entries that are kept.
const MOST_ENTRIES: usize = 1024;
/// The most bytes that their binaries may take.
const MOST_BYTES: u64 = 256 << 20;
/// The extension of a file that is being written.
const UNFINISHED: &str = "new";
/// After this time nobody writes an unfinished file any more: its process was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A directory of compiled programs.
#[derive(Debug)]
pub(super) struct Cache {
    directory: Option<PathBuf>,
}

impl Cache {
    /// Uses the directory that the environment names, or the user's own; none if there is none.
    pub(super) fn from_environment() -> Cache {
        let directory = match env::var_os("TANDEM_KERNEL_CACHE") {
            Some(value) if value == OsStr::new("off") => None,
            Some(value) => Some(PathBuf::from(value)),
            None => env::var_os("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
                .map(|place| place.join("tandem").join("kernels")),
        };
        Cache { directory }
    }

    #[cfg(test)]
    pub(super) fn at(directory: &Path) -> Cache {
        Cache { directory: Some(directory.to_path_buf()) }
    }

    /// Loads the program of a text, if it is there and whole.
    pub(super) fn load(&self, text: &str, options: &str, device: &dyn Device) -> Option<Program> {
        let source = source(text, options, device);
        let (text_path, binary_path) = self.paths(&source)?;
        if fs::read_to_string(text_path).ok()? != source {
            return None;
        }
        let file = fs::read(binary_path).ok()?;
        device.load(unwrap(&file)?, "").ok()
    }

    /// Keeps a program. A cache that cannot be written only costs time, so failures are not reported.
    pub(super) fn save(&self, text: &str, options: &str, device: &dyn Device, program: &Program) {
        let Some(directory) = &self.directory else { return };
        let source = source(text, options, device);
        let (Some((text_path, binary_path)), Ok(binary)) = (self.paths(&source), program.binary()) else { return };
        let written = fs::create_dir_all(directory)
            .and_then(|()| put(&binary_path, &wrap(&binary)))
            .and_then(|()| put(&text_path, source.as_bytes()));
        if written.is_ok() {
            trim(directory, MOST_ENTRIES, MOST_BYTES);
        }
    }

    fn paths(&self, source: &str) -> Option<(PathBuf, PathBuf)> {
        let name = format!("{:016x}{:016x}", checksum(source.as_bytes(), 0), checksum(source.as_bytes(), 1));
        let directory = self.directory.as_ref()?;
        Some((directory.join(format!("{name}.cl")), directory.join(format!("{name}.bin"))))
    }
}

/// Returns the text with the device, driver and options that a binary of it is for.
fn source(text: &str, options: &str, device: &dyn Device) -> String {
    let info = device.info();
    format!("// {}, {}, {}, {}, {options}\n{text}", info.backend, info.name, info.driver, info.version)
}

/// FNV-1a, from one of two starts.
fn checksum(bytes: &[u8], start: u64) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ start.wrapping_mul(0x9E37_79B9_7F4A_7C15), |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

fn wrap(binary: &[u8]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&(binary.len() as u64).to_le_bytes());
    file.extend_from_slice(&checksum(binary, 0).to_le_bytes());
    file.extend_from_slice(binary);
    file
}

/// Returns the binary of a file, if it is whole.
fn unwrap(file: &[u8]) -> Option<&[u8]> {
    let (magic, rest) = file.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<8>()?;
    let (sum, binary) = rest.split_first_chunk::<8>()?;
    let whole = magic == MAGIC
        && u64::from_le_bytes(*length) == binary.len() as u64
        && u64::from_le_bytes(*sum) == checksum(binary, 0);
    whole.then_some(binary)
}

/// Writes a file that appears whole or not at all.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("{}-{count}.{UNFINISHED}", process::id()));
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, path))
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Removes the oldest entries beyond what may be kept, and what killed processes left.
fn trim(directory: &Path, most_entries: usize, most_bytes: u64) {
    let mut binaries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok((modified, length)) = entry.metadata().and_then(|data| Ok((data.modified()?, data.len()))) else {
            continue;
        };
        match path.extension().and_then(OsStr::to_str) {
            Some("bin") => binaries.push((modified, length, path)),
            Some(UNFINISHED) if modified.elapsed().is_ok_and(|age| age > ABANDONED) => drop(fs::remove_file(path)),
            _ => {}
        }
    }
    binaries.sort();
    let (mut count, mut bytes) = (binaries.len(), binaries.iter().map(|(_, bytes, _)| bytes).sum::<u64>());
    for (_, length, path) in binaries {
        if count <= most_entries && bytes <= most_bytes {
            return;
        }
        // Another process may have been faster.
        let _ = fs::remove_file(path.with_extension("cl"));
        let _ = fs::remove_file(&path);
        count -= 1;
        bytes -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "__kernel void twice(__global int *x) { x[get_global_id(0)] *= 2; }";

    #[test]
    fn damaged_files_are_not_taken() {
        let file = wrap(b"some binary");
        assert_eq!(unwrap(&file), Some(b"some binary".as_slice()));
        for cut in 0..file.len() {
            assert_eq!(unwrap(&file[..cut]), None, "cut at {cut}");
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(unwrap(&damaged), None, "damaged at {at}");
        }
        assert_eq!(unwrap(&[file.as_slice(), b"x"].concat()), None);
    }

    #[test]
    fn the_oldest_entries_go_first() {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        for name in 0..5u64 {
            let path = directory.path().join(format!("{name}.bin"));
            fs::write(&path, [0; 10]).expect("it can be written");
            fs::write(path.with_extension("cl"), "text").expect("it can be written");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(name);
            fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("a file");
        }
        let unfinished = |name: &str, modified| {
            let file = fs::File::create(directory.path().join(name)).expect("it can be written");
            file.set_modified(modified).expect("it is ours");
        };
        unfinished("7.1-0.new", SystemTime::now());
        unfinished("8.1-1.new", SystemTime::now() - 2 * ABANDONED);
        trim(directory.path(), 3, u64::MAX);
        trim(directory.path(), usize::MAX, 20);
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .expect("it is there")
            .map(|entry| entry.expect("readable").file_name().into_string().expect("plain"))
            .collect();
        left.sort();
        assert_eq!(left, ["3.bin", "3.cl", "4.bin", "4.cl", "7.1-0.new"]);
    }

    #[test]
    fn programs_come_back_from_disk() {
        let found = tandem_device::find();
        let Some(device) = found.devices.first() else {
            return println!("not tested, no device is usable: {:?}", found.unusable);
        };
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let cache = Cache::at(directory.path());
        assert!(cache.load(TEXT, "", device.as_ref()).is_none());
        let program = device.compile(TEXT, "").expect("the text is right");
        cache.save(TEXT, "", device.as_ref(), &program);
        let loaded = cache.load(TEXT, "", device.as_ref()).expect("it was kept");
        loaded.kernel("twice").expect("it has the kernel");
        assert!(cache.load(&TEXT.replace("twice", "thrice"), "", device.as_ref()).is_none());
        // Half a file is compiled again.
        let (_, binary) = cache.paths(&source(TEXT, "", device.as_ref())).expect("a directory");
        fs::write(&binary, &fs::read(&binary).expect("it is there")[..20]).expect("it can be written");
        assert!(cache.load(TEXT, "", device.as_ref()).is_none());
    }
}
