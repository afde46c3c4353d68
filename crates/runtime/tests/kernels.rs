//! Every kernel of the corpus under the checkers that need no GPU: sanitizers, NVIDIA's compiler and assembler, oclgrind.
//!
//! Each needs an environment of its own, or ends the process when it finds something, so it works in a child: a test
//! starts its own executable with one ignored test. Each is also shown kernels with a mistake, which it must find. What
//! is not installed is not tested, and said so, unless `TANDEM_REQUIRE_SHIM`, `TANDEM_REQUIRE_NVRTC` or
//! `TANDEM_REQUIRE_OCLGRIND` asks for it.

mod corpus;
mod mutant;
mod recorder;

use std::{
    collections::BTreeSet,
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
};

use tandem_codegen::{KernelLanguage, Traits, operator, operators};
use tandem_device::{
    Argument, Device, Search, Shape, compile_to_ptx,
    shim::{Shim, sanitized_environment},
};
use tandem_runtime::{Accelerator, QueryInputs, RunOptions, Runtime};

use mutant::{Mutant, Mutation};
use recorder::Recorder;

/// How many random queries run under the sanitizers.
const SANITIZED_QUERIES: u64 = 200;
/// How many of them, or of those under oclgrind, do without double precision and 64-bit atomics.
const POOR_QUERIES: u64 = 60;
/// The most rows of their tables: several for each of the shim's threads.
const SANITIZED_ROWS: usize = 2000;
/// How many random queries run under oclgrind, which interprets kernels, once for each way of dealing out rows.
const GRIND_QUERIES: u64 = 120;
/// The most rows of their tables.
const GRIND_ROWS: usize = 10_000;
/// How many random queries are generated for NVIDIA's compiler.
const NVIDIA_QUERIES: u64 = 400;
/// How many random queries run on kernels with a mistake.
const MUTANT_QUERIES: u64 = 30;
/// The compute capabilities that it compiles for: Volta, Ampere, Hopper.
const CAPABILITIES: [(i32, i32); 3] = [(7, 0), (8, 0), (9, 0)];

