//! Rows as they come.

use tandem_column::Type;
use tandem_pipeline::{Slot, SlotId};

/// Rows in the order of the source.
#[derive(Clone, Debug)]
pub struct MaterializePlan {
    /// How many of the first rows are left out.
    pub skip: usize,
    /// How many rows behind them are wanted.
    pub fetch: Option<usize>,
    /// The slots that come out.
    pub output: Vec<SlotId>,
    /// Their types.
    pub kinds: Vec<Type>,
}

impl MaterializePlan {
    pub(crate) fn new((skip, fetch): (usize, Option<usize>), output: &[SlotId], slots: &[Slot]) -> MaterializePlan {
        let kinds = output.iter().map(|slot| slots[*slot].kind.clone()).collect();
        MaterializePlan { skip, fetch, output: output.to_vec(), kinds }
    }
}
