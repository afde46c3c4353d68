//! The engine's errors on their way through DataFusion.
//!
//! The engine has the one [`Error`] of all crates. Within DataFusion's plans and streams it travels as an external error
//! ([`IntoHost`]) and comes out unchanged; DataFusion's, Arrow's and Parquet's own errors are chains of several lines, which
//! [`translate`] turns into one sentence ([`FromHost`]).

pub(crate) mod names;
pub(crate) mod translate;
pub(crate) mod wording;

use datafusion::error::DataFusionError;
pub use tandem_column::{Class, Error, Result};

/// Carries an error, or a result, into DataFusion.
pub(crate) trait IntoHost {
    /// What DataFusion has for it.
    type Host;

    /// Wraps the error, to come out unchanged.
    fn into_host(self) -> Self::Host;
}

impl IntoHost for Error {
    type Host = DataFusionError;

    fn into_host(self) -> DataFusionError {
        DataFusionError::External(Box::new(self))
    }
}

impl<T> IntoHost for Result<T, Error> {
    type Host = Result<T, DataFusionError>;

    fn into_host(self) -> Self::Host {
        self.map_err(Error::into_host)
    }
}

/// Brings a result out of DataFusion.
pub(crate) trait FromHost<T> {
    /// Makes the error one sentence, without knowing the statement.
    fn out_of_host(self) -> Result<T, Error>;
}

impl<T, E: Into<DataFusionError>> FromHost<T> for Result<T, E> {
    fn out_of_host(self) -> Result<T, Error> {
        self.map_err(|error| translate::ErrorContext::default().translate(&error.into()))
    }
}
