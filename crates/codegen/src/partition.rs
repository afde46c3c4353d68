//! Rows by the hash of their keys, for an exchange: each has the number of its partition as its only ordinal.
//!
//! Sorting by that is one pass of the radix sort: rows are counted by partition, the counts summed up, and rows moved, so that no
//! work-item waits for another. The hash is the language's ([`tandem_pipeline::partition`]).

use tandem_column::{Repr, Result};
use tandem_pipeline::{Expr, partition::SEED};

use crate::{Binding, expression::unsupported, kernel::Generator};

impl Generator<'_> {
    /// Writes the number of a row's partition, of so many.
    pub(crate) fn partition_ordinal(&mut self, keys: &[Expr], parts: usize) -> Result<()> {
        let mut hash = self.text.define("u64", &format!("{SEED:#x}UL"));
        for key in keys {
            let mut term = self.expression(key)?;
            if term.words.is_some() {
                let (slot, kind) = (Expr::Slot(0), term.kind.clone());
                let null = term.null.clone();
                if let Some(word) = self.text_by_word(&slot, &term, kind)? {
                    term = word;
                    term.null = null;
                }
            }
            let taken = match term.kind.repr() {
                Repr::Int | Repr::Boolean => format!("hash_integer({hash}, (i64){})", term.value),
                Repr::Float => format!("hash_integer({hash}, AS_I64({}))", term.value),
                Repr::Wide => {
                    let wide = term.integer()?.wide();
                    format!("hash_wide({hash}, {wide})")
                }
                Repr::Bytes if term.is_text() => format!("hash_text({hash}, {})", term.value),
                _ => return unsupported(format!("partitions by {}", term.kind)),
            };
            let taken = match &term.null {
                Some(null) => format!("{null} ? hash_null({hash}) : {taken}"),
                None => taken,
            };
            hash = self.text.define("u64", &taken);
        }
        let parts = self.text.argument(Binding::Constant(parts as i64), "const i64", "", "partitions");
        let out = self.text.output(Binding::Ordinal(0), "u64", "s0");
        self.text.line(format!("{out}[place] = HIGH_PRODUCT_U64({hash}, {parts});"));
        Ok(())
    }
}
