//! What guarded calls print, seen from outside: this test runs itself as a process of its own.

use std::process::Command;

use tandem_column::{guard_thread, guarded, panic_text};

/// Set for the process that panics.
const CHILD: &str = "TANDEM_GUARD_CHILD";

#[test]
fn guarded_panics_print_nothing_and_others_do() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let output = Command::new(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", "guarded_panics_print_nothing_and_others_do", "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "1")
        .output()
        .expect("the test runs again");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.contains("said aloud"), "{error}");
    for silent in ["in a guarded call", "on a guarded thread", "within another"] {
        assert!(!error.contains(silent), "{error}");
    }
}

fn child() {
    let panic = guarded(|| -> () { panic!("in a guarded call") }).expect_err("it panics");
    assert_eq!(panic_text(&*panic), "in a guarded call");
    let within = guarded(|| {
        let inner = guarded(|| -> () { panic!("{} another", "within") });
        panic_text(&*inner.expect_err("it panics")).to_owned()
    });
    assert_eq!(within.expect("the outer call goes on"), "within another");
    assert_eq!(guarded(|| 7).expect("it does not panic"), 7);
    let thread = std::thread::spawn(|| {
        guard_thread();
        panic!("on a guarded thread");
    });
    assert!(thread.join().is_err());
    // The guard has ended: what panics now is said.
    assert!(std::thread::spawn(|| panic!("said aloud")).join().is_err());
    assert!(std::panic::catch_unwind(|| panic!("said aloud")).is_err());
}
