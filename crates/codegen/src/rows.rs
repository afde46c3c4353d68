//! Rows that are left of a part: counted first, then written, each work-item from its own place on.

use tandem_column::{Repr, Result};
use tandem_pipeline::Expr;

use crate::{Binding, kernel::Generator};

impl Generator<'_> {
    /// Writes the kernel that writes the rows that are left, each work-item from its own place on; tells which columns
    /// have null flags.
    pub(crate) fn rows(&mut self, rows: &str, values: &[Expr]) -> Result<Vec<bool>> {
        let counts = self.counts();
        self.text.line(format!("u32 place = {counts}[ITEMS + ITEM];"));
        self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
        self.steps()?;
        let mut nullable = Vec::with_capacity(values.len());
        for value in values {
            let term = self.expression(value)?;
            let numbers = match term.kind.repr() {
                Repr::Float => vec![format!("AS_I64({})", term.value)],
                // A wide value is two columns: the lower half, then the higher.
                Repr::Wide => {
                    let wide = self.text.define("wide", &term.integer()?.wide());
                    vec![format!("(i64){wide}.low"), format!("{wide}.high")]
                }
                _ => vec![term.value],
            };
            for number in numbers {
                let column = nullable.len();
                let out = self.text.argument(Binding::Values(column), "GLOBAL i64 *", &format!("o{column}"), "");
                self.text.line(format!("{out}[place] = {number};"));
                nullable.push(false);
            }
            if let (Some(null), Some(flagged)) = (term.null, nullable.last_mut()) {
                *flagged = true;
                let column = nullable.len() - 1;
                let out = self.text.argument(Binding::Nulls(column), "GLOBAL u8 *", &format!("o{column}n"), "");
                self.text.line(format!("{out}[place] = (u8)({null});"));
            }
        }
        self.text.line("place++;");
        self.close_row();
        Ok(nullable)
    }

    /// Writes the kernel that counts the rows that are left.
    pub(crate) fn count(&mut self, rows: &str) -> Result<()> {
        self.start_over();
        let counts = self.counts();
        self.text.line("u32 kept = 0;");
        self.text.open(&format!("FOR_ROWS(row, {rows}) {{"));
        self.steps()?;
        self.text.line("kept++;");
        self.close_row();
        self.text.line(format!("{counts}[ITEM] = kept;"));
        Ok(())
    }

    fn counts(&mut self) -> String {
        let remark = "rows kept by each work-item, then where each begins to write";
        self.text.argument(Binding::Counts, "GLOBAL u32 *", "counts", remark)
    }
}
