//! The program that looks for new inputs: libFuzzer around one target, named by the environment. See `dev/fuzz`.
#![no_main]

use std::{fs::File, os::unix::fs::FileExt, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use tandem_fuzz::{Target, memory::Counted, panics};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

static TARGET: OnceLock<&Target> = OnceLock::new();
/// Holds the input that runs: a thread whose stack overflows ends the process before libFuzzer can write it.
static LAST: OnceLock<File> = OnceLock::new();

/// Reads the environment. One program serves all targets, so that DataFusion is linked once.
fn begin() {
    let name = std::env::var("TANDEM_FUZZ_TARGET").unwrap_or_default();
    let target = Target::named(&name).unwrap_or_else(|| panic!("TANDEM_FUZZ_TARGET does not name a target: '{name}'"));
    let _ = TARGET.set(target);
    if let Some(path) = std::env::var_os("TANDEM_FUZZ_LAST") {
        let _ = LAST.set(File::create(&path).expect("TANDEM_FUZZ_LAST can be written"));
    }
    // In place of libFuzzer's own, which would end the process at panics that are caught by design.
    panics::watch(panics::Then::Abort);
}

fuzz_target!(init: begin(), |bytes: &[u8]| {
    if let Some(last) = LAST.get() {
        let kept = last.write_all_at(bytes, 0).and_then(|()| last.set_len(bytes.len() as u64));
        kept.expect("TANDEM_FUZZ_LAST can be written");
    }
    TARGET.get().expect("set at the start").run(bytes);
});
