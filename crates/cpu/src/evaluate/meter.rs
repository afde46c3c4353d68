//! The memory of computed text: taken as it grows, so that a short expression cannot fill all memory.

use tandem_column::Result;
use tandem_pipeline::{Function, Value, scalar};

use super::Slots;

/// What every vector may have without asking: less than what its rows' numbers take.
const FREE: usize = 64 << 10;

/// Bytes of one vector that is being computed.
pub(super) struct Meter<'a> {
    slots: &'a dyn Slots,
    taken: usize,
}

impl<'a> Meter<'a> {
    /// Makes one for a vector of the rows of `slots`.
    pub(super) fn new(slots: &'a dyn Slots) -> Meter<'a> {
        Meter { slots, taken: FREE }
    }

    /// Says that the vector has, or is about to have, so many bytes.
    ///
    /// # Errors
    /// Exhausted if the memory budget is used up.
    #[inline]
    pub(super) fn reach(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.taken { self.grow(bytes) } else { Ok(()) }
    }

    #[cold]
    fn grow(&mut self, bytes: usize) -> Result<()> {
        // A vector that grows is there twice, the second time with room for as much again.
        let wanted = bytes.saturating_mul(3);
        self.slots.reserve(wanted - self.taken)?;
        self.taken = wanted;
        Ok(())
    }
}

/// Returns the most bytes that a function of these arguments gives, where that is more than they have.
pub(super) fn most_bytes(function: Function, arguments: &[Value]) -> usize {
    match (function, arguments) {
        (Function::Replace, [Value::String(value), Value::String(from), Value::String(to)]) => {
            scalar::text::most_replaced(value, from, to)
        }
        (Function::Repeat, [Value::String(value), Value::Integer(count)]) => {
            scalar::text::repeated_bytes(value, saturate(*count))
        }
        (Function::PadStart | Function::PadEnd, [Value::String(value), Value::Integer(length), rest @ ..]) => {
            let fill = if let [Value::String(fill)] = rest { fill } else { " " };
            scalar::text::padded_bytes(value, saturate(*length), fill)
        }
        _ => 0,
    }
}

/// Brings a count to 64 bits.
fn saturate(count: i128) -> i64 {
    count.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
