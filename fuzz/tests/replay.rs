//! Every input in git through its target, without libFuzzer: the seeds, and what once was wrong.

use std::{fs, path::Path};

use tandem_fuzz::{TARGETS, Target, memory::Counted, panics};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Runs the inputs of a target; returns how many there are.
fn replay(target: &Target, directory: &str) -> usize {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory).join(target.name);
    let Ok(entries) = fs::read_dir(&directory) else { return 0 };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.sort();
    for path in &paths {
        // Before it runs: an input that ends the process has been named.
        println!("{}", path.display());
        let bytes = fs::read(path).expect("a readable file");
        let ran = std::panic::catch_unwind(|| target.run(&bytes));
        if let Err(panic) = ran {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            panic!("{} shows a mistake: {text}", path.display());
        }
    }
    paths.len()
}

#[test]
fn kept_inputs_show_no_mistake() {
    panics::watch(panics::Then::Note);
    let mut failed = Vec::new();
    for target in TARGETS {
        // The panic's message has the path; the other targets run all the same.
        let ran = std::panic::catch_unwind(|| (replay(target, "seeds"), replay(target, "regressions")));
        match ran {
            Ok((seeds, _)) => assert!(seeds > 0, "{} has no seeds: dev/fuzz --seed", target.name),
            Err(panic) => failed.push(panic.downcast_ref::<String>().cloned().unwrap_or_default()),
        }
    }
    let _ = std::panic::take_hook();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
