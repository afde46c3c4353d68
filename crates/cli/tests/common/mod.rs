//! Runs the binary and looks at what it says.

use std::{
    io::Write,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

/// Returns the binary, without colours, in a place of its own.
pub fn tandem() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
    command.env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
    command
}

/// Runs with arguments.
pub fn run(arguments: &[&str]) -> Output {
    tandem().args(arguments).stdin(Stdio::null()).output().expect("the binary runs")
}

/// Runs one text of SQL.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
pub fn sql(text: &str) -> Output {
    run(&["--format", "csv", "--on-fallback", "silent", "-c", text])
}

/// Runs with a text on standard input.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
pub fn input(arguments: &[&str], text: &str) -> Output {
    let mut child = tandem()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("the binary reads");
    child.wait_with_output().expect("the binary ends")
}

/// Returns standard output.
pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is text")
}

/// Returns standard error.
pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("errors are text")
}

/// Asserts success and returns standard output.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
#[track_caller]
pub fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{:?}: {}", output.status, err(output));
    out(output)
}

/// Asserts a failure of one sentence that names every one of `words`, and no panic.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
#[track_caller]
pub fn fails(output: &Output, code: i32, words: &[&str]) {
    let text = err(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "one error: {text}");
    assert_eq!(text.lines().filter(|line| !line.starts_with("note: ")).count(), 1, "one line: {text}");
    for word in words {
        assert!(text.to_lowercase().contains(&word.to_lowercase()), "'{word}' is named: {text}");
    }
    for noise in ["DataFusion error", "External error", "Arrow error", "Execution error", "ParquetError", "backtrace"] {
        assert!(!text.contains(noise), "no chain of causes: {text}");
    }
}

/// Lists the names in a directory.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the directory is readable")
        .map(|entry| entry.expect("the directory is readable").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Sends a signal to a process that we started.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// Lists the hidden places in a directory where files are written before they get their names.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
pub fn staged(directory: &Path) -> Vec<String> {
    let mut names = names(directory);
    names.retain(|name| name.starts_with(".tandem-staging-"));
    names
}

/// Waits until a process writes into a directory; it must not end before.
#[allow(dead_code, reason = "each test binary uses its part of this module")]
pub fn wait_for_staging(child: &mut Child, directory: &Path) {
    while staged(directory).is_empty() {
        assert!(child.try_wait().expect("it is our child").is_none(), "it ended before it wrote anything");
        std::thread::yield_now();
    }
}
