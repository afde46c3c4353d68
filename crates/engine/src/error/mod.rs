//! The engine's error: a class and one sentence that names the thing and the remedy.
//!
//! DataFusion's, Arrow's and Parquet's errors are chains of several lines; [`crate::error::translate`] turns each into one
//! sentence. Within DataFusion's streams an [`Error`] travels as an external error and comes out unchanged.

pub(crate) mod names;
pub(crate) mod translate;
pub(crate) mod wording;

use std::fmt;

use datafusion::error::DataFusionError;
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

    /// Makes the error of a statement that was cancelled.
    pub fn cancelled() -> Self {
        tandem_column::Error::cancelled().into()
    }

    /// Tells whether the statement was cancelled, rather than failed.
    pub fn is_cancelled(&self) -> bool {
        *self == Self::cancelled()
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

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        crate::error::translate::Context::default().translate(&error)
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

/// Carries an error of a crate below through DataFusion.
pub(crate) fn external(error: tandem_column::Error) -> DataFusionError {
    Error::from(error).into()
}
