//! What we may assume about the terminal: whether there is one, its width, and colours.

use std::io::{IsTerminal, stderr, stdin, stdout};

/// Tells whether a person types and reads.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Tells whether standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
    stdout().is_terminal()
}

/// Tells whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    stderr().is_terminal()
}

/// Tells whether standard output takes colours.
pub fn stdout_color() -> bool {
    stdout().is_terminal() && colors_wanted()
}

/// Tells whether standard error takes colours.
pub fn stderr_color() -> bool {
    stderr().is_terminal() && colors_wanted()
}

/// Returns how many columns standard output has, where it is a terminal.
pub fn width() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

fn colors_wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}
