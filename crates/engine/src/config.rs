//! What a session is told at its start: where statements run, and within which bounds.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Where statements run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// As [`Mode::Cpu`], until pipelines are placed by cost: a device runs nothing unless [`Mode::Gpu`] asks for it.
    #[default]
    Auto,
    /// On Tandem's CPU executor; what it lacks on the host engine.
    Cpu,
    /// On a device, where a kernel can compute a pipeline; what it lacks on the CPU executor, then on the host engine.
    Gpu,
    /// On the host engine (DataFusion) alone.
    Host,
}

/// What happens when a part of a statement is left to the host engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnFallback {
    /// The statement runs; its report has the reasons for the caller to show.
    #[default]
    Warn,
    /// The statement fails with the reasons.
    Error,
    /// The statement runs; nothing is to be shown.
    Silent,
}

/// The settings of a session, as [`Session::config`](crate::Session::config) tells them; [`Session::builder`] sets them.
///
/// [`Session::builder`]: crate::Session::builder
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Where statements run.
    pub mode: Mode,
    /// What happens when a part of a statement is left to the host engine.
    pub on_fallback: OnFallback,
    /// Worker threads; at least one.
    pub threads: usize,
    /// Bytes that statements, resident tables and cached columns may take together; `None` is four fifths of the machine's
    /// memory.
    pub memory_limit: Option<usize>,
    /// Bytes that cached columns of scanned files may take; `None` picks a quarter of the machine's memory,
    /// or half of the limit if that is less.
    pub cache_limit: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mode: Mode::default(),
            on_fallback: OnFallback::default(),
            threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
            memory_limit: None,
            cache_limit: None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Auto => "auto",
            Mode::Cpu => "cpu",
            Mode::Gpu => "gpu",
            Mode::Host => "host",
        })
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "auto" => Ok(Mode::Auto),
            "cpu" => Ok(Mode::Cpu),
            "gpu" => Ok(Mode::Gpu),
            "host" => Ok(Mode::Host),
            other => Err(Error::input(format!("the mode is one of auto, cpu, gpu and host, not '{other}'"))),
        }
    }
}

impl fmt::Display for OnFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnFallback::Warn => "warn",
            OnFallback::Error => "error",
            OnFallback::Silent => "silent",
        })
    }
}

impl FromStr for OnFallback {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "warn" => Ok(OnFallback::Warn),
            "error" => Ok(OnFallback::Error),
            "silent" => Ok(OnFallback::Silent),
            other => Err(Error::input(format!("on-fallback is one of warn, error and silent, not '{other}'"))),
        }
    }
}
