//! Rows divided for an exchange.

use tandem_column::Type;
use tandem_pipeline::{Expr, Slot, SlotId};

/// Rows by the hash of keys, as [`tandem_pipeline::partition`] defines it.
#[derive(Clone, Debug)]
pub struct PartitionPlan {
    /// The keys.
    pub keys: Vec<Expr>,
    /// How many partitions there are, at least one.
    pub parts: usize,
    /// The slots that come out.
    pub output: Vec<SlotId>,
    /// The types of output.
    pub kinds: Vec<Type>,
}

impl PartitionPlan {
    pub(crate) fn new(keys: &[Expr], parts: usize, output: &[SlotId], slots: &[Slot]) -> PartitionPlan {
        let kinds = output.iter().map(|slot| slots[*slot].kind.clone()).collect();
        PartitionPlan { keys: keys.to_vec(), parts: parts.max(1), output: output.to_vec(), kinds }
    }
}
