//! Structured logs: one line of `key=value` pairs (logfmt) per event, on standard error.

use std::{
    any::Any,
    fmt::{Display, Write as _},
    io::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::LogLevel;

/// Characters of a value that are written: clients choose some of them.
const VALUE_LENGTH: usize = 500;

/// Writes events of some levels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log(pub(crate) LogLevel);

impl Log {
    /// Writes that something panicked, with what the panic said.
    pub(crate) fn panicked(self, place: &str, panic: &(dyn Any + Send)) {
        self.event(LogLevel::Error, "panicked", &[("place", &place), ("message", &tandem_column::panic_text(panic))]);
    }

    /// Writes an event with its values.
    pub(crate) fn event(self, level: LogLevel, event: &str, values: &[(&str, &dyn Display)]) {
        if level > self.0 {
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let level = match level {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        };
        let mut line = format!("time={}.{:03} level={level} event={event}", time.as_secs(), time.subsec_millis());
        for (key, value) in values {
            let mut value = value.to_string();
            if let Some((end, _)) = value.char_indices().nth(VALUE_LENGTH) {
                value.truncate(end);
            }
            let plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '='));
            // Writing to a string does not fail.
            let _ = if plain { write!(line, " {key}={value}") } else { write!(line, " {key}={value:?}") };
        }
        line.push('\n');
        // A log that cannot be written has nowhere to say so.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
