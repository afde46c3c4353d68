//! Compiled programs on disk: the binary, and beside it the text it was made of.
//!
//! An entry is valid only if its text, device and driver are exactly the ones asked for and its bytes are whole; anything else
//! is compiled again and written over. Files appear by renaming, so that processes may write at the same time and be killed at
//! any moment; the oldest entries go when there are too many. What others may have written is not loaded
//! ([`super::trusted`]), and the user is told once. `TANDEM_KERNEL_CACHE` names the directory, or is `off`.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tandem_device::{Device, Program};

use super::trusted::TrustedDirectory;

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
#[derive(Debug, Default)]
pub(super) struct ProgramCache {
    place: Option<CacheDirectory>,
    /// Why what is there is not used, until the user is told.
    distrust: Mutex<Option<String>>,
    distrusted: AtomicBool,
}

/// Where compiled programs are kept on disk.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCache {
    place: Option<CacheDirectory>,
}

#[derive(Clone, Debug, PartialEq)]
struct CacheDirectory {
    directory: PathBuf,
    /// How many of the last directories of the path are ours alone.
    own: usize,
}

impl KernelCache {
    /// Keeps none.
    pub fn off() -> KernelCache {
        KernelCache::default()
    }

    /// Keeps them in a directory.
    pub fn at(directory: impl Into<PathBuf>) -> KernelCache {
        KernelCache { place: Some(CacheDirectory { directory: directory.into(), own: 1 }) }
    }

    /// Keeps them in the directory that the environment names, or the user's own; none if there is none.
    pub fn from_environment() -> KernelCache {
        let place = place(env::var_os("TANDEM_KERNEL_CACHE"), env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"));
        KernelCache { place }
    }
}

impl ProgramCache {
    pub(super) fn new(kept: KernelCache) -> ProgramCache {
        ProgramCache { place: kept.place, ..ProgramCache::default() }
    }

    #[cfg(test)]
    fn at(directory: &Path) -> ProgramCache {
        ProgramCache::new(KernelCache::at(directory))
    }

    /// Loads the program of a text, if it is there and whole.
    pub(super) fn load(&self, text: &str, options: &str, device: &dyn Device) -> Option<Program> {
        let binary = self.find(&source(text, options, device))?;
        device.load(&binary, "").ok()
    }

    /// Keeps a program. A cache that cannot be written only costs time, so failures are not reported.
    pub(super) fn save(&self, text: &str, options: &str, device: &dyn Device, program: &Program) {
        if self.place.is_some()
            && let Ok(binary) = program.binary()
        {
            self.keep(&source(text, options, device), &binary);
        }
    }

    /// Returns why what is on disk is not used, once.
    pub(super) fn distrust(&self) -> Option<String> {
        self.distrust.lock().take()
    }

    /// Returns the binary that was made of a source.
    fn find(&self, source: &str) -> Option<Vec<u8>> {
        let place = self.place.as_ref()?;
        let (text, binary) = names(source);
        let read = || {
            let Some(directory) = TrustedDirectory::open(&place.directory, place.own)? else { return Ok(None) };
            if directory.read(&text, MOST_BYTES)?.as_deref() != Some(source.as_bytes()) {
                return Ok(None);
            }
            directory.read(&binary, MOST_BYTES)
        };
        let file = self.trusting(read())??;
        unwrap(&file).map(<[u8]>::to_vec)
    }

    fn keep(&self, source: &str, binary: &[u8]) {
        let Some(place) = &self.place else { return };
        let (text_name, binary_name) = names(source);
        let Some(Some(directory)) = self.trusting(TrustedDirectory::create(&place.directory, place.own)) else {
            return;
        };
        let written =
            put(&directory, &binary_name, &wrap(binary)).and_then(|()| put(&directory, &text_name, source.as_bytes()));
        if written.is_ok() {
            trim(&place.directory, MOST_ENTRIES, MOST_BYTES);
        }
    }

