//! Rows divided for an exchange, on the device: counted by partition, the counts summed up, moved.

use tandem_column::Result;
use tandem_cpu::Contribution;

use super::launch::DeviceRun;

impl DeviceRun<'_> {
    /// Computes the rows of all pieces, each in the order of so many partitions, and adds them to the contribution.
    pub(super) fn partition(&mut self, parts: usize, into: &mut Contribution) -> Result<()> {
        self.describe(self.shape(), "rows counted, places summed up, rows written, then moved by partition");
        for piece in self.pieces() {
            self.job.settings().cancel.check()?;
            let mut rows = self.compute(&[piece])?;
            if rows.count == 0 {
                continue;
            }
            let order = self.sort(&rows.ordinals, rows.count)?;
            let (starts, ends) = self.segments(&rows, &order, parts)?;
            self.put_in_order(&mut rows, &order)?;
            rows.partitions = Some(starts.iter().zip(ends).map(|(start, end)| (end - start) as usize).collect());
            self.bring(into, &self.homes_of(piece), rows, false)?;
        }
        Ok(())
    }
}
