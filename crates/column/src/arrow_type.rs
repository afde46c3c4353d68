//! The correspondence of types to Arrow's.

use arrow_schema::DataType;

use crate::{Error, Result, TimeUnit, Type};

impl Type {
    /// Returns the type that an Arrow type becomes.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_arrow(kind: &DataType) -> Result<Type> {
        Err(Error::unsupported(format!("{kind}")))
    }

    /// Returns the Arrow type that values of this type are given as.
    pub fn to_arrow(&self) -> DataType {
        DataType::Null
    }
}

impl From<arrow_schema::TimeUnit> for TimeUnit {
    fn from(unit: arrow_schema::TimeUnit) -> TimeUnit {
        match unit {
            arrow_schema::TimeUnit::Second => TimeUnit::Second,
            arrow_schema::TimeUnit::Millisecond => TimeUnit::Millisecond,
            arrow_schema::TimeUnit::Microsecond => TimeUnit::Microsecond,
            arrow_schema::TimeUnit::Nanosecond => TimeUnit::Nanosecond,
        }
    }
}

impl From<TimeUnit> for arrow_schema::TimeUnit {
    fn from(unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::Second => Self::Second,
            TimeUnit::Millisecond => Self::Millisecond,
            TimeUnit::Microsecond => Self::Microsecond,
            TimeUnit::Nanosecond => Self::Nanosecond,
        }
    }
}
