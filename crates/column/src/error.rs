//! What went wrong, and what kind of wrong it is.

use std::{any::Any, fmt};

use crate::guard::panic_text;

/// The class of an error: what the caller should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The user's input is wrong: say so and stop.
    Input,
    /// Not implemented here: fall back, with the reason.
    Unsupported,
    /// A resource ran out: swap, split, retry or wait.
    Exhausted,
    /// A device failed: quarantine it and redo the work elsewhere.
    Device,
    /// The user, or what waited for the result, called it off: stop, and report nothing as failed.
    Cancelled,
    /// A bug of ours.
    Internal,
}

/// The error of every crate: a class and one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What the caller should do about it.
    pub class: Class,
    /// One sentence for people: fixed text first, values last, with the remedy.
    pub message: String,
}

/// The result of a fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error of the given class.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Error { class, message: message.into() }
    }
    /// Makes an error that the user's input caused.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Class::Input, message)
    }
    /// Makes an error that says what is not implemented.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Class::Unsupported, message)
    }
    /// Makes an error that says which resource ran out.
    pub fn exhausted(message: impl Into<String>) -> Self {
        Self::new(Class::Exhausted, message)
    }
    /// Makes an error that reports a bug of ours.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Class::Internal, message)
    }
    /// Makes the error of a panic, with its message.
    pub fn panicked(who: &str, panic: &(dyn Any + Send)) -> Self {
        Self::internal(format!("{who} panicked; please report this as a bug: {}", panic_text(panic)))
    }
    /// Makes the error of a statement that was cancelled.
    pub fn cancelled() -> Self {
        Self::new(Class::Cancelled, "the statement was cancelled")
    }
    /// Tells whether the statement was cancelled, rather than failed.
    pub fn is_cancelled(&self) -> bool {
        self.class == Class::Cancelled
    }
    /// Returns what the caller should do about it.
    pub fn class(&self) -> Class {
        self.class
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        use arrow_schema::ArrowError as A;
        let class = match &error {
            A::NotYetImplemented(_) => Class::Unsupported,
            A::MemoryError(_) => Class::Exhausted,
            A::CDataInterface(_) | A::SchemaError(_) | A::InvalidArgumentError(_) => Class::Internal,
            _ => Class::Input,
        };
        Error::new(class, error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
