//! What is made of all rows in order before window functions are computed: lists of those that count, prefix sums, segment trees.

use tandem_codegen::{Binding, Running, RunningKind, WindowBinding, WindowKernels};
use tandem_column::Result;
use tandem_device::{Argument, Memory};

use super::{
    launch::DeviceRun,
    operators::{ALONE, small},
    rows::DeviceRows,
    window::Sorted,
};

impl DeviceRun<'_> {
    /// Makes all that is running, of what a kernel writes of each row.
    pub(super) fn run_up(&mut self, kernels: &WindowKernels, sorted: &mut Sorted) -> Result<()> {
        let WindowKernels { contributions: Some(kernel), running, functions } = kernels else { return Ok(()) };
        let rows = sorted.rows;
        for Running { kind, .. } in running {
            let numbers = if kind.is_tree() { 2 * rows } else { rows + 1 };
            sorted.running.push(self.allocate(numbers * kind.width())?);
        }
        self.launch_window(kernel, rows, sorted, &DeviceRows::of(Vec::new()))?;
        for (at, Running { kind, .. }) in running.iter().enumerate() {
            let memory = sorted.running[at].clone();
            let mut list = None;
            match kind {
                RunningKind::Counts if functions.bindings.contains(&Binding::Window(WindowBinding::Counted(at))) => {
                    list = Some(self.list_counted(&memory, rows)?.1);
                }
                RunningKind::Counts => _ = self.sum_up(&memory, rows + 1)?,
                RunningKind::Sums => self.sum_up_wide(["sum_shares_64", "scan_shares_64"], &memory, rows + 1, 8)?,
                RunningKind::WideSums => {
                    self.sum_up_wide(["sum_shares_128", "scan_shares_128"], &memory, rows + 1, 16)?
                }
                RunningKind::Least => self.grow("tree_least_64", &memory, rows)?,
                RunningKind::WideLeast => self.grow("tree_least_128", &memory, rows)?,
                RunningKind::FloatSums => self.grow("tree_sum", &memory, rows)?,
                RunningKind::Moments => self.grow("tree_moments", &memory, rows)?,
            }
            sorted.counted.push(list);
        }
        Ok(())
    }

    /// Sums counts up and lists the rows that are counted; returns how many there are.
    pub(super) fn list_counted(&mut self, counts: &Memory, rows: usize) -> Result<(usize, Memory)> {
        let count = self.scan(counts, rows + 1)?;
        let list = self.allocate(count * 4)?;
        let arguments = [Argument::Memory(counts), Argument::U32(small(rows)?), Argument::Memory(&list)];
        self.operate("list_counted", &arguments, self.shape())?;
        Ok((count, list))
    }

    /// Replaces numbers of some bytes by the sums of those before each.
    fn sum_up_wide(
        &mut self,
        [sum, scan]: [&'static str; 2],
        numbers: &Memory,
        count: usize,
        width: usize,
    ) -> Result<()> {
        let (all, counted) = (Argument::Memory(numbers), Argument::U32(small(count)?));
        if self.is_few(count) {
            return self.operate(scan, &[all, counted, Argument::Null], ALONE);
        }
        let shape = self.shares();
        let shares = shape.groups * shape.items;
        let sums = self.allocate(shares * width)?;
        let each = Argument::Memory(&sums);
        self.operate(sum, &[all, counted, each], shape)?;
        self.operate(scan, &[each, Argument::U32(shares as u32), Argument::Null], ALONE)?;
        self.operate(scan, &[all, counted, each], shape)
    }

    /// Makes the inner nodes of a segment tree over rows, level by level.
    fn grow(&mut self, name: &'static str, tree: &Memory, rows: usize) -> Result<()> {
        let mut to = rows;
        while to > 1 {
            let few = self.is_few(to);
            let from = if few { 1 } else { to.next_power_of_two() / 2 };
            let shape = if few { ALONE } else { self.shape() };
            let ends = [from, to].map(|node| small(node).map(Argument::U32));
            let [from_node, to_node] = ends;
            self.operate(name, &[Argument::Memory(tree), from_node?, to_node?], shape)?;
            to = from;
        }
        Ok(())
    }
}
