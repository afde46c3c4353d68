//! CUDA text to a shared library: preprocessed first, so that kernels are found whatever macros they are behind.

use std::ffi::{c_uint, c_ulong, c_void};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, fs, process};

use libloading::Library;
use tandem_column::{Class, Error, Result};

use super::device::ShimContext;
use crate::object::{KernelPart, ProgramPart};
use crate::{Kernel, Program};

/// What comes before every text.
pub(super) const HEADER: &str = include_str!("shim.h");
/// How many lines of a build log a message takes: enough for the first mistakes.
const LOG_LINES: usize = 12;
/// What the name of a kernel's launch function begins with.
const LAUNCH: &str = "shim_launch_";

/// The C function that launches a kernel: blocks, threads, bytes of shared memory, a pointer to each argument, their sizes
/// and how many they are.
pub(super) type LaunchFunction =
    unsafe extern "C" fn(c_uint, c_uint, c_ulong, *const *const c_void, *const u8, c_ulong) -> i32;

/// A loaded library, with its bytes.
#[derive(Debug)]
pub(super) struct ShimProgram {
    context: Arc<ShimContext>,
    library: Arc<Loaded>,
    binary: Vec<u8>,
}

/// A library and its file, in which a sanitizer finds the lines of its reports.
#[derive(Debug)]
struct Loaded {
    library: Library,
    _file: Temporary,
}

/// A kernel of a library, which it keeps loaded.
#[derive(Debug)]
pub(super) struct ShimKernel {
    pub(super) context: Arc<ShimContext>,
    pub(super) launch: LaunchFunction,
    _library: Arc<Loaded>,
}

impl KernelPart for ShimKernel {}

impl ShimProgram {
    /// Compiles text.
    pub(super) fn compile(context: &Arc<ShimContext>, source: &str, options: &str) -> Result<Program> {
        let options: Vec<&str> = options.split_whitespace().collect();
        let text = run(Command::new("g++").args(["-x", "c++", "-E", "-D__CUDACC__"]).args(&options).arg("-"), source)?;
        let text = String::from_utf8_lossy(&text);
        let mut whole = format!("{HEADER}{}", with_dynamic_shared(&text));
        for name in kernels(&text) {
            whole.push_str(&format!(
                "\nextern \"C\" __attribute__((visibility(\"default\"))) int {LAUNCH}{name}(unsigned blocks, unsigned threads, \
                 unsigned long shared, void *const *values, const unsigned char *sizes, unsigned long count) {{\n    \
                 return shim_launch(::{name}, blocks, threads, shared, values, sizes, count);\n}}\n"
            ));
        }
        let file = Temporary::new();
        let mut command = Command::new("g++");
        command.args(["-x", "c++", "-std=c++17", "-O1", "-g1", "-shared", "-fPIC", "-fvisibility=hidden"]);
        command.args(["-ffp-contract=off", "-fno-strict-aliasing"]);
        if context.sanitize {
            command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        }
        run(command.args(&options).arg("-o").arg(&file.0).arg("-"), &whole)?;
        let binary = fs::read(&file.0).map_err(|error| unusable(&error))?;
        Self::open(context, file, binary).map_err(|reason| unusable(&reason))
    }

    /// Loads what [`ProgramPart::binary`] gave.
    pub(super) fn load(context: &Arc<ShimContext>, binary: &[u8]) -> Result<Program> {
        let file = Temporary::new();
        let opened = fs::write(&file.0, binary).map_err(|error| error.to_string());
        opened.and_then(|()| Self::open(context, file, binary.to_vec())).map_err(|reason| {
            Error::unsupported(format!("a stored kernel does not fit this device, compile it again: {reason}"))
        })
    }

    fn open(context: &Arc<ShimContext>, file: Temporary, binary: Vec<u8>) -> std::result::Result<Program, String> {
        // SAFETY: a library of kernels runs nothing when it is loaded; their text is trusted, as on every device.
        let library = unsafe { Library::new(&file.0) }.map_err(|error| error.to_string())?;
        let library = Arc::new(Loaded { library, _file: file });
        Ok(Program::new(ShimProgram { context: context.clone(), library, binary }))
    }
}

impl ProgramPart for ShimProgram {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        // SAFETY: every function of such a name in such a library is of this type.
        let launch = unsafe { self.library.library.get::<LaunchFunction>(format!("{LAUNCH}{name}")) };
        let launch = launch.map_err(|_| Error::internal(format!("a program has no kernel of this name: {name}")))?;
        let (context, launch, library) = (self.context.clone(), *launch, self.library.clone());
        Ok(Kernel::new(ShimKernel { context, launch, _library: library }))
    }

    fn binary(&self) -> Result<Vec<u8>> {
        Ok(self.binary.clone())
    }
}

/// A path of this process alone; what is there goes when dropped.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Temporary {
        let drawn = RandomState::new().hash_one(process::id());
        Temporary(env::temp_dir().join(format!("tandem-shim-{}-{drawn:x}.so", process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Without a file there is nothing to remove.
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs the compiler with a text as its input; returns its output.
fn run(command: &mut Command, input: &str) -> Result<Vec<u8>> {
    // The compiler is not what is under test.
    command.env_remove("LD_PRELOAD").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| unusable(&error))?;
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(|error| unusable(&error))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = log.lines().take(LOG_LINES).collect();
        return Err(Error::new(Class::Device, format!("kernel text does not compile with g++:\n{}", lines.join("\n"))));
    }
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(unusable(&error)),
        _ => Ok(output.stdout),
    }
}

fn unusable(reason: &dyn std::fmt::Display) -> Error {
    Error::new(Class::Device, format!("g++ does not give a library: {reason}"))
}

/// Returns the names of the kernels in preprocessed text.
fn kernels(text: &str) -> Vec<&str> {
    let names = text.split("__global__").skip(1).filter_map(|rest| {
        let mut rest = rest.trim_start().strip_prefix("void")?.trim_start();
        if let Some(bounds) = rest.strip_prefix("__launch_bounds__") {
            rest = bounds.split_once(')')?.1.trim_start();
        }
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
    });
    names.collect()
}

/// Turns each `extern __shared__ T name[]` into a pointer to the launch's dynamic shared memory: C++ knows no such array.
fn with_dynamic_shared(text: &str) -> String {
    let mut pieces = text.split("extern __shared__");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let declared = piece.split_once("[]").and_then(|(declaration, rest)| {
            let (kind, name) = declaration.trim().rsplit_once(char::is_whitespace)?;
            Some(format!("{kind} *const {name} = ({kind} *)shim_dynamic_shared(){rest}"))
        });
        // What is not understood stays, and the compiler complains.
        whole.push_str(&declared.unwrap_or_else(|| format!("extern __shared__{piece}")));
    }
    whole
}
