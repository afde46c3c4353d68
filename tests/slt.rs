//! Runs every `sql/*.slt` file under each configuration.
//!
//! The expected results are DataFusion's own (`Mode::Host`), but for plans (`explain.slt`), which are ours; `dev/rewrite-slt`
//! rewrites them. `TANDEM_SLT=word` limits a run to files whose name contains the word.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sqllogictest::{Runner, strict_column_validator};
use tandem_device::testing;
use tandem_engine::{Config, Error, Mode, OnFallback, Session};
use tandem_tests::{Database, normalize, validate_rows};

/// A configuration changes nothing about results.
fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config { mode: Mode::Cpu, on_fallback: OnFallback::Silent, ..Config::default() };
    change(&mut config);
    config
}

#[test]
fn capture_off() {
    if std::env::var_os("TANDEM_REWRITE_SLT").is_some() {
        return rewrite();
    }
    run("host", &config(|c| c.mode = Mode::Host));
}

#[test]
fn capture_on() {
    run("cpu", &config(|_| ()));
}

#[test]
fn automatic_mode() {
    run("cpu", &config(|c| c.mode = Mode::Auto));
}

#[test]
fn vectors_of_one_row() {
    run("cpu", &config(|c| c.vector_rows = 1));
}

#[test]
fn vectors_of_seven_rows() {
    run("cpu", &config(|c| c.vector_rows = 7));
}

#[test]
fn one_thread() {
    run("cpu", &config(|c| c.threads = 1));
}

#[test]
fn forced_hash_collisions() {
    run("cpu", &config(|c| c.force_collisions = true));
}

/// Pipelines on a device, where there is one: results are the same, plans are not.
#[test]
fn opencl() {
    on_devices("opencl", 1, &[("TANDEM_DEVICES", "opencl:0")]);
}

#[test]
fn opencl_poor() {
    on_devices("poor", 1, &[("TANDEM_DEVICES", "opencl:0"), ("TANDEM_DEVICE_POOR", "1")]);
}

#[test]
fn opencl_two_devices() {
    if testing::is_pocl(&tandem_device::find()) {
        on_devices("opencl", 2, &[testing::TWO_DEVICES]);
    }
}

#[test]
fn sim() {
    on_devices("sim", 1, &[("TANDEM_DEVICES", "sim"), ("TANDEM_SIM", "titan-rtx")]);
}

/// Runs all files in a process of its own, since devices are looked for once; so many must have done work. Compiled programs
/// are kept for later runs, apart from the user's, in a directory for each kind of kernels: one holds fewer than all.
fn on_devices(kernels: &str, devices: usize, environment: &[(&str, &str)]) {
    if !tandem_tests::has_device() {
        return;
    }
    let kept = format!("{}/kernels/{kernels}", env!("CARGO_TARGET_TMPDIR"));
    let text = testing::child("child_runs_on_devices", &[environment, &[("TANDEM_KERNEL_CACHE", &kept)]].concat());
    let used = text.lines().find_map(|line| line.strip_prefix("devices that ran pipelines: ")).unwrap_or_default();
    println!("{used}");
    assert_eq!(used.split(", ").filter(|label| !label.is_empty()).count(), devices, "{text}");
}

#[test]
#[ignore = "a child of other tests: runs on the devices of its environment"]
fn child_runs_on_devices() {
    run("gpu", &config(|c| c.mode = Mode::Gpu));
    let devices = tandem_runtime::devices().accelerators.iter().filter(|device| device.jobs() > 0);
    let used: Vec<String> = devices.map(|device| device.label()).collect();
    println!("\ndevices that ran pipelines: {}", used.join(", "));
}

/// Runs all files; a failing file does not keep the others from running.
fn run(label: &str, config: &Config) {
    if std::env::var_os("TANDEM_REWRITE_SLT").is_some() {
        return;
    }
    let mut failures = Vec::new();
    let files = files();
    for file in &files {
        let outcome = runtime().block_on(async { runner(label, config).run_file_async(file).await });
        if let Err(error) = outcome {
            failures.push(format!("{}", error.display(false)));
        }
    }
    assert!(failures.is_empty(), "{} of {} files failed:\n\n{}", failures.len(), files.len(), failures.join("\n\n"));
}

/// Rewrites all files with what DataFusion alone answers, and plans with ours.
fn rewrite() {
    for file in files() {
        println!("rewriting {}", file.display());
        let explains = file.file_stem().is_some_and(|stem| stem == "explain");
        let (label, mode) = if explains { ("cpu", Mode::Cpu) } else { ("host", Mode::Host) };
        let config = config(|c| c.mode = mode);
        runtime()
            .block_on(async {
                let mut runner = runner(label, &config);
                let outcome =
                    runner.update_test_file(&file, " ", validate_rows, normalize, strict_column_validator).await;
                outcome.map_err(|e| e.to_string())
            })
            .expect("the file can be rewritten");
    }
}

fn runner(label: &str, config: &Config) -> Runner<Database, impl sqllogictest::MakeConnection<Conn = Database>> {
    let config = config.clone();
    let mut runner = Runner::new(move || {
        let config = config.clone();
        async move { Ok::<_, Error>(Database::new(Session::new(config)?)) }
    });
    runner.add_label(label);
    runner.with_normalizer(normalize);
    runner.with_validator(validate_rows);
    runner.with_column_validator(strict_column_validator);
    runner
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads can start")
}

fn files() -> Vec<PathBuf> {
    let wanted = std::env::var("TANDEM_SLT").unwrap_or_default();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut files: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("tests/sql exists")
        .map(|entry| entry.expect("tests/sql is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .filter(|path| path.to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no file in tests/sql matches '{wanted}'");
    files
}
