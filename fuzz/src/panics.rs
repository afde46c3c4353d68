//! Tells panics of our own code from those of dependencies.
//!
//! Scans, the daemon and the engine catch panics of code that is not ours, on files that are not ours either, and answer with a
//! sentence: that is by design, and no finding. The same guards would hide a panic of our own, so it is noted where it begins:
//! sources of this workspace have relative paths, those of dependencies and of the standard library absolute ones.

use std::{
    panic::{PanicHookInfo, set_hook},
    path::Path,
    sync::{Mutex, PoisonError},
};

static OWN: Mutex<Option<String>> = Mutex::new(None);
static LAST: Mutex<String> = Mutex::new(String::new());

/// What happens at a panic of our own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The process ends there and then: libFuzzer keeps the input.
    Abort,
    /// It is noted, and the input fails at its end.
    Note,
}

/// Watches panics from now on, in place of whatever did before.
pub fn watch(then: Then) {
    // Wraps the hook now, so that ours, set afterwards, sees guarded panics too.
    tandem_column::guarded(|| ()).expect("nothing panics");
    set_hook(Box::new(move |panic| {
        let text = panic.to_string();
        if is_own(panic) && then == Then::Abort {
            eprintln!("{text}\n{}", std::backtrace::Backtrace::force_capture());
            std::process::abort();
        }
        if is_own(panic) {
            OWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text.clone());
        }
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }));
}

fn is_own(panic: &PanicHookInfo<'_>) -> bool {
    panic.location().is_some_and(|location| Path::new(location.file()).is_relative())
}

/// Takes the first panic of our own code since the last call.
pub(crate) fn take() -> Option<String> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns the last panic of anything, for the message of a finding.
pub(crate) fn last() -> String {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_empty() { "nothing has panicked".to_owned() } else { format!("the last panic: {last}") }
}