/// Runs an ignored test of this file in another environment; returns whether it passed and what it printed.
fn child(test: &str, environment: &[(&str, String)]) -> (bool, String) {
    // A process that is ended leaves its files behind.
    let temporary = tempfile::tempdir().expect("a directory");
    let output = Command::new(env::current_exe().expect("a test has a program"))
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("TMPDIR", temporary.path())
        .output()
        .expect("the child starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success() && text.contains("1 passed"), text)
}

/// Says why something is not tested.
fn skip(variable: &str, reason: &str) {
    assert!(env::var_os(variable).is_none(), "{variable} is set, but {reason}");
    println!("not tested: {reason}");
}

#[test]
#[ignore = "a child of sanitizers_find_nothing: needs its environment"]
fn child_runs_sanitized() {
    let shim = Shim::sanitized().expect("the environment is right");
    let shim: Arc<dyn Device> = Arc::new(shim);
    let accelerator = Arc::new(Accelerator::new(shim.clone()).keep_all());
    let agree = |name: &str, accelerator: &Arc<Accelerator>, queries: u64| {
        corpus::agree(name, std::slice::from_ref(accelerator), corpus::seeds(queries), SANITIZED_ROWS);
        corpus::fail_alike(name, accelerator);
    };
    agree("sanitized shim", &accelerator, SANITIZED_QUERIES);
    agree("sanitized poor shim", &Arc::new(Accelerator::new(shim).poor().keep_all()), POOR_QUERIES);
}

#[test]
#[ignore = "a child of sanitizers_find_mistakes: needs its environment"]
fn child_runs_mutants_sanitized() {
    let shim = Arc::new(Shim::sanitized().expect("the environment is right"));
    mutants(shim, Mutation::OneRowMore);
}

/// Runs queries on kernels with a mistake; their rows do not matter.
fn mutants(device: Arc<dyn Device>, mutation: Mutation) {
    let mutant = Arc::new(Mutant::new(device, mutation));
    let options = RunOptions { devices: vec![Arc::new(Accelerator::new(mutant).in_turn())], ..RunOptions::default() };
    for seed in corpus::seeds(MUTANT_QUERIES) {
        let (tables, query) = corpus::query(seed, 200);
        let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
        // Numbers of rows that do not exist may end the CPU's part.
        let run = AssertUnwindSafe(|| Runtime::new(1).execute(&query, &inputs, &options));
        let _ = catch_unwind(run);
    }
}

#[test]
fn sanitizers_find_mistakes() {
    match sanitized_environment() {
        Err(error) => skip("TANDEM_REQUIRE_SHIM", &error.message),
        Ok(environment) => {
            let (passed, text) = child("child_runs_mutants_sanitized", &environment);
            assert!(!passed && text.contains("AddressSanitizer: heap-buffer-overflow"), "{text}");
        }
    }
}

#[test]
fn sanitizers_find_nothing() {
    match sanitized_environment() {
        Err(error) => skip("TANDEM_REQUIRE_SHIM", &error.message),
        Ok(environment) => {
            let (passed, text) = child("child_runs_sanitized", &environment);
            assert!(passed, "{text}");
        }
    }
}

/// Finds a file of a Python package, by an environment variable or in the checkout's environment.
fn wheel_file(variable: &str, path: &str) -> Result<PathBuf, String> {
    if let Some(path) = env::var_os(variable) {
        return Ok(path.into());
    }
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let versions = fs::read_dir(&libraries).into_iter().flatten().flatten();
    let mut files = versions.map(|version| version.path().join("site-packages/nvidia").join(path));
    files.find(|file| file.exists()).ok_or_else(|| format!("there is no {path}: run dev/test, or set {variable}"))
}

#[test]
fn kernels_compile_for_nvidia() {
    let nvrtc = wheel_file("TANDEM_NVRTC", "cuda_nvrtc/lib/libnvrtc.so.12");
    let ptxas = wheel_file("TANDEM_PTXAS", "cuda_nvcc/bin/ptxas");
    let (nvrtc, ptxas) = match (nvrtc, ptxas) {
        (Ok(nvrtc), Ok(ptxas)) => (nvrtc, ptxas),
        (Err(reason), _) | (_, Err(reason)) => return skip("TANDEM_REQUIRE_NVRTC", &reason),
    };
    let directory = nvrtc.parent().expect("a library is in a directory");
    let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let environment = [("LD_LIBRARY_PATH", text(directory)), ("TANDEM_PTXAS", text(&ptxas))];
    let (passed, text) = child("child_compiles_for_nvidia", &environment);
    assert!(passed, "{text}");
    println!("{}", text.lines().find(|line| line.contains("kernel texts")).expect("the child counts"));
}

#[test]
#[ignore = "a child of kernels_compile_for_nvidia: needs its environment"]
fn child_compiles_for_nvidia() {
    let ptxas = PathBuf::from(env::var_os("TANDEM_PTXAS").expect("the assembler"));
    // Both can refuse: there is no such function of signed numbers, and no such instruction.
    let wrong = "extern \"C\" __global__ void k(long long *a) { atomicAdd(a, 1LL); }";
    let error = compile_to_ptx(wrong, CAPABILITIES[0], "-w").expect_err("CUDA has no such function");
    assert!(error.message.contains("atomicAdd"), "{error}");
    let right = wrong.replace("long long *a", "unsigned long long *a");
    let ptx = compile_to_ptx(&right, CAPABILITIES[0], "-w").expect("it compiles").into_string().expect("PTX is text");
    assert_eq!(assemble(&ptxas, &ptx, CAPABILITIES[0]), Ok(()));
    assert!(assemble(&ptxas, &ptx.replace("ret;", "no_such_instruction;"), CAPABILITIES[0]).is_err());
    let product = "extern \"C\" __global__ void k(double *a) { const double t = a[0] * a[1]; a[2] = t - a[3]; }";
    let ptx = compile_to_ptx(product, CAPABILITIES[0], "-w").expect("it compiles").into_string().expect("PTX is text");
    assert!(ptx.contains("mul.rn.f64") && !ptx.contains("fma"), "a product is rounded before it is added to: {ptx}");

    let texts = cuda_texts();
    assert!(texts.len() > 50, "queries give kernels");
    let accepted = Accepted::open(&[&ptx, &version(&ptxas), include_str!("../../device/src/cuda/program.rs")]);
    let all: Vec<(&String, (i32, i32))> = texts.iter().flat_map(|text| CAPABILITIES.map(|of| (text, of))).collect();
    let new: Vec<_> = all.iter().filter(|(text, of)| !accepted.has(text, *of)).collect();
    println!("{} kernel texts for {CAPABILITIES:?}, {} of {} to compile", texts.len(), new.len(), all.len());
    thread::scope(|scope| {
        for new in new.chunks(new.len().div_ceil(2).max(1)) {
            let ptxas = &ptxas;
            scope.spawn(move || {
                for (text, capability) in new {
                    let ptx = compile_to_ptx(text, *capability, "-w").unwrap_or_else(|error| panic!("{error}\n{text}"));
                    let ptx = ptx.into_string().expect("PTX is text");
                    assemble(ptxas, &ptx, *capability).unwrap_or_else(|log| panic!("{log}\n{text}"));
                }
            });
        }
    });
    accepted.write(&all);
}

/// Texts that both programs took in an earlier run, by a fingerprint: they would take them again, and compiling is most of
/// this test's time. Another compiler, assembler or way to call them begins anew.
struct Accepted {
    path: PathBuf,
    known: BTreeSet<String>,
    programs: Vec<String>,
}

impl Accepted {
    /// Reads what the programs took; `programs` says which they are and how they are called.
    fn open(programs: &[&str]) -> Accepted {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvidia-accepted");
        let known = fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect();
        Accepted { path, known, programs: programs.iter().map(|&text| text.to_owned()).collect() }
    }

    /// Returns 128 bits that stand for a text, a capability and the programs.
    fn fingerprint(&self, text: &str, capability: (i32, i32)) -> String {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, text, capability, &self.programs).hash(&mut hasher);
            hasher.finish()
        };
        format!("{:016x}{:016x}", half(0), half(1))
    }

    fn has(&self, text: &str, capability: (i32, i32)) -> bool {
        self.known.contains(&self.fingerprint(text, capability))
    }

    /// Keeps what was taken now, and nothing else. Without the file, the next run compiles all.
    fn write(&self, taken: &[(&String, (i32, i32))]) {
        let lines: Vec<String> = taken.iter().map(|(text, of)| self.fingerprint(text, *of)).collect();
        if let Err(error) = fs::write(&self.path, lines.join("\n")) {
            println!("the next run compiles all texts: {error}");
        }
    }
}

