//! Why a part of a plan runs on the host: a value that planning collects and EXPLAIN, reports and errors print.

use std::fmt;

/// One operator that Tandem left to the host, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reason {
    /// The operator, by the name people know from EXPLAIN ("Window", "Aggregate", "TableScan of t").
    pub node: String,
    /// The rest of the sentence, without a full stop.
    pub reason: String,
}

impl Reason {
    /// Makes a reason for the named operator.
    pub fn new(node: impl Into<String>, reason: impl Into<String>) -> Self {
        Reason { node: node.into(), reason: reason.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_sentence() {
        let reason = Reason::new("Window", "lag with IGNORE NULLS runs on the host");
        assert_eq!(reason.to_string(), "Window: lag with IGNORE NULLS runs on the host");
    }
}
