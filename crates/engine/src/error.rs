//! The engine's error: a class and one sentence that names the thing and the remedy.

use std::fmt;

pub use tandem_column::Class;

/// An error for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the caller should do about it.
    pub class: Class,
    /// One sentence, without a full stop.
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
    /// Returns the class.
    pub fn class(&self) -> Class {
        self.class
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<tandem_column::Error> for Error {
    fn from(error: tandem_column::Error) -> Self {
        Error { class: error.class, message: error.message }
    }
}

impl From<datafusion::error::DataFusionError> for Error {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Error::input(error.strip_backtrace())
    }
}