/// Says which assembler it is.
fn version(ptxas: &Path) -> String {
    let output = Command::new(ptxas).arg("--version").output().expect("the assembler starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Assembles PTX for a real architecture.
fn assemble(ptxas: &Path, ptx: &str, (major, minor): (i32, i32)) -> Result<(), String> {
    let directory = tempfile::tempdir().expect("a directory");
    let (from, to) = (directory.path().join("kernel.ptx"), directory.path().join("kernel.cubin"));
    fs::write(&from, ptx).expect("it can be written");
    let output = Command::new(ptxas).arg(format!("-arch=sm_{major}{minor}")).arg("-o").args([&to, &from]).output();
    let output = output.expect("the assembler starts");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Returns the text of every kernel: of random queries, of the goldens, the operators, and the device's own.
fn cuda_texts() -> BTreeSet<String> {
    let recorder = Arc::new(Recorder::new().expect("there is g++"));
    let runtime = Runtime::new(1);
    let options =
        RunOptions { devices: vec![Arc::new(Accelerator::new(recorder.clone()).keep_all())], ..RunOptions::default() };
    for seed in corpus::seeds(NVIDIA_QUERIES) {
        let (tables, query) = corpus::query(seed, 50);
        let inputs = QueryInputs { tables: tables.into_iter().collect(), ..QueryInputs::default() };
        // What a query gives is tested elsewhere.
        let _ = runtime.execute(&query, &inputs, &options);
    }
    let mut texts = recorder.texts();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates lie side by side");
    let read = |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // Goldens are bodies, which targets share, behind the prelude that any text begins with once it is told what is used.
    let plain = |text: &&String| !["#define SHARE", "frame_end"].iter().any(|more| text.contains(more));
    let any = texts.iter().find(plain).expect("queries give kernels");
    let begin = any.find("// What").expect("a prelude says what it is");
    let prelude = any[begin..any.find("KERNEL void").expect("a text has a kernel")].to_owned();
    let frames = read(crates.join("codegen/src/prelude/frames.h"));
    for entry in fs::read_dir(crates.join("codegen/tests")).expect("there are goldens").flatten() {
        // Strips, and tables of each work-item, are how CPUs do it.
        let golden = entry.path().extension().is_some_and(|extension| extension == "cl");
        let body = if golden { read(entry.path()) } else { continue };
        if !["FOR_STRIPS", "TABLE("].iter().any(|marks| body.contains(marks)) {
            // With and without atomic operations on 64 bits.
            for uses in ["#define FP64\n#define ATOM64\n", "#define FP64\n"] {
                let parts = "#define WIDE\n#define TEXT\n#define DATES\n";
                let frames = if body.contains("frame_") { frames.as_str() } else { "" };
                texts.insert([uses, parts, &prelude, frames, &body].concat());
            }
        }
    }
    let traits = Traits { chunked: false, fp64: true, int64_atomics: true, traced: false };
    texts.extend(operators().map(|name| operator(name, traits, KernelLanguage::Cuda)));
    let kernels = crates.join("device/kernels");
    for name in ["bandwidth.cl", "conformance.cl"] {
        texts.insert(read(kernels.join("prelude.cl")) + &read(kernels.join(name)));
    }
    texts
}

/// Runs an ignored test of this file on oclgrind; returns whether it passed, what it printed, and what oclgrind found.
fn grind(test: &str) -> Option<(bool, String, String)> {
    let library =
        env::var_os("TANDEM_OCLGRIND").map_or("/usr/lib/oclgrind/liboclgrind-rt-icd.so".into(), PathBuf::from);
    if !library.exists() {
        let reason = "oclgrind is not installed: install it, or set TANDEM_OCLGRIND to its ICD library";
        skip("TANDEM_REQUIRE_OCLGRIND", reason);
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("a plain path").to_owned();
    fs::write(path("oclgrind.icd"), library.to_str().expect("a plain path")).expect("it can be written");
    let environment = [
        ("OCL_ICD_VENDORS", path("")),
        ("OCLGRIND_LOG", path("log")),
        ("OCLGRIND_DATA_RACES", "1".into()),
        ("OCLGRIND_CHECK_API", "1".into()),
        // A kernel from the cache would have no lines to report.
        ("TANDEM_KERNEL_CACHE", "off".into()),
    ];
    let (passed, text) = child(test, &environment);
    assert!(text.contains("on Oclgrind"), "the child found oclgrind:\n{text}");
    Some((passed, text, fs::read_to_string(path("log")).expect("oclgrind writes a log")))
}

/// Returns oclgrind's device.
fn oclgrind() -> Arc<dyn Device> {
    let found = Search::default().run();
    let device = found.devices.first().unwrap_or_else(|| panic!("oclgrind: {:?}", found.unusable)).clone();
    println!("on {}", device.info().name);
    device
}

#[test]
#[ignore = "a child of oclgrind_finds_nothing: needs its environment"]
fn child_runs_on_oclgrind() {
    let device = oclgrind();
    let chunks = Arc::new(Accelerator::new(device.clone()).keep_all());
    corpus::agree("oclgrind", std::slice::from_ref(&chunks), corpus::seeds(GRIND_QUERIES), GRIND_ROWS);
    corpus::fail_alike("oclgrind", &chunks);
    let turns = Arc::new(Accelerator::new(device.clone()).in_turn().keep_all());
    corpus::agree("oclgrind in turn", std::slice::from_ref(&turns), corpus::seeds(GRIND_QUERIES), GRIND_ROWS);
    corpus::fail_alike("oclgrind in turn", &turns);
    let poor = Arc::new(Accelerator::new(device).in_turn().poor().keep_all());
    corpus::agree("oclgrind, poor", std::slice::from_ref(&poor), corpus::seeds(POOR_QUERIES), GRIND_ROWS);
}

#[test]
fn oclgrind_finds_nothing() {
    let Some((passed, text, log)) = grind("child_runs_on_oclgrind") else { return };
    assert!(passed, "{text}\n{log}");
    assert!(log.trim().is_empty(), "{log}");
}

#[test]
#[ignore = "a child of oclgrind_finds_mistakes: needs its environment"]
fn child_makes_mistakes_on_oclgrind() {
    let device = oclgrind();
    let text = "
        __kernel void beyond(__global int *x) { x[get_global_id(0) + 1] = 1; }
        __kernel void race(__global int *x) { x[0] += 1; }";
    let program = device.compile(text, "").expect("it compiles");
    let memory = device.allocate(4 * 8).expect("it fits");
    let mut queue = device.queue().expect("a queue");
    for name in ["beyond", "race"] {
        let kernel = program.kernel(name).expect("it is there");
        let shape = Shape { groups: 4, items: 2 };
        queue.launch(&kernel, &[Argument::Memory(&memory)], shape, &[]).expect("it runs");
    }
    queue.finish().expect("it ends");
}

#[test]
#[ignore = "a child of oclgrind_finds_mistakes: needs its environment"]
fn child_runs_mutants_on_oclgrind() {
    let device = oclgrind();
    mutants(device.clone(), Mutation::OneRowMore);
    mutants(device, Mutation::PlainSums);
}

#[test]
fn oclgrind_finds_mistakes() {
    for (test, findings) in [
        ("child_makes_mistakes_on_oclgrind", ["Invalid write of size 4", "data race"]),
        ("child_runs_mutants_on_oclgrind", ["Invalid read of size", "data race"]),
    ] {
        let Some((_, text, log)) = grind(test) else { return };
        for finding in findings {
            assert!(log.contains(finding), "{test}, {finding}:\n{text}\n{log}");
        }
    }
}
