//! The share of a table's rows that its conditions leave, found by trying them on some rows.
//!
//! Statistics know single columns: what a function of a column gives, which texts match a pattern, and how often conditions on
//! several columns hold together they do not tell. Rows in memory do. They are tried only where a plan depends on it: in
//! statements of several tables, on tables that are not small.

use std::collections::BTreeSet;

use tandem_pipeline::{Comparison, Expr};

use super::estimate::Estimator;
use crate::planning::tree::{node::references, substitute};

/// Rows that are tried: the share of one in a hundred is known within a third.
const TRIED_ROWS: usize = 1024;
/// Tables of fewer rows are joined before it is known how.
const LEAST_ROWS: f64 = 50_000.0;
/// With fewer rows that pass, their number says little but that it is small.
const ENOUGH: usize = 10;

impl Estimator<'_> {
    /// Estimates the share of a scan's rows that its conditions leave.
    pub(super) fn filtered(&self, scan: usize, filters: &[Expr]) -> f64 {
        let known = self.conjunction(filters);
        let info = &self.registry.scans[scan];
        if self.registry.scans.len() < 2 || info.stats.rows < LEAST_ROWS || is_known(filters) {
            return known;
        }
        if let Some((_, share)) = info.tried.borrow().iter().find(|(tried, _)| tried == filters) {
            return share.unwrap_or(known);
        }
        let share = self.tried(scan, filters, known);
        info.tried.borrow_mut().push((filters.to_vec(), share));
        share.unwrap_or(known)
    }

    /// Tries conditions on some rows, if there are any at hand and none raises an error.
    fn tried(&self, scan: usize, filters: &[Expr], known: f64) -> Option<f64> {
        let info = &self.registry.scans[scan];
        let table = info.stats.rows_at_hand.as_ref()?;
        let placed = |expr: &Expr| substitute(expr, &|column| Expr::Slot(column - info.first));
        let predicate = Expr::And(filters.iter().map(placed).collect());
        let (passed, tried) = tandem_cpu::try_rows(table, &predicate, TRIED_ROWS).ok()?;
        if tried == 0 {
            return None;
        }
        let share = |rows: usize| rows as f64 / tried as f64;
        Some(if passed >= ENOUGH { share(passed) } else { known.min(share(passed + 2)) })
    }
}

/// Tells whether statistics say how many rows conditions leave: comparisons of one column with constants.
fn is_known(filters: &[Expr]) -> bool {
    let columns: BTreeSet<usize> = filters.iter().flat_map(references).collect();
    let plain = |expr: &Expr| matches!(expr, Expr::Slot(_) | Expr::Literal(..));
    let simple = |filter: &Expr| match filter {
        Expr::Compare(Comparison::NotEqual, ..) => false,
        Expr::Compare(_, left, right) => plain(left) && plain(right),
        Expr::In { input, .. } | Expr::IsNull(input) => plain(input),
        _ => false,
    };
    columns.len() <= 1 && filters.iter().all(simple)
}
