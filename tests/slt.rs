//! Runs every `sql/*.slt` file under each configuration of `configs/*.toml`; a configuration is a test, by its file's name.
//!
//! The expected results are DataFusion's own (`capture-off`), but for the files that it skips (plans), which are those of
//! `capture-on`; `dev/rewrite sql` rewrites them. `TANDEM_SLT=word` limits a run to files whose name contains the word.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use libtest_mimic::{Arguments, Failed, Trial};
use sqllogictest::{Runner, strict_column_validator};
use tandem_device::testing;
use tandem_engine::Devices;
use tandem_tests::{Configuration, Database, normalize, validate_rows};

fn main() {
    let configurations = Configuration::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("configs"));
    let mut trials = Vec::new();
    for configuration in configurations.clone() {
        if configuration.environment.is_empty() {
            trials.push(Trial::test(configuration.name.clone(), move || run(&configuration)));
            continue;
        }
        // A driver reads its own variables when it is loaded: each of these has a process of its own.
        let (child, ours) = (format!("child_runs_{}", configuration.name), configuration.clone());
        trials.push(Trial::test(child.clone(), move || run(&ours)).with_ignored_flag(true));
        trials.push(Trial::test(configuration.name.clone(), move || run_in_child(&child, &configuration)));
    }
    trials.push(Trial::test("rewrite", move || rewrite(&configurations)).with_ignored_flag(true));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Runs a configuration in a process with its environment.
fn run_in_child(child: &str, configuration: &Configuration) -> Result<(), Failed> {
    if !configuration.can_run() {
        return Ok(());
    }
    let variables = configuration.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    testing::child(child, &variables.collect::<Vec<_>>());
    Ok(())
}

/// Runs all files that a configuration takes; a failing file does not keep the others from running.
fn run(configuration: &Configuration) -> Result<(), Failed> {
    if !configuration.can_run() {
        return Ok(());
    }
    let devices = devices(configuration);
    let mut failures = Vec::new();
    let files: Vec<PathBuf> = files().into_iter().filter(|file| configuration.takes(file)).collect();
    for file in &files {
        let outcome = runtime().block_on(async { runner(configuration, &devices).run_file_async(file).await });
        if let Err(error) = outcome {
            failures.push(format!("{}", error.display(false)));
        }
    }
    if !failures.is_empty() {
        let (failed, all) = (failures.len(), files.len());
        return Err(format!("{failed} of {all} files failed:\n\n{}", failures.join("\n\n")).into());
    }
    devices.save_programs();
    let used = if configuration.devices > 0 { devices.accelerators() } else { &[] };
    let used: Vec<String> = used.iter().filter(|device| device.jobs() > 0).map(|device| device.label()).collect();
    if configuration.devices > 0 && used.len() != configuration.devices {
        return Err(
            format!("{} devices should have run pipelines; those that did: {used:?}", configuration.devices).into()
        );
    }
    Ok(())
}

/// Rewrites all files with what DataFusion alone answers, and those that it does not run with what our pipelines do.
fn rewrite(configurations: &[Configuration]) -> Result<(), Failed> {
    for file in files() {
        let named = |name: &str| configurations.iter().find(|configuration| configuration.name == name);
        let takes = |configuration: &&Configuration| configuration.takes(&file);
        let configuration = ["capture-off", "capture-on"].into_iter().filter_map(named).find(takes);
        let configuration = configuration.ok_or_else(|| format!("nothing runs {}", file.display()))?;
        println!("rewriting {} with {}", file.display(), configuration.name);
        let outcome = runtime().block_on(async {
            let devices = devices(configuration);
            let mut runner = runner(configuration, &devices);
            let outcome = runner.update_test_file(&file, " ", validate_rows, normalize, strict_column_validator).await;
            outcome.map_err(|error| error.to_string())
        });
        outcome?;
    }
    Ok(())
}

/// Makes a configuration's devices; compiled kernels are kept for later runs, apart from the user's.
fn devices(configuration: &Configuration) -> Arc<Devices> {
    configuration.devices(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels"))
}

fn runner(
    configuration: &Configuration,
    devices: &Arc<Devices>,
) -> Runner<Database, impl sqllogictest::MakeConnection<Conn = Database>> {
    let label = configuration.name.clone();
    let (configuration, devices) = (configuration.clone(), devices.clone());
    let mut runner = Runner::new(move || {
        let session = configuration.open(&devices);
        async move { session.map(Database::new) }
    });
    runner.add_label(&label);
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