    /// Takes note of why files are not to be trusted.
    fn trusting<T>(&self, result: Result<T, String>) -> Option<T> {
        result
            .map_err(|reason| {
                if !self.distrusted.swap(true, Ordering::Relaxed) {
                    *self.distrust.lock() = Some(reason);
                }
            })
            .ok()
    }
}

/// Finds where programs are kept, from the values of `TANDEM_KERNEL_CACHE`, `XDG_CACHE_HOME` and `HOME`. Of the latter two, what
/// is empty or relative counts as not set: it would be another place wherever the process is started.
fn place(named: Option<OsString>, cache: Option<OsString>, home: Option<OsString>) -> Option<CacheDirectory> {
    match named.filter(|named| !named.is_empty()) {
        Some(named) if named == OsStr::new("off") => None,
        Some(named) => Some(CacheDirectory { directory: PathBuf::from(named), own: 1 }),
        None => {
            let absolute = |path: PathBuf| path.is_absolute().then_some(path);
            let cache = cache.map(PathBuf::from).and_then(absolute);
            let home = || home.map(PathBuf::from).and_then(absolute).map(|home| home.join(".cache"));
            let directory = cache.or_else(home)?.join("tandem").join("kernels");
            Some(CacheDirectory { directory, own: 2 })
        }
    }
}

/// Returns the names of a source's files: its text's and its binary's.
fn names(source: &str) -> (String, String) {
    let name = format!("{:016x}{:016x}", checksum(source.as_bytes(), 0), checksum(source.as_bytes(), 1));
    (format!("{name}.cl"), format!("{name}.bin"))
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
fn put(directory: &TrustedDirectory, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    // Nobody else writes to a name that is drawn at random.
    let drawn = RandomState::new().hash_one(name);
    directory.write(name, &format!("{name}.{}-{drawn:x}.{UNFINISHED}", process::id()), bytes)
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
    use std::{io::BufRead, os::unix::fs::PermissionsExt};

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
        let found = tandem_device::Search::from_environment().run();
        let Some(device) = found.devices.first() else {
            return println!("not tested, no device is usable: {:?}", found.unusable);
        };
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let cache = ProgramCache::at(directory.path());
        assert!(cache.load(TEXT, "", device.as_ref()).is_none());
        let program = device.compile(TEXT, "").expect("the text is right");
        cache.save(TEXT, "", device.as_ref(), &program);
        let loaded = cache.load(TEXT, "", device.as_ref()).expect("it was kept");
        loaded.kernel("twice").expect("it has the kernel");
        assert!(cache.load(&TEXT.replace("twice", "thrice"), "", device.as_ref()).is_none());
        // Half a file is compiled again.
        let binary = directory.path().join(names(&source(TEXT, "", device.as_ref())).1);
        fs::write(&binary, &fs::read(&binary).expect("it is there")[..20]).expect("it can be written");
        assert!(cache.load(TEXT, "", device.as_ref()).is_none());
    }

    fn private() -> tempfile::TempDir {
        // Temporary directories are made for this user alone.
        tempfile::tempdir().expect("a temporary directory can be made")
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn empty_and_relative_places_count_as_not_set() {
        let set = |value: &str| Some(OsString::from(value));
        let own = |directory: &str| Some(CacheDirectory { directory: directory.into(), own: 2 });
        assert_eq!(place(None, set("/c"), set("/h")), own("/c/tandem/kernels"));
        for cache in [None, set(""), set("relative"), set("./x")] {
            assert_eq!(place(None, cache.clone(), set("/h")), own("/h/.cache/tandem/kernels"));
            assert_eq!(place(set(""), cache.clone(), set("/h")), own("/h/.cache/tandem/kernels"));
            for home in [None, set(""), set("relative")] {
                assert_eq!(place(None, cache.clone(), home), None);
            }
        }
        assert_eq!(place(set("off"), set("/c"), set("/h")), None);
        assert_eq!(place(set("/d"), set("/c"), None), Some(CacheDirectory { directory: "/d".into(), own: 1 }));
    }

    #[test]
    fn files_are_for_this_user_alone() {
        let home = private();
        let directory = home.path().join("new").join("kernels");
        let cache = ProgramCache::at(&directory);
        cache.keep("text", b"binary");
        assert_eq!(cache.find("text").as_deref(), Some(b"binary".as_slice()));
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&home.path().join("new")), mode(&directory)), (0o700, 0o700));
        let files: Vec<_> =
            fs::read_dir(&directory).expect("readable").map(|entry| entry.expect("one").path()).collect();
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|file| mode(file) == 0o600));
        assert_eq!(cache.distrust(), None);
    }

    #[test]
    fn what_others_may_write_is_not_loaded_and_said_once() {
        let home = private();
        let directory = home.path().join("kernels");
        let (text, binary) = names("text");
        let refused = |change: &dyn Fn()| {
            ProgramCache::at(&directory).keep("text", b"binary");
            assert!(ProgramCache::at(&directory).find("text").is_some());
            change();
            let cache = ProgramCache::at(&directory);
            assert_eq!(cache.find("text"), None);
            cache.keep("other", b"binary");
            let reason = cache.distrust().expect("the user is told");
            assert!(reason.contains("TANDEM_KERNEL_CACHE") && reason.contains("kernels"), "{reason}");
            assert_eq!((cache.find("text"), cache.distrust()), (None, None));
            fs::remove_dir_all(&directory).expect("it is ours");
        };
        for mode in [0o720, 0o702, 0o777] {
            refused(&|| chmod(&directory, mode));
        }
        for file in [&text, &binary] {
            refused(&|| chmod(&directory.join(file), 0o622));
            // A link may lead to a file of anybody.
            refused(&|| {
                let (path, elsewhere) = (directory.join(file), home.path().join("elsewhere"));
                fs::rename(&path, &elsewhere).expect("it is ours");
                std::os::unix::fs::symlink(&elsewhere, &path).expect("it is ours");
            });
        }
        // A pipe is not waited for.
        refused(&|| {
            let path = directory.join(&text);
            fs::remove_file(&path).expect("it is ours");
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).expect("a pipe");
        });
        // The last two directories of the default place are ours, too.
        let place = |path: &Path| ProgramCache {
            place: Some(CacheDirectory { directory: path.into(), own: 2 }),
            ..ProgramCache::default()
        };
        let (shared, inner) = (home.path().join("tandem"), home.path().join("tandem/kernels"));
        place(&inner).keep("text", b"binary");
        assert!(place(&inner).find("text").is_some());
        chmod(&shared, 0o777);
        assert_eq!(place(&inner).find("text"), None);
    }

    /// A process writes entries and is killed at a random moment, again and again: every entry that can be found is whole.
    #[test]
    fn killed_writers_leave_nothing_half_written() {
        const PLACE: &str = "TANDEM_TEST_KILLED_WRITER";
        const SOURCES: usize = 8;
        let source = |number: usize| format!("source {number}");
        let binary = |number: usize| vec![number as u8; 100_000 + number];
        if let Some(directory) = env::var_os(PLACE) {
            let cache = ProgramCache::at(Path::new(&directory));
            for number in (0..SOURCES).cycle() {
                cache.keep(&source(number), &binary(number));
                println!("{number}");
            }
        }
        let seed = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64);
        println!("seed {seed}");
        let directory = private();
        let mut state = seed | 1;
        for _ in 0..20 {
            let mut child = process::Command::new(env::current_exe().expect("this test"))
                .args(["device::cache::tests::killed_writers_leave_nothing_half_written", "--exact", "--nocapture"])
                .env(PLACE, directory.path())
                .stdout(process::Stdio::piped())
                .spawn()
                .expect("it runs again");
            // So many lines, and then some spinning, until it is killed.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (lines, spins) = (state >> 60, (state >> 20) % 300_000);
            let mut output = std::io::BufReader::new(child.stdout.take().expect("it is piped")).lines();
            assert!(output.by_ref().take(lines as usize + 1).all(|line| line.is_ok()));
            (0..spins).for_each(|_| std::hint::spin_loop());
            child.kill().and_then(|()| child.wait()).expect("it is ours");
            let cache = ProgramCache::at(directory.path());
            for entry in fs::read_dir(directory.path()).expect("readable") {
                let path = entry.expect("readable").path();
                let bytes = fs::read(&path).expect("it is ours");
                match path.extension().and_then(OsStr::to_str) {
                    Some("bin") => assert!(unwrap(&bytes).is_some(), "{} is half written", path.display()),
                    Some("cl") => assert!((0..SOURCES).any(|number| bytes == source(number).as_bytes())),
                    extension => assert_eq!(extension, Some(UNFINISHED)),
                }
            }
            for number in 0..SOURCES {
                let found = cache.find(&source(number));
                assert!(found.is_none_or(|found| found == binary(number)), "entry {number}");
            }
            assert_eq!(cache.distrust(), None);
        }
        assert!((0..SOURCES).any(|number| ProgramCache::at(directory.path()).find(&source(number)).is_some()));
    }
}
