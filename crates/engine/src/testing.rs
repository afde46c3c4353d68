//! What tests change about execution; no part of a session's settings.

pub use tandem_cpu::Switches;
