//! Calls into code that is not ours, on bytes that nobody vouches for.
//!
//! Damaged files may meet an assertion in a library that decodes them. [`guarded`] turns that panic into a value, and keeps
//! it off standard error: the caller says in one sentence what is wrong with the file. Panics outside such a call print as
//! they always do. For this the process's panic hook is wrapped once, on the first call; a hook that is set afterwards
//! sees every panic.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

thread_local! {
    /// How many guarded calls this thread is in.
    static GUARDED: Cell<usize> = const { Cell::new(0) };
}

/// Wraps the panic hook by one that is silent on threads within a guarded call.
fn silence() {
    static WRAPPED: Once = Once::new();
    WRAPPED.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            // A thread whose locals are gone is in no guarded call.
            if GUARDED.try_with(Cell::get).unwrap_or(0) == 0 {
                previous(panic);
            }
        }));
    });
}

/// One guarded call, for as long as it lives.
struct Entered;

impl Entered {
    fn new() -> Entered {
        GUARDED.set(GUARDED.get() + 1);
        Entered
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        GUARDED.set(GUARDED.get() - 1);
    }
}

/// Calls code that may panic on bad bytes; a panic prints nothing and is returned. What the call changed before it panicked
/// must not be used.
///
/// # Errors
/// The panic.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    silence();
    let _entered = Entered::new();
    catch_unwind(AssertUnwindSafe(call))
}

/// Makes this thread one whose panics print nothing, for threads that run other people's code and whose panics are always
/// reported as errors.
pub fn guard_thread() {
    silence();
    GUARDED.set(GUARDED.get() + 1);
}

/// Returns what a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}
